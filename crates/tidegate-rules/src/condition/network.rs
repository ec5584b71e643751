//! A network: all addresses with a common prefix.
//!
//! A network is stored as the first and the last address of its range, both as 128-bit numbers. Two networks are then
//! nested or disjoint, and an index finds the networks around an address by binary search.

use std::fmt;
use std::net::IpAddr;

/// A range of addresses, both ends included. IPv4 addresses are represented as IPv4-mapped IPv6 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Network {
    pub(crate) first: u128,
    pub(crate) last: u128,
}

/// The prefix of IPv4-mapped IPv6 addresses.
///
/// They are `::ffff:0:0/96`: 80 zero bits, 16 one bits, then the IPv4 address.
const IPV4: u128 = 0xffff_0000_0000;

impl Network {
    /// The network of all addresses.
    pub(crate) const ALL: Network = Network { first: 0, last: u128::MAX };

    /// Returns the network of a single address.
    pub(crate) fn of(ip: IpAddr) -> Network {
        let number = number_of(ip);
        Network { first: number, last: number }
    }

    /// Creates a network. Returns `None` for an IPv6 network that contains the IPv4-mapped range and more, because IPv4
    /// addresses are not meant by it.
    pub(crate) fn new(net: ipnet::IpNet) -> Option<Network> {
        let number = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => IPV4 | u128::from(ip.to_bits()),
            IpAddr::V6(ip) => ip.to_bits(),
        };
        let network = Network { first: number(net.network()), last: number(net.broadcast()) };
        let is_around = net.addr().is_ipv6() && net.prefix_len() < 96 && network.contains_number(IPV4);
        // `::/0` is accepted, because it is commonly used to mean all addresses.
        (!is_around || net.prefix_len() == 0).then_some(network)
    }

    /// Returns true if the address is in the network. An IPv4 address and its IPv4-mapped form are the same address.
    pub(crate) fn contains(&self, ip: IpAddr) -> bool {
        self.contains_number(number_of(ip))
    }

    /// Returns true if the number of an address, from [`number_of`], is in the range.
    pub(crate) fn contains_number(&self, number: u128) -> bool {
        self.first <= number && number <= self.last
    }

    /// Returns true if every address of the other network is in this one.
    pub(crate) fn covers(&self, other: &Network) -> bool {
        self.first <= other.first && other.last <= self.last
    }
}

/// Returns an address as a number, the same for all of its representations.
pub(crate) fn number_of(ip: IpAddr) -> u128 {
    match ip.to_canonical() {
        IpAddr::V4(ip) => IPV4 | u128::from(ip.to_bits()),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

impl fmt::Display for Network {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits =
            (self.last - self.first + u128::from(self.first > 0 || self.last < u128::MAX)).trailing_zeros();
        let bits = if self.first == 0 && self.last == u128::MAX { 128 } else { bits };
        let ip = IpAddr::V6(self.first.into()).to_canonical();
        let length = if ip.is_ipv4() { 32 } else { 128 } - bits;
        if bits == 0 { write!(out, "{ip}") } else { write!(out, "{ip}/{length}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        Network::new(text.parse().unwrap()).unwrap()
    }

    #[test]
    fn an_address_is_in_a_network_in_any_clothes() {
        let office = network("10.0.0.0/8");
        for (ip, is_in) in [
            ("10.0.0.0", true),
            ("10.255.255.255", true),
            ("11.0.0.0", false),
            ("::ffff:10.1.2.3", true),
            ("::ffff:11.1.2.3", false),
            ("::10.1.2.3", false),
        ] {
            assert_eq!(office.contains(ip.parse().unwrap()), is_in, "{ip}");
        }
        assert!(network("::/0").contains("192.0.2.7".parse().unwrap()));
        assert!(!network("2001:db8::/32").contains("192.0.2.7".parse().unwrap()));
        assert_eq!(Network::new("::/64".parse().unwrap()), None);
        assert_eq!(network("::ffff:10.0.0.0/104"), office);
    }

    #[test]
    fn it_is_shown_as_it_is_written() {
        for text in ["10.0.0.0/8", "0.0.0.0/0", "::/0", "2001:db8::/32", "fe80::/10", "192.0.2.7/32"] {
            assert_eq!(
                network(text).to_string(),
                text.trim_end_matches("/32").replace("db8::", "db8::/32").replace("/32/32", "/32")
            );
        }
        assert_eq!(Network::of("2001:db8::1".parse().unwrap()).to_string(), "2001:db8::1");
    }
}

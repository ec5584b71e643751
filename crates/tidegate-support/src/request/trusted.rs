//! The address of a client behind trusted proxies.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

/// The maximum number of items of a list of addresses that are read. No chain of proxies is that long.
pub const MAX_HOPS: usize = 32;

/// The networks of trusted proxies. The list is short, so it is searched in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Adds a network. IPv4-mapped networks (`::ffff:10.0.0.0/104`) become the IPv4 networks, as addresses of clients do.
    pub fn add(&mut self, network: IpNet) {
        self.0.push(canonical(network));
    }

    /// Adds a network (`10.0.0.0/8`) or an address (`192.0.2.7`).
    pub fn add_text(&mut self, text: &str) -> Result<(), NoNetwork> {
        self.add(network(text)?);
        Ok(())
    }

    /// Returns true if the address is in one of the networks.
    pub fn has(&self, ip: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&ip))
    }

    /// Returns the client address behind this peer, by the hops of a list, from the right.
    ///
    /// If an item is not an address, the last known address is the client.
    pub fn client_of(&self, peer: IpAddr, hops: impl Iterator<Item = Option<IpAddr>>) -> IpAddr {
        let mut known = peer.to_canonical();
        if !self.has(known) {
            return known;
        }
        for hop in hops {
            let Some(ip) = hop else { return known };
            known = ip;
            if !self.has(ip) {
                break;
            }
        }
        known
    }
}

/// Parses a network, or an address as a network of one.
fn network(text: &str) -> Result<IpNet, NoNetwork> {
    let whole = || text.parse::<IpAddr>().ok().map(IpNet::from);
    let network = text.parse().ok().or_else(whole);
    network.map(canonical).ok_or_else(|| NoNetwork { text: text.to_owned() })
}

/// Returns an IPv4-mapped IPv6 network as its IPv4 network; addresses are mapped in the same way.
fn canonical(network: IpNet) -> IpNet {
    match (network.addr().to_canonical(), network.prefix_len().checked_sub(96)) {
        (ip @ IpAddr::V4(_), Some(bits)) if network.addr().is_ipv6() => {
            IpNet::new(ip, bits).unwrap_or(network)
        }
        _ => network,
    }
}

/// The error of a text that is neither a network nor an address.
///
/// Its message contains the text and examples of valid ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoNetwork {
    text: String,
}

impl fmt::Display for NoNetwork {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "network {:?}: this is none; write one such as 10.0.0.0/8, 2001:db8::/32 or 192.0.2.7",
            self.text
        )
    }
}

impl std::error::Error for NoNetwork {}

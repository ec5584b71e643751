//! The address of a client behind proxies that are trusted.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::header::{self, HeaderName};
use ipnet::IpNet;
use tidegate_rules::Grouping;

use super::forwarded::{Form, from_the_right};
use super::{Extract, Extracted, Part};
use crate::head::Head;

/// The most items of a list that are looked at: nobody has so many proxies.
const MAX_HOPS: usize = 32;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The address of the client, as trusted proxies say in `X-Forwarded-For`; `peer` finds who is connected.
///
/// The list is read from the right. The first address that is not trusted is the client: whatever stands left of it
/// was written by the client itself, or by somebody else whom nobody knows. If the connection does not come from a
/// trusted address, the field is not believed at all. Where an item says no address, the last one that is known
/// counts.
///
/// Nobody is trusted until [`Client::trusting`] names them.
pub fn client<E: Extract>(peer: E) -> Client<E> {
    Client {
        peer,
        trusted: Trusted::default(),
        field: X_FORWARDED_FOR,
        form: Form::Bare,
        grouping: Grouping::default(),
    }
}

/// The address of the client behind proxies; made by [`client`].
#[derive(Clone, Debug)]
pub struct Client<E> {
    peer: E,
    trusted: Trusted,
    field: HeaderName,
    form: Form,
    pub(super) grouping: Grouping,
}

impl<E> Client<E> {
    /// Believes what comes from these networks (`10.0.0.0/8`) and addresses (`192.0.2.7`), too.
    pub fn trusting<N: AsRef<str>>(
        mut self,
        networks: impl IntoIterator<Item = N>,
    ) -> Result<Client<E>, NoNetwork> {
        for text in networks {
            self.trusted.add(network(text.as_ref())?);
        }
        Ok(self)
    }

    /// The same for networks that were read before.
    #[must_use]
    pub fn trusting_networks(mut self, networks: impl IntoIterator<Item = IpNet>) -> Client<E> {
        networks.into_iter().map(canonical).for_each(|network| self.trusted.add(network));
        self
    }

    /// Reads `Forwarded` (RFC 7239) in place of `X-Forwarded-For`.
    #[must_use]
    pub fn forwarded(self) -> Client<E> {
        Client { field: header::FORWARDED, form: Form::Pairs, ..self }
    }

    /// Reads another field of bare addresses, such as `x-real-ip`, in place of `X-Forwarded-For`.
    #[must_use]
    pub fn field(self, name: HeaderName) -> Client<E> {
        Client { field: name, form: Form::Bare, ..self }
    }
}

/// Whose word counts; clones share the list.
#[derive(Clone, Debug, Default)]
struct Trusted(Arc<Vec<IpNet>>);

impl Trusted {
    fn add(&mut self, network: IpNet) {
        Arc::make_mut(&mut self.0).push(network);
    }

    fn has(&self, ip: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&ip))
    }

    /// Who it is behind this peer, if the field says these hops, from the right.
    fn client_of(&self, peer: IpAddr, hops: impl Iterator<Item = Option<IpAddr>>) -> IpAddr {
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

impl<E: Extract> Extract for Client<E> {
    fn extract<'r>(&self, head: Head<'r>) -> Extracted<'r> {
        let (grouping, trusted) = (self.grouping, &self.trusted);
        let hops = || from_the_right(head.headers(), &self.field, self.form).take(MAX_HOPS);
        match self.peer.extract(head) {
            Extracted::Now(Part::Address(peer, _)) => {
                Extracted::Now(Part::Address(trusted.client_of(peer, hops()), grouping))
            }
            // Nobody knows who is connected, so nobody is believed.
            Extracted::Now(other) => Extracted::Now(other),
            Extracted::Later(peer) => {
                // The head is gone by then, so what it says is kept.
                let (trusted, hops) = (trusted.clone(), hops().collect::<Vec<_>>());
                Extracted::Later(Box::pin(async move {
                    match peer.await {
                        Part::Address(peer, _) => {
                            Part::Address(trusted.client_of(peer, hops.into_iter()), grouping)
                        }
                        other => other,
                    }
                }))
            }
        }
    }
}

fn network(text: &str) -> Result<IpNet, NoNetwork> {
    let whole = || text.parse::<IpAddr>().ok().map(IpNet::from);
    let network = text.parse().ok().or_else(whole);
    network.map(canonical).ok_or_else(|| NoNetwork { text: text.to_owned() })
}

/// A network of IPv4 in the clothes of IPv6 is that of IPv4, as addresses are.
fn canonical(network: IpNet) -> IpNet {
    match (network.addr().to_canonical(), network.prefix_len().checked_sub(96)) {
        (ip @ IpAddr::V4(_), Some(bits)) if network.addr().is_ipv6() => {
            IpNet::new(ip, bits).unwrap_or(network)
        }
        _ => network,
    }
}

/// Text that names neither a network nor an address.
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

#[cfg(test)]
mod tests;

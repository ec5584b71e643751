//! The address of a client behind trusted proxies.
//!
//! Any client can write `X-Forwarded-For`. A proxy appends the address it sees, so only the items that trusted proxies
//! have appended are facts; everything left of them is text of the client. Reading from the right with a list of
//! trusted networks stops exactly there. A count of hops would be wrong as soon as one request takes another route.

use std::sync::Arc;

use http::header::{self, HeaderName};
use ipnet::IpNet;
use tidegate_rules::Grouping;
use tidegate_support::{Form, MAX_HOPS, NoNetwork, TrustedProxies, from_the_right};

use super::{Extract, Extracted, Part};
use crate::head::Head;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Returns an extractor of the client address, which trusted proxies report in `X-Forwarded-For`. `peer` extracts the
/// address of the connection.
///
/// The list is read from the right. The first address that is not trusted is the client: the items left of it were
/// written by the client, or by an unknown proxy. If the connection does not come from a trusted address, the field is
/// ignored. If an item is not an address, the last known address is the client.
///
/// No address is trusted until [`Client::trusting`] adds it.
///
/// ```
/// use tidegate::tower::key::{self, Grouped as _};
///
/// // A load balancer in 10.0.0.0/8 writes the field; addresses are counted by networks of 56 bits in IPv6.
/// let by_client = key::client(key::peer()).trusting(["10.0.0.0/8"])?.ipv6_bits(56);
/// # let _ = by_client;
/// # Ok::<(), key::NoNetwork>(())
/// ```
#[doc(alias = "X-Forwarded-For")]
#[doc(alias = "Forwarded")]
#[doc(alias = "trusted proxy")]
#[doc(alias = "real IP")]
#[doc(alias = "client IP")]
pub fn client<E: Extract>(peer: E) -> Client<E> {
    Client {
        peer,
        trusted: Arc::default(),
        field: X_FORWARDED_FOR,
        form: Form::Bare,
        grouping: Grouping::default(),
    }
}

/// An extractor of the client address behind proxies; made by [`client`].
///
/// If the peer is missing, the part is what the peer's extractor says about that: the field alone is never believed.
#[derive(Clone, Debug)]
pub struct Client<E> {
    peer: E,
    trusted: Arc<TrustedProxies>,
    field: HeaderName,
    form: Form,
    pub(super) grouping: Grouping,
}

impl<E> Client<E> {
    /// Adds trusted networks (`10.0.0.0/8`) and addresses (`192.0.2.7`).
    ///
    /// # Errors
    /// If a text is neither a network nor an address.
    pub fn trusting<N: AsRef<str>>(
        mut self,
        networks: impl IntoIterator<Item = N>,
    ) -> Result<Client<E>, NoNetwork> {
        let trusted = Arc::make_mut(&mut self.trusted);
        networks.into_iter().try_for_each(|text| trusted.add_text(text.as_ref()))?;
        Ok(self)
    }

    /// Adds trusted networks that are already parsed.
    ///
    /// IPv4-mapped networks (`::ffff:10.0.0.0/104`) are the IPv4 networks, as addresses of clients are.
    #[must_use]
    pub fn trusting_networks(mut self, networks: impl IntoIterator<Item = IpNet>) -> Client<E> {
        let trusted = Arc::make_mut(&mut self.trusted);
        networks.into_iter().for_each(|network| trusted.add(network));
        self
    }

    /// Reads `Forwarded` (RFC 7239) in place of `X-Forwarded-For`.
    ///
    /// Its items are pairs, of which `for=` is read. Obfuscated names and `unknown` are no addresses.
    #[must_use]
    pub fn forwarded(self) -> Client<E> {
        Client { field: header::FORWARDED, form: Form::Pairs, ..self }
    }

    /// Reads another field of bare addresses, such as `x-real-ip`, in place of `X-Forwarded-For`.
    ///
    /// If a proxy replaces the field, its only item is the client. If it appends, the field is read from the right as
    /// well.
    #[must_use]
    pub fn field(self, name: HeaderName) -> Client<E> {
        Client { field: name, form: Form::Bare, ..self }
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
            // The address of the connection is unknown, so the field is not trusted.
            Extracted::Now(other) => Extracted::Now(other),
            Extracted::Later(peer) => {
                // The head is not available later, so the hops are copied.
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

#[cfg(test)]
mod tests;

//! The peer address of a connection.

use std::fmt;
use std::marker::PhantomData;
use std::net::{IpAddr, SocketAddr};

use tidegate_rules::Grouping;

use super::{Extract, Extracted, Part};
use crate::head::Head;

/// Returns an extractor of the peer address of the connection, which a server has added to the request's extensions as
/// a `SocketAddr` or an `IpAddr`. For servers that add another type see [`peer_in`].
///
/// Behind a proxy this is the address of the proxy: see [`client`](super::client()).
///
/// If no server has added it, requests get an error 500 with that reason, because all of them would share one key; see
/// [`Extract::or_share`].
#[doc(alias = "remote address")]
#[doc(alias = "IP address")]
#[doc(alias = "ConnectInfo")]
#[doc(alias = "client IP")]
pub fn peer() -> Peer {
    Peer { grouping: Grouping::default() }
}

/// An extractor of the peer address of the connection; made by [`peer`].
///
/// Addresses are counted one by one in IPv4 and by networks of 64 bits in IPv6, because one client has all of such a
/// network; [`Grouped`] changes that.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    grouping: Grouping,
}

impl Extract for Peer {
    #[inline]
    fn extract<'r>(&self, head: Head<'r>) -> Extracted<'r> {
        let socket = head.extension::<SocketAddr>().map(SocketAddr::ip);
        grouped(socket.or_else(|| head.extension::<IpAddr>().copied()), self.grouping)
    }
}

/// Returns an extractor of the peer address of the connection, from any type that a server adds to the request's
/// extensions.
///
/// If no server has added it, or the function returns `None`, requests get an error 500 with that reason, because all
/// of them would share one key; see [`Extract::or_share`]. axum adds a `ConnectInfo` only if it serves
/// `app.into_make_service_with_connect_info::<SocketAddr>()`.
///
/// ```
/// # mod axum { pub mod extract { #[derive(Clone)] pub struct ConnectInfo<T>(pub T); } }
/// use std::net::SocketAddr;
/// use axum::extract::ConnectInfo;
/// use tidegate::tower::key;
///
/// let peer = key::peer_in(|info: &ConnectInfo<SocketAddr>| info.0.ip());
/// # let _ = peer;
/// ```
pub fn peer_in<T, A, F>(find: F) -> PeerIn<T, F>
where
    T: Clone + Send + Sync + 'static,
    A: Into<Option<IpAddr>>,
    F: Fn(&T) -> A + Send + Sync + 'static,
{
    PeerIn { find, grouping: Grouping::default(), of: PhantomData }
}

/// An extractor of the peer address of the connection; made by [`peer_in`].
pub struct PeerIn<T, F> {
    find: F,
    grouping: Grouping,
    of: PhantomData<fn(&T)>,
}

impl<T, A, F> Extract for PeerIn<T, F>
where
    T: Clone + Send + Sync + 'static,
    A: Into<Option<IpAddr>>,
    F: Fn(&T) -> A + Send + Sync + 'static,
{
    #[inline]
    fn extract<'r>(&self, head: Head<'r>) -> Extracted<'r> {
        grouped(head.extension().and_then(|found| (self.find)(found).into()), self.grouping)
    }
}

/// Returns the address as a part, or the mark of a mistake of the program.
#[inline]
fn grouped<'r>(ip: Option<IpAddr>, grouping: Grouping) -> Extracted<'r> {
    Extracted::Now(ip.map_or(Part::NoPeer, |ip| Part::Address(ip, grouping)))
}

/// Extractors of addresses that count networks of addresses under one key.
pub trait Grouped: Sized {
    /// Counts addresses together that have as many leading bits in common as `grouping` specifies.
    #[must_use]
    fn grouped(self, grouping: Grouping) -> Self;

    /// Counts IPv4 addresses together that have this many leading bits in common. The default is 32: each alone.
    #[must_use]
    fn ipv4_bits(self, bits: u8) -> Self;

    /// Counts IPv6 addresses together that have this many leading bits in common. The default is 64, because a host
    /// with one address of a network can use all of its last 64 bits.
    #[must_use]
    fn ipv6_bits(self, bits: u8) -> Self;
}

macro_rules! grouped {
    ($([$($parameter:ident),*] $type:ty;)+) => {$(
        impl<$($parameter),*> Grouped for $type {
            fn grouped(mut self, grouping: Grouping) -> Self {
                self.grouping = grouping;
                self
            }

            fn ipv4_bits(mut self, bits: u8) -> Self {
                self.grouping.ipv4_bits = bits.min(32);
                self
            }

            fn ipv6_bits(mut self, bits: u8) -> Self {
                self.grouping.ipv6_bits = bits.min(128);
                self
            }
        }
    )+};
}

grouped! {
    [] Peer;
    [T, F] PeerIn<T, F>;
    [E] super::Client<E>;
}

impl<T, F> fmt::Debug for PeerIn<T, F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PeerIn({})", std::any::type_name::<T>())
    }
}

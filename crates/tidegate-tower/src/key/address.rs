//! The address of whoever is connected.

use std::fmt;
use std::marker::PhantomData;
use std::net::{IpAddr, SocketAddr};

use tidegate_rules::Grouping;

use super::{Extract, Extracted, Part};
use crate::head::Head;

/// The address of whoever is connected, where a server has left it in the request's extensions as a `SocketAddr` or
/// an `IpAddr`. For servers that leave another type there see [`peer_in`].
///
/// Behind a proxy this is the proxy: see [`client`](super::client()).
///
/// Where no server has left it, requests get an error 500 that says so, because all of them would be one; see
/// [`Extract::or_share`].
pub fn peer() -> Peer {
    Peer { grouping: Grouping::default() }
}

/// The address of whoever is connected; made by [`peer`].
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

/// The address of whoever is connected, in whatever type a server leaves in the request's extensions.
///
/// Where no server has left it, or the function finds none in it, requests get an error 500 that says so, because all of
/// them would be one; see [`Extract::or_share`]. axum leaves a `ConnectInfo` only if it serves
/// `app.into_make_service_with_connect_info::<SocketAddr>()`.
///
/// ```
/// # mod axum { pub mod extract { #[derive(Clone)] pub struct ConnectInfo<T>(pub T); } }
/// use std::net::SocketAddr;
/// use axum::extract::ConnectInfo;
/// use tidegate_tower::key;
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

/// The address of whoever is connected; made by [`peer_in`].
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

#[inline]
fn grouped<'r>(ip: Option<IpAddr>, grouping: Grouping) -> Extracted<'r> {
    Extracted::Now(ip.map_or(Part::NoPeer, |ip| Part::Address(ip, grouping)))
}

/// How many bits of an address tell who it is; for extractors that find addresses.
pub trait Grouped: Sized {
    /// Counts addresses together that have so many first bits in common.
    #[must_use]
    fn grouped(self, grouping: Grouping) -> Self;

    /// Counts IPv4 addresses together that have so many first bits in common; 32 unless set, so each alone.
    #[must_use]
    fn ipv4_bits(self, bits: u8) -> Self;

    /// Counts IPv6 addresses together that have so many first bits in common; 64 unless set, because whoever has one
    /// address of a network has all of its last 64 bits.
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

//! Keys: extractors determine the key under which a request is counted.
//!
//! An extractor finds one part of the key in the head of a request. A tuple of up to six extractors is a key of several
//! parts. The methods [`or_skip`](Extract::or_skip), [`or_deny`](Extract::or_deny) and [`or_share`](Extract::or_share)
//! belong to the trait [`Extract`], which has to be in scope: `use tidegate::tower::key::{self, Extract as _};`. The
//! methods that group addresses belong to [`Grouped`].
//!
//! ```
//! use tidegate::tower::key::{self, Extract as _};
//!
//! #[derive(Clone)]
//! struct User {
//!     id: u64,
//! }
//!
//! let by_user = key::extension(|user: &User| user.id).or_deny();
//! let by_user_and_path = (key::header("x-api-key"), key::path());
//! let by_client = key::client(key::peer()).trusting(["10.0.0.0/8"]).expect("it is a network");
//! # let _ = (by_user, by_user_and_path, by_client);
//! ```
//!
//! Requests in which a part is missing share one key, which no other request has, unless the extractor has
//! [`or_skip`](Extract::or_skip) or [`or_deny`](Extract::or_deny).
//!
//! Requests with several different values of a header field, a cookie or a query parameter share one key, because the
//! service may read any of them; [`Named::on_repeated`] changes that.
//!
//! A missing peer address ([`peer`], [`peer_in`]) is a mistake of the program, not of the request: all requests would
//! share one key. Such requests get an error 500 with the remedy, unless the extractor has one of these methods or
//! [`or_share`](Extract::or_share).

mod address;
mod client;
mod extract;
mod identify;
mod named;
mod otherwise;
mod part;
mod parts;

pub use address::{Grouped, Peer, PeerIn, peer, peer_in};
pub use client::{Client, client};
pub use extract::{
    Everyone, Found, Later, cookie, everyone, extension, from, header, host, later, path, query,
};
pub(crate) use identify::LaterEach;
pub use identify::{Identified, Identify, LaterParts};
pub use named::Named;
pub use otherwise::Otherwise;
pub use part::Part;
#[doc(hidden)]
pub use parts::KeyOutcome;
pub use parts::Parts;
pub use tidegate_support::NoNetwork;

use std::pin::Pin;

use crate::head::Head;

/// An extractor: finds one part of a key in a request.
pub trait Extract: Send + Sync + 'static {
    /// Returns the part, or a future of it.
    fn extract<'r>(&self, head: Head<'r>) -> Extracted<'r>;

    /// Returns true if it finds the same part in every request, so that all requests have the same key.
    #[doc(hidden)]
    fn is_same_for_all(&self) -> bool {
        false
    }

    /// Does not limit requests in which the part is missing.
    fn or_skip(self) -> Otherwise<Self>
    where
        Self: Sized,
    {
        Otherwise { extract: self, instead: Part::Skip }
    }

    /// Denies requests in which the part is missing, with 400.
    fn or_deny(self) -> Otherwise<Self>
    where
        Self: Sized,
    {
        Otherwise { extract: self, instead: Part::Refuse }
    }

    /// Counts requests in which the part is missing under one key. This is the default, except for a missing peer
    /// address ([`peer`], [`peer_in`]).
    fn or_share(self) -> Otherwise<Self>
    where
        Self: Sized,
    {
        Otherwise { extract: self, instead: Part::Missing }
    }
}

/// A part of a key, or a future of it.
pub enum Extracted<'r> {
    /// It is known.
    Now(Part<'r>),
    /// It has to be awaited.
    Later(LaterPart),
}

/// A future of a part of a key.
pub type LaterPart = Pin<Box<dyn Future<Output = Part<'static>> + Send>>;

impl<'r, P: Into<Part<'r>>> From<P> for Extracted<'r> {
    fn from(part: P) -> Extracted<'r> {
        Extracted::Now(part.into())
    }
}

impl<'r> Extracted<'r> {
    /// Returns the part of an extractor that is known at once.
    ///
    /// # Panics
    /// If it has to be awaited: a request must not be counted without the part.
    pub(crate) fn known(self) -> Part<'r> {
        match self {
            Extracted::Now(part) => part,
            Extracted::Later(_) => panic!("parts that come later are waited for"),
        }
    }
}

impl std::fmt::Debug for Extracted<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Extracted::Now(part) => out.debug_tuple("Now").field(part).finish(),
            Extracted::Later(_) => out.write_str("Later"),
        }
    }
}

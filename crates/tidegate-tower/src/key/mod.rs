//! Whom a request is counted for.
//!
//! An extractor finds one part of the key in a request's head; a tuple of up to six is several together.
//!
//! ```
//! use tidegate_tower::key::{self, Extract as _};
//!
//! #[derive(Clone)]
//! struct User {
//!     id: u64,
//! }
//!
//! let by_user = key::extension(|user: &User| user.id).or_refuse();
//! let by_user_and_path = (key::header("x-api-key"), key::path());
//! let by_client = key::client(key::peer()).trusting(["10.0.0.0/8"]).expect("it is a network");
//! # let _ = (by_user, by_user_and_path, by_client);
//! ```
//!
//! A request in which a part is missing shares one key with all others that miss it, and with nobody else, unless
//! the extractor says [`or_skip`](Extract::or_skip) or [`or_refuse`](Extract::or_refuse).
//!
//! A request that has several values of a header field, a cookie or a part of the query shares one key with all others
//! that have, because what is behind may read any of them; [`Named::on_repeated`] says otherwise.
//!
//! Only an address that nobody has noted ([`peer`], [`peer_in`]) is a mistake of the program, not of the request: all
//! would be one. Such requests get an error 500 that says what to do, unless the extractor says one of these or
//! [`or_share`](Extract::or_share).

mod address;
mod client;
mod extract;
mod forwarded;
mod hop;
mod identify;
pub(crate) mod named;
mod otherwise;
mod part;
mod parts;

pub use address::{Grouped, Peer, PeerIn, peer, peer_in};
pub use client::{Client, NoNetwork, client};
pub use extract::{
    Everyone, Found, Later, cookie, everyone, extension, from, header, host, later, path, query,
};
pub(crate) use identify::LaterEach;
pub use identify::{Identified, Identify, LaterParts};
pub use named::Named;
pub use otherwise::Otherwise;
pub use part::Part;
#[doc(hidden)]
pub use parts::Course;
pub use parts::Parts;

use std::pin::Pin;

use crate::head::Head;

/// Finds one part of a key in a request.
pub trait Extract: Send + Sync + 'static {
    /// The part, or a future of it.
    fn extract<'r>(&self, head: Head<'r>) -> Extracted<'r>;

    /// Whether it finds the same in every request, so that all of them are one subject.
    #[doc(hidden)]
    fn is_same_for_all(&self) -> bool {
        false
    }

    /// Requests in which it is missing are not limited.
    fn or_skip(self) -> Otherwise<Self>
    where
        Self: Sized,
    {
        Otherwise { extract: self, instead: Part::Skip }
    }

    /// Requests in which it is missing are refused.
    fn or_refuse(self) -> Otherwise<Self>
    where
        Self: Sized,
    {
        Otherwise { extract: self, instead: Part::Refuse }
    }

    /// Requests in which it is missing share one key; so they do anyway, except where an address is looked for that
    /// nobody has noted ([`peer`], [`peer_in`]).
    fn or_share(self) -> Otherwise<Self>
    where
        Self: Sized,
    {
        Otherwise { extract: self, instead: Part::Missing }
    }
}

/// What was found, now or later.
pub enum Extracted<'r> {
    /// It is known.
    Now(Part<'r>),
    /// It has to be asked for, elsewhere.
    Later(LaterPart),
}

/// A part that has to be waited for.
pub type LaterPart = Pin<Box<dyn Future<Output = Part<'static>> + Send>>;

impl<'r, P: Into<Part<'r>>> From<P> for Extracted<'r> {
    fn from(part: P) -> Extracted<'r> {
        Extracted::Now(part.into())
    }
}

impl<'r> Extracted<'r> {
    /// Returns the part of an extractor that does not have to be waited for.
    ///
    /// # Panics
    /// If it has to be: a request must not be counted without the part.
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

//! Parts of a request that keys and conditions read: header fields, cookies, query parameters, and the address of the
//! client behind proxies.
//!
//! The tower layers and the server read them by the same functions, so that one request has one key everywhere.

mod forwarded;
mod hop;
mod named;
mod trusted;

pub use forwarded::{Form, from_the_right};
pub use named::{cookies, headers, query};
pub use trusted::{MAX_HOPS, NoNetwork, TrustedProxies};

//! Denials: the response in place of the service's, and the header fields that report the remaining quota.

mod grpc;
mod promise;
mod refused;

pub(crate) use promise::{Promise, Promises};
pub(crate) use refused::refuse;
pub use refused::{Reason, Refused};
pub use tidegate_support::Dialect;

use std::time::Duration;

/// The time to the next try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retry {
    After(Duration),
    Never,
    Unknown,
}

//! Denials: the response in place of the service's, and the header fields that report the remaining quota.

mod denied;
mod grpc;
mod promise;

pub(crate) use denied::deny;
pub use denied::{DeniedRequest, Reason};
pub(crate) use promise::{Promise, Promises};
pub use tidegate_support::Dialect;

use std::time::Duration;

/// The time to the next try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retry {
    After(Duration),
    Never,
    Unknown,
}

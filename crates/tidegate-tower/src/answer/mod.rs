//! Denials: the response in place of the service's, and the header fields that report the remaining quota.
//!
//! The layers deny by a status with a problem document, and gRPC calls by a gRPC status; [`DeniedResponse`] is the same
//! response for handlers. [`Dialect`] selects the header fields that report the remaining quota.

mod denied;
mod denied_response;
mod grpc;
mod promise;

pub(crate) use denied::deny;
pub use denied::{DeniedRequest, Reason};
pub use denied_response::DeniedResponse;
pub(crate) use promise::{Promise, Promises};
pub use tidegate_support::Dialect;

use std::time::Duration;

use tidegate_core::Ticks;

/// The time to the next try after a denial that is not a decision of the limit.
pub(crate) const LATER: Ticks = Ticks::saturating_from(Duration::from_secs(1));

/// The time to the next try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retry {
    /// The same request can pass after this time.
    After(Duration),
    /// The same request can never pass.
    Never,
    /// It can pass later; the time is unknown.
    Unknown,
}

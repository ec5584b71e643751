//! Denials: the response in place of the service's, and the header fields that report the remaining quota.
//!
//! One function makes every denial of the layers, in HTTP and in gRPC; [`DeniedResponse`] makes the same for handlers.
//! The header fields and the problem documents are written by `tidegate-support`, as are those of the server.

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

use tidegate::Ticks;

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

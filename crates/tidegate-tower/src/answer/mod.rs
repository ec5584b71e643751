//! Denials: the response in place of the service's, and the header fields that report the remaining quota.

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
    After(Duration),
    Never,
    Unknown,
}

//! What a caller is told: header fields, and the answer in place of the service's.
//!
//! [`put_fields`] and [`policy_value`] are for whoever answers by itself and wants to say the same, as tidegate's own
//! server does.

mod digits;
mod fields;
mod grpc;
mod paper;
mod problem;
mod promise;
mod promises;
mod refused;

pub(crate) use digits::Digits;
pub use digits::put_number;
pub(crate) use fields::put_left;
pub use fields::{Dialect, Promised, Spoken, put_fields, put_fields_on};
pub use paper::Paper;
pub(crate) use promise::Promise;
pub use promise::policy_value;
pub(crate) use promises::Promises;
pub(crate) use refused::refuse;
pub use refused::{Reason, Refused};

use std::time::Duration;

/// When to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retry {
    After(Duration),
    Never,
    Unknown,
}

//! Shared parts of the Tidegate crates: durations and sizes as text, messages about configuration, header fields and
//! problem documents of denials, rounding, percent-decoding, the mark of absent key parts.
//!
//! The crate is published because the other crates need it, and has no stability guarantee: any version may change or
//! remove anything. Programs use `tidegate`, `tidegate-rules`, `tidegate-tower` or `tidegate-redis` instead.
//!
//! | part | content |
//! |---|---|
//! | [`duration()`], [`size()`] | text of configuration files: `1m30s`, `64MiB` |
//! | [`Complaint`], [`nearest()`] | messages with a place, a fault and a remedy |
//! | `Dialect`, `Problem` | HTTP replies of a rate limiter (feature `http`) |
//! | [`in_seconds`], [`in_ms`] | waits, rounded up |
//! | [`join_all`], [`at_once`] | futures without a runtime |

mod absent;
mod complaint;
#[cfg(feature = "http")]
mod denial;
mod digits;
mod duration;
mod futures;
mod nearest;
mod percent;
mod recent;
#[cfg(feature = "http")]
mod request;
mod rounding;
mod size;
#[cfg(feature = "toml")]
mod toml_text;

pub use absent::AbsentParts;
pub use complaint::{Complaint, Complaints, Lines, MAX_COMPLAINTS, TextPlace, in_order};
pub use digits::Digits;
pub use duration::{duration, positive};
pub use futures::{at_once, join_all};
pub use nearest::{nearest, unknown};
pub use percent::{decoded, decoded_query, is_percent_encoded};
pub use recent::RecentCache;
pub use rounding::{ceil_ms, ceil_seconds, in_ms, in_seconds, retry_after};
pub use size::{Bytes, byte_count, size};
pub use tidegate_core::attribute::distance;

#[cfg(feature = "http")]
pub use denial::{
    Dialect, HeaderBuf, LimitStatus, PolicyHeader, Problem, ProblemKind, policy_value, put_fields,
    put_fields_on, put_json, put_number, put_remaining, put_violated,
};
#[cfg(feature = "http")]
pub use request::{Form, MAX_HOPS, NoNetwork, TrustedProxies, cookies, from_the_right, headers, query};
#[cfg(feature = "toml")]
pub use toml_text::{decimal, kind_of, syntax, written_as_text};

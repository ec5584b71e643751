//! Denials and limits in HTTP: header fields, and problem documents (RFC 9457).
//!
//! Layers and the server write the same fields and documents, so a client needs one parser for both. Status 429 is for
//! an exceeded limit, 503 for a service without capacity.

mod fields;
mod header_buf;
mod problem;

pub use fields::{
    Dialect, LimitStatus, PolicyHeader, policy_value, put_fields, put_fields_on, put_remaining,
};
pub use header_buf::{HeaderBuf, put_number};
pub use problem::{Problem, ProblemKind, put_json, put_violated};

//! Rate-limit rules: a policy file, and the gate that every frontend calls.
//!
//! Programs reach it as `tidegate::rules`, by the feature `rules` of the crate `tidegate`.
//!
//! A [`Policy`] is the set of all rules in force. A [`Gate`] combines it with a store and decides about requests, which
//! are [`Attributes`]. A new policy replaces the old one atomically, and counts are kept.
//!
//! | page | content |
//! |---|---|
//! | [`Policy`] | the fields of a rule, an example of a file, the order of decisions |
//! | [`Condition`] | the attributes of a request, and the patterns that match them |
//! | [`RuleBuilder`], [`ScheduleWindow`] | the same fields, set in code |
//! | [`tidegate_core::Limit`] | the [text of a limit](tidegate_core::Limit#text-of-a-limit) |
//! | [`GateStore`] | the stores of a gate |
//! | [`config`] | errors and warnings with their places, for tools |
//!
//! ```
//! use tidegate::Zone;
//! use tidegate::rules::{Attributes, Gate, Policy};
//!
//! let policy = Policy::from_toml(
//!     r#"
//!     [[rule]]
//!     name = "login"
//!     when = { path = "/login", method = "POST" }
//!     key = ["ip"]
//!     limit = "5/60s sliding-log"
//!     "#,
//! )?;
//! let gate = Gate::new(policy, Zone::new(1 << 20))?;
//! let request = Attributes::new().path("/login").set("method", "POST").set("ip", "192.0.2.7");
//! let answer = gate.admit(&request).now()?; // with a remote store: .await?
//! assert!(answer.is_allowed() && answer.rule() == Some("login"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attributes;
mod condition;
pub mod config;
mod differences;
mod gate;
#[cfg(feature = "http")]
mod http_parts;
mod index;
mod key;
mod limit_text;
mod normalized;
mod policy;
mod rule;
mod schedule;
mod top;

pub use attributes::{Attributes, NoAddress, NotInserted, Value};
pub use condition::Condition;
pub use config::{PolicyBuilder, PolicyError, RuleBuilder, ScheduleWindow};
pub use differences::differences;
pub use gate::{
    Admission, BannedKey, Batch, Binding, Charges, Explanation, Gate, GateBuilder, GateStore, HeldPermit,
    IdleOverride, Instead, LimitSource, MAX_OVERRIDE_BYTES, MAX_OVERRIDES, ManualCalendar, Match, NoMemory,
    Override, OverrideError, OverrideId, OverrideSet, OverrideWarning, PinnedPolicy, Prepared, PutOverride,
    RuleCounts, RuleExplained, RuleKey, RuleKeyError, ShadowCounts, Stretch, SystemCalendar,
    UnsupportedPolicy, WallClock,
};
#[cfg(feature = "http")]
pub use http_parts::HttpParts;
pub use key::{Grouping, OnMissing, OnRepeated};
pub use limit_text::{parse_kept_limit, parse_limit};
#[doc(hidden)]
pub use normalized::plain_host;
pub use policy::{NamedZone, Policy};
pub use rule::{Mode, Penalty, Rule, Scheduled, StaticVerdict};
pub use top::HotKey;

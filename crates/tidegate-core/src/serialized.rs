//! Serialization by `serde`, with the feature of that name.
//!
//! ```text
//!   Limit, Rate, Algorithm, PermitId   their text: "10/s burst 20", "10/s", "pacer", "feed"
//!   Verdict                            {"denied": {"retry_after": …}}, a span as `serde` writes a Duration
//!   Decision                           verdict, limit, remaining, reset_after, permit, store_full, ban
//! ```

use std::fmt;
use std::time::Duration;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::algorithm::Algorithm;
use crate::decision::{Ban, Decision, PermitId, Verdict};
use crate::limit::{Limit, Rate};
use crate::time::Ticks;

/// Implements serialization by `Display` and `FromStr`.
macro_rules! as_text {
    ($($type:ty: $what:literal)+) => {$(
        /// Serializes the text.
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        /// Parses the text; the error is that of [`str::parse`].
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                struct Text;

                impl Visitor<'_> for Text {
                    type Value = $type;

                    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                        out.write_str($what)
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }

                deserializer.deserialize_str(Text)
            }
        }
    )+};
}

as_text! {
    Limit: "the text of a limit, such as \"10/s burst 20\""
    Rate: "the text of a rate, such as \"10/s\""
    Algorithm: "the name of an algorithm, such as \"token-bucket\""
    PermitId: "a permit, in hexadecimal digits"
}

/// The fields of a decision as they are serialized.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Decision")]
struct DecisionFields {
    verdict: Verdict,
    limit: u64,
    remaining: u64,
    reset_after: Duration,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    permit: Option<PermitId>,
    #[serde(default)]
    store_full: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ban: Option<Ban>,
}

/// Serializes the fields, spans rounded up to nanoseconds.
impl Serialize for Decision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = DecisionFields {
            verdict: self.verdict(),
            limit: self.limit(),
            remaining: self.remaining(),
            reset_after: self.reset_after(),
            permit: self.permit(),
            store_full: self.is_store_full(),
            ban: self.ban(),
        };
        fields.serialize(serializer)
    }
}

/// Deserializes a decision of another process, like [`Decision::from_remote`].
impl<'de> Deserialize<'de> for Decision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Decision, D::Error> {
        let fields = DecisionFields::deserialize(deserializer)?;
        let ticks = Ticks::saturating_from;
        let verdict = match fields.verdict {
            Verdict::Allowed { delay } => Verdict::Allowed { delay: ticks(delay) },
            Verdict::Denied { retry_after } => Verdict::Denied { retry_after: ticks(retry_after) },
            Verdict::Impossible => Verdict::Impossible,
        };
        let decision =
            Decision::from_remote(verdict, fields.limit, fields.remaining, ticks(fields.reset_after));
        let decision = if fields.store_full { decision.store_full() } else { decision };
        let decision = fields.permit.map_or(decision, |permit| decision.with_permit(permit));
        Ok(decision.with_ban(fields.ban))
    }
}

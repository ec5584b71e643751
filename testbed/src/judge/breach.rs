//! A promise that was broken, with what shows it.

use std::fmt;
use std::time::Duration;

/// What was broken, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Breach {
    /// More was certainly admitted in an interval than may be.
    TooMuch {
        /// Of whom.
        key: String,
        /// Where the interval begins.
        from: Duration,
        /// Where it ends.
        to: Duration,
        /// What was admitted in it.
        admitted: u64,
        /// What may be, in whole units.
        at_most: u64,
    },
    /// Somebody was admitted by a rule that is closed.
    Closed {
        /// Who.
        key: String,
        /// When it was asked.
        asked: Duration,
    },
    /// Somebody was admitted in an outage.
    Outage {
        /// Who.
        key: String,
        /// When it was asked.
        asked: Duration,
    },
    /// What was admitted by a rule that is open is not what was counted.
    Open {
        /// What was admitted.
        admitted: u64,
        /// What was counted.
        counted: u64,
    },
    /// What was charged is not what was asked for.
    Charged {
        /// Who.
        key: String,
        /// What the store says.
        charged: u64,
        /// What it has certainly admitted.
        at_least: u64,
        /// That, and all that it may have admitted.
        at_most: u64,
    },
}

impl fmt::Display for Breach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Breach::TooMuch { key, from, to, admitted, at_most } => {
                write!(
                    formatter,
                    "key {key:?}: {admitted} admitted from {from:?} to {to:?}; at most {at_most} may be"
                )
            }
            Breach::Closed { key, asked } => {
                write!(
                    formatter,
                    "key {key:?}: admitted at {asked:?} by a rule that is closed; nothing may be"
                )
            }
            Breach::Outage { key, asked } => {
                write!(formatter, "key {key:?}: admitted at {asked:?} in an outage; nothing may be")
            }
            Breach::Open { admitted, counted } => {
                write!(formatter, "open rules: {admitted} admitted, {counted} counted; both have to be equal")
            }
            Breach::Charged { key, charged, at_least, at_most } => {
                write!(formatter, "key {key:?}: {charged} charged; {at_least} to {at_most} may be")
            }
        }
    }
}

impl std::error::Error for Breach {}

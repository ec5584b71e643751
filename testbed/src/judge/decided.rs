//! One decision, as the caller has seen it, and a promise that was broken, with what shows it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Who decided: the word that answers carry as `decided_by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// Redis or Valkey.
    Redis,
    /// The memory of one server that everybody asks.
    Memory,
    /// A node on its own, because the store has failed.
    Local,
    /// The rule, which admits when the store has failed.
    Open,
    /// The rule, which refuses when the store has failed.
    Closed,
}

/// A decision; times are those of one monotonic clock, from any beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// When the question was sent, or a little before.
    pub asked: Duration,
    /// When the answer was there, or a little later.
    pub answered: Duration,
    /// Who was asked about.
    pub key: String,
    /// Whether it was admitted.
    pub is_allowed: bool,
    /// What it weighs.
    pub cost: u64,
    /// Who decided.
    pub by: By,
}

impl FromStr for By {
    type Err = String;

    fn from_str(text: &str) -> Result<By, String> {
        match text {
            "redis" => Ok(By::Redis),
            "memory" => Ok(By::Memory),
            "local" => Ok(By::Local),
            "open" => Ok(By::Open),
            "closed" => Ok(By::Closed),
            _ => Err(format!("decided_by {text:?}: unknown; write redis, memory, local, open or closed")),
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            By::Redis => "redis",
            By::Memory => "memory",
            By::Local => "local",
            By::Open => "open",
            By::Closed => "closed",
        })
    }
}

/// `ASKED ANSWERED allowed|denied COST BY KEY`, times in nanoseconds; the key is the rest of the line.
impl fmt::Display for Decided {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.is_allowed { "allowed" } else { "denied" };
        let (asked, answered) = (self.asked.as_nanos(), self.answered.as_nanos());
        write!(formatter, "{asked} {answered} {verdict} {} {} {}", self.cost, self.by, self.key)
    }
}

impl FromStr for Decided {
    type Err = String;

    fn from_str(line: &str) -> Result<Decided, String> {
        let wrong = || format!("line {line:?}: write ASKED ANSWERED allowed|denied COST BY KEY");
        let words: Vec<_> = line.splitn(6, ' ').collect();
        let [asked, answered, verdict, cost, by, key] = words.as_slice() else { return Err(wrong()) };
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        Ok(Decided {
            asked: Duration::from_nanos(number(asked)?),
            answered: Duration::from_nanos(number(answered)?),
            key: (*key).to_owned(),
            is_allowed: match *verdict {
                "allowed" => true,
                "denied" => false,
                _ => return Err(wrong()),
            },
            cost: number(cost)?,
            by: by.parse()?,
        })
    }
}

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
    /// A request was admitted by a rule that fails closed.
    Closed {
        /// Who.
        key: String,
        /// When it was asked.
        asked: Duration,
    },
    /// A request was admitted in an outage.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_survives_its_line() {
        for by in [By::Redis, By::Memory, By::Local, By::Open, By::Closed] {
            for (is_allowed, key) in [(true, "ana and bob"), (false, "")] {
                let (asked, answered) = (Duration::from_nanos(1), Duration::new(3, 7));
                let decided = Decided { asked, answered, key: key.to_owned(), is_allowed, cost: 5, by };
                assert_eq!(decided.to_string().parse(), Ok(decided));
            }
        }
    }

    #[test]
    fn a_bad_line_says_what_would_do() {
        let error = "1 2 maybe 1 redis ana".parse::<Decided>().unwrap_err();
        assert!(
            error.contains("maybe") && error.ends_with("ASKED ANSWERED allowed|denied COST BY KEY"),
            "{error}"
        );
        assert!("1 2 allowed 1 luck ana".parse::<Decided>().unwrap_err().contains("\"luck\""));
    }
}

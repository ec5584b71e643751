//! Why a policy cannot be put in force.

use std::error::Error;
use std::sync::Arc;
use std::{fmt, io};

use tidegate::Store;

use crate::config::Bytes;
use crate::policy::{NamedZone, Policy};

/// A policy that holds by itself, and not on this store.
#[derive(Debug)]
#[non_exhaustive]
pub enum Unfit {
    /// The system has no memory for one of its zones.
    NoMemory(NoMemory),
    /// The store cannot count by a limit of one of its rules.
    Unsupported {
        /// The rule.
        rule: Arc<str>,
        /// The limit, as text.
        limit: String,
        /// What the store says: what is wrong with it, and what would do.
        reason: String,
    },
    /// More rules apply to the same requests than the store decides together.
    TooManyTogether {
        /// A rule to whose requests they all apply.
        rule: Arc<str>,
        /// How many apply at least.
        count: usize,
        /// How many the store decides together.
        most: usize,
    },
}

impl Unfit {
    /// Whether the store can count by everything that the rules of a policy may say.
    pub(super) fn unless_supported(store: &dyn Store, policy: &Policy) -> Result<(), Unfit> {
        for rule in policy.rules() {
            for terms in rule.limited().into_iter().flat_map(|limited| limited.all_terms()) {
                store.supports(&terms.limit).map_err(|reason| Unfit::Unsupported {
                    rule: rule.name.clone(),
                    limit: terms.limit.to_string(),
                    reason,
                })?;
            }
        }
        let most = store.most_together();
        match policy.more_together_than(most) {
            None => Ok(()),
            Some((rule, count)) => Err(Unfit::TooManyTogether { rule: rule.name.clone(), count, most }),
        }
    }
}

impl From<NoMemory> for Unfit {
    fn from(error: NoMemory) -> Unfit {
        Unfit::NoMemory(error)
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::NoMemory(error) => error.fmt(out),
            Unfit::Unsupported { rule, limit, reason } => {
                write!(out, "rule {rule:?}: limit {limit:?}: {reason}")
            }
            Unfit::TooManyTogether { rule, count, most } => write!(
                out,
                "rule {rule:?}: at least {count} rules with a limit apply to its requests, and the store decides at most \
                 {most} limits together; narrow the conditions of some, or join rules that count by the same key"
            ),
        }
    }
}

impl Error for Unfit {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Unfit::NoMemory(error) => error.source(),
            Unfit::Unsupported { .. } | Unfit::TooManyTogether { .. } => None,
        }
    }
}

/// The system has no memory for a zone of a policy.
#[derive(Debug)]
pub struct NoMemory {
    pub(super) zone: NamedZone,
    pub(super) cause: io::Error,
}

impl NoMemory {
    /// The zone that cannot be had.
    pub fn zone(&self) -> &NamedZone {
        &self.zone
    }
}

impl fmt::Display for NoMemory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, bytes) = (&self.zone.name, Bytes(self.zone.bytes));
        write!(out, "zone {name:?}: the system has no {bytes} of memory for it; write a smaller size")
    }
}

impl Error for NoMemory {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

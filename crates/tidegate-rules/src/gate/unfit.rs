//! Why a policy cannot be put in force.

use std::error::Error;
use std::sync::Arc;
use std::{fmt, io};

use tidegate::{Store, ZoneError, Zones};
use tidegate_support::Bytes;

use crate::policy::{NamedZone, Policy};
use crate::rule::Rule;

/// A policy that holds by itself, and not on this store.
#[derive(Debug)]
#[non_exhaustive]
pub enum Unfit {
    /// One of its zones cannot be had: the system has no memory, or its files cannot be used.
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
    /// Rules need states of more than one word, and the state file of a zone belongs to another process.
    NotOwner {
        /// All rules that need them, in the order of the file.
        rules: Vec<Arc<str>>,
        /// What the zone says about the first of them: which process has the file, and what to do.
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

    /// The error that names every rule whose states these zones cannot keep, if there is one.
    pub(super) fn unless_kept(zones: &Zones, policy: &Policy) -> Result<(), Unfit> {
        let not_kept = |rule: &Rule| {
            let mut terms = rule.limited().into_iter().flat_map(|limited| limited.all_terms());
            let reason = terms.find_map(|terms| zones.supports(&terms.limit).err())?;
            Some((rule.name.clone(), reason))
        };
        let (rules, reasons): (Vec<_>, Vec<_>) = policy.rules().iter().filter_map(not_kept).unzip();
        match reasons.into_iter().next() {
            None => Ok(()),
            Some(reason) => Err(Unfit::NotOwner { rules, reason }),
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
            Unfit::NotOwner { rules, reason } => {
                let names: Vec<_> = rules.iter().map(|rule| format!("{rule:?}")).collect();
                let word = if rules.len() == 1 { "rule" } else { "rules" };
                write!(out, "{word} {}: {reason}", names.join(", "))
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
            Unfit::Unsupported { .. } | Unfit::NotOwner { .. } | Unfit::TooManyTogether { .. } => None,
        }
    }
}

/// A zone of a policy that cannot be had: the system has no memory for it, or its files cannot be used.
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

    /// The error of the zone's files, if they are the reason.
    pub fn files(&self) -> Option<&ZoneError> {
        self.cause.get_ref().and_then(|cause| cause.downcast_ref())
    }
}

impl fmt::Display for NoMemory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, bytes) = (&self.zone.name, Bytes(self.zone.bytes));
        if let Some(error) = self.files() {
            return write!(out, "zone {name:?}: {error}");
        }
        write!(out, "zone {name:?}: the system has no {bytes} of memory for it; write a smaller size")
    }
}

impl Error for NoMemory {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self.files() {
            // Its text is in this one already.
            Some(error) => error.source(),
            None => Some(&self.cause),
        }
    }
}

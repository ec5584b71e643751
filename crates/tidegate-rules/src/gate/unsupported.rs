//! The reasons why a policy cannot be put in force on a store.
//!
//! A policy is valid on its own; whether a store can hold its counts is known only when both are joined. The check runs
//! before a policy is put in force, so a request never meets a limit that its store cannot decide.

use std::error::Error;
use std::sync::Arc;
use std::{fmt, io};

use tidegate_core::{Store, ZoneError, Zones};
use tidegate_support::Bytes;

use crate::policy::{NamedZone, Policy};
use crate::rule::{Limited, Rule};

/// An error: the policy is valid, but this store does not support it.
///
/// [`UnsupportedPolicy::rule`] and [`UnsupportedPolicy::zone`] name the cause; the text adds the remedy.
#[derive(Debug)]
#[non_exhaustive]
pub enum UnsupportedPolicy {
    /// One of its zones cannot be created: there is not enough memory, or its files cannot be used.
    NoMemory(NoMemory),
    /// The store does not support the limit of one of its rules.
    Unsupported {
        /// The rule.
        rule: Arc<str>,
        /// The limit, as text.
        limit: String,
        /// The reason from the store: the fault and its remedy.
        reason: String,
    },
    /// Rules need states of more than one word, and the state file of a zone belongs to another process.
    NotOwner {
        /// All rules that need them, in the order of the file.
        rules: Vec<Arc<str>>,
        /// The reason from the zone about the first of them: the process that owns the file, and the remedy.
        reason: String,
    },
    /// More rules apply to the same requests than the store decides together.
    TooManyTogether {
        /// A rule to whose requests they all apply.
        rule: Arc<str>,
        /// The minimum number of rules that apply.
        count: usize,
        /// The number of limits that the store decides together.
        most: usize,
    },
}

impl UnsupportedPolicy {
    /// Returns the name of the rule that the store does not support, or of the first one of several. `None` if a zone
    /// is the cause.
    pub fn rule(&self) -> Option<&str> {
        match self {
            UnsupportedPolicy::NoMemory(_) => None,
            UnsupportedPolicy::Unsupported { rule, .. } | UnsupportedPolicy::TooManyTogether { rule, .. } => {
                Some(rule)
            }
            UnsupportedPolicy::NotOwner { rules, .. } => rules.first().map(|rule| &**rule),
        }
    }

    /// Returns the zone that cannot be created, if that is the cause.
    pub fn zone(&self) -> Option<&NamedZone> {
        match self {
            UnsupportedPolicy::NoMemory(zone) => Some(zone.zone()),
            _ => None,
        }
    }

    /// Checks that the store supports every limit of a policy.
    ///
    /// Every limit is checked, also those of windows that are not in force now. The first unsupported one is reported.
    pub(super) fn unless_supported(store: &dyn Store, policy: &Policy) -> Result<(), UnsupportedPolicy> {
        for rule in policy.rules() {
            for limit in rule.limited().into_iter().flat_map(Limited::stored_limits) {
                store.supports(&limit).map_err(|reason| UnsupportedPolicy::Unsupported {
                    rule: rule.name.clone(),
                    limit: limit.to_string(),
                    reason,
                })?;
            }
        }
        let most = store.most_together();
        match policy.more_together_than(most) {
            None => Ok(()),
            Some((rule, count)) => {
                Err(UnsupportedPolicy::TooManyTogether { rule: rule.name.clone(), count, most })
            }
        }
    }

    /// Returns an error that names every rule whose states these zones cannot store, if there is one.
    pub(super) fn unless_kept(zones: &Zones, policy: &Policy) -> Result<(), UnsupportedPolicy> {
        let not_kept = |rule: &Rule| {
            let mut limits = rule.limited().into_iter().flat_map(Limited::stored_limits);
            let reason = limits.find_map(|limit| zones.supports(&limit).err())?;
            Some((rule.name.clone(), reason))
        };
        let (rules, reasons): (Vec<_>, Vec<_>) = policy.rules().iter().filter_map(not_kept).unzip();
        match reasons.into_iter().next() {
            None => Ok(()),
            Some(reason) => Err(UnsupportedPolicy::NotOwner { rules, reason }),
        }
    }
}

impl From<NoMemory> for UnsupportedPolicy {
    fn from(error: NoMemory) -> UnsupportedPolicy {
        UnsupportedPolicy::NoMemory(error)
    }
}

impl fmt::Display for UnsupportedPolicy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnsupportedPolicy::NoMemory(error) => error.fmt(out),
            UnsupportedPolicy::Unsupported { rule, limit, reason } => {
                write!(out, "rule {rule:?}: limit {limit:?}: {reason}")
            }
            UnsupportedPolicy::NotOwner { rules, reason } => {
                let names: Vec<_> = rules.iter().map(|rule| format!("{rule:?}")).collect();
                let word = if rules.len() == 1 { "rule" } else { "rules" };
                write!(out, "{word} {}: {reason}", names.join(", "))
            }
            UnsupportedPolicy::TooManyTogether { rule, count, most } => write!(
                out,
                "rule {rule:?}: at least {count} rules with a limit apply to its requests, and the store decides at most \
                 {most} limits together; narrow the conditions of some, or join rules that count by the same key"
            ),
        }
    }
}

impl Error for UnsupportedPolicy {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            UnsupportedPolicy::NoMemory(error) => error.source(),
            UnsupportedPolicy::Unsupported { .. }
            | UnsupportedPolicy::NotOwner { .. }
            | UnsupportedPolicy::TooManyTogether { .. } => None,
        }
    }
}

/// An error: a zone of a policy cannot be created. There is not enough memory, or its files cannot be used.
#[derive(Debug)]
pub struct NoMemory {
    pub(super) zone: NamedZone,
    pub(super) cause: io::Error,
}

impl NoMemory {
    /// Returns the zone that cannot be created.
    pub fn zone(&self) -> &NamedZone {
        &self.zone
    }

    /// Returns the error of the zone's files, if they are the cause.
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
            // The message of this error contains its text already.
            Some(error) => error.source(),
            None => Some(&self.cause),
        }
    }
}

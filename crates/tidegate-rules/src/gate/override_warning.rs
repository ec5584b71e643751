//! Warnings about overrides that are valid but probably not intended.

use std::fmt;
use std::sync::Arc;

use tidegate_core::{Algorithm, Limit, WhenFull};

use super::overrides::{Instead, Override};
use super::store::InStore;
use crate::rule::{Limited, Rule, fitting_a_cell};

/// An override in force, with the warnings about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PutOverride {
    /// The override.
    pub put: Override,
    /// The warnings about it.
    pub warnings: Vec<OverrideWarning>,
}

/// A warning about an override. The override is in force regardless.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverrideWarning {
    /// Counts of the key are not carried over to the override, nor back to the rule.
    OtherAlgorithm {
        /// The rule.
        rule: Arc<str>,
        /// The limit of the override.
        limit: Limit,
        /// The algorithm of the rule, or of one of its windows.
        usual: Algorithm,
    },
    /// The rule allows the store to forget keys, but under this limit the key is not forgotten.
    NotForgotten {
        /// The rule.
        rule: Arc<str>,
        /// The limit of the override.
        limit: Limit,
    },
}

impl OverrideWarning {
    /// Returns all warnings about an override of this rule.
    pub(super) fn all(rule: &Rule, instead: Instead, store: &InStore) -> Vec<OverrideWarning> {
        let (Instead::Limit(limit), Some(limited)) = (instead, rule.limited()) else { return Vec::new() };
        let other = other_algorithm(limited, &limit).map(|usual| OverrideWarning::OtherAlgorithm {
            rule: rule.name.clone(),
            limit,
            usual,
        });
        // A remote store forgets no key of the rule; `check` has warned of it.
        let forgets = limited.when_full == WhenFull::Forget && store.is_in_memory();
        let kept = (forgets && !limit.fits_cell())
            .then(|| OverrideWarning::NotForgotten { rule: rule.name.clone(), limit });
        other.into_iter().chain(kept).collect()
    }
}

/// Returns the first algorithm of the rule that differs from that of this limit, if any.
fn other_algorithm(limited: &Limited, limit: &Limit) -> Option<Algorithm> {
    let mut algorithms = limited.all_terms().map(|terms| terms.limit.algorithm());
    algorithms.find(|algorithm| *algorithm != limit.algorithm())
}

impl fmt::Display for OverrideWarning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OverrideWarning::OtherAlgorithm { rule, limit, usual } => write!(
                out,
                "limit \"{limit}\": is a {} and rule {rule:?} a {}, so what this key has used does not count under the \
                 override, nor the other way round; write a limit of the same algorithm",
                limit.algorithm().name(),
                usual.name()
            ),
            OverrideWarning::NotForgotten { rule, limit } => write!(
                out,
                "limit \"{limit}\": its keys are not kept in the cells of a zone, so when_full = \"forget\" of rule \
                 {rule:?} has no effect on this key; write {}",
                fitting_a_cell(limit)
            ),
        }
    }
}

//! Single keys for which something else holds than their rule says.

use std::sync::Arc;

use tidegate::Key;

use super::override_warning::{OverrideWarning, PutOverride};
use super::overrides::{Instead, Override, OverrideError};
use super::{Gate, InForce};
use crate::attributes::Attributes;
use crate::key::Keyed;

impl Gate {
    /// Has something else hold for one key of a rule, until a time in seconds since 1970. The attributes name the
    /// key as those of a request do.
    ///
    /// Counts are carried over to a limit of the rule's algorithm and back. To and from another algorithm they are not,
    /// and the answer [warns](OverrideWarning) of it.
    pub fn put_override(
        &self,
        rule: &str,
        key: &Attributes<'_>,
        instead: Instead,
        until: i64,
    ) -> Result<PutOverride, OverrideError> {
        self.put_override_if(rule, key, instead, until, |_, _| Ok(()))
    }

    /// The same, if `may_replace` agrees. It is given the override of this key that has not ended, if there is one, and
    /// the new one, and no other change comes between its answer and the replacement. It must not call the gate.
    pub fn put_override_if<E: From<OverrideError>>(
        &self,
        rule: &str,
        key: &Attributes<'_>,
        instead: Instead,
        until: i64,
        may_replace: impl FnOnce(Option<&Override>, &Override) -> Result<(), E>,
    ) -> Result<PutOverride, E> {
        let force = self.inner.force.load();
        let named = force.key_of(rule, key)?;
        if let Instead::Limit(limit) = instead {
            let unsupported = |reason| OverrideError::Unsupported { limit: limit.to_string(), reason };
            force.store.store().supports(&limit).map_err(unsupported)?;
        }
        let warnings = force.policy.named(rule).map(|rule| OverrideWarning::all(rule, instead, &force.store));
        let put = Override { rule: named.rule, key: named.parts, instead, until };
        self.inner.overrides.put(named.key, put.clone(), self.inner.calendar.now(), may_replace)?;
        force.store.store().forget_refusals();
        Ok(PutOverride { put, warnings: warnings.unwrap_or_default() })
    }

    /// Lets the rule hold again for one of its keys. Whether anything else did.
    pub fn remove_override(&self, rule: &str, key: &Attributes<'_>) -> Result<bool, OverrideError> {
        self.remove_override_if(rule, key, |_| Ok(()))
    }

    /// The same, if `may_remove` agrees. It is given the override of this key that has not ended, if there is one, and no
    /// other change comes between its answer and the removal. It must not call the gate.
    pub fn remove_override_if<E: From<OverrideError>>(
        &self,
        rule: &str,
        key: &Attributes<'_>,
        may_remove: impl FnOnce(Option<&Override>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let force = self.inner.force.load();
        let named = force.key_of(rule, key)?;
        let now = self.inner.calendar.now();
        let was_there = self.inner.overrides.remove(&named.rule, &named.key, now, may_remove)?;
        force.store.store().forget_refusals();
        Ok(was_there)
    }

    /// All overrides that have not ended, by rule and end.
    pub fn overrides(&self) -> Vec<Override> {
        self.inner.overrides.list(self.inner.calendar.now())
    }
}

/// A key of a rule, and its parts by name.
struct NamedKey {
    rule: Arc<str>,
    key: Key,
    parts: Vec<(String, String)>,
}

impl InForce {
    /// The key that these attributes name under a rule.
    fn key_of(&self, rule: &str, attributes: &Attributes<'_>) -> Result<NamedKey, OverrideError> {
        let known = self.policy.named(rule);
        let limited = known.and_then(|rule| Some((rule, rule.limited()?)));
        let limited = limited.filter(|(_, limited)| limited.candidate_for.is_none());
        let (rule, limited) = limited.ok_or_else(|| OverrideError::NoSuchRule(rule.to_owned()))?;
        let seen = self.policy.see(attributes);
        let mut parts = Vec::new();
        for (name, value) in limited.key.named(&seen) {
            let value = value.ok_or_else(|| OverrideError::MissingPart(name.to_owned()))?;
            parts.push((name.to_owned(), value));
        }
        if let Some(part) = limited.key.repeated(&seen).next() {
            return Err(OverrideError::RepeatedPart(part.to_owned()));
        }
        let Keyed::By(key) = limited.key.key(&seen) else {
            return Err(OverrideError::MissingPart(String::new()));
        };
        Ok(NamedKey { rule: rule.name.clone(), key, parts })
    }
}

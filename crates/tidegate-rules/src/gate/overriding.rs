//! The override methods of a gate.

use super::Gate;
use super::override_warning::{OverrideWarning, PutOverride};
use super::overrides::{Instead, Override, OverrideError};
use crate::attributes::Attributes;

impl Gate {
    /// Overrides a rule for one of its keys, until a time in seconds since 1970. The attributes name the key as those
    /// of a request do.
    ///
    /// Counts are carried over to a limit of the rule's algorithm and back. They are not carried over to or from
    /// another algorithm; the result contains a [warning](OverrideWarning) then.
    ///
    /// An existing override of the key is replaced. Overrides live in this gate and end with it.
    ///
    /// # Errors
    /// [`OverrideError`] if no rule with a limit has this name, the key is incomplete, the store does not support the
    /// limit, or there is no room for another override.
    ///
    /// ```
    /// use tidegate::Zone;
    /// use tidegate::rules::{Attributes, Gate, Instead, Policy};
    ///
    /// let policy = Policy::from_toml("[[rule]]\nname = 'site'\nkey = ['user']\nlimit = '1/h'")?;
    /// let gate = Gate::new(policy, Zone::new(1 << 20))?;
    /// let ana = Attributes::new().set("user", "ana");
    /// gate.put_override("site", &ana, Instead::Deny, i64::MAX)?;
    /// assert!(!gate.admit(&ana).now()?.is_allowed());
    /// assert!(gate.remove_override("site", &ana)?);
    /// assert!(gate.admit(&ana).now()?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "exemption")]
    #[doc(alias = "ban")]
    #[doc(alias = "temporary limit")]
    pub fn put_override(
        &self,
        rule: &str,
        key: &Attributes<'_>,
        instead: Instead,
        until: i64,
    ) -> Result<PutOverride, OverrideError> {
        self.put_override_if(rule, key, instead, until, |_, _| Ok(()))
    }

    /// Adds an override if `may_replace` accepts. The closure gets the override of this key that has not ended, if any,
    /// and the new one. No other change can happen between its result and the replacement. It must not call the gate.
    pub fn put_override_if<E: From<OverrideError>>(
        &self,
        rule: &str,
        key: &Attributes<'_>,
        instead: Instead,
        until: i64,
        may_replace: impl FnOnce(Option<&Override>, &Override) -> Result<(), E>,
    ) -> Result<PutOverride, E> {
        let force = self.inner.force.load();
        let named = force.named_key(rule, key).map_err(OverrideError::from)?;
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

    /// Removes the override of one key, so that the rule applies again. Returns true if there was one.
    pub fn remove_override(&self, rule: &str, key: &Attributes<'_>) -> Result<bool, OverrideError> {
        self.remove_override_if(rule, key, |_| Ok(()))
    }

    /// Removes an override if `may_remove` accepts. The closure gets the override of this key that has not ended, if
    /// any. No other change can happen between its result and the removal. It must not call the gate.
    pub fn remove_override_if<E: From<OverrideError>>(
        &self,
        rule: &str,
        key: &Attributes<'_>,
        may_remove: impl FnOnce(Option<&Override>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let force = self.inner.force.load();
        let named = force.named_key(rule, key).map_err(OverrideError::from)?;
        let now = self.inner.calendar.now();
        let was_there = self.inner.overrides.remove(&named.rule, &named.key, now, may_remove)?;
        force.store.store().forget_refusals();
        Ok(was_there)
    }

    /// Returns all overrides that have not ended, by rule and end.
    pub fn overrides(&self) -> Vec<Override> {
        self.inner.overrides.list(self.inner.calendar.now())
    }
}

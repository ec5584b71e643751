//! The override methods of a gate.

use std::convert::Infallible;

use tidegate_core::Key;

use super::override_set::{OverrideId, OverrideSet};
use super::override_warning::{OverrideWarning, PutOverride};
use super::overrides::{IdleOverride, Instead, Override, OverrideError};
use super::rule_key::NamedKey;
use super::{Gate, InForce};
use crate::attributes::Attributes;
use crate::rule::{Limited, Rule};

impl Gate {
    /// Overrides a rule for one of its keys, until a time in seconds since 1970 or, with `None`, without an end. The
    /// attributes name the key as those of a request do.
    ///
    /// Counts are carried over to a limit of the rule's algorithm and back. They are not carried over to or from
    /// another algorithm; the result contains a [warning](OverrideWarning) then.
    ///
    /// An existing override of the key is replaced. Overrides live in this gate and end with it;
    /// [`Gate::replace_overrides`] puts those in force that were kept in another place.
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
    /// gate.put_override("site", &ana, Instead::Deny, None)?;
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
        until: impl Into<Option<i64>>,
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
        until: impl Into<Option<i64>>,
        may_replace: impl FnOnce(Option<&Override>, &Override) -> Result<(), E>,
    ) -> Result<PutOverride, E> {
        let new = self.new_override(rule, key, instead, until)?;
        self.change_overrides(|set| {
            may_replace(set.get(&new.put.id()), &new.put)?;
            Ok::<(), E>(set.put(new.put.clone())?)
        })?;
        Ok(new)
    }

    /// Returns the override that [`Gate::put_override`] would add, and the warnings about it. Changes nothing.
    ///
    /// # Errors
    /// [`OverrideError`], as for [`Gate::put_override`].
    pub fn new_override(
        &self,
        rule: &str,
        key: &Attributes<'_>,
        instead: Instead,
        until: impl Into<Option<i64>>,
    ) -> Result<PutOverride, OverrideError> {
        let force = self.inner.force.load();
        let named = force.key_in_text(rule, key)?;
        if let Instead::Limit(limit) = instead {
            let unsupported = |reason| OverrideError::Unsupported { limit: limit.to_string(), reason };
            force.store.store().supports(&limit).map_err(unsupported)?;
        }
        let warnings = force.policy.named(rule).map(|rule| OverrideWarning::all(rule, instead, &force.store));
        let (until, at) = (until.into(), self.inner.calendar.now());
        let put = Override { until, at, ..Override::new(named.rule, named.parts, instead) };
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
        let id = self.override_id(rule, key)?;
        self.change_overrides(|set| {
            may_remove(set.get(&id))?;
            Ok(set.remove(&id).is_some())
        })
    }

    /// Returns the identity of an override of this key, whether there is one or not.
    ///
    /// # Errors
    /// [`OverrideError`] if no rule with a limit has this name, or the key is incomplete.
    pub fn override_id(&self, rule: &str, key: &Attributes<'_>) -> Result<OverrideId, OverrideError> {
        let named = self.inner.force.load().key_in_text(rule, key)?;
        Ok(OverrideId::new(named.rule, named.parts))
    }

    /// Changes the set of overrides that have not ended, and puts the result in force. On an error nothing changes.
    ///
    /// No other change of overrides or of the policy can happen meanwhile. The closure must not call the gate.
    pub fn change_overrides<T, E>(
        &self,
        change: impl FnOnce(&mut OverrideSet) -> Result<T, E>,
    ) -> Result<T, E> {
        let force = || self.inner.force.load_full();
        let changed = self.inner.overrides.change(self.inner.calendar.now(), force, change)?;
        self.inner.force.load().store.store().forget_refusals();
        Ok(changed)
    }

    /// Puts a set of overrides in force in place of all others, for example one that was read from a file. Overrides
    /// that are in both sets go on; those that are not in the new one end. Counts are carried over as for single
    /// changes.
    ///
    /// An override of a rule that is not in force is kept without effect, until the rule is back or the override ends.
    ///
    /// ```
    /// use tidegate::Zone;
    /// use tidegate::rules::{Attributes, Gate, Instead, Override, OverrideSet, Policy};
    ///
    /// let policy = Policy::from_toml("[[rule]]\nname = 'site'\nkey = ['user']\nlimit = '1/h'")?;
    /// let gate = Gate::new(policy, Zone::new(1 << 20))?;
    /// let mut kept = OverrideSet::default();
    /// kept.put(Override::new("site", vec![("user".into(), "ana".into())], Instead::Deny))?;
    /// kept.put(Override::new("gone", vec![("user".into(), "ana".into())], Instead::Deny))?;
    /// gate.replace_overrides(kept);
    /// assert!(!gate.admit(&Attributes::new().set("user", "ana")).now()?.is_allowed());
    /// assert_eq!((gate.overrides().len(), gate.idle_overrides().len()), (2, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn replace_overrides(&self, new: OverrideSet) {
        let replaced = self.change_overrides(|set| {
            *set = new;
            Ok::<(), Infallible>(())
        });
        replaced.unwrap_or_else(|never| match never {});
    }

    /// Returns all overrides that have not ended, by rule and end; those without an end come last.
    pub fn overrides(&self) -> Vec<Override> {
        let mut list: Vec<_> = self.override_set().iter().cloned().collect();
        let order = |one: &Override| (one.until.is_none(), one.until);
        list.sort_by(|one, other| {
            (&one.rule, order(one), &one.key).cmp(&(&other.rule, order(other), &other.key))
        });
        list
    }

    /// Returns all overrides that have not ended, as a set.
    pub fn override_set(&self) -> OverrideSet {
        self.inner.overrides.set(self.inner.calendar.now())
    }

    /// Returns the overrides that are kept without effect, each with the reason.
    pub fn idle_overrides(&self) -> Vec<IdleOverride> {
        self.inner.overrides.idle(self.inner.calendar.now())
    }
}

impl InForce {
    /// Returns the key that these attributes name under a rule, in a form that text can keep.
    fn key_in_text(&self, rule: &str, attributes: &Attributes<'_>) -> Result<NamedKey, OverrideError> {
        let named = self.named_key(rule, attributes)?;
        let (_, limited) = self.overridable(rule)?;
        if limited.key.key_of_named(&named.parts).as_ref() != Some(&named.key) {
            let is_odd = |(name, value): &&(String, String)| {
                name == "ip" || value.contains(char::REPLACEMENT_CHARACTER)
            };
            let odd = named.parts.iter().find(is_odd).map(|(name, _)| name.clone());
            return Err(OverrideError::NoText(odd.unwrap_or_default()));
        }
        Ok(named)
    }

    /// Returns the key of an override under this policy; the reason if it has no effect.
    pub(super) fn key_of_override(&self, one: &Override) -> Result<Key, String> {
        let (rule, limited) = self.overridable(&one.rule).map_err(|error| error.to_string())?;
        if let Instead::Limit(limit) = &one.instead {
            let zone = limit.periods().map(|periods| periods.zone());
            if let Some(zone) = zone.filter(|zone| !zone.is_resolved()) {
                return Err(format!(
                    "limit \"{limit}\": \"{zone}\" is no time zone on this machine; update its time zone database and \
                     restart, or delete the override"
                ));
            }
            let unsupported = |why| format!("limit \"{limit}\": {why}");
            self.store.store().supports(limit).map_err(unsupported)?;
        }
        limited.key.key_of_named(&one.key).ok_or_else(|| {
            let parts: Vec<_> = rule.key().map(|part| format!("{part:?}")).collect();
            format!(
                "rule {:?}: counts by {}, in another spelling than the key of the override; put it anew and delete this one",
                rule.name(),
                parts.join(", ")
            )
        })
    }

    /// Returns a rule with a limit that may be overridden.
    fn overridable(&self, rule: &str) -> Result<(&Rule, &Limited), OverrideError> {
        let known = self.policy.named(rule);
        let limited = known.and_then(|rule| Some((rule, rule.limited()?)));
        let limited = limited.filter(|(_, limited)| limited.candidate_for.is_none());
        limited.ok_or_else(|| OverrideError::NoSuchRule(rule.to_owned()))
    }
}

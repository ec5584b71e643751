//! All rules in force, and how to find those that apply.

use std::collections::HashMap;
use std::sync::Arc;

use crate::attributes::Attributes;
use crate::condition::Reading;
use crate::index::{Index, RuleId};
use crate::rule::Rule;
use crate::seen::{Seen, Slots};

/// All rules in force.
///
/// ```
/// use tidegate_rules::Policy;
///
/// let policy = Policy::from_toml(
///     r#"
///     [[rule]]
///     name = "api-per-client"
///     when = { path = "/api/{*rest}" }
///     key = ["ip"]
///     limit = "10/s burst 20"
///     "#,
/// )?;
/// assert_eq!(policy.rules()[0].name(), "api-per-client");
/// # Ok::<(), tidegate_rules::PolicyError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Policy {
    rules: Box<[Rule]>,
    zones: Box<[NamedZone]>,
    slots: Slots,
    attributes: Box<[Box<str>]>,
    index: Index,
    names: HashMap<Arc<str>, RuleId>,
}

/// A zone that rules may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedZone {
    /// Its name.
    pub name: Box<str>,
    /// How many bytes it takes.
    pub bytes: usize,
}

impl Policy {
    pub(crate) fn new(rules: Vec<Rule>, zones: Vec<NamedZone>, slots: Slots) -> Policy {
        // A candidate applies when the rule beside it does, and is not looked for by itself.
        let conditions = rules.iter().map(|rule| {
            let is_candidate = rule.limited().is_some_and(|limited| limited.candidate_for.is_some());
            (!is_candidate).then_some(&*rule.conditions)
        });
        let index = Index::new(conditions);
        let names = rules.iter().map(|rule| rule.name.clone()).zip(0..).collect();
        let attributes = slots.names();
        Policy { rules: rules.into(), zones: zones.into(), slots, attributes, index, names }
    }

    /// All rules, in the order of the file.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The zones that rules may name.
    pub fn zones(&self) -> &[NamedZone] {
        &self.zones
    }

    /// The names of all attributes that rules look at: whatever else is known of a request makes no difference.
    ///
    /// ```
    /// use tidegate_rules::Policy;
    ///
    /// let text = "[[rule]]\nname = 'a'\nwhen = { path = '/x' }\nkey = ['ip', 'header.X-Key']\nlimit = '1/s'";
    /// let policy = Policy::from_toml(text)?;
    /// assert_eq!(policy.attributes().collect::<Vec<_>>(), ["header.x-key", "ip", "path"]);
    /// # Ok::<(), tidegate_rules::PolicyError>(())
    /// ```
    pub fn attributes(&self) -> impl Iterator<Item = &str> {
        self.attributes.iter().map(|name| &**name)
    }

    /// The rule of this name.
    pub fn named(&self, name: &str) -> Option<&Rule> {
        self.names.get(name).map(|id| self.rule(*id))
    }

    /// The rules that apply to a request, in the order of the file, without candidates.
    pub fn matching(&self, attributes: &Attributes<'_>) -> Vec<&Rule> {
        let seen = self.see(attributes);
        self.applying(&seen).into_iter().map(|id| self.rule(id)).collect()
    }

    /// A request as these rules see it.
    pub(crate) fn see<'a>(&self, attributes: &'a Attributes<'_>) -> Seen<'a> {
        self.slots.see(attributes)
    }

    /// The rules that apply, in the order of the file.
    pub(crate) fn applying(&self, seen: &Seen<'_>) -> Vec<RuleId> {
        let mut found = self.index.candidates(seen);
        found.retain(|id| {
            let (rule, is_any) = (self.rule(*id), self.rule(*id).reading() == Reading::Any);
            // What a rule was found by holds in one spelling.
            let is_known = |place| is_any && self.index.stands_under(*id, place);
            let mut conditions = rule.conditions.iter().enumerate();
            conditions.all(|(place, condition)| is_known(place) || condition.holds(seen, rule.reading()))
        });
        found
    }

    pub(crate) fn rule(&self, id: RuleId) -> &Rule {
        &self.rules[id as usize]
    }
}

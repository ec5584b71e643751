//! Validation: turns the parsed file into rules, or reports all of its errors.
//!
//! ```text
//!   names of all rules -> each rule on its own -> candidates linked to their rules -> when_full against limits
//! ```
//!
//! A rule is validated even if an earlier one is invalid. Within a rule, a value that is invalid is replaced by its
//! default, so that every field is checked; the rule itself is then left out. There is a policy only if there are no
//! complaints at all.

pub(super) mod choice;
mod forgetting;
mod key;
mod limit_for;
mod params;
mod penalty;
mod zones;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use tidegate_support::{Complaint, Complaints, Lines, nearest};

use super::written::{PolicyText, RuleText, Written};
use crate::condition::Condition;
use crate::index::RuleId;
use crate::normalized::Slots;
use crate::policy::NamedZone;
use crate::rule::{Action, Group, GroupId, Limited, Rule, StaticVerdict};
use choice::{DECISIONS, MODES, shortened};
pub(super) use params::MAX_COST;

/// The maximum number of rules of a policy.
pub(super) const MAX_RULES: usize = 10_000;
/// The maximum length of a name of a rule, a zone or an attribute, in bytes.
pub(super) const MAX_NAME_BYTES: usize = 128;
/// The maximum number of zones of a policy in addition to the store's own.
const MAX_ZONES: usize = 64;
/// The maximum number of unknown names, of each kind, for which a similar name is suggested.
const MAX_LIKE: usize = 10;
/// The maximum number of rules that are searched for a similar name.
const MAX_COMPARED: usize = 1000;

/// The fields that a candidate may have. The others are those of its rule.
const OF_CANDIDATES: [&str; 6] = ["name", "candidate_for", "limit", "cost", "max_wait", "schedule"];
/// The fields that a rule without a limit may have.
const OF_DECISIONS: [&str; 6] = ["name", "when", "unless", "decision", "mode", "trusted"];

/// The validation of one policy.
///
/// It assigns the slots of attributes while it reads conditions and keys, so a policy contains only attributes in use.
#[derive(Debug)]
pub(super) struct Valid<'t> {
    /// The file; `None` for a policy made in code, whose positions are indices of rules.
    text: Option<&'t str>,
    pub(super) slots: Slots,
    pub(super) complaints: Complaints,
    /// The declared attributes in their canonical form, if the policy declares attributes.
    declared: Option<Vec<Box<str>>>,
    /// The numbers of groups by name, in the order of first use.
    groups: HashMap<Arc<str>, GroupId>,
    unknown_rules: usize,
    /// The number of attributes that are not declared.
    suggestions: usize,
}

/// All rules and zones of a file without errors.
#[derive(Debug)]
pub(super) struct AllValid {
    pub(super) rules: Vec<Rule>,
    pub(super) zones: Vec<NamedZone>,
    pub(super) unmatched: StaticVerdict,
}

impl<'t> Valid<'t> {
    /// Starts with the complaints of the reader, so that all of them are sorted and counted together.
    pub(super) fn new(text: Option<&'t str>, complaints: Complaints) -> Valid<'t> {
        let (slots, groups) = (Slots::default(), HashMap::new());
        Valid { text, slots, complaints, declared: None, groups, unknown_rules: 0, suggestions: 0 }
    }

    /// Validates a whole policy. `None` if there is any complaint, including those of the reader.
    ///
    /// A candidate may precede its rule in the file, so candidates are linked after all rules have been validated.
    pub(super) fn all(&mut self, written: &PolicyText) -> Option<AllValid> {
        if let Some(beyond) = written.zones.get(MAX_ZONES) {
            self.complain(&beyond.name.span, format!("zone: there are more than {MAX_ZONES}; use fewer"));
            return None;
        }
        let zones = self.zones(&written.zones);
        let unmatched = self.choice("unmatched", written.unmatched.as_ref(), &DECISIONS);
        written.attributes.iter().for_each(|names| self.declarations(names));
        let names = self.names(&written.rules);
        let mut rules: Vec<_> =
            written.rules.iter().map(|text| self.rule(text, &written.rules, &names, &zones)).collect();
        for (id, text) in (0..).zip(&written.rules) {
            let base = text.candidate_for.as_ref().and_then(|base| names.get(base.value.as_str()).copied());
            if let Some(base) = base {
                link(&mut rules, base, id);
            }
        }
        for (rule, text) in rules.iter().zip(&written.rules) {
            self.forgetting(rule.as_ref(), text);
        }
        let rules: Option<Vec<_>> = rules.into_iter().collect();
        let rules = rules.filter(|_| self.complaints.found() == 0);
        rules.zip(unmatched).map(|(rules, unmatched)| AllValid { rules, zones, unmatched })
    }

    /// Returns the numbers of all rules by name.
    ///
    /// Of several rules with one name the first one is meant, so that candidates for it are still validated.
    fn names<'w>(&mut self, rules: &'w [RuleText]) -> HashMap<&'w str, RuleId> {
        let (mut names, mut lines) = (HashMap::new(), None);
        for (id, rule) in (0..).zip(rules) {
            let Some(name) = &rule.name else {
                if !rule.says("name") {
                    self.complain(&rule.span, "rule: has no name; add one, as in name = \"login\"");
                }
                continue;
            };
            self.name("name", name);
            let first = *names.entry(name.value.as_str()).or_insert(id);
            let other = rules.get(first as usize).filter(|_| first != id);
            if let Some(other) = other.and_then(|other| other.name.as_ref()) {
                let at = other.span.start;
                let other = match self.text {
                    Some(text) => {
                        let line = lines.get_or_insert_with(|| Lines::of(text)).number(at);
                        format!("the rule in line {line}")
                    }
                    None => format!("rule {}", first + 1),
                };
                let what = format!(
                    "name {:?}: {other} has it, too; counts are kept by name, so choose another",
                    name.value
                );
                self.complain(&name.span, what);
            }
        }
        names
    }

    /// Validates a name, which has to be usable in a header field, a label and a log.
    ///
    /// Letters, digits and `_ - . : /` are valid. They need no escaping in any of these places.
    fn name(&mut self, of: &str, name: &Written<String>) {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte);
        let what = match &*name.value {
            "" => {
                format!("is empty; write something like {:?}", if of == "group" { "plan" } else { "login" })
            }
            long if long.len() > MAX_NAME_BYTES => {
                format!("has {} bytes; write at most {MAX_NAME_BYTES}", long.len())
            }
            odd if !odd.bytes().all(is_plain) => {
                let dashed = odd.trim().replace(' ', "-");
                let remedy = match dashed.bytes().all(is_plain) {
                    true => format!("write {dashed:?}"),
                    false => "leave the others out".to_owned(),
                };
                format!("a name has letters, digits, _ - . : and / only; {remedy}")
            }
            _ => return,
        };
        self.complain(&name.span, format!("{of} {:?}: {what}", shortened(&name.value)));
    }

    /// Validates one rule. A rule has either a decision or a limit; a candidate has a limit.
    fn rule(
        &mut self,
        text: &RuleText,
        all: &[RuleText],
        names: &HashMap<&str, RuleId>,
        zones: &[NamedZone],
    ) -> Option<Rule> {
        let mode = self.choice("mode", text.mode.as_ref(), &MODES);
        let conditions = self.conditions("when", &text.when);
        let unless = self.conditions("unless", &text.unless);
        // Conditions of `when` are looked up in an index; those of `unless` are evaluated.
        let unless = unless.into_iter().map(Condition::with_lookup).collect();
        let trusted = self.trusted(text);
        let action = match (&text.decision, &text.limit, &text.candidate_for) {
            (Some(decision), None, None) => self.decision(text, decision).map(Action::Decide),
            (Some(decision), None, Some(_)) => {
                let what = "a candidate has a limit; leave the decision out, and add limit = \"10/s\"";
                self.complain(&decision.span, format!("decision {:?}: {what}", decision.value));
                None
            }
            (Some(decision), ..) => {
                let what = "a rule has a decision or a limit, not both; leave one of the two out";
                self.complain(&decision.span, format!("decision {:?}: {what}", decision.value));
                None
            }
            (None, None, _) => {
                self.without_action(text);
                None
            }
            (None, Some(limit), None) => self.limited(text, limit, zones).map(Action::Limit),
            (None, Some(limit), Some(base)) => {
                let base = self.base(text, base, all, names);
                let limited = self.limited(text, limit, zones);
                self.beside(limited?, base?, names).map(Action::Limit)
            }
        };
        let name = Arc::from(text.name.as_ref()?.value.as_str());
        Some(Rule { name, conditions, unless, trusted, action: action?, mode: mode? })
    }

    /// Returns the group of a rule. Names of groups follow the rules of rule names.
    pub(super) fn group(&mut self, text: &RuleText) -> Option<Group> {
        let written = text.group.as_ref()?;
        self.name("group", written);
        let next = self.groups.len() as GroupId;
        let name: Arc<str> = written.value.as_str().into();
        let id = *self.groups.entry(Arc::clone(&name)).or_insert(next);
        Some(Group { name, id })
    }

    /// Reports a rule without a limit and without a decision.
    ///
    /// It reports nothing if one of the two is present with an invalid value, because that has been reported already.
    fn without_action(&mut self, text: &RuleText) {
        if text.says("limit") || text.says("decision") {
            return;
        }
        if let Some(base) = &text.candidate_for {
            let what = "a candidate has a limit of its own; add one, as in limit = \"10/s\"";
            return self.complain(&base.span, format!("candidate_for {:?}: {what}", base.value));
        }
        let what = "has neither a limit nor a decision; add limit = \"10/s\", or decision = \"allow\"";
        match &text.name {
            Some(name) => self.complain(&name.span, format!("rule {:?}: {what}", shortened(&name.value))),
            None => self.complain(&text.span, format!("rule: {what}")),
        }
    }

    /// Gives a candidate the key and the zone of its rule.
    ///
    /// The key and the zone are validated again for this candidate, and their complaints are dropped.
    fn beside(
        &mut self,
        mut limited: Box<Limited>,
        base: &RuleText,
        names: &HashMap<&str, RuleId>,
    ) -> Option<Box<Limited>> {
        let known = self.complaints.found();
        let key = self.key(base);
        // Errors in these fields are reported at the rule itself.
        self.complaints.take_back(known);
        limited.key = key?;
        // Candidates share the zone of their rule, so that a flood affects both equally.
        limited.zone = base.zone.as_ref().map(|zone| zone.value.as_str().into());
        limited.candidate_for = names.get(base.name.as_ref()?.value.as_str()).copied();
        Some(limited)
    }

    /// Validates a rule with a fixed decision. Fields that only matter for a limit, such as a key, are errors.
    fn decision(&mut self, text: &RuleText, decision: &Written<String>) -> Option<StaticVerdict> {
        self.only(text, &OF_DECISIONS, "belongs to a limit, and this rule decides without one; leave it out");
        self.choice("decision", Some(decision), &DECISIONS)
    }

    /// Returns the rule that a candidate would replace.
    ///
    /// A candidate cannot stand beside another candidate, or beside a rule without a limit. Its own conditions, key,
    /// zone and mode would be ignored, so they are errors.
    fn base<'w>(
        &mut self,
        text: &RuleText,
        base: &Written<String>,
        all: &'w [RuleText],
        names: &HashMap<&str, RuleId>,
    ) -> Option<&'w RuleText> {
        let of_base =
            format!("a candidate has that of {:?}, beside which it is measured; leave it out", base.value);
        self.only(text, &OF_CANDIDATES, &of_base);
        let found = names.get(base.value.as_str()).map(|id| &all[*id as usize]);
        let what = match found {
            None => match self.like(&base.value, all) {
                Some(near) => format!("there is no such rule; did you mean {near:?}?"),
                None => "there is no such rule; name one of this file".to_owned(),
            },
            Some(RuleText { candidate_for: Some(rule), .. }) => {
                format!("is a candidate itself; name the rule beside which it is measured, {:?}", rule.value)
            }
            Some(found) if found.decision.is_some() => {
                "has a decision and no limit that could be replaced; name a rule with a limit".to_owned()
            }
            Some(found) => return Some(found),
        };
        self.complain(&base.span, format!("candidate_for {:?}: {what}", base.value));
        None
    }

    /// Returns a similar rule name. Comparing each unknown name with each known one would take too long.
    ///
    /// After ten unknown names the answer is `None`.
    fn like<'w>(&mut self, name: &str, all: &'w [RuleText]) -> Option<&'w str> {
        self.unknown_rules += 1;
        if self.unknown_rules > MAX_LIKE {
            return None;
        }
        let names = all.iter().take(MAX_COMPARED).filter_map(|rule| rule.name.as_ref());
        nearest(name, names.map(|name| name.value.as_str()))
    }

    /// Reports fields that are not allowed here.
    ///
    /// A limit is not reported here: the caller has a message of its own for it.
    fn only(&mut self, text: &RuleText, allowed: &[&str], what: &str) {
        for field in text.fields.iter().filter(|field| !allowed.contains(&field.value)) {
            match field.value {
                "limit" => {}
                "group" if text.decision.is_some() => self.complain(
                    &field.span,
                    "group: a decision comes before all groups; leave it out, or write a limit in place of the decision",
                ),
                "mode" => self.complain(&field.span, "mode: a candidate denies no request; leave it out"),
                name => self.complain(&field.span, format!("{name}: {what}")),
            }
        }
    }

    /// Adds a complaint about a value at this position.
    fn complain(&mut self, span: &Range<usize>, what: impl Into<String>) {
        self.complaints.push(Complaint::at(span.clone(), what));
    }
}

/// Returns the error for a policy with more than [`MAX_RULES`] rules.
pub(super) fn too_many_rules() -> String {
    format!("rule: there are more than {MAX_RULES}; use fewer")
}

/// Registers a candidate with its rule.
///
/// A candidate inherits the behavior for a full zone and a failed store, so that it differs from its rule only in the
/// parameters that are being compared.
fn link(rules: &mut [Option<Rule>], base: RuleId, candidate: RuleId) {
    let of_base = match rules.get_mut(base as usize) {
        Some(Some(Rule { action: Action::Limit(limited), .. })) => {
            limited.candidates.push(candidate);
            (limited.when_full, limited.on_store_failure, limited.penalty)
        }
        _ => return,
    };
    if let Some(Some(Rule { action: Action::Limit(limited), .. })) = rules.get_mut(candidate as usize) {
        (limited.when_full, limited.on_store_failure, limited.penalty) = of_base;
    }
}

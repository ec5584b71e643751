//! Warnings about groups with one member.

use std::collections::HashMap;

use tidegate_support::{Complaint, nearest};

use super::super::written::RuleText;
use crate::rule::Rule;

/// The maximum number of groups that are searched for a similar name.
const MAX_COMPARED: usize = 1000;

/// Returns a warning for each group that has one member. It chooses between nothing, so its name is probably misspelled.
pub(super) fn only_members(rules: &[Rule], texts: &[RuleText]) -> Vec<Complaint> {
    let mut members: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, rule) in rules.iter().enumerate() {
        if let Some(group) = rule.group() {
            members.entry(group).or_default().push(index);
        }
    }
    let mut names: Vec<_> = members.keys().copied().collect();
    names.sort_unstable();
    names.truncate(MAX_COMPARED);
    let alone = members.iter().filter_map(|(group, members)| match &members[..] {
        [only] => Some((*group, *only)),
        _ => None,
    });
    let warning = |(group, only): (&str, usize)| {
        let near = nearest(group, names.iter().copied().filter(|name| *name != group));
        let remedy = match near {
            Some(near) => format!("did you mean {near:?}?"),
            None => "add the other members, or leave group out".to_owned(),
        };
        let span = texts[only].group.as_ref().map(|written| written.span.clone());
        let what = format!("rule {:?}: is the only member of group {group:?}; {remedy}", rules[only].name());
        Complaint { span, what }
    };
    alone.take(MAX_COMPARED).map(warning).collect()
}

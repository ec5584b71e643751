//! What holds and is probably not meant so.

use std::collections::HashMap;
use std::time::Duration;

use super::complaint::{Complaint, Complaints};
use super::written::RuleText;
use crate::condition::Condition;
use crate::key::OnMissing;
use crate::rule::{Action, Limited, Mode, Rule};

/// How many times as long the periods of limits in one zone may be. A flood of keys that owe for long pushes out
/// keys that owe for a moment.
const PERIODS_APART: u32 = 10_000;
/// What anybody can send as they like.
const FORGED: [&str; 3] = ["header.", "cookie.", "query."];

/// So many patterns are compared to find a rule that covers another. There may be thousands of rules, too many to
/// compare each with each: of those that are left nothing is said.
const MAX_COMPARED: usize = 4_000_000;
/// So many rules alike are compared in full.
const MAX_ALIKE: usize = 16;

/// Everything to warn of, for rules and the texts they come from.
pub(super) fn warnings(rules: &[Rule], texts: &[RuleText]) -> Complaints {
    let mut found = Complaints::default();
    let mut by_meaning: HashMap<(Vec<String>, String), Vec<&Rule>> = HashMap::new();
    let mut others = Others::of(rules);
    for (index, (rule, text)) in rules.iter().zip(texts).enumerate() {
        let mut warn = |what: String| {
            let span = text.name.as_ref().map_or(text.span.clone(), |name| name.span.clone());
            found.push(Complaint::at(span, format!("rule {:?}: {what}", rule.name())));
        };
        if let Some(before) = others.hides(rule, index) {
            warn(format!(
                "is never reached, as {:?} decides all that it is for; leave it out, or narrow {0:?}",
                before.name()
            ));
        }
        let alike = by_meaning.entry((conditions(rule), in_short(rule))).or_default();
        if let Some(same) = alike.iter().find(|same| is_same(same, rule)) {
            warn(format!("counts the same as {:?}; leave one of them out", same.name()));
        }
        if alike.len() < MAX_ALIKE {
            alike.push(rule);
        }
        let Action::Limit(limited) = &rule.action else { continue };
        if forged(limited).next().is_some() && !others.back(rule) {
            forged_parts(limited, &mut warn);
        }
        too_dear(rule, limited, text).into_iter().for_each(|complaint| found.push(complaint));
        other_algorithms(rule, limited, text).for_each(|complaint| found.push(complaint));
    }
    periods_apart(rules, texts).into_iter().for_each(|complaint| found.push(complaint));
    found
}

/// Rules that may make another one useless or safe.
struct Others<'r> {
    /// Those that decide, and where they stand.
    deciding: Vec<(usize, &'r Rule)>,
    /// Limits that nobody can get around.
    backing: Vec<&'r Rule>,
    compared: usize,
}

impl<'r> Others<'r> {
    fn of(rules: &'r [Rule]) -> Others<'r> {
        let enforced = || rules.iter().enumerate().filter(|(_, rule)| rule.mode == Mode::Enforce);
        let decides = |rule: &Rule| matches!(rule.action, Action::Decide(_));
        Others {
            deciding: enforced().filter(|(_, rule)| decides(rule)).collect(),
            backing: enforced().map(|(_, rule)| rule).filter(|rule| is_sure(rule)).collect(),
            compared: 0,
        }
    }

    /// The rule that decides everything which this one is for.
    fn hides(&mut self, rule: &Rule, index: usize) -> Option<&'r Rule> {
        let before = match &rule.action {
            // Decisions are looked at in the order of the file, and all of them before any limit.
            Action::Decide(_) => index,
            Action::Limit(limited) if limited.candidate_for.is_some() => 0,
            Action::Limit(_) => usize::MAX,
        };
        let earlier = self.deciding.iter().map_while(|(at, rule)| (*at < before).then_some(*rule));
        let compared = &mut self.compared;
        earlier.into_iter().find(|wide| covers(wide, rule, compared) == Some(true))
    }

    /// Whether another limit that nobody can get around counts all that this one is for, as far as is known.
    fn back(&mut self, rule: &Rule) -> bool {
        let compared = &mut self.compared;
        self.backing.iter().any(|wide| covers(wide, rule, compared) != Some(false))
    }
}

/// Whether everything that a rule is for is also for another; nothing if too much was compared already.
fn covers(wide: &Rule, narrow: &Rule, compared: &mut usize) -> Option<bool> {
    let patterns =
        |rule: &Rule| rule.conditions.iter().map(|condition| condition.any_of.len()).sum::<usize>();
    *compared = compared.saturating_add(1 + patterns(wide).saturating_add(patterns(narrow)));
    (*compared <= MAX_COMPARED).then(|| wide.covers(narrow))
}

/// What a rule does, as text: rules that do the same have the same.
fn in_short(rule: &Rule) -> String {
    match &rule.action {
        Action::Decide(fixed) => format!("{fixed:?}"),
        Action::Limit(limited) => format!("{:?} {:?}", limited.key, limited.usual),
    }
}

/// The conditions of a rule as texts, in an order that does not depend on the file's.
fn conditions(rule: &Rule) -> Vec<String> {
    let mut texts: Vec<_> = rule.conditions.iter().map(Condition::to_string).collect();
    texts.sort_unstable();
    texts
}

/// Whether two rules of the same conditions count by the same key, so that each request is charged twice.
fn is_same(one: &Rule, other: &Rule) -> bool {
    match (&one.action, &other.action) {
        (Action::Limit(first), Action::Limit(second)) => {
            first.key == second.key
                && first.usual == second.usual
                && first.schedule == second.schedule
                && first.candidate_for.is_none()
                && second.candidate_for.is_none()
        }
        (Action::Decide(first), Action::Decide(second)) => first == second,
        _ => false,
    }
}

/// Costs that are more than can ever pass.
fn too_dear(rule: &Rule, limited: &Limited, text: &RuleText) -> Vec<Complaint> {
    let windows = text.schedule.iter().map(|window| (&window.limit, &window.cost, " in this window"));
    let places = [(&text.limit, &text.cost, "")].into_iter().chain(windows);
    let told = limited.all_terms().zip(places).filter(|(terms, _)| terms.cost > terms.capacity());
    told.map(|(terms, (limit, cost, when))| {
        let cost = cost.as_ref().map(|written| written.span.clone());
        let span = cost.or(limit.as_ref().map(|written| written.span.clone()));
        let what = format!(
            "rule {:?}: lets nothing pass{when}, as a request costs {} and at most {} can pass; lower the cost, or raise the limit",
            rule.name(),
            terms.cost,
            terms.capacity()
        );
        Complaint { span, what }
    })
    .collect()
}

/// Windows whose limit has another algorithm, and so other counts.
fn other_algorithms<'a>(
    rule: &'a Rule,
    limited: &'a Limited,
    text: &'a RuleText,
) -> impl Iterator<Item = Complaint> + 'a {
    let usual = limited.usual.limit.algorithm();
    let windows = limited.schedule.terms.iter().zip(&text.schedule);
    windows.filter(move |(terms, _)| terms.limit.algorithm() != usual).map(move |(terms, window)| {
        let span = window.limit.as_ref().map(|written| written.span.clone());
        let what = format!(
            "rule {:?}: is a {} in this window and a {} otherwise, so counts begin anew when the window begins and \
             when it ends; write limits of one algorithm",
            rule.name(),
            terms.limit.algorithm().name(),
            usual.name()
        );
        Complaint { span, what }
    })
}

/// Whether nobody can get around a limit.
fn is_sure(rule: &Rule) -> bool {
    rule.limited().is_some_and(|limited| {
        limited.candidate_for.is_none() && !limited.key.parts.is_empty() && forged(limited).next().is_none()
    })
}

/// The parts of a key that anybody can choose.
fn forged(limited: &Limited) -> impl Iterator<Item = &str> {
    let parts = limited.key.parts.iter().map(|part| &*part.name);
    let is_forged = |name: &&str| FORGED.iter().any(|prefix| name.starts_with(prefix));
    parts.filter(is_forged).filter(|part| !limited.trusted.iter().any(|name| **name == **part))
}

/// Whoever can choose a part of the key has a fresh count for each request.
fn forged_parts(limited: &Limited, warn: &mut impl FnMut(String)) {
    if limited.candidate_for.is_some() {
        return;
    }
    for part in forged(limited) {
        let way_around = match limited.key.on_missing {
            OnMissing::Skip => {
                "another value each time is a fresh count each time, and none is no count at all"
            }
            OnMissing::Share => "another value each time is a fresh count each time",
        };
        warn(format!(
            "counts by {part}, which anybody can choose: {way_around}; add a rule for the same by ip, \
             or write trusted = [{part:?}] if something before Tidegate checks it"
        ));
    }
}

/// Zones whose keys owe for very different times.
fn periods_apart(rules: &[Rule], texts: &[RuleText]) -> Vec<Complaint> {
    let mut zones: HashMap<Option<&str>, Vec<(Duration, usize)>> = HashMap::new();
    for (index, rule) in rules.iter().enumerate() {
        let Some(limited) = rule.limited() else { continue };
        let periods = limited.all_terms().map(|terms| terms.limit.regained_in());
        let longest = periods.max().unwrap_or_default();
        zones.entry(limited.zone.as_deref()).or_default().push((longest, index));
    }
    let mut found = Vec::new();
    for (zone, mut periods) in zones {
        periods.sort_unstable();
        let (Some((short, quick)), Some((long, slow))) = (periods.first(), periods.last()) else { continue };
        if *long > short.saturating_mul(PERIODS_APART) && !short.is_zero() {
            let span =
                texts[*slow].zone.as_ref().or(texts[*slow].name.as_ref()).map(|written| written.span.clone());
            let zone = zone.map_or("the store".to_owned(), |zone| format!("zone {zone:?}"));
            let what = format!(
                "rule {:?}: its keys stay in {zone} for {}, those of {:?} for {}: a flood of the former leaves the latter \
                 no room of their own; give one of the two a zone, as in zone = {0:?}",
                rules[*slow].name(),
                in_units(*long),
                rules[*quick].name(),
                in_units(*short)
            );
            found.push(Complaint { span, what });
        }
    }
    found
}

/// A span in the largest unit of a rate that divides it.
fn in_units(span: Duration) -> String {
    const UNITS: [(&str, u128); 6] = [
        ("d", 86_400_000_000),
        ("h", 3_600_000_000),
        ("m", 60_000_000),
        ("s", 1_000_000),
        ("ms", 1000),
        ("us", 1),
    ];
    let micros = span.as_micros().max(1);
    let whole = UNITS.iter().find(|(_, unit)| micros.is_multiple_of(*unit));
    whole.map_or(String::new(), |(name, unit)| format!("{}{name}", micros / unit))
}

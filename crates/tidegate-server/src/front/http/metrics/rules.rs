//! What was counted for each rule.

use tidegate::{DecidedBy, WithoutStore};
use tidegate_rules::{Mode, Rule, RuleCounts, ShadowCounts};

use super::page::{Kind, Page};
use crate::engine::Engine;

/// The most rules with labels of their own; the others are counted together.
const MAX_LABELLED: usize = 1000;
/// The name of those.
const OTHER: &str = "other";

/// What was said under one name.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    name: String,
    counts: ShadowCounts,
}

/// How a candidate differs from the rule beside it.
#[derive(Debug, PartialEq, Eq)]
struct Beside {
    name: String,
    base: String,
    looser: u64,
    stricter: u64,
}

/// What was said under one name in place of a remote store.
#[derive(Debug, PartialEq, Eq)]
struct Without {
    name: String,
    counts: WithoutStore,
}

pub(super) fn put(page: &mut Page, engine: &Engine) {
    let gate = engine.gate();
    let counts = gate.counts();
    page.gauge("tidegate_rules", "Rules in force.", counts.len() as u64);
    let status = engine.rules().status();
    let replaced = "How often other rules came into force.";
    page.counter("tidegate_rules_replaced_total", replaced, status.replaced);
    let rejected = "How often a file of rules did not hold.";
    page.counter("tidegate_rules_rejected_total", rejected, status.rejected);
    let wrong = "1 while the file does not hold and the rules before it are in force.";
    page.gauge("tidegate_rules_rejected", wrong, status.wrong.is_some().into());
    page.gauge("tidegate_overrides", "Overrides in force.", gate.overrides().len() as u64);
    let free = "Requests to which no rule applied.";
    page.counter("tidegate_unmatched_total", free, gate.unmatched());
    put_counted(page, &counts);
    if engine.redis().is_some() {
        put_without_store(page, &counts);
    }
}

fn put_counted(page: &mut Page, counts: &[(Rule, RuleCounts)]) {
    let obeyed = said(counts, obeyed);
    let name = "tidegate_admissions_total";
    page.family(name, Kind::Counter, "Requests by what a rule said to them.");
    obeyed.iter().for_each(|said| put_verdicts(page, name, said));
    let name = "tidegate_near_limit_total";
    page.family(name, Kind::Counter, "Requests that passed and left at most a fifth of the limit.");
    for Said { name: rule, counts } in &obeyed {
        page.labelled(name, &[("rule", rule)], counts.near);
    }
    let name = "tidegate_shadow_decisions_total";
    page.family(name, Kind::Counter, "Requests by what a rule would have said that is only measured.");
    said(counts, measured).iter().for_each(|said| put_verdicts(page, name, said));
    let name = "tidegate_candidate_differences_total";
    page.family(name, Kind::Counter, "Requests to which a candidate says something else than its rule.");
    for Beside { name: rule, base, looser, stricter } in beside(counts) {
        let labels = |difference| [("rule", &*rule), ("candidate_for", &*base), ("difference", difference)];
        page.labelled(name, &labels("looser"), looser);
        page.labelled(name, &labels("stricter"), stricter);
    }
}

/// What was said in place of a remote store, while it did not answer.
fn put_without_store(page: &mut Page, counts: &[(Rule, RuleCounts)]) {
    let name = "tidegate_rule_without_store_total";
    page.family(name, Kind::Counter, "Requests that a rule decided without the store, by how.");
    for Without { name: rule, counts } in without_store(counts) {
        for (by, verdict, number) in [
            (DecidedBy::Local, "allowed", counts.local_allowed),
            (DecidedBy::Local, "denied", counts.local_denied),
            (DecidedBy::Open, "allowed", counts.open),
            (DecidedBy::Open, "denied", counts.open_denied),
            (DecidedBy::Closed, "denied", counts.closed),
        ] {
            page.labelled(
                name,
                &[("rule", &rule), ("decided_by", by.as_str()), ("verdict", verdict)],
                number,
            );
        }
    }
}

/// The same by name, in the order of the file; rules that always say the same do not ask the store.
fn without_store(counts: &[(Rule, RuleCounts)]) -> Vec<Without> {
    let mut all: Vec<Without> = Vec::new();
    for (place, (rule, own)) in counts.iter().enumerate() {
        if rule.limit().is_none() || rule.candidate_for().is_some() {
            continue;
        }
        let (name, more) = (label(counts, place), own.without_store);
        match all.iter_mut().find(|known| known.name == name) {
            Some(Without { counts, .. }) => {
                counts.local_allowed += more.local_allowed;
                counts.local_denied += more.local_denied;
                counts.open += more.open;
                counts.open_denied += more.open_denied;
                counts.closed += more.closed;
            }
            None => all.push(Without { name: name.to_owned(), counts: more }),
        }
    }
    all
}

fn put_verdicts(page: &mut Page, name: &str, said: &Said) {
    let counts = &said.counts;
    for (verdict, number) in [
        ("allowed", counts.allowed),
        ("denied", counts.denied),
        ("impossible", counts.impossible),
        ("store_full", counts.store_full),
    ] {
        page.labelled(name, &[("rule", &said.name), ("verdict", verdict)], number);
    }
}

/// What a rule said while it was obeyed; nothing if it never is and never was.
fn obeyed(rule: &Rule, all: &RuleCounts) -> Option<ShadowCounts> {
    if rule.candidate_for().is_some() {
        return None;
    }
    let shadow = &all.shadow;
    let counts = ShadowCounts {
        allowed: all.allowed - shadow.allowed,
        denied: all.denied - shadow.denied,
        impossible: all.impossible - shadow.impossible,
        store_full: all.store_full - shadow.store_full,
        near: all.near - shadow.near,
    };
    (may_be(rule, Mode::Enforce) || counts != ShadowCounts::default()).then_some(counts)
}

/// What it would have said while it was only measured.
fn measured(rule: &Rule, all: &RuleCounts) -> Option<ShadowCounts> {
    if rule.candidate_for().is_some() {
        let RuleCounts { allowed, denied, impossible, store_full, near, .. } = *all;
        return Some(ShadowCounts { allowed, denied, impossible, store_full, near });
    }
    (may_be(rule, Mode::Shadow) || all.shadow != ShadowCounts::default()).then_some(all.shadow)
}

/// Whether it has this mode, at some time of its schedule or outside of it.
fn may_be(rule: &Rule, mode: Mode) -> bool {
    rule.mode() == mode || rule.schedule().any(|then| then.mode == mode)
}

/// The name under which a rule is counted, by its place in the file.
fn label(counts: &[(Rule, RuleCounts)], place: usize) -> &str {
    counts.get(place).filter(|_| place < MAX_LABELLED).map_or(OTHER, |(rule, _)| rule.name())
}

/// What was said under each name, in the order of the file. A series may be there only once, so a rule that is called
/// like those without a name of their own is counted with them.
fn said(counts: &[(Rule, RuleCounts)], of: impl Fn(&Rule, &RuleCounts) -> Option<ShadowCounts>) -> Vec<Said> {
    let mut all: Vec<Said> = Vec::new();
    for (place, (rule, own)) in counts.iter().enumerate() {
        let (Some(more), name) = (of(rule, own), label(counts, place)) else { continue };
        match all.iter_mut().find(|same| name == OTHER && same.name == OTHER) {
            Some(same) => add(&mut same.counts, more),
            None => all.push(Said { name: name.to_owned(), counts: more }),
        }
    }
    all
}

/// How candidates differ, under each pair of names.
fn beside(counts: &[(Rule, RuleCounts)]) -> Vec<Beside> {
    let mut all: Vec<Beside> = Vec::new();
    for (place, (rule, own)) in counts.iter().enumerate() {
        let Some(base) = rule.candidate_for() else { continue };
        let name = label(counts, place);
        let base = if place < MAX_LABELLED { label(counts, base) } else { OTHER };
        match all.iter_mut().find(|same| name == OTHER && same.name == OTHER && same.base == base) {
            Some(same) => {
                same.looser += own.looser;
                same.stricter += own.stricter;
            }
            None => all.push(Beside {
                name: name.to_owned(),
                base: base.to_owned(),
                looser: own.looser,
                stricter: own.stricter,
            }),
        }
    }
    all
}

fn add(sum: &mut ShadowCounts, more: ShadowCounts) {
    sum.allowed += more.allowed;
    sum.denied += more.denied;
    sum.impossible += more.impossible;
    sum.store_full += more.store_full;
    sum.near += more.near;
}

#[cfg(test)]
mod tests {
    use tidegate::Zone;
    use tidegate_rules::{Attributes, Gate, Policy};

    use super::*;

    #[test]
    fn so_many_rules_have_labels_of_their_own_and_the_rest_is_summed() {
        let rule = |name: String| format!("[[rule]]\nname = '{name}'\nkey = ['user']\nlimit = '9/h'\n");
        let text: String = (0..MAX_LABELLED + 2).map(|number| rule(format!("r{number}"))).collect();
        let gate = Gate::new(Policy::from_toml(&text).unwrap(), Zone::new(1 << 18));
        assert!(gate.admit_now(&Attributes::new().set("user", "ana")).unwrap().is_allowed());
        let all = said(&gate.counts(), obeyed);
        assert_eq!(all.len(), MAX_LABELLED + 1);
        assert_eq!((&*all[MAX_LABELLED - 1].name, all[MAX_LABELLED - 1].counts.allowed), ("r999", 1));
        assert_eq!((&*all[MAX_LABELLED].name, all[MAX_LABELLED].counts.allowed), (OTHER, 2));
    }
    /// The page of a gate after one request of ana.
    fn page(text: &str) -> String {
        let gate = Gate::new(Policy::from_toml(text).unwrap(), Zone::new(1 << 18));
        for _ in 0..2 {
            assert!(gate.admit_now(&Attributes::new().set("user", "ana")).unwrap().is_allowed());
        }
        let mut page = Page::default();
        put_counted(&mut page, &gate.counts());
        page.into_text()
    }

    #[test]
    fn no_series_is_there_twice_whatever_the_rules_are_called() {
        let rule = |name: String, more: &str| format!("[[rule]]\nname = '{name}'\nlimit = '9/h'\n{more}\n");
        let candidate = |name: &str, base: &str| rule(name.to_owned(), &format!("candidate_for = '{base}'"));
        let mut text = rule("r0".to_owned(), "key = ['user']") + &candidate("other", "r0");
        text.extend((2..MAX_LABELLED).map(|number| rule(format!("r{number}"), "key = ['user']")));
        text += &rule("shadow".to_owned(), "mode = 'shadow'");
        text += &rule("more".to_owned(), "key = ['user']");
        text += &(candidate("c1", "r0") + &candidate("c2", "more"));
        let page = page(&text);
        let mut series: Vec<_> =
            page.lines().filter_map(|line| line.rsplit_once(' ')).map(|(of, _)| of).collect();
        series.retain(|of| !of.starts_with('#'));
        let count = series.len();
        series.sort_unstable();
        series.dedup();
        assert_eq!(series.len(), count);
        let line = "tidegate_shadow_decisions_total{rule=\"other\",verdict=\"allowed\"} 8";
        assert!(page.lines().any(|known| known == line), "three candidates and a shadow, twice each");
    }

    #[test]
    fn what_a_window_of_shadow_says_is_no_admission() {
        let always = "{ from = '00:00', to = '24:00', timezone = 'UTC', mode = 'shadow' }";
        let page = page(&format!("[[rule]]\nname = 'api'\nlimit = '1/h'\nschedule = [{always}]"));
        for line in [
            "tidegate_admissions_total{rule=\"api\",verdict=\"allowed\"} 0",
            "tidegate_admissions_total{rule=\"api\",verdict=\"denied\"} 0",
            "tidegate_near_limit_total{rule=\"api\"} 0",
            "tidegate_shadow_decisions_total{rule=\"api\",verdict=\"allowed\"} 1",
            "tidegate_shadow_decisions_total{rule=\"api\",verdict=\"denied\"} 1",
        ] {
            assert!(page.lines().any(|known| known == line), "{line} in\n{page}");
        }
    }
}

//! The metrics of each rule.
//!
//! Enforced decisions and measured decisions are separate families, so that an alert on denials is not triggered by
//! a rule in shadow mode. A rule that changes its mode has both.

use tidegate::DecidedBy;
use tidegate_rules::{Mode, Rule, RuleCounts, ShadowCounts};

use super::page::MetricsPage;
use crate::engine::Engine;

/// The maximum number of rules with labels of their own; the others are summed up.
///
/// Without a bound, a policy with many rules could exceed what a Prometheus server accepts from one target.
const MAX_LABELLED: usize = 1000;
/// The label of the summed up rules.
const OTHER: &str = "other";

/// The values of the label `verdict`, in the order of the counts.
const VERDICTS: [&str; 4] = ["allowed", "denied", "impossible", "store_full"];

/// Writes the metrics of all rules, and of the file that they come from.
pub(super) fn put(page: &mut MetricsPage, engine: &Engine) {
    let gate = engine.gate();
    let counts = gate.counts();
    page.number("tidegate_rules", "Rules in force.", counts.len() as u64);
    let status = engine.rules().status();
    let replaced = "Number of times that other rules came into force.";
    page.number("tidegate_rules_replaced_total", replaced, status.replaced);
    let rejected = "Number of times that a file of rules was invalid.";
    page.number("tidegate_rules_rejected_total", rejected, status.rejected);
    let wrong = "1 while the file is invalid and the previous rules are in force.";
    page.number("tidegate_rules_rejected", wrong, status.wrong.is_some().into());
    page.number(
        "tidegate_overrides",
        "Overrides in force.",
        (gate.overrides().len() - gate.idle_overrides().len()) as u64,
    );
    let free = "Requests that were allowed because no rule applied.";
    page.number("tidegate_unmatched_total", free, gate.unmatched());
    let denied = "Requests that were denied because no enforced rule applied.";
    page.number("tidegate_unmatched_denied_total", denied, gate.denied_unmatched());
    let unknown = "Requests with an attribute that no rule uses and that is not declared.";
    page.number("tidegate_unknown_attributes_total", unknown, gate.unknown_attributes());
    put_counted(page, &counts);
    if engine.redis().is_some() {
        put_without_store(page, &counts);
    }
}

/// Writes the decisions of each rule.
fn put_counted(page: &mut MetricsPage, counts: &[(Rule, RuleCounts)]) {
    let obeyed = rows(counts, |_, rule, own| Some(("", obeyed(rule, own)?)));
    let measured = rows(counts, |_, rule, own| Some(("", measured(rule, own)?)));
    let name = "tidegate_admissions_total";
    page.family(name, "Decisions of enforced rules, by verdict.");
    obeyed.iter().for_each(|row| put_verdicts(page, name, row));
    let name = "tidegate_near_limit_total";
    page.family(name, "Allowed requests that left at most a fifth of the limit.");
    for MetricRow { rule, numbers: [.., near], .. } in &obeyed {
        page.labelled(name, &[("rule", rule)], *near);
    }
    let name = "tidegate_shadow_decisions_total";
    page.family(name, "Decisions of rules in shadow mode and of candidates, by verdict.");
    measured.iter().for_each(|row| put_verdicts(page, name, row));
    put_bans(page, counts);
    let name = "tidegate_candidate_differences_total";
    page.family(name, "Requests about which a candidate and its rule decide differently.");
    let differences = rows(counts, |place, rule, own| {
        let base = label(counts, rule.candidate_for()?);
        Some((if place < MAX_LABELLED { base } else { OTHER }, [own.looser, own.stricter]))
    });
    for MetricRow { rule, base, numbers } in differences {
        for (difference, number) in ["looser", "stricter"].into_iter().zip(numbers) {
            page.labelled(
                name,
                &[("rule", rule), ("candidate_for", base), ("difference", difference)],
                number,
            );
        }
    }
}

/// Writes the bans of each rule that has a penalty, or had one.
fn put_bans(page: &mut MetricsPage, counts: &[(Rule, RuleCounts)]) {
    let of_penalty = |rule: &Rule, [bans, banned]: [u64; 2]| {
        (rule.penalty().is_some() || bans + banned > 0).then_some(("", [bans, banned]))
    };
    let obeyed = rows(counts, |_, rule, own| {
        obeyed(rule, own)?;
        let RuleCounts { bans, banned, shadow, .. } = own;
        of_penalty(rule, [bans - shadow.bans, banned - shadow.banned])
    });
    let measured = rows(counts, |_, rule, own| {
        measured(rule, own)?;
        let is_candidate = rule.candidate_for().is_some();
        let ShadowCounts { bans, banned, .. } = own.shadow;
        of_penalty(rule, if is_candidate { [own.bans, own.banned] } else { [bans, banned] })
    });
    for (nth, name, help, rows) in [
        (0, "tidegate_bans_total", "Bans that penalties of enforced rules began.", &obeyed),
        (1, "tidegate_banned_total", "Requests that were denied while their key was banned.", &obeyed),
        (
            0,
            "tidegate_shadow_bans_total",
            "Bans that rules in shadow mode and candidates would begin.",
            &measured,
        ),
        (1, "tidegate_shadow_banned_total", "Requests that such bans would deny.", &measured),
    ] {
        page.family(name, help);
        for MetricRow { rule, numbers, .. } in rows {
            page.labelled(name, &[("rule", rule)], numbers[nth]);
        }
    }
}

/// Writes the four verdicts of one rule.
fn put_verdicts(page: &mut MetricsPage, name: &str, row: &MetricRow<'_, 5>) {
    for (verdict, number) in VERDICTS.into_iter().zip(row.numbers) {
        page.labelled(name, &[("rule", row.rule), ("verdict", verdict)], number);
    }
}

/// Writes the decisions of the fallback while the remote store was down. Rules with a static decision do not ask the
/// store.
fn put_without_store(page: &mut MetricsPage, counts: &[(Rule, RuleCounts)]) {
    let name = "tidegate_rule_without_store_total";
    page.family(name, "Decisions of a rule while the store was down, by policy and verdict.");
    let without_store = rows(counts, |_, rule, own| {
        let own = &own.without_store;
        let asks_store = rule.limit().is_some() && rule.candidate_for().is_none();
        let numbers = [own.local_allowed, own.local_denied, own.open, own.open_denied, own.closed];
        asks_store.then_some(("", numbers))
    });
    for MetricRow { rule, numbers, .. } in without_store {
        for ((by, verdict), number) in [
            (DecidedBy::Local, "allowed"),
            (DecidedBy::Local, "denied"),
            (DecidedBy::Open, "allowed"),
            (DecidedBy::Open, "denied"),
            (DecidedBy::Closed, "denied"),
        ]
        .into_iter()
        .zip(numbers)
        {
            page.labelled(name, &[("rule", rule), ("decided_by", by.as_str()), ("verdict", verdict)], number);
        }
    }
}

/// The counts of a rule by verdict, and the count of requests near its limit.
type Verdicts = [u64; 5];

/// Returns the counts of a rule while it was enforced; `None` if it never is and never was.
///
/// Counts from shadow mode are subtracted: counts of a rule are sums over both modes.
fn obeyed(rule: &Rule, own: &RuleCounts) -> Option<Verdicts> {
    if rule.candidate_for().is_some() {
        return None;
    }
    let (all, shadow) = (all(own), shadow(&own.shadow));
    let counts = std::array::from_fn(|nth| all[nth] - shadow[nth]);
    (may_be(rule, Mode::Enforce) || counts != Verdicts::default()).then_some(counts)
}

/// Returns the counts of a rule in shadow mode or of a candidate; `None` if it never is and never was one.
///
/// For a candidate these are all of its counts, since it is never enforced.
fn measured(rule: &Rule, own: &RuleCounts) -> Option<Verdicts> {
    if rule.candidate_for().is_some() {
        return Some(all(own));
    }
    let counts = shadow(&own.shadow);
    (may_be(rule, Mode::Shadow) || counts != Verdicts::default()).then_some(counts)
}

/// Returns true if a rule has this mode, in a window of its schedule or outside of them.
fn may_be(rule: &Rule, mode: Mode) -> bool {
    rule.mode() == mode || rule.schedule().any(|then| then.mode == mode)
}

/// Returns all counts of a rule.
fn all(counts: &RuleCounts) -> Verdicts {
    let RuleCounts { allowed, denied, impossible, store_full, near, .. } = *counts;
    [allowed, denied, impossible, store_full, near]
}

/// Returns the counts from shadow mode.
fn shadow(counts: &ShadowCounts) -> Verdicts {
    let ShadowCounts { allowed, denied, impossible, store_full, near, .. } = *counts;
    [allowed, denied, impossible, store_full, near]
}

/// The numbers of one label, or of one pair of labels.
#[derive(Debug, PartialEq, Eq)]
struct MetricRow<'a, const N: usize> {
    /// The label of the rule.
    rule: &'a str,
    /// The label of the rule that a candidate is measured beside; empty for other families.
    base: &'a str,
    /// The values of the series.
    numbers: [u64; N],
}

/// Returns the numbers of each rule and a second label, in the order of the file. A series must not occur twice, so a
/// rule whose name is `other` is summed up with those that have no label of their own.
fn rows<'a, const N: usize>(
    counts: &'a [(Rule, RuleCounts)],
    of: impl Fn(usize, &Rule, &RuleCounts) -> Option<(&'a str, [u64; N])>,
) -> Vec<MetricRow<'a, N>> {
    let mut rows: Vec<MetricRow<'a, N>> = Vec::new();
    for (place, (rule, own)) in counts.iter().enumerate() {
        let Some((base, numbers)) = of(place, rule, own) else { continue };
        let rule = label(counts, place);
        match rows.iter_mut().find(|same| rule == OTHER && same.rule == OTHER && same.base == base) {
            Some(same) => same.numbers.iter_mut().zip(numbers).for_each(|(sum, more)| *sum += more),
            None => rows.push(MetricRow { rule, base, numbers }),
        }
    }
    rows
}

/// Returns the label of a rule, by its index in the file.
///
/// Labels go to the first rules of the file, so they do not change when rules are appended.
fn label(counts: &[(Rule, RuleCounts)], place: usize) -> &str {
    counts.get(place).filter(|_| place < MAX_LABELLED).map_or(OTHER, |(rule, _)| rule.name())
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
        let gate = Gate::new(Policy::from_toml(&text).unwrap(), Zone::new(1 << 18))
            .expect("the store supports the policy");
        assert!(gate.admit(&Attributes::new().set("user", "ana")).now().unwrap().is_allowed());
        let counts = gate.counts();
        let all = rows(&counts, |_, rule, own| Some(("", obeyed(rule, own)?)));
        assert_eq!(all.len(), MAX_LABELLED + 1);
        assert_eq!((all[MAX_LABELLED - 1].rule, all[MAX_LABELLED - 1].numbers[0]), ("r999", 1));
        assert_eq!((all[MAX_LABELLED].rule, all[MAX_LABELLED].numbers[0]), (OTHER, 2));
    }

    /// Returns the page of a gate after one request of ana.
    fn page(text: &str) -> String {
        let gate = Gate::new(Policy::from_toml(text).unwrap(), Zone::new(1 << 18))
            .expect("the store supports the policy");
        for _ in 0..2 {
            assert!(gate.admit(&Attributes::new().set("user", "ana")).now().unwrap().is_allowed());
        }
        let mut page = MetricsPage::default();
        put_counted(&mut page, &gate.counts());
        page.0
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

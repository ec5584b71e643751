//! Tests that a gate decides as an evaluator that reads every rule, written from the documentation alone.
//!
//! The evaluator shares no code with the crate: it has its own conditions, keys, groups and counts. Policies and requests
//! are random: conditions under `when` and `unless` with every kind of pattern, groups, decisions, candidates, modes that
//! a schedule changes, keys with missing and repeated parts, and either verdict for requests that no rule matches.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use tidegate::{ManualClock, Map};
use tidegate_rules::{Admission, Attributes, Explanation, Gate, ManualCalendar, RuleCounts};

use crate::random::{Random, seed, tries};
use crate::requests::{admit, policy};

const ATTRIBUTES: [&str; 5] = ["user", "plan", "header.x-a", "path", "ip"];
const TEXTS: [&str; 5] = ["", "a", "ab", "b", "ba"];
const PATHS: [&str; 5] = ["/", "/a", "/a/", "/a/b", "/b"];
const ADDRESSES: [&str; 4] = ["10.0.0.1", "10.1.0.1", "192.0.2.7", "nowhere"];
/// A day on which schedules change modes, and a day on which they do not.
const DAYS: [i64; 2] = [1_767_268_800, 1_767_268_800 + 5 * 86_400];
const REQUESTS: usize = 10;

#[derive(Clone, Debug, PartialEq)]
enum Pattern {
    Exact(&'static str),
    Prefix(&'static str),
    /// `/a/{*rest}` for `/a/`.
    Below(&'static str),
    Network(&'static str, u32),
    Present,
    Missing,
}

#[derive(Clone, Debug)]
struct Condition {
    attribute: &'static str,
    any_of: Vec<Pattern>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    Allow,
    Deny,
    /// So many units an hour.
    Limit(u64),
}

#[derive(Clone, Debug)]
struct Written {
    name: String,
    when: Vec<Condition>,
    unless: Vec<Condition>,
    group: Option<&'static str>,
    does: Does,
    is_shadow: bool,
    /// True if the mode is the other one on the first of the days.
    changes: bool,
    key: Vec<&'static str>,
    skips: bool,
    on_repeated: &'static str,
    candidate: Option<u64>,
}

/// The values of each attribute that a request has.
type Request = HashMap<&'static str, Vec<&'static str>>;

/// A part of a key as it is counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Counted {
    Value(&'static str),
    Missing,
    Repeated,
}

/// The key of a request under one rule.
#[derive(Clone, Debug, PartialEq)]
enum Key {
    By(Vec<Counted>),
    Skipped,
    Denied,
}

/// The evaluator's verdict about one request.
#[derive(Debug, Default)]
struct Verdict {
    is_allowed: bool,
    is_unmatched: bool,
    /// The rules that may be reported; several if they are equally close to their limits. None: no rule is reported.
    rules: Vec<String>,
    /// The rules that apply, candidates included.
    applying: Vec<String>,
    /// The rules that do not apply because this member of their group was chosen.
    not_chosen: Vec<(String, String)>,
}

/// The evaluator: rules, and what was counted so far.
struct Evaluator {
    rules: Vec<Written>,
    denies_unmatched: bool,
    used: HashMap<(String, Vec<Counted>), u64>,
    /// Allowed and denied requests of each rule, enforced or not.
    counts: HashMap<String, (u64, u64)>,
}

fn is_matched(pattern: &Pattern, value: &str) -> bool {
    match pattern {
        Pattern::Exact(text) => *text == value,
        Pattern::Prefix(text) => value.starts_with(text),
        Pattern::Below(before) => value.len() > before.len() && value.starts_with(before),
        Pattern::Network(text, bits) => {
            let number = |text: &str| text.parse::<Ipv4Addr>().expect("an address").to_bits();
            (number(value) ^ number(text)).checked_shr(32 - bits).unwrap_or(0) == 0
        }
        Pattern::Present => true,
        Pattern::Missing => false,
    }
}

/// Returns true if the condition matches the request: one of its values, or all of them.
fn holds(condition: &Condition, request: &Request, needs_all: bool) -> bool {
    let Some(values) = request.get(condition.attribute) else {
        return condition.any_of.contains(&Pattern::Missing);
    };
    let is_one = |value: &&str| condition.any_of.iter().any(|pattern| is_matched(pattern, value));
    if needs_all { values.iter().all(is_one) } else { values.iter().any(is_one) }
}

fn matches(rule: &Written, request: &Request) -> bool {
    let is_exemption = rule.does == Does::Allow;
    let is_meant = rule.when.iter().all(|condition| holds(condition, request, is_exemption));
    let is_excepted = !rule.unless.is_empty()
        && rule.unless.iter().all(|condition| holds(condition, request, !is_exemption));
    is_meant && !is_excepted
}

/// Returns true if a rule with a limit applies whichever value of a repeated attribute is meant.
fn is_certain(rule: &Written, request: &Request) -> bool {
    rule.when.iter().all(|condition| holds(condition, request, true))
        && (rule.unless.is_empty() || !rule.unless.iter().all(|condition| holds(condition, request, false)))
}

fn key(rule: &Written, request: &Request) -> Key {
    let values = |part: &&'static str| request.get(part).map(Vec::as_slice).unwrap_or_default();
    if rule.on_repeated == "deny" && rule.key.iter().any(|part| values(part).len() > 1) {
        return Key::Denied;
    }
    let parts = rule.key.iter().map(|part| match (values(part), rule.on_repeated) {
        ([], _) => Counted::Missing,
        ([only], _) => Counted::Value(only),
        ([first, ..], "first") => Counted::Value(first),
        ([.., last], "last") => Counted::Value(last),
        _ => Counted::Repeated,
    });
    let parts: Vec<_> = parts.collect();
    if rule.skips && parts.contains(&Counted::Missing) { Key::Skipped } else { Key::By(parts) }
}

impl Evaluator {
    /// Decides about a request, on a day on which schedules change modes or not.
    fn decide(&mut self, request: &Request, is_changed: bool) -> Verdict {
        let rules = self.rules.clone();
        let is_enforced = |rule: &Written| rule.is_shadow == (rule.changes && is_changed);
        let mut verdict = Verdict::default();
        // The rules that apply, with the key of each.
        let mut applying: Vec<(&Written, Key)> = Vec::new();
        let mut chosen: HashMap<&str, &str> = HashMap::new();
        for rule in rules.iter().filter(|rule| matches(rule, request)) {
            let key =
                if matches!(rule.does, Does::Limit(_)) { key(rule, request) } else { Key::By(Vec::new()) };
            let names = [Some(rule.name.clone()), rule.candidate.map(|_| format!("{}-next", rule.name))];
            let names = names.into_iter().flatten();
            if let Some(group) = rule.group.filter(|_| is_enforced(rule)) {
                if let Some(first) = chosen.get(group) {
                    verdict.not_chosen.extend(names.map(|name| (name, (*first).to_owned())));
                    continue;
                }
                if key != Key::Skipped && is_certain(rule, request) {
                    chosen.insert(group, &rule.name);
                }
            }
            if key != Key::Skipped {
                verdict.applying.extend(names);
                applying.push((rule, key));
            }
        }
        // Decisions come first, in the order of the file.
        let mut counted_in_shadow = Vec::new();
        for (rule, _) in &applying {
            match (rule.does, is_enforced(rule)) {
                (Does::Allow, true) => {
                    self.count(&rule.name, true);
                    counted_in_shadow.into_iter().for_each(|name: &String| self.count(name, false));
                    return Verdict { is_allowed: true, rules: vec![rule.name.clone()], ..verdict };
                }
                (Does::Deny, true) => {
                    self.count(&rule.name, false);
                    return Verdict { rules: vec![rule.name.clone()], ..verdict };
                }
                (Does::Deny, false) => counted_in_shadow.push(&rule.name),
                _ => {}
            }
        }
        let limits = || {
            applying.iter().filter_map(|(rule, key)| match rule.does {
                Does::Limit(most) => Some((rule, key, most)),
                _ => None,
            })
        };
        if let Some((rule, ..)) = limits().find(|(rule, key, _)| is_enforced(rule) && **key == Key::Denied) {
            self.count(&rule.name, false);
            return Verdict { rules: vec![rule.name.clone()], ..verdict };
        }
        let by = |key: &Key| match key {
            Key::By(parts) => parts.clone(),
            _ => unreachable!("it has a key"),
        };
        let enforced: Vec<_> = limits().filter(|(rule, ..)| is_enforced(rule)).collect();
        if self.denies_unmatched && !enforced.iter().any(|(rule, ..)| is_certain(rule, request)) {
            return Verdict { is_unmatched: true, ..verdict };
        }
        let denying: Vec<_> =
            enforced.iter().filter(|(rule, key, most)| self.left(&rule.name, &by(key), *most) == 0).collect();
        let allows = denying.is_empty();
        // The longest wait for one unit is that of the slowest limit; the smallest part is compared by products.
        let slowest = denying.iter().map(|(.., most)| *most).min();
        let part =
            |(rule, key, most): &(&&Written, &Key, u64)| (self.left(&rule.name, &by(key), *most) - 1, *most);
        let smallest =
            enforced.iter().filter(|_| allows).map(part).min_by_key(|(left, most)| left * 1000 / most);
        let reported: Vec<_> = if allows {
            let (left, of) = smallest.unwrap_or_default();
            let is_smallest = |one: &&(&&Written, &Key, u64)| part(one).0 * of == left * part(one).1;
            enforced.iter().filter(is_smallest).map(|(rule, ..)| rule.name.clone()).collect()
        } else {
            denying
                .iter()
                .filter(|(.., most)| Some(*most) == slowest)
                .map(|(rule, ..)| rule.name.clone())
                .collect()
        };
        let denying: Vec<_> = denying.into_iter().map(|(rule, ..)| rule.name.clone()).collect();
        let (is_unmatched, enforced) =
            (enforced.is_empty(), enforced.into_iter().map(|(rule, key, most)| (*rule, by(key), most)));
        for (rule, key, most) in enforced.collect::<Vec<_>>() {
            let denies = denying.contains(&rule.name);
            if allows {
                self.take(&rule.name, &key, most);
            } else if denies {
                self.count(&rule.name, false);
            }
            if allows || (denies && denying.len() == 1) {
                rule.candidate.inspect(|most| self.take(&format!("{}-next", rule.name), &key, *most));
            }
        }
        if allows {
            counted_in_shadow.into_iter().for_each(|name| self.count(name, false));
            let shadows: Vec<_> = limits().filter(|(rule, ..)| !is_enforced(rule)).collect();
            for (rule, key, most) in shadows {
                let Key::By(key) = key else {
                    self.count(&rule.name, false);
                    continue;
                };
                self.take(&rule.name, key, most);
                rule.candidate.inspect(|most| self.take(&format!("{}-next", rule.name), key, *most));
            }
        }
        Verdict { is_allowed: allows, is_unmatched, rules: reported, ..verdict }
    }

    fn left(&self, rule: &str, key: &[Counted], most: u64) -> u64 {
        most - self.used.get(&(rule.to_owned(), key.to_vec())).copied().unwrap_or_default()
    }

    /// Takes a unit if one is left, and counts the result.
    fn take(&mut self, rule: &str, key: &[Counted], most: u64) {
        let is_allowed = self.left(rule, key, most) > 0;
        if is_allowed {
            *self.used.entry((rule.to_owned(), key.to_vec())).or_default() += 1;
        }
        self.count(rule, is_allowed);
    }

    fn count(&mut self, rule: &str, is_allowed: bool) {
        let (allowed, denied) = self.counts.entry(rule.to_owned()).or_default();
        *if is_allowed { allowed } else { denied } += 1;
    }
}

fn pattern(random: &mut Random, attribute: &str) -> Pattern {
    match (random.below(8), attribute) {
        (0, _) => Pattern::Present,
        (1, _) => Pattern::Missing,
        (_, "ip") => match random.below(4) {
            0 => Pattern::Network("0.0.0.0", 0),
            1 => Pattern::Network("10.0.0.0", 8),
            2 => Pattern::Network("10.1.0.0", 16),
            _ => Pattern::Network("10.0.0.1", 32),
        },
        (2 | 3, "path") => Pattern::Below(["/", "/a/"][random.below(2)]),
        (4, "path") => Pattern::Prefix(PATHS[random.below(PATHS.len())]),
        (_, "path") => Pattern::Exact(PATHS[random.below(PATHS.len())]),
        (2, _) => Pattern::Prefix(TEXTS[random.below(TEXTS.len())]),
        _ => Pattern::Exact(TEXTS[random.below(TEXTS.len())]),
    }
}

fn conditions(random: &mut Random, most: usize) -> Vec<Condition> {
    let mut attributes = ATTRIBUTES.to_vec();
    let count = random.below(most + 1);
    let attributes: Vec<_> = (0..count).map(|_| attributes.remove(random.below(attributes.len()))).collect();
    let condition = |attribute| {
        let count = match random.below(8) {
            0 => 20,
            1 | 2 => 2,
            _ => 1,
        };
        Condition { attribute, any_of: (0..count).map(|_| pattern(random, attribute)).collect() }
    };
    attributes.into_iter().map(condition).collect()
}

fn rule(random: &mut Random, number: usize) -> Written {
    let does = match random.below(12) {
        0 => Does::Allow,
        1 => Does::Deny,
        _ => Does::Limit(1 + random.below(3) as u64),
    };
    let is_limit = matches!(does, Does::Limit(_));
    let mut parts = ATTRIBUTES[..4].to_vec();
    let count = random.below(3);
    let key = (0..count).map(|_| parts.remove(random.below(parts.len()))).collect();
    Written {
        name: format!("r{number}"),
        when: conditions(random, 2),
        unless: if random.once_in(3) { conditions(random, 2) } else { Vec::new() },
        group: if is_limit && random.once_in(2) { Some(["plan", "other"][random.below(2)]) } else { None },
        does,
        is_shadow: random.once_in(6),
        changes: is_limit && random.once_in(6),
        key: if is_limit { key } else { Vec::new() },
        skips: is_limit && random.once_in(3),
        on_repeated: if is_limit { ["share", "deny", "first", "last"][random.below(4)] } else { "share" },
        candidate: (is_limit && random.once_in(8)).then(|| 1 + random.below(3) as u64),
    }
}

fn in_braces(conditions: &[Condition]) -> String {
    let pattern = |pattern: &Pattern| match pattern {
        Pattern::Exact(text) => format!("'{text}'"),
        Pattern::Prefix(text) => format!("'{text}*'"),
        Pattern::Below(before) => format!("'{before}{{*rest}}'"),
        Pattern::Network(first, bits) => format!("'{first}/{bits}'"),
        Pattern::Present => "{ present = true }".to_owned(),
        Pattern::Missing => "{ missing = true }".to_owned(),
    };
    let conditions = conditions.iter().map(|condition| {
        let patterns: Vec<_> = condition.any_of.iter().map(pattern).collect();
        match &patterns[..] {
            [only] => format!("'{}' = {only}", condition.attribute),
            several => format!("'{}' = [{}]", condition.attribute, several.join(", ")),
        }
    });
    format!("{{ {} }}", conditions.collect::<Vec<_>>().join(", "))
}

fn text(rule: &Written) -> String {
    let mut text = format!("[[rule]]\nname = '{}'\nwhen = {}\n", rule.name, in_braces(&rule.when));
    if !rule.unless.is_empty() {
        text += &format!("unless = {}\n", in_braces(&rule.unless));
    }
    let modes = if rule.is_shadow { ["shadow", "enforce"] } else { ["enforce", "shadow"] };
    text += &format!("mode = '{}'\n", modes[0]);
    let most = match rule.does {
        Does::Allow => return text + "decision = 'allow'\n",
        Does::Deny => return text + "decision = 'deny'\n",
        Does::Limit(most) => most,
    };
    text += &format!("limit = '{most}/h'\nkey = {:?}\non_repeated = '{}'\n", rule.key, rule.on_repeated);
    if rule.skips {
        text += "on_missing = 'skip'\n";
    }
    if let Some(group) = rule.group {
        text += &format!("group = '{group}'\n");
    }
    if rule.changes {
        let day = "from = '2026-01-01T00:00', to = '2026-01-03T00:00'";
        text += &format!("schedule = [{{ {day}, mode = '{}' }}]\n", modes[1]);
    }
    if let Some(most) = rule.candidate {
        text +=
            &format!("[[rule]]\nname = '{0}-next'\ncandidate_for = '{0}'\nlimit = '{most}/h'\n", rule.name);
    }
    text
}

fn request(random: &mut Random) -> Request {
    let mut request = Request::new();
    for attribute in ATTRIBUTES {
        let values: &[&'static str] = match attribute {
            "ip" => &ADDRESSES,
            "path" => &PATHS,
            _ => &TEXTS,
        };
        let first = values[random.below(values.len())];
        // An address that is none is missing.
        if random.once_in(3) || first == "nowhere" {
            continue;
        }
        let mut all = vec![first];
        let second = values[random.below(values.len())];
        if attribute == "header.x-a" && random.once_in(3) && second != first {
            all.push(second);
        }
        request.insert(attribute, all);
    }
    request
}

fn attributes(request: &Request) -> Attributes<'static> {
    let mut attributes = Attributes::new();
    for (name, values) in request {
        values.iter().for_each(|value| attributes.append(*name, *value));
    }
    if !request.contains_key("ip") { attributes.set("ip", "nowhere") } else { attributes }
}

/// Asserts that a gate's answer and explanation are those of the evaluator.
fn compare(expected: &Verdict, answer: &Admission, explained: &Explanation) {
    assert_eq!(answer.is_allowed(), expected.is_allowed);
    assert_eq!(explained.is_allowed, expected.is_allowed);
    assert_eq!(answer.is_unmatched(), expected.is_unmatched && !expected.is_allowed);
    assert_eq!(explained.is_unmatched, expected.is_unmatched);
    for rule in [answer.rule(), explained.rule.as_deref()] {
        match rule {
            Some(rule) => assert!(expected.rules.iter().any(|name| name == rule), "{rule}"),
            None => assert!(expected.rules.is_empty()),
        }
    }
    let applying = explained.rules.iter().filter(|rule| rule.applies).map(|rule| rule.rule.name());
    assert_eq!(applying.collect::<Vec<_>>(), expected.applying);
    let not_chosen = explained
        .rules
        .iter()
        .filter_map(|rule| Some((rule.rule.name().to_owned(), rule.chosen_first.clone()?)));
    assert_eq!(not_chosen.collect::<Vec<_>>(), expected.not_chosen);
}

/// Asserts that the counts of all rules are those of the evaluator.
fn compare_counts(evaluator: &Evaluator, gate: &Gate) {
    for (rule, RuleCounts { allowed, denied, .. }) in gate.counts() {
        let expected = evaluator.counts.get(rule.name()).copied().unwrap_or_default();
        assert_eq!((allowed, denied), expected, "{}", rule.name());
    }
}

#[test]
fn a_gate_decides_as_an_evaluator_that_reads_every_rule() {
    let mut random = Random::new(seed());
    let (mut denied, mut chosen, mut unmatched) = (0, 0, 0);
    for _ in 0..tries(100_000, 1_500) {
        let count = if random.once_in(20) { 40 } else { 1 + random.below(7) };
        let rules: Vec<_> = (0..count).map(|number| rule(&mut random, number)).collect();
        let denies_unmatched = random.once_in(3);
        let texts: String = rules.iter().map(text).collect();
        let text = if denies_unmatched { format!("[rules]\nunmatched = 'deny'\n{texts}") } else { texts };
        let calendar = Arc::new(ManualCalendar::at(0));
        let store = Map::with_clock(Arc::new(ManualClock::new()));
        let gate = Gate::builder(policy(&text), store).calendar(calendar.clone()).build();
        let gate = gate.expect("the store supports the policy");
        let mut evaluator =
            Evaluator { rules, denies_unmatched, used: HashMap::new(), counts: HashMap::new() };
        let mut denied_unmatched = 0;
        for _ in 0..REQUESTS {
            let (request, day) = (request(&mut random), random.below(2));
            calendar.set(DAYS[day]);
            let attributes = attributes(&request);
            let explained = gate.explain(&attributes).now().expect("a store in memory answers at once");
            let expected = evaluator.decide(&request, day == 0);
            let answer = admit(&gate, &attributes);
            let shown = Shown { text: &text, request: &request, expected: &expected };
            compare(&expected, &answer, &explained);
            drop(shown);
            denied += usize::from(!expected.is_allowed);
            chosen += expected.not_chosen.len();
            unmatched += usize::from(expected.is_unmatched);
            denied_unmatched += u64::from(expected.is_unmatched && !expected.is_allowed);
        }
        let shown = Shown { text: &text, request: &Request::new(), expected: &Verdict::default() };
        compare_counts(&evaluator, &gate);
        drop(shown);
        assert_eq!(gate.denied_unmatched(), denied_unmatched);
    }
    assert!(denied > 1000 && chosen > 1000 && unmatched > 500, "{denied} {chosen} {unmatched}");
}

/// A guard that prints the case when a test panics.
struct Shown<'a> {
    text: &'a str,
    request: &'a Request,
    expected: &'a Verdict,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}\n{}\n{:?}\nexpected {:?}", seed(), self.text, self.request, self.expected);
        }
    }
}

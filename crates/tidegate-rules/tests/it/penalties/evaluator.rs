//! An evaluator of policies with penalties, written from the documentation alone.
//!
//! It has a list of takes, of strikes and the beginning of a ban for each key of a rule. It knows of each
//! algorithm only whether a cost fits at a time; a wait is found by trying one minute after the other. It predicts each
//! decision to the tick, what it spends, and the counts.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tidegate::MINUTE;

use super::Said;

/// A limit. All spans are in minutes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Written {
    Bucket { burst: u64, interval: u64 },
    Window { amount: u64, period: u64 },
    Log { amount: u64, period: u64 },
    Permits { most: u64, lease: u64 },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Penalty {
    pub(super) after: u64,
    pub(super) within: u64,
    pub(super) lasts: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) path: Option<&'static str>,
    pub(super) group: Option<&'static str>,
    pub(super) key: Vec<&'static str>,
    pub(super) limit: Written,
    pub(super) weight: u64,
    pub(super) is_shadow: bool,
    pub(super) penalty: Option<Penalty>,
    pub(super) candidate: Option<Written>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) user: &'static str,
    pub(super) team: &'static str,
    pub(super) path: &'static str,
    pub(super) cost: u64,
}

/// The key of a request under one rule.
pub(super) type Key = Vec<&'static str>;

/// What is known of one key of a rule.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    /// The time and the cost of each take.
    pub(super) takes: Vec<(u64, u64)>,
    pub(super) strikes: Vec<u64>,
    pub(super) banned_at: Option<u64>,
}

/// The counts of a rule that are predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts {
    pub(super) allowed: u64,
    pub(super) denied: u64,
    pub(super) impossible: u64,
    pub(super) bans: u64,
    pub(super) banned: u64,
    pub(super) looser: u64,
    pub(super) stricter: u64,
}

/// The prediction of a decision: the answer, and the units that are left before a take.
pub(super) type Predicted = (Said, u64);

/// The prediction of an answer: the limits that decide, each with what is left after the answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) is_allowed: bool,
    pub(super) limits: BTreeMap<String, Predicted>,
}

pub(super) struct Evaluator {
    pub(super) rules: Vec<Rule>,
    pub(super) now: u64,
    pub(super) records: HashMap<(String, Key), Record>,
    pub(super) counts: BTreeMap<String, Counts>,
}

impl Written {
    fn most(self) -> u64 {
        match self {
            Written::Bucket { burst, .. } => burst,
            Written::Window { amount, .. } | Written::Log { amount, .. } => amount,
            Written::Permits { most, .. } => most,
        }
    }

    /// Returns true if a cost fits at a time after these takes.
    fn fits(self, takes: &[(u64, u64)], at: u64, cost: u64) -> bool {
        let sum = |counts: &dyn Fn(u64) -> bool| -> u64 {
            takes.iter().filter(|(time, _)| counts(*time)).map(|(_, cost)| cost).sum()
        };
        let used = match self {
            Written::Window { period, .. } => sum(&|time| time / period == at / period),
            Written::Log { period, .. } => sum(&|time| time + period > at),
            Written::Permits { lease, .. } => sum(&|time| time + lease > at),
            Written::Bucket { burst, interval } => {
                let (mut level, mut last) = (0_u64, 0);
                for (time, cost) in takes {
                    level = level.saturating_sub(time - last) + cost * interval;
                    last = *time;
                }
                return level.saturating_sub(at - last) + cost * interval <= burst * interval;
            }
        };
        used + cost <= self.most()
    }

    /// Returns the number of units that fit.
    fn left(self, takes: &[(u64, u64)], at: u64) -> u64 {
        (0..=self.most()).rev().find(|cost| self.fits(takes, at, *cost)).unwrap_or(0)
    }

    fn text(self) -> String {
        match self {
            Written::Bucket { burst, interval } => format!("1/{interval}m burst {burst}"),
            Written::Window { amount, period } => format!("{amount}/{period}m fixed-window"),
            Written::Log { amount, period } => format!("{amount}/{period}m sliding-log"),
            Written::Permits { most, lease } => format!("{most}/{lease}m concurrency"),
        }
    }
}

pub(super) fn minutes(minutes: u64) -> Duration {
    MINUTE * u32::try_from(minutes).expect("a short span")
}

impl Rule {
    pub(super) fn key(&self, request: &Request) -> Key {
        let value = |part: &&str| if *part == "user" { request.user } else { request.team };
        self.key.iter().map(value).collect()
    }

    fn candidate_name(&self) -> String {
        format!("{}-next", self.name)
    }

    pub(super) fn text(&self) -> String {
        let Rule { name, key, weight, limit, .. } = self;
        let mut text = format!(
            "[[rule]]\nname = '{name}'\nkey = {key:?}\ncost = {weight}\nlimit = '{}'\n",
            limit.text()
        );
        self.path.inspect(|path| text += &format!("when = {{ path = '{path}' }}\n"));
        self.group.inspect(|group| text += &format!("group = '{group}'\n"));
        if self.is_shadow {
            text += "mode = 'shadow'\n";
        }
        if let Some(Penalty { after, within, lasts }) = self.penalty {
            text += &format!("penalty = {{ after = {after}, within = '{within}m', for = '{lasts}m' }}\n");
        }
        if let Some(limit) = self.candidate {
            let next = self.candidate_name();
            text +=
                &format!("[[rule]]\nname = '{next}'\ncandidate_for = '{name}'\nlimit = '{}'\n", limit.text());
        }
        text
    }
}

impl Evaluator {
    /// Predicts the decision about an ask, which is that of a peek and of a take.
    fn predict(
        &self,
        rule: &str,
        key: &Key,
        limit: Written,
        penalty: Option<Penalty>,
        cost: u64,
    ) -> Predicted {
        let record = self.records.get(&(rule.to_owned(), key.clone())).cloned().unwrap_or_default();
        let fits = |at| limit.fits(&record.takes, at, cost);
        let is_possible = cost <= limit.most();
        let wait = is_possible.then(|| (0..).find(|wait| fits(self.now + wait)).expect("it fits some time"));
        let left = limit.left(&record.takes, self.now);
        // The longer wait of two, of which none is the longest.
        let longer = |span: u64| wait.map(|wait| minutes(wait.max(span)));
        let Some(Penalty { after, within, lasts }) = penalty else {
            let said = if wait == Some(0) { Said::Allowed } else { Said::Denied(longer(0)) };
            return (said, left);
        };
        let end = record.banned_at.map_or(0, |begin| begin + lasts);
        if end > self.now {
            return (Said::Banned(longer(end - self.now)), 0);
        }
        if wait == Some(0) {
            return (Said::Allowed, left);
        }
        let strikes = record.strikes.iter().filter(|strike| **strike + within > self.now).count() as u64;
        if strikes + 1 >= after { (Said::Begun(longer(lasts)), 0) } else { (Said::Denied(longer(0)), left) }
    }

    fn record(&mut self, rule: &str, key: &Key) -> &mut Record {
        self.records.entry((rule.to_owned(), key.clone())).or_default()
    }

    /// Records the consequence of a denial.
    fn deny(&mut self, rule: &str, key: &Key, said: Said) {
        let now = self.now;
        let record = self.record(rule, key);
        match said {
            Said::Denied(_) => record.strikes.push(now),
            Said::Begun(_) => (record.strikes, record.banned_at) = (Vec::new(), Some(now)),
            Said::Allowed | Said::Banned(_) => {}
        }
    }

    fn take(&mut self, rule: &str, key: &Key, cost: u64) {
        let now = self.now;
        self.record(rule, key).takes.push((now, cost));
    }

    fn count(&mut self, rule: &str, said: Said) {
        let counts = self.counts.entry(rule.to_owned()).or_default();
        match said {
            Said::Allowed => counts.allowed += 1,
            Said::Denied(None) => counts.impossible += 1,
            Said::Denied(Some(_)) => counts.denied += 1,
            Said::Begun(_) => (counts.denied, counts.bans) = (counts.denied + 1, counts.bans + 1),
            Said::Banned(_) => (counts.denied, counts.banned) = (counts.denied + 1, counts.banned + 1),
        }
    }

    /// Decides about a rule that is only measured. Returns true if it allows.
    fn measure(
        &mut self,
        name: &str,
        key: &Key,
        limit: Written,
        penalty: Option<Penalty>,
        cost: u64,
    ) -> bool {
        let (said, _) = self.predict(name, key, limit, penalty, cost);
        self.count(name, said);
        match said {
            Said::Allowed => self.take(name, key, cost),
            _ => self.deny(name, key, said),
        }
        said == Said::Allowed
    }

    fn measure_candidate(&mut self, rule: &Rule, key: &Key, cost: u64, is_allowed: bool) {
        let Some(limit) = rule.candidate else { return };
        let name = rule.candidate_name();
        let allows = self.measure(&name, key, limit, rule.penalty, cost);
        let counts = self.counts.entry(name).or_default();
        counts.looser += u64::from(allows && !is_allowed);
        counts.stricter += u64::from(!allows && is_allowed);
    }

    /// Returns the rules that apply to a request: the enforced ones, of each group the first, and those in shadow mode.
    fn applying(&self, request: &Request) -> [Vec<Rule>; 2] {
        let (mut enforced, mut shadow, mut chosen) = (Vec::new(), Vec::new(), Vec::new());
        for rule in self.rules.iter().filter(|rule| rule.path.is_none_or(|path| path == request.path)) {
            if rule.is_shadow {
                shadow.push(rule.clone());
            } else if !rule.group.is_some_and(|group| chosen.contains(&group)) {
                chosen.extend(rule.group);
                enforced.push(rule.clone());
            }
        }
        [enforced, shadow]
    }

    /// Decides about requests as a unit: either all pass, or none spends. Requests with one key under one rule are one ask.
    pub(super) fn decide(&mut self, requests: &[Request]) -> Vec<Answer> {
        let applying: Vec<_> = requests.iter().map(|request| self.applying(request)).collect();
        let mut asks: Vec<(Rule, Key, u64)> = Vec::new();
        let mut places: Vec<Vec<(usize, bool)>> = Vec::new();
        for (request, [enforced, _]) in requests.iter().zip(&applying) {
            let mut own = Vec::new();
            for rule in enforced {
                let (key, cost) = (rule.key(request), request.cost * rule.weight);
                match asks.iter().position(|(known, of, _)| known.name == rule.name && *of == key) {
                    Some(place) => {
                        asks[place].2 += cost;
                        own.push((place, false));
                    }
                    None => {
                        own.push((asks.len(), true));
                        asks.push((rule.clone(), key, cost));
                    }
                }
            }
            places.push(own);
        }
        let predict = |(rule, key, cost): &(Rule, Key, u64)| {
            self.predict(&rule.name, key, rule.limit, rule.penalty, *cost)
        };
        let said: Vec<_> = asks.iter().map(predict).collect();
        let denied = said.iter().filter(|(said, _)| *said != Said::Allowed).count();
        for ((rule, key, cost), (said, _)) in asks.iter().zip(&said) {
            if denied == 0 {
                self.take(&rule.name, key, *cost);
            } else {
                self.deny(&rule.name, key, *said);
            }
        }
        let mut answers = Vec::new();
        for ((request, own), [_, shadows]) in requests.iter().zip(&places).zip(&applying) {
            let mut answer = Answer { is_allowed: true, limits: BTreeMap::new() };
            for (place, is_first) in own {
                let ((rule, key, cost), (said, left)) = (&asks[*place], said[*place]);
                let is_allowed = said == Said::Allowed;
                answer.is_allowed &= is_allowed;
                let after = if denied == 0 { left - cost } else { left };
                answer.limits.insert(rule.name.clone(), (said, after));
                match said {
                    // Of several requests with one key, the first begins the ban.
                    Said::Begun(wait) if !is_first => self.count(&rule.name, Said::Banned(wait)),
                    Said::Allowed if denied > 0 => {}
                    _ => self.count(&rule.name, said),
                }
                if denied == 0 || (denied == 1 && !is_allowed) {
                    self.measure_candidate(rule, key, request.cost, is_allowed);
                }
            }
            for rule in shadows.iter().filter(|_| denied == 0) {
                let (key, cost) = (rule.key(request), request.cost * rule.weight);
                let is_allowed = self.measure(&rule.name, &key, rule.limit, rule.penalty, cost);
                self.measure_candidate(rule, &key, request.cost, is_allowed);
            }
            answers.push(answer);
        }
        answers
    }

    /// Returns the predictions for all rules that apply, as an explanation has them.
    pub(super) fn explain(&self, request: &Request) -> BTreeMap<String, Predicted> {
        let mut found = BTreeMap::new();
        for rule in self.applying(request).into_iter().flatten() {
            let key = rule.key(request);
            let predict = |name: &str, limit, cost| self.predict(name, &key, limit, rule.penalty, cost);
            found.insert(rule.name.clone(), predict(&rule.name, rule.limit, request.cost * rule.weight));
            if let Some(limit) = rule.candidate {
                let name = rule.candidate_name();
                found.insert(name.clone(), predict(&name, limit, request.cost));
            }
        }
        found
    }

    /// Returns the bans of enforced rules that are in force.
    pub(super) fn bans(&self) -> Vec<(String, String, Duration)> {
        let mut bans = Vec::new();
        for rule in self.rules.iter().filter(|rule| !rule.is_shadow) {
            let Some(penalty) = rule.penalty else { continue };
            for ((name, key), record) in &self.records {
                let end = record.banned_at.map_or(0, |begin| begin + penalty.lasts);
                if *name == rule.name && end > self.now {
                    bans.push((name.clone(), key.join(" "), minutes(end - self.now)));
                }
            }
        }
        bans.sort();
        bans
    }
}

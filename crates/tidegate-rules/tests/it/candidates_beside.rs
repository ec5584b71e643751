//! Tests of candidates with several enforced rules and a shadow rule, against a model.
//!
//! The law: the enforced rules decide together. If all of them allow, each is spent, and each shadow rule and candidate
//! is evaluated on its own. If some deny, nothing is spent, and limits that count denials record it. Candidates are
//! then evaluated only if exactly one rule denied, and only its own.

use std::collections::HashMap;

use tidegate::{Ask, Clock as _, Cost, Decision, Limit, ManualClock, PermitId, State};
use tidegate_rules::{Gate, RuleCounts, ShadowCounts};

use crate::candidates::{Event, InFlight, LIMITS, play, script};
use crate::random::seed;
use crate::requests::{policy, stores};

/// A rule of the model: its key, its limit, and the states of its keys.
struct ModelRule {
    by_user: bool,
    limit: Limit,
    states: HashMap<&'static str, State>,
    counts: RuleCounts,
}

impl ModelRule {
    fn new(by_user: bool, limit: &str) -> ModelRule {
        let limit = limit.parse().expect("a limit");
        ModelRule { by_user, limit, states: HashMap::new(), counts: RuleCounts::default() }
    }

    fn key(&self, event: &Event) -> &'static str {
        if self.by_user { event.user } else { event.team }
    }

    fn ask(&self, event: &Event) -> Ask {
        let is_queue = self.limit.algorithm() == tidegate::Algorithm::LeakyBucket;
        let usual = if is_queue { std::time::Duration::MAX } else { std::time::Duration::ZERO };
        Ask::new(Cost::of(event.cost)).max_wait(event.max_wait.map_or(usual, |asked| asked.min(usual)))
    }

    fn peek(&self, clock: &ManualClock, event: &Event) -> Decision {
        let state = self.states.get(self.key(event)).cloned().unwrap_or_default();
        self.limit.peek(&state, clock.now(), self.ask(event))
    }

    /// Takes, and counts the outcome.
    fn take(&mut self, clock: &ManualClock, event: &Event) -> Decision {
        let (key, ask, limit) = (self.key(event), self.ask(event), self.limit);
        let decision = limit.decide(self.states.entry(key).or_default(), clock.now(), ask);
        let near = decision.is_allowed() && decision.remaining() * 5 <= decision.limit();
        self.counts.near += u64::from(near);
        match decision.verdict() {
            tidegate::Verdict::Allowed { .. } => self.counts.allowed += 1,
            tidegate::Verdict::Denied { .. } => self.counts.denied += 1,
            tidegate::Verdict::Impossible => self.counts.impossible += 1,
        }
        decision
    }

    /// Takes for a candidate, and compares the outcome with that of the rule.
    fn compare(&mut self, clock: &ManualClock, event: &Event, rule: bool) -> Decision {
        let decision = self.take(clock, event);
        self.counts.looser += u64::from(decision.is_allowed() && !rule);
        self.counts.stricter += u64::from(!decision.is_allowed() && rule);
        decision
    }
}

/// Two enforced rules, a shadow rule, and a candidate for each of them.
struct Model {
    /// The rules in the order of the file: rule and candidate, rule and candidate, shadow rule and candidate.
    rules: Vec<ModelRule>,
    in_flight: InFlight<(usize, &'static str, PermitId)>,
}

impl Model {
    /// Returns true if the request is allowed.
    fn admit(&mut self, clock: &ManualClock, event: &Event) -> bool {
        for (rule, key, permit) in self.in_flight.ended() {
            let of = &mut self.rules[rule];
            of.limit.release(of.states.entry(key).or_default(), clock.now(), permit);
        }
        let said = [0, 2].map(|rule| self.rules[rule].peek(clock, event).is_allowed());
        let mut taken = Vec::new();
        if said == [true, true] {
            for rule in [0, 2, 4] {
                let decision = self.rules[rule].take(clock, event);
                taken.push((rule, decision));
                let beside = self.rules[rule + 1].compare(clock, event, decision.is_allowed());
                taken.push((rule + 1, beside));
            }
        } else {
            let refused: Vec<_> = [0, 2].into_iter().filter(|rule| !said[rule / 2]).collect();
            for rule in &refused {
                taken.push((*rule, self.rules[*rule].take(clock, event)));
            }
            if let [only] = refused[..] {
                taken.push((only + 1, self.rules[only + 1].compare(clock, event, false)));
            }
        }
        for (rule, decision) in taken {
            let permit = decision.permit().map(|permit| (rule, self.rules[rule].key(event), permit));
            self.in_flight.hold(event.held, permit);
        }
        said == [true, true]
    }
}

/// The index of the shadow rule.
const SHADOW: usize = 4;

#[test]
fn candidates_are_asked_if_all_allow_or_only_their_rule_refused() {
    let script = script(seed() + 1);
    let mut asked_alone = 0;
    for ([rule, looser, stricter], [other, above, below]) in
        LIMITS.into_iter().zip(LIMITS.into_iter().cycle().skip(3))
    {
        let text = format!(
            "[[rule]]\nname = 'rule'\nkey = ['user']\nlimit = '{rule}'\n\
             [[rule]]\nname = 'looser'\ncandidate_for = 'rule'\nlimit = '{looser}'\n\
             [[rule]]\nname = 'other'\nkey = ['team']\nlimit = '{other}'\n\
             [[rule]]\nname = 'above'\ncandidate_for = 'other'\nlimit = '{above}'\n\
             [[rule]]\nname = 'shadow'\nkey = ['user']\nlimit = '{stricter}'\nmode = 'shadow'\n\
             [[rule]]\nname = 'below'\ncandidate_for = 'shadow'\nlimit = '{below}'\n"
        );
        for (name, store, clock) in stores() {
            let gate = Gate::new(policy(&text), store).expect("the store supports the policy");
            let limits = [
                (true, rule),
                (true, looser),
                (false, other),
                (false, above),
                (true, stricter),
                (true, below),
            ];
            let rules = limits.map(|(by_user, limit)| ModelRule::new(by_user, limit));
            let mut model = Model { rules: rules.into(), in_flight: InFlight::new() };
            play((&gate, &clock), &script, |at, answer, counts| {
                let what = || format!("{text}on a {name}, request {at}: {:?}", script[at]);
                assert_eq!(answer.is_allowed(), model.admit(&clock, &script[at]), "{}", what());
                for (which, counts) in counts.iter().enumerate() {
                    let in_shadow = if which == SHADOW { counts.allowed } else { 0 };
                    assert_eq!(counts.shadow.allowed, in_shadow, "{which} {}", what());
                    let mut counts = *counts;
                    counts.shadow = ShadowCounts::default();
                    assert_eq!(counts, model.rules[which].counts, "{which} {}", what());
                }
            });
            asked_alone += model.rules[1].counts.looser.min(model.rules[3].counts.looser);
        }
    }
    assert!(asked_alone > 1_000, "candidates were asked {asked_alone} times alone");
}

//! Tests that no valid file and no request makes the gate panic, and that no large number bypasses a limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tidegate::{Algorithm, Clock as _, Cost, ManualClock, Map, Timestamp, Zone};
use tidegate_rules::{Attributes, Gate, HeldPermit, Instead, ManualCalendar, Mode, Policy};

use crate::random::{Random, seed, tries};
use crate::requests::admit;
use crate::written::{ATTRIBUTES, NAMES, config, limit};

/// A guard that prints the current attempt when a test panics.
struct Tried<'a>(&'a str, u64);

impl Drop for Tried<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("seed {} made\n{}", self.1, self.0);
        }
    }
}

fn bytes(random: &mut Random) -> Vec<u8> {
    match random.below(8) {
        0 => Vec::new(),
        1 => vec![b'x'; 70_000],
        2 => (0..random.below(12)).map(|_| random.next() as u8).collect(),
        3 => b"/api/../%2e%2e/%zz%".to_vec(),
        _ => random
            .pick(&["ana", "10.1.2.3", "::1", "/login", "/x/1/y", "Example.com", "GET", "a"])
            .as_bytes()
            .to_vec(),
    }
}

fn request(random: &mut Random) -> Attributes<'static> {
    let mut request = Attributes::new();
    for attribute in ATTRIBUTES {
        if !random.once_in(3) {
            request = request.set(attribute, bytes(random));
        }
    }
    if random.once_in(2) {
        let ip = ["10.1.2.3", "192.0.2.7", "2001:db8::7", "::"][random.below(4)];
        request = request.set("ip", ip);
    }
    if random.once_in(3) {
        let cost = [1, 2, 1000, 1 << 32, 1 << 62, u64::MAX][random.below(6)];
        request = request.cost(Cost::of(cost));
    }
    if random.once_in(4) {
        let max_wait = [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(3600), Duration::MAX];
        request = request.max_wait(max_wait[random.below(4)]);
    }
    request
}

fn instead(random: &mut Random) -> Instead {
    match random.below(4) {
        0 => Instead::Allow,
        1 => Instead::Deny,
        _ => limit(random).parse().map_or(Instead::Allow, Instead::Limit),
    }
}

/// Sends one request, and compares the admission with the expectation.
fn ask(gate: &Gate, request: &Attributes<'_>) -> Vec<HeldPermit> {
    let explained = gate.explain(request).now().expect("a store in memory answers at once");
    let obeyed = |explained: &&tidegate_rules::RuleExplained| {
        explained.applies && explained.mode == Mode::Enforce && explained.candidate_for.is_none()
    };
    let too_much = explained.rules.iter().filter(obeyed).any(|explained| {
        let decision = explained.decision.filter(|_| explained.rule.decision().is_none());
        let is_pacer = explained.limit.is_some_and(|limit| limit.algorithm() == Algorithm::Pacer);
        !is_pacer && decision.is_some_and(|decision| explained.cost > decision.limit())
    });
    let is_decided =
        explained.rules.iter().filter(obeyed).any(|explained| explained.rule.decision().is_some());
    let full = || gate.counts().iter().map(|(_, counts)| counts.store_full).sum::<u64>();
    let full_before = full();
    let answer = admit(gate, request);
    if full() > full_before {
        // An explanation needs no room in the store. A rule without room for the key denies a request that it would
        // otherwise report as impossible; then another rule is reported.
        return answer.permits().to_vec();
    }
    assert_eq!(answer.is_allowed(), explained.is_allowed, "{answer:?}\n{explained:?}");
    assert_eq!(answer.rule(), explained.rule.as_deref(), "{answer:?}\n{explained:?}");
    assert!(is_decided || !too_much || !answer.is_allowed(), "more than ever passes: {answer:?}");
    if let (true, Some(binding)) = (answer.is_allowed(), answer.binding()) {
        let is_pacer = binding.limit.algorithm() == Algorithm::Pacer;
        assert!(is_pacer || binding.cost <= binding.decision.limit(), "{binding:?}");
    }
    answer.permits().to_vec()
}

fn try_all(gate: &Gate, clock: &ManualClock, calendar: &ManualCalendar, random: &mut Random) {
    let mut permits = Vec::new();
    for _ in 0..6 {
        let request = request(random);
        match random.below(8) {
            0 => clock.set(Timestamp::from_ticks(random.next() >> random.below(64))),
            1 => clock.advance(Duration::from_micros(random.next() >> 30)),
            2 => calendar.set(random.next() as i64 >> random.below(64)),
            3 => calendar.set(1_773_000_000 + random.below(1 << 25) as i64),
            4 => {
                let until = clock.now().ticks() as i64 >> random.below(64);
                let _ = gate.put_override(random.pick(&NAMES), &request, instead(random), until);
            }
            5 => drop(gate.admit_all(&[request.clone(), self::request(random), request.clone()]).now()),
            6 => drop(gate.remove_override(random.pick(&NAMES), &request)),
            _ => {}
        }
        permits.extend(ask(gate, &request));
        if random.once_in(2) {
            for permit in permits.drain(..) {
                let _ = (gate.renew(&permit).now(), gate.release(&permit).now(), gate.release(&permit).now());
            }
        }
    }
    let _ = (gate.counts(), gate.overrides(), gate.top(None, 3), gate.zones().len());
}

/// Returns a valid policy with its text. Invalid texts are skipped.
fn accepted(random: &mut Random) -> (String, Policy) {
    loop {
        let text = config(random);
        if let Ok(policy) = Policy::from_toml(&text) {
            return (text, policy);
        }
    }
}

#[test]
fn what_was_accepted_never_panics_and_no_number_is_so_large_that_it_lets_pass() {
    let clock = Arc::new(ManualClock::new());
    let zone = Zone::with_clock(1 << 16, clock.clone());
    let map = Map::with_clock(clock.clone()).max_keys(200);
    let calendar = Arc::new(ManualCalendar::at(1_790_000_000));
    for turn in 0..tries(100_000, 1_500) as u64 {
        let seed = seed().wrapping_add(turn);
        let mut random = Random::new(seed);
        let (text, policy) = accepted(&mut random);
        let _tried = Tried(&text, seed);
        let gate = match turn % 2 {
            0 => Gate::builder(policy, &zone)
                .calendar(calendar.clone())
                .build()
                .expect("the store supports the policy"),
            _ => Gate::builder(policy, &map)
                .calendar(calendar.clone())
                .build()
                .expect("the store supports the policy"),
        };
        try_all(&gate, &clock, &calendar, &mut random);
    }
}

#[test]
fn rules_that_are_replaced_while_requests_go_on_never_panic() {
    let mut random = Random::new(seed());
    let clock = Arc::new(ManualClock::new());
    let gate = Gate::new(Policy::default(), Zone::with_clock(1 << 16, clock.clone()))
        .expect("the store supports the policy");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 1..3 {
            let (gate, is_over) = (&gate, &is_over);
            scope.spawn(move || {
                let mut random = Random::new(seed() ^ thread);
                while !is_over.load(Ordering::Relaxed) {
                    let requests = [request(&mut random), request(&mut random)];
                    let mut permits = admit(gate, &requests[0]).permits().to_vec();
                    for answer in gate.admit_all(&requests).now().expect("at once") {
                        permits.extend_from_slice(answer.permits());
                    }
                    permits.iter().for_each(|permit| drop(gate.release(permit).now()));
                    drop(gate.explain(&requests[1]).now());
                }
            });
        }
        // A failure here lets the other threads end.
        let _over = Over(&is_over);
        for _ in 0..tries(5_000, 300) {
            let (text, policy) = accepted(&mut random);
            let _tried = Tried(&text, seed());
            gate.replace(policy).expect("there is memory");
            clock.advance(Duration::from_millis(random.below(2_000) as u64));
            let _ =
                gate.put_override(random.pick(&NAMES), &request(&mut random), instead(&mut random), i64::MAX);
        }
    });
}

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

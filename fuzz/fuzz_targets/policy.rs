//! A policy from any text, and requests from any bytes behind it.
//!
//! Whatever the text, reading it ends and says where it is wrong. If it holds, no request makes its gate panic, what
//! is explained is what happens, and nothing is allowed that costs more than its limit can hold.

#![no_main]

use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tidegate::{Algorithm, Cost, ManualClock, Zone};
use tidegate_rules::config::{OtherTables, read};
use tidegate_rules::{Attributes, Gate, ManualCalendar, Policy, differences};

/// Larger zones are the machine's business and not that of a text.
const MOST_BYTES: usize = 1 << 16;

/// The attributes that requests are made of, by a byte each.
const NAMES: [&str; 8] = ["ip", "user", "path", "host", "method", "header.X-A", "cookie.session", "query.q"];

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let Some(Ok(text)) = parts.next().map(str::from_utf8) else { return };
    let reading = read(text, OtherTables::OfServer);
    for complaint in reading.errors.iter().chain(&reading.warnings) {
        assert!(!complaint.shown("tidegate.toml", text).is_empty());
    }
    assert_eq!(reading.policy.is_none(), !reading.errors.is_empty());
    let Some(policy) = reading.policy else { return };
    assert_eq!(differences(&policy, &policy), Vec::<String>::new());
    if policy.zones().iter().all(|zone| zone.bytes <= MOST_BYTES) {
        ask(policy, parts.next().unwrap_or_default());
    }
});

/// Asks about requests that bytes say, each up to a zero.
fn ask(policy: Policy, bytes: &[u8]) {
    let (clock, calendar) = (Arc::new(ManualClock::new()), Arc::new(ManualCalendar::default()));
    let zone = Zone::with_clock(1 << 16, clock.clone());
    let gate = Gate::builder(policy.clone(), zone)
        .calendar(calendar.clone())
        .build()
        .expect("the store supports the policy");
    for (turn, request) in bytes.split(|byte| *byte == 0).take(8).enumerate() {
        let attributes = attributes(request);
        clock.advance(Duration::from_millis(request.len() as u64));
        calendar.set(1_790_000_000 + 3_571 * request.len() as i64);
        if turn == 4 {
            let _ = gate.replace(policy.clone());
        }
        let told = gate.explain(&attributes).now().expect("a zone answers at once");
        let answer = gate.admit(&attributes).now().expect("a zone answers at once");
        if let (true, Some(binding)) = (answer.is_allowed(), answer.binding()) {
            let is_pacer = binding.limit.algorithm() == Algorithm::Pacer;
            assert!(is_pacer || binding.cost <= binding.decision.limit(), "{binding:?}");
        }
        assert_eq!((answer.is_allowed(), answer.rule()), (told.is_allowed, told.rule.as_deref()));
        for permit in answer.permits() {
            assert!(gate.release(permit).now().is_ok());
        }
    }
    assert_eq!(gate.counts().len(), policy.rules().len());
}

/// Attributes from bytes: a name, a length and a value, one behind the other; the first byte is a cost.
fn attributes(bytes: &[u8]) -> Attributes<'_> {
    let Some((cost, mut rest)) = bytes.split_first() else { return Attributes::new() };
    let cost = 1_u64.checked_shl(u32::from(*cost)).unwrap_or(u64::MAX);
    let mut attributes = Attributes::new().cost(Cost::new(cost).unwrap_or_default());
    while let [name, length, more @ ..] = rest {
        let (value, after) = more.split_at(usize::from(*length).min(more.len()));
        attributes = attributes.set(NAMES[usize::from(*name) % NAMES.len()], value);
        rest = after;
    }
    attributes
}

//! Any events in any order.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::{Clock as _, SECOND, Ticks, Timestamp};

use super::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Call,
    /// A call in flight gets a response: a denial with this hold in seconds, or a success.
    Answer {
        which: usize,
        hold: Option<u8>,
    },
    GoAway(usize),
    Advance(u16),
    Poll(usize),
    PollAll,
}

fn step() -> impl Strategy<Value = Step> {
    let hold = prop_oneof![2 => Just(None), 1 => (1_u8..9).prop_map(Some)];
    prop_oneof![
        6 => Just(Step::Call),
        4 => (0_usize..64, hold).prop_map(|(which, hold)| Step::Answer { which, hold }),
        1 => (0_usize..64).prop_map(Step::GoAway),
        3 => (1_u16..4000).prop_map(Step::Advance),
        3 => (0_usize..64).prop_map(Step::Poll),
        2 => Just(Step::PollAll),
    ]
}

/// The invariants, checked at each step.
struct Watch {
    bench: Bench,
    calls: BTreeMap<u32, Call>,
    on_their_way: Vec<u32>,
    /// No call may arrive before this.
    held_until: Timestamp,
    arrivals: Vec<(Timestamp, u32)>,
}

impl Watch {
    fn new(layer: OutboundLimitLayer) -> Watch {
        Watch {
            bench: Bench::new(layer),
            calls: BTreeMap::new(),
            on_their_way: Vec::new(),
            held_until: Timestamp::EPOCH,
            arrivals: Vec::new(),
        }
    }

    fn nth(&self, which: usize) -> Option<u32> {
        self.calls.keys().copied().nth(which.checked_rem(self.calls.len())?)
    }

    fn poll(&mut self, number: u32) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        if poll(call).is_ready() {
            self.calls.remove(&number);
        }
        self.look();
    }

    fn poll_all(&mut self) {
        for number in self.calls.keys().copied().collect::<Vec<_>>() {
            self.poll(number);
        }
    }

    /// Checks the calls that have arrived.
    fn look(&mut self) {
        let now = self.bench.clock.now();
        for number in self.bench.server.arrived() {
            assert!(
                now >= self.held_until,
                "call {number} arrived at {now:?}, held until {:?}",
                self.held_until
            );
            self.arrivals.push((now, number));
            self.on_their_way.push(number);
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Call => {
                let number = self.bench.sent;
                let call = self.bench.call();
                self.calls.insert(number, call);
                self.look();
            }
            Step::Answer { which, hold } => {
                let Some(which) = which.checked_rem(self.on_their_way.len()) else { return };
                let number = self.on_their_way.swap_remove(which);
                if !self.calls.contains_key(&number) {
                    return;
                }
                let seconds = hold.unwrap_or(0).to_string();
                let status = if hold.is_some() { 429 } else { 200 };
                self.bench.server.answer(number, status, &[("retry-after", &seconds)]);
                self.poll(number);
                let hold = Ticks::saturating_from(u32::from(hold.unwrap_or(0)) * SECOND);
                self.held_until = self.held_until.max(self.bench.clock.now().saturating_add(hold));
            }
            Step::GoAway(which) => {
                if let Some(number) = self.nth(which) {
                    self.calls.remove(&number);
                }
            }
            Step::Advance(milliseconds) => {
                self.bench.clock.advance(Duration::from_millis(milliseconds.into()));
            }
            Step::Poll(which) => {
                if let Some(number) = self.nth(which) {
                    self.poll(number);
                }
            }
            Step::PollAll => self.poll_all(),
        }
    }

    /// Checks that in the end all calls that were not dropped have arrived, and none waits.
    fn end(&mut self) {
        for _ in 0..1000 {
            self.bench.clock.advance(SECOND);
            self.poll_all();
        }
        assert_eq!(self.bench.layer.waiting(), 0);
        let arrived: std::collections::BTreeSet<u32> =
            self.arrivals.iter().map(|(_, number)| *number).collect();
        assert_eq!(arrived.len(), self.arrivals.len(), "one arrived twice");
        for number in self.calls.keys() {
            assert!(arrived.contains(number), "call {number} was lost");
        }
    }
}

proptest! {
    #[test]
    fn whatever_happens_no_call_arrives_while_it_is_held_and_none_is_lost(
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        let mut watch = Watch::new(OutboundLimitLayer::new());
        for step in steps {
            watch.take(step);
        }
        watch.end();
    }

    #[test]
    fn whatever_happens_arrivals_are_in_order_and_keep_the_pace(
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        let mut watch = Watch::new(OutboundLimitLayer::new().pace("2/s burst 1".parse().unwrap()));
        for step in steps {
            watch.take(step);
            watch.poll_all();
        }
        watch.end();
        for pair in watch.arrivals.windows(2) {
            let [(first_at, first), (second_at, second)] = [pair[0], pair[1]];
            prop_assert!(first < second, "{first} arrived before {second}");
            prop_assert!(second_at.since(first_at).to_duration() >= SECOND / 2);
        }
    }
}

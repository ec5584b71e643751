//! Random arrivals and departures, compared step by step with the rules in their simplest form.

mod rules;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;
use tidegate::{AcquireConcurrencyPermit, Class, ConcurrencyLimiter, ConcurrencyPermit, Denied, ManualClock};

use self::rules::{Fate, Model, Plan};
use super::{Woken, clock, ranked};

/// One operation; its numbers choose among the present callers.
#[derive(Clone, Copy, Debug)]
enum Act {
    Enter(usize),
    Acquire(usize, Option<u64>),
    PickUp(usize),
    GiveUp(usize),
    Leave(usize),
    Pass(u64),
    SetLimit(u64),
}

fn fate(result: &Result<ConcurrencyPermit, Denied>) -> Fate {
    match result {
        Ok(_) => Fate::In,
        Err(refusal) if refusal.is_overloaded() => Fate::NoPlace,
        Err(refusal) if refusal.is_queue_full() => Fate::LineFull,
        Err(refusal) if refusal.is_timed_out() => Fate::TimedOut,
        Err(refusal) if refusal.is_pushed_out() => Fate::PushedOut,
        Err(refusal) => panic!("refused for no reason that is known: {refusal}"),
    }
}

/// A caller of the real limiter.
#[derive(Debug)]
enum Present {
    Waiting(AcquireConcurrencyPermit, Arc<Woken>),
    Holding(#[expect(dead_code, reason = "held until it is dropped")] ConcurrencyPermit),
    Gone,
}

/// The model and the limiter, side by side.
struct SideBySide {
    model: Model,
    clock: Arc<ManualClock>,
    places: ConcurrencyLimiter,
    present: Vec<Present>,
}

impl SideBySide {
    fn new(plan: &Plan) -> SideBySide {
        let clock = clock();
        let classes = plan.shares.iter().map(|share| Class::new("any").share(*share));
        let mut builder = ConcurrencyLimiter::builder(plan.limit)
            .classes(classes)
            .max_waiters(plan.line)
            .clock(clock.clone());
        if let Some(busy) = plan.newest_first_after {
            builder = builder.newest_first_after(Duration::from_millis(busy));
        }
        let model = Model { plan: plan.clone(), now: 0, busy_since: None, callers: Vec::new() };
        SideBySide { model, clock, places: builder.build(), present: Vec::new() }
    }

    /// Returns one of the callers that match, chosen by a number.
    fn choose(&self, number: usize, is_it: impl Fn(&Present) -> bool) -> Option<usize> {
        let those: Vec<_> = (0..self.present.len()).filter(|index| is_it(&self.present[*index])).collect();
        (!those.is_empty()).then(|| those[number % those.len()])
    }

    fn act(&mut self, act: Act) {
        let is_waiting = |present: &Present| matches!(present, Present::Waiting(..));
        match act {
            Act::Enter(class) => {
                let class = class % self.model.plan.shares.len();
                let result = self.places.admit(ranked(&self.places, class));
                assert_eq!(fate(&result), self.model.arrive(class, None, false));
                self.present.push(result.map_or(Present::Gone, Present::Holding));
            }
            Act::Acquire(class, max_wait) => self.acquire(class, max_wait),
            Act::PickUp(number) => {
                if let Some(index) = self.choose(number, is_waiting) {
                    self.pick_up(index);
                }
            }
            Act::GiveUp(number) => {
                if let Some(index) = self.choose(number, is_waiting) {
                    self.leave(index);
                }
            }
            Act::Leave(number) => {
                if let Some(index) = self.choose(number, |present| matches!(present, Present::Holding(_))) {
                    self.leave(index);
                }
            }
            Act::Pass(time) => {
                self.model.pass(time);
                self.clock.advance(Duration::from_millis(time));
            }
            Act::SetLimit(limit) => {
                self.model.plan.limit = limit;
                self.model.serve();
                assert!(self.places.set_limit(limit));
            }
        }
    }

    fn acquire(&mut self, class: usize, max_wait: Option<u64>) {
        let class = class % self.model.plan.shares.len();
        let mut acquire = self.places.acquire(ranked(&self.places, class));
        if let Some(max_wait) = max_wait {
            acquire = acquire.max_wait(Duration::from_millis(max_wait));
        }
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let poll = Pin::new(&mut acquire).poll(&mut Context::from_waker(&waker));
        let expected = self.model.arrive(class, max_wait, true);
        self.present.push(match poll {
            Poll::Pending => {
                assert_eq!(Fate::Waits, expected);
                Present::Waiting(acquire, woken)
            }
            Poll::Ready(result) => {
                assert_eq!(fate(&result), expected);
                result.map_or(Present::Gone, Present::Holding)
            }
        });
    }

    fn pick_up(&mut self, index: usize) {
        let Present::Waiting(acquire, woken) = &mut self.present[index] else { return };
        let expected = self.model.callers[index].expect("it is there").fate;
        let waker = Waker::from(woken.clone());
        match Pin::new(acquire).poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => assert_eq!(Fate::Waits, expected),
            Poll::Ready(result) => {
                assert_eq!(fate(&result), expected);
                self.present[index] = result.map_or(Present::Gone, Present::Holding);
            }
        }
    }

    fn leave(&mut self, index: usize) {
        self.model.callers[index] = None;
        self.model.serve();
        self.present[index] = Present::Gone;
    }

    fn compare(&self) {
        assert_eq!(self.places.limit(), self.model.plan.limit);
        for class in 0..self.model.plan.shares.len() {
            let id = ranked(&self.places, class);
            assert_eq!(self.places.in_flight_of(id), self.model.count(class, Fate::In));
            assert_eq!(self.places.waiting_of(id) as u64, self.model.count(class, Fate::Waits));
        }
        for (present, caller) in self.present.iter().zip(&self.model.callers) {
            if let (Present::Waiting(_, woken), Some(caller)) = (present, caller) {
                assert_eq!(
                    woken.count(),
                    usize::from(caller.fate != Fate::Waits),
                    "woken once, when it is over"
                );
            }
        }
    }
}

fn plans() -> impl Strategy<Value = Plan> {
    let shares = prop_oneof![
        Just(vec![0]),
        Just(vec![100]),
        Just(vec![0, 0]),
        Just(vec![50, 10]),
        Just(vec![0, 40, 0]),
        Just(vec![30, 30, 40]),
    ];
    let newest_first_after = prop_oneof![Just(None), Just(Some(0)), (1..6_u64).prop_map(Some)];
    (1..9_u64, shares, 0..7_usize, newest_first_after).prop_map(
        |(limit, shares, line, newest_first_after)| Plan { limit, shares, line, newest_first_after },
    )
}

fn acts() -> impl Strategy<Value = Act> {
    let max_wait = prop_oneof![2 => Just(None), 3 => (0..6_u64).prop_map(Some)];
    prop_oneof![
        2 => (0..3_usize).prop_map(Act::Enter),
        6 => (0..3_usize, max_wait).prop_map(|(class, max_wait)| Act::Acquire(class, max_wait)),
        3 => any::<usize>().prop_map(Act::PickUp),
        2 => any::<usize>().prop_map(Act::GiveUp),
        3 => any::<usize>().prop_map(Act::Leave),
        3 => (0..4_u64).prop_map(Act::Pass),
        1 => (1..9_u64).prop_map(Act::SetLimit),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases(10_000), ..ProptestConfig::default() })]

    #[test]
    fn every_history_matches_the_rules(plan in plans(), acts in prop::collection::vec(acts(), 1..120)) {
        let mut both = SideBySide::new(&plan);
        for act in acts {
            both.act(act);
            both.compare();
        }
        both.present.clear();
        prop_assert_eq!((both.places.in_flight(), both.places.waiting()), (0, 0));
    }
}

//! Models of the one queue in its three uses: keys of permits, classes of a concurrency limit, and holds of the
//! outbound layer.
//!
//! No waiter is left behind when its turn comes while it joins, while another one leaves, or at its deadline.

use std::any::Any;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use loom::thread;

use super::{block_on, both, clock, poll};
use crate::time::Source;
use crate::wait_queue::{
    Cause, Entry, KeyQueue, Next, QueuePolicy, QueueState, QueueTicket, QueueTurn, WaitQueue, Waiter,
};
use crate::{ClassId, Clock, ConcurrencyLimiter, ManualClock, Permits, SECOND, Ticks, Timestamp};

type Acquiring = Pin<Box<dyn Future<Output = bool>>>;

/// A use of the queue in which one holder blocks all waiters.
trait Use: 'static {
    fn new(clock: Arc<ManualClock>) -> Self;

    /// Occupies it until the result is dropped.
    fn occupy(&self) -> Box<dyn Any>;

    /// Waits for it, and releases it at once.
    fn acquire(&self, max_wait: Option<Duration>) -> Acquiring;
}

impl Use for Permits {
    fn new(clock: Arc<ManualClock>) -> Permits {
        Permits::builder(1).clock(clock).build()
    }

    fn occupy(&self) -> Box<dyn Any> {
        Box::new(self.admit("ana").expect("the permit is free"))
    }

    fn acquire(&self, max_wait: Option<Duration>) -> Acquiring {
        let acquire = Permits::acquire(self, "ana");
        let acquire = if let Some(max_wait) = max_wait { acquire.max_wait(max_wait) } else { acquire };
        Box::pin(async move { acquire.await.is_ok() })
    }
}

impl Use for ConcurrencyLimiter {
    fn new(clock: Arc<ManualClock>) -> ConcurrencyLimiter {
        ConcurrencyLimiter::builder(1).max_waiters(3).clock(clock).build()
    }

    fn occupy(&self) -> Box<dyn Any> {
        Box::new(self.admit(ClassId::FIRST).expect("the permit is free"))
    }

    fn acquire(&self, max_wait: Option<Duration>) -> Acquiring {
        let acquire = ConcurrencyLimiter::acquire(self, ClassId::FIRST);
        let acquire = if let Some(max_wait) = max_wait { acquire.max_wait(max_wait) } else { acquire };
        Box::pin(async move { acquire.await.is_ok() })
    }
}

/// A queue whose waiters are held until a time, or until the hold is lifted.
#[derive(Debug)]
struct Hold {
    queue: WaitQueue<HoldPolicy>,
    clock: Source,
}

#[derive(Debug, Default)]
struct HoldPolicy {
    until: Option<Timestamp>,
}

impl QueuePolicy for HoldPolicy {
    type Owner = Hold;
    type Key = ();
    type Ask = ();
    type State = ();
    type Grant = ();
    type Denial = ();

    fn queue(hold: &Hold) -> &WaitQueue<HoldPolicy> {
        &hold.queue
    }

    fn clock(hold: &Hold) -> &impl Clock {
        &hold.clock
    }

    fn next(
        &mut self,
        turn: &mut QueueTurn<'_, HoldPolicy>,
        queue: &mut KeyQueue<HoldPolicy>,
    ) -> Next<HoldPolicy> {
        match (self.until.filter(|until| *until > turn.now), queue.head()) {
            (None, Some((number, _))) => Next::Settle(number, Ok(())),
            (until, _) => Next::Wait(until),
        }
    }

    fn deny(&mut self, _: QueueTurn<'_, HoldPolicy>, _: &mut KeyQueue<HoldPolicy>, (): &(), _: Cause) {}

    fn give_back(
        state: &mut QueueState<HoldPolicy>,
        turn: QueueTurn<'_, HoldPolicy>,
        ticket: QueueTicket,
        (): (),
    ) {
        state.serve(turn, ticket.queue);
    }
}

/// A guard that lifts the hold when it is dropped.
struct Lifts(Arc<Hold>);

impl Drop for Lifts {
    fn drop(&mut self) {
        self.0.queue.with(&self.0, |state, turn| {
            state.policy.until = None;
            state.serve(turn, 0);
        });
    }
}

impl Use for Arc<Hold> {
    fn new(clock: Arc<ManualClock>) -> Arc<Hold> {
        let queue = WaitQueue::new(HoldPolicy::default(), 3);
        queue.lock(|state| state.open((), ()));
        Arc::new(Hold { queue, clock: Source::Given(clock) })
    }

    fn occupy(&self) -> Box<dyn Any> {
        let until = self.clock.now().saturating_add(Ticks::saturating_from(3600 * SECOND));
        self.queue.lock(|state| state.policy.until = Some(until));
        Box::new(Lifts(Arc::clone(self)))
    }

    fn acquire(&self, max_wait: Option<Duration>) -> Acquiring {
        let (hold, mut waiter) = (Arc::clone(self), None::<Waiter<HoldPolicy>>);
        Box::pin(std::future::poll_fn(move |context| {
            if waiter.is_none() {
                let joined = hold.queue.join(&hold, |state, turn| {
                    let ticket = state.queue(0).expect("it is open").draw();
                    let max_wait = max_wait.map(Ticks::saturating_from);
                    state.join(ticket, Entry::new((), turn.now, max_wait));
                    state.serve(turn, 0);
                    ControlFlow::Continue(ticket)
                });
                waiter = joined.continue_value();
            }
            let waiter = waiter.as_mut().expect("it has joined");
            waiter.poll(context.waker()).map(|result| result.is_ok())
        }))
    }
}

fn a_release_meets_one_that_joins<U: Use>() {
    loom::model(|| {
        let used = U::new(clock());
        let held = used.occupy();
        let (_, passed) = both(move || drop(held), move || block_on(&mut used.acquire(None)));
        assert!(passed);
    });
}

fn a_waiter_leaves_while_its_turn_comes<U: Use>() {
    loom::model(|| {
        let used = U::new(clock());
        let held = used.occupy();
        let [mut first, mut second] = [(); 2].map(|()| used.acquire(None));
        assert!(poll(&mut first).is_pending() && poll(&mut second).is_pending());
        let releasing = thread::spawn(move || drop(held));
        let (_, passed) = both(move || drop(first), move || block_on(&mut second));
        releasing.join().expect("no model panics");
        assert!(passed);
        assert!(poll(&mut used.acquire(None)).is_ready(), "what was taken for the one that left is free");
    });
}

fn a_deadline_meets_the_turn<U: Use>() {
    loom::model(|| {
        let clock = clock();
        let used = U::new(clock.clone());
        let held = used.occupy();
        let advancing = thread::spawn(move || clock.advance(SECOND));
        let mut waiting = used.acquire(Some(SECOND / 2));
        let (_, _) = both(move || drop(held), move || block_on(&mut waiting));
        advancing.join().expect("no model panics");
        assert!(poll(&mut used.acquire(None)).is_ready(), "a denied waiter keeps nothing");
    });
}

macro_rules! under_every_use {
    ($($name:ident: $used:ty;)+) => {$(
        mod $name {
            use super::*;

            #[test]
            fn a_release_meets_one_that_joins() {
                super::a_release_meets_one_that_joins::<$used>();
            }

            #[test]
            fn a_waiter_leaves_while_its_turn_comes() {
                super::a_waiter_leaves_while_its_turn_comes::<$used>();
            }

            #[test]
            fn a_deadline_meets_the_turn() {
                super::a_deadline_meets_the_turn::<$used>();
            }
        }
    )+};
}

under_every_use! {
    keys: Permits;
    classes: ConcurrencyLimiter;
    holds: Arc<Hold>;
}

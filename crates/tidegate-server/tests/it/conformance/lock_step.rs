//! A server in lock-step with a store in the test. Every reply has to equal the decision of the store, rounded up to
//! the resolution of the protocol. The laws and the oracle check the exact decisions, so they hold for the server
//! within that resolution.

use std::collections::HashMap;

use conformance::arm::Answer;
use conformance::keeper::Keeper;
use conformance::ticks;
use tidegate::{
    Adjusted, Adjustment, Ask, Decision, PermitId, Receipt, State, Subject, Ticks, Timestamp, Verdict, Zone,
};

use super::front::{FrontClient, RESOLUTION};
use crate::wire::Running;

/// The store, the server, and the server's permit for each permit of the store. Each draws its own numbers.
pub(crate) struct LockStep<T> {
    exact: Zone,
    running: Running,
    client: std::cell::RefCell<T>,
    permits: HashMap<PermitId, String>,
}

impl<T: FrontClient> LockStep<T> {
    pub(crate) fn new() -> LockStep<T> {
        let running = Running::start();
        let client = T::connect(&running).into();
        let exact = Zone::with_clock(1 << 16, running.clock.clone());
        LockStep { exact, running, client, permits: HashMap::new() }
    }
}

/// Rounds a decision to the resolution of the protocol.
fn rounded<T: FrontClient>(answer: Answer) -> Answer {
    let up = |span: Ticks| {
        let steps = span.get().div_ceil(RESOLUTION.get());
        ticks(steps.saturating_mul(RESOLUTION.get()))
    };
    let verdict = match answer.verdict {
        Verdict::Allowed { delay } => Verdict::Allowed { delay: up(delay) },
        Verdict::Denied { retry_after } => Verdict::Denied { retry_after: up(retry_after) },
        Verdict::Impossible => Verdict::Impossible,
    };
    Answer {
        verdict,
        limit: answer.limit.min(T::MOST),
        remaining: answer.remaining.min(T::MOST),
        reset_after: up(answer.reset_after),
        permit: answer.permit,
    }
}

/// Removes the number of the permit, and returns whether there was one.
fn unnumbered(answer: Answer) -> (Answer, bool) {
    (Answer { permit: None, ..answer }, answer.permit.is_some())
}

/// Returns the bytes of a key. Keys of the test kit have one part, with its length in the first byte.
fn key<'a>(subject: &Subject<'a>) -> &'a [u8] {
    &subject.key().as_bytes()[1..]
}

impl<T: FrontClient> Keeper for LockStep<T> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn forgets(&self) -> bool {
        true
    }

    fn finest_max_wait(&self) -> Ticks {
        RESOLUTION
    }

    fn set_time(&mut self, now: Timestamp) {
        self.running.clock.set(now);
    }

    fn take(&mut self, subject: Subject<'_>, ask: Ask) -> (Decision, Option<Receipt>) {
        let taken = self.exact.take(subject, ask);
        let (answer, permit) = self.client.get_mut().take(key(&subject), subject.limit(), ask);
        let expected = unnumbered(rounded::<T>(taken.0.into()));
        assert_eq!(unnumbered(answer), expected, "a take of {ask:?} under {}", subject.limit());
        self.permits.extend(taken.0.permit().zip(permit));
        taken
    }

    fn peek(&self, subject: Subject<'_>, ask: Ask) -> Decision {
        let looked = self.exact.peek(subject, ask);
        let answer = self.client.borrow_mut().peek(key(&subject), subject.limit(), ask);
        assert_eq!(answer, rounded::<T>(looked.into()), "a look at {ask:?} under {}", subject.limit());
        looked
    }

    fn adjust(&mut self, subject: Subject<'_>, adjustment: Adjustment) -> Adjusted {
        let adjusted = self.exact.adjust(subject, adjustment);
        let reply = self.client.get_mut().adjust(key(&subject), subject.limit(), adjustment);
        assert_eq!(reply, adjusted, "{adjustment:?} under {}", subject.limit());
        adjusted
    }

    fn give_back(&mut self, _: Subject<'_>, _: Receipt) -> Adjusted {
        unreachable!("replies contain no receipts")
    }

    fn release(&mut self, subject: Subject<'_>, permit: PermitId) -> bool {
        let released = self.exact.release(subject, permit);
        assert_eq!(self.client.get_mut().release(&self.permits[&permit]), released);
        released
    }

    fn renew(&mut self, subject: Subject<'_>, permit: PermitId) -> bool {
        let renewed = self.exact.renew(subject, permit);
        assert_eq!(self.client.get_mut().renew(&self.permits[&permit]), renewed);
        renewed
    }

    fn reset(&mut self, subject: Subject<'_>) {
        self.exact.reset(subject).expect("few limits are in use");
        self.client.get_mut().reset(key(&subject));
    }

    fn state(&self, subject: Subject<'_>) -> State {
        self.exact.state(subject)
    }
}

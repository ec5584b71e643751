//! Changing what is remembered: adjusting, giving a take back, releasing and renewing a place in flight.

use tidegate::{Adjustment, Algorithm, Cost, Decision, Limit, PermitId, State, Timestamp};

use super::bid::{Begin, Target};
use super::key::{StateName, letter, mark_name};
use super::limits::{holders_letter, pace_price, pack_adjustment, pack_priced_pace, permit_name};
use super::pack::Pack;
use super::text::{Job, Kind};
use super::{Call, TICKS, Time};

/// The bits of a permit's number that say how many places it holds; the others are random.
const UNIT_BITS: u32 = 21;
pub(super) const NUMBER_BITS: u32 = 64 - UNIT_BITS;

/// What is needed to give one take back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    algorithm: Algorithm,
    cost: Cost,
    taken_at: Timestamp,
    /// The instant under which it is remembered.
    at: Timestamp,
    /// When nothing is left of it.
    pub(super) clear_at: Timestamp,
    /// What it paid, where that is a span.
    paid: u64,
    permit: Option<PermitId>,
}

impl Taken {
    /// What a take has left, now or a little later.
    pub(super) fn new(
        limit: &Limit,
        state: &State,
        cost: Cost,
        now: Timestamp,
        decision: &Decision,
    ) -> Taken {
        let clear_at = limit.clear_at(state);
        let at = match limit.algorithm() {
            Algorithm::SlidingLog | Algorithm::SlidingWindow => match (limit.algorithm(), &*state.words()) {
                (Algorithm::SlidingLog, [.., newest, _]) => Timestamp::from_ticks(*newest),
                (_, [newest, width, ..]) => Timestamp::from_ticks(newest.saturating_mul(*width)),
                _ => now,
            },
            _ => now,
        };
        let paid = match limit.algorithm() {
            Algorithm::TokenBucket | Algorithm::LeakyBucket => limit.numbers()[1].saturating_mul(cost.get()),
            // As the library: what cannot be counted is not given back.
            Algorithm::Pacer => u64::try_from(pace_price(limit, cost.get())).unwrap_or(0),
            _ => 0,
        };
        let (algorithm, permit) = (limit.algorithm(), decision.permit());
        Taken { algorithm, cost, taken_at: now, at, clear_at, paid, permit }
    }
}

impl Taken {
    /// The part of it that is one of several asks, which were taken as one.
    #[must_use]
    pub(crate) fn part(&self, limit: &Limit, cost: Cost) -> Taken {
        let paid = match self.algorithm {
            Algorithm::TokenBucket | Algorithm::LeakyBucket => limit.numbers()[1].saturating_mul(cost.get()),
            _ => self.paid,
        };
        Taken { cost, paid, ..*self }
    }

    /// The time from which on nothing is left of it.
    pub(crate) fn clear_at(&self) -> Timestamp {
        self.clear_at
    }

    /// So many units of it are refunded: they are not owed any more.
    pub(crate) fn use_up(&mut self, limit: &Limit, units: Cost) {
        if matches!(self.algorithm, Algorithm::TokenBucket | Algorithm::LeakyBucket) {
            self.paid = self.paid.saturating_sub(limit.numbers()[1].saturating_mul(units.get()));
        }
    }
}

/// Charges, or gives back what was not used. [`read_adjust`](super::read_adjust) reads the answer.
pub(crate) fn adjust(target: &Target, adjustment: Adjustment, begin: Option<&Begin>, time: Time) -> Call {
    let limit = &target.limit;
    let (cost, is_charge) = match adjustment {
        Adjustment::Charge(cost) => (cost, true),
        Adjustment::Refund(cost) => (cost, false),
    };
    if limit.algorithm() == Algorithm::Concurrency {
        return answered(NEEDS_PERMIT, target);
    }
    let word = if is_charge { &b"charge"[..] } else { b"refund" };
    let mut arguments = vec![pack_adjustment(limit, cost, is_charge).into_bytes(), word.to_vec()];
    arguments.extend(begin.map(|begin| begin.argument(limit)));
    call_with_mark(Job::Adjust(Kind::of(limit.algorithm())), target, arguments, time)
}

/// Forgets states of one slot. The answer is how many there were.
pub(crate) fn reset(states: &[StateName], time: Time) -> Call {
    let keys = states.iter().flat_map(|state| [state.clone(), mark_name(state)]).collect();
    let mut arguments = vec![b"reset".to_vec()];
    arguments.extend(time.arguments());
    Call { script: Job::Reset.script(), keys, arguments }
}

/// Gives one take back, as far as it is surely still there. [`read_adjust`](super::read_adjust) reads the answer.
///
/// Of a bucket, others may have taken since, if nobody of them waits; then as much of it may be lost as time has passed. Of a log, a take comes back only while at most 64
/// others have followed it. Of a pacer, only the last one.
pub(crate) fn give_back(target: &Target, taken: &Taken, time: Time) -> Call {
    let limit = &target.limit;
    if limit.algorithm() != taken.algorithm {
        return answered(CAPPED, target);
    }
    let (cost, clear_at) = (taken.cost, taken.clear_at.ticks());
    let pack = match limit.algorithm() {
        Algorithm::TokenBucket | Algorithm::LeakyBucket => {
            Pack::new(letter(taken.algorithm)).ticks(taken.paid).ticks(clear_at).ticks(quiet(limit))
        }
        Algorithm::SlidingLog => {
            Pack::new(b'g').micros(taken.at.ticks()).number(clear_at.div_ceil(TICKS)).number(cost.get())
        }
        Algorithm::FixedWindow => pack_adjustment(limit, cost, false).micros(clear_at),
        Algorithm::SlidingWindow => pack_adjustment(limit, cost, false).micros(taken.at.ticks()),
        Algorithm::Pacer => pack_priced_pace(limit, taken.paid.into(), 0).ticks(clear_at),
        _ => match taken.permit {
            Some(permit) => pack_permit(target, permit),
            None => return answered(NEEDS_PERMIT, target),
        },
    };
    call_about(taken, Job::GiveBack(Kind::of(limit.algorithm())), target, pack, time)
}

/// Refunds so many units of one take, as far as they are still owed; no script if nothing can come back.
/// [`read_adjust`](super::read_adjust) reads the answer.
///
/// Of a bucket, the price less the time since the take comes back, and nothing while any request may wait. Windows, slots
/// and logs are as in [`give_back`]. A pacer knows the last grant only, and not whose that is.
pub(crate) fn refund(target: &Target, taken: &Taken, units: Cost, time: Time) -> Option<Call> {
    let limit = &target.limit;
    match limit.algorithm() {
        algorithm if algorithm != taken.algorithm => None,
        Algorithm::TokenBucket | Algorithm::LeakyBucket => {
            let price = limit.numbers()[1].saturating_mul(units.get());
            let pack = Pack::new(letter(taken.algorithm)).ticks(price).ticks(taken.paid).ticks(quiet(limit));
            Some(call_about(taken, Job::RefundDebt, target, pack, time))
        }
        Algorithm::FixedWindow | Algorithm::SlidingLog | Algorithm::SlidingWindow => {
            Some(give_back(target, &Taken { cost: units, ..*taken }, time))
        }
        _ => None,
    }
}

/// Up to this debt every request that was allowed has acted.
fn quiet(limit: &Limit) -> u64 {
    let [_, _, capacity, _, undelayed] = limit.numbers();
    if limit.algorithm() == Algorithm::TokenBucket { capacity } else { undelayed.min(capacity) }
}

/// Gives a place in flight back. [`read_whether`](super::read_whether) reads whether the permit still held one.
pub(crate) fn release(target: &Target, permit: PermitId, time: Time) -> Call {
    with_permit(Job::Release, target, permit, time)
}

/// Starts a lease anew. [`read_whether`](super::read_whether) reads whether the permit still held its place.
pub(crate) fn renew(target: &Target, permit: PermitId, time: Time) -> Call {
    with_permit(Job::Renew, target, permit, time)
}

/// The number of a permit, by the name under which a server keeps it.
pub(super) fn permit_of(name: &str) -> Option<PermitId> {
    let (units, number) = name.split_once(':')?;
    permit_id(units.parse().ok()?, number.parse().ok()?)
}

/// The number of a permit for so many places.
pub(super) fn permit_id(units: u64, number: u64) -> Option<PermitId> {
    let fits = units > 0 && units < 1 << UNIT_BITS && number < 1 << NUMBER_BITS;
    fits.then(|| PermitId::from_number(number << UNIT_BITS | units)).flatten()
}

/// Answers that need no look at anything.
const NEEDS_PERMIT: u8 = b'2';
const CAPPED: u8 = b'0';

fn answered(answer: u8, target: &Target) -> Call {
    let keys = vec![target.name.clone()];
    Call { script: Job::Nothing.script(), keys, arguments: vec![vec![b'n', answer]] }
}

fn with_permit(job: Job, target: &Target, permit: PermitId, time: Time) -> Call {
    if target.limit.algorithm() != Algorithm::Concurrency {
        return answered(CAPPED, target);
    }
    call(job, target, vec![pack_permit(target, permit).into_bytes()], time)
}

fn pack_permit(target: &Target, permit: PermitId) -> Pack {
    let [_, lease, ..] = target.limit.numbers();
    let number = permit.number();
    let name = permit_name(number % (1 << UNIT_BITS), number >> UNIT_BITS);
    Pack::new(holders_letter(target)).micros(lease).text(&name)
}

/// A call about one take: it does nothing if units were taken off without a receipt since.
fn call_about(taken: &Taken, job: Job, target: &Target, pack: Pack, time: Time) -> Call {
    let taken_at = Pack::new(b'x').micros(taken.taken_at.ticks());
    call_with_mark(job, target, vec![pack.into_bytes(), taken_at.into_bytes()], time)
}

fn call_with_mark(job: Job, target: &Target, arguments: Vec<Vec<u8>>, time: Time) -> Call {
    let mut call = call(job, target, arguments, time);
    call.keys.push(mark_name(&target.name));
    call
}

fn call(job: Job, target: &Target, mut arguments: Vec<Vec<u8>>, time: Time) -> Call {
    arguments.extend(time.arguments());
    Call { script: job.script(), keys: vec![target.name.clone()], arguments }
}

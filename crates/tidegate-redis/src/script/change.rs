//! Changing what is remembered: adjusting, giving a take back, releasing and renewing a place in flight.

use tidegate::{Adjustment, Algorithm, Cost, Decision, Limit, PermitId, State, Subject, Timestamp};

use super::key::{letter, state_key};
use super::limits::{Unsupported, held, pace_price, pack_adjustment, pack_priced_pace, permit_name};
use super::pack::Pack;
use super::text::{Job, Kind};
use super::{Call, TICKS, Time};

/// The bits of a permit's number that say how many places it holds; the others are random.
const UNIT_BITS: u32 = 21;

/// What is needed to give one take back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    algorithm: Algorithm,
    cost: Cost,
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
        (cost, now): (Cost, Timestamp),
        decision: &Decision,
    ) -> Taken {
        let clear_at = limit.clear_at(state);
        let at = match (limit.algorithm(), &*state.words()) {
            (Algorithm::SlidingLog, [.., newest, _]) => Timestamp::from_ticks(*newest),
            (Algorithm::SlidingWindow, [newest, width, ..]) => {
                Timestamp::from_ticks(newest.saturating_mul(*width))
            }
            _ => now,
        };
        let paid = match limit.algorithm() {
            Algorithm::TokenBucket | Algorithm::LeakyBucket => limit.numbers()[1].saturating_mul(cost.get()),
            // As the library: what cannot be counted is not given back.
            Algorithm::Pacer => u64::try_from(pace_price(limit, cost.get())).unwrap_or(0),
            _ => 0,
        };
        Taken { algorithm: limit.algorithm(), cost, at, clear_at, paid, permit: decision.permit() }
    }
}

impl Taken {
    /// So many units of it are refunded: they are not owed any more.
    pub(crate) fn use_up(&mut self, limit: &Limit, units: Cost) {
        if matches!(self.algorithm, Algorithm::TokenBucket | Algorithm::LeakyBucket) {
            self.paid = self.paid.saturating_sub(limit.numbers()[1].saturating_mul(units.get()));
        }
    }
}

/// Charges, or gives back what was not used. [`read_adjust`](super::read_adjust) reads the answer.
pub(crate) fn adjust(
    subject: Subject<'_>,
    adjustment: Adjustment,
    prefix: &[u8],
    time: Time,
) -> Result<Call, Unsupported> {
    let limit = held(subject.limit)?;
    let (cost, is_charge) = match adjustment {
        Adjustment::Charge(cost) => (cost, true),
        Adjustment::Refund(cost) => (cost, false),
    };
    if limit.algorithm() == Algorithm::Concurrency {
        return Ok(answered(NEEDS_PERMIT, &subject, prefix));
    }
    let word = if is_charge { &b"charge"[..] } else { b"refund" };
    let arguments = vec![pack_adjustment(&limit, cost, is_charge).into_bytes(), word.to_vec()];
    Ok(call(Job::Adjust(Kind::of(limit.algorithm())), &subject, arguments, (prefix, time)))
}

/// Gives one take back, as far as it is surely still there. [`read_adjust`](super::read_adjust) reads the answer.
///
/// Of a bucket, others may have taken since, if nobody of them waits; then as much of it may be lost as time has passed. Of a log, a take comes back only while at most 64
/// others have followed it. Of a pacer, only the last one.
pub(crate) fn give_back(
    subject: Subject<'_>,
    taken: &Taken,
    prefix: &[u8],
    time: Time,
) -> Result<Call, Unsupported> {
    let limit = held(subject.limit)?;
    if limit.algorithm() != taken.algorithm {
        return Ok(answered(CAPPED, &subject, prefix));
    }
    let (cost, clear_at) = (taken.cost, taken.clear_at.ticks());
    let pack = match limit.algorithm() {
        Algorithm::TokenBucket | Algorithm::LeakyBucket => Pack::new(letter(taken.algorithm))
            .ticks(taken.paid)
            .ticks(clear_at)
            .ticks(quiet(&limit))
            .micros(taken.at.ticks()),
        Algorithm::SlidingLog => {
            Pack::new(b'g').micros(taken.at.ticks()).number(clear_at.div_ceil(TICKS)).number(cost.get())
        }
        Algorithm::FixedWindow => pack_adjustment(&limit, cost, false).micros(clear_at),
        Algorithm::SlidingWindow => pack_adjustment(&limit, cost, false).micros(taken.at.ticks()),
        Algorithm::Pacer => pack_priced_pace(&limit, taken.paid.into(), 0).ticks(clear_at),
        _ => match taken.permit {
            Some(permit) => pack_permit(&limit, permit),
            None => return Ok(answered(NEEDS_PERMIT, &subject, prefix)),
        },
    };
    let arguments = vec![pack.into_bytes()];
    Ok(call(Job::GiveBack(Kind::of(limit.algorithm())), &subject, arguments, (prefix, time)))
}

/// Refunds so many units of one take, as far as they are still owed; no script if nothing can come back.
/// [`read_adjust`](super::read_adjust) reads the answer.
///
/// Of a bucket, the price less the time since the take comes back, and nothing while any request may wait. Windows, slots
/// and logs are as in [`give_back`]. A pacer knows the last grant only, and not whose that is.
pub(crate) fn refund(
    subject: Subject<'_>,
    (taken, units): (&Taken, Cost),
    prefix: &[u8],
    time: Time,
) -> Result<Option<Call>, Unsupported> {
    let limit = held(subject.limit)?;
    match limit.algorithm() {
        algorithm if algorithm != taken.algorithm => Ok(None),
        Algorithm::TokenBucket | Algorithm::LeakyBucket => {
            let price = limit.numbers()[1].saturating_mul(units.get());
            let pack = Pack::new(letter(taken.algorithm))
                .ticks(price)
                .ticks(taken.paid)
                .ticks(quiet(&limit))
                .micros(taken.at.ticks());
            Ok(Some(call(Job::RefundDebt, &subject, vec![pack.into_bytes()], (prefix, time))))
        }
        Algorithm::FixedWindow | Algorithm::SlidingLog | Algorithm::SlidingWindow => {
            give_back(subject, &Taken { cost: units, ..*taken }, prefix, time).map(Some)
        }
        _ => Ok(None),
    }
}

/// Up to this debt every request that was allowed has acted.
fn quiet(limit: &Limit) -> u64 {
    let [_, _, capacity, _, undelayed] = limit.numbers();
    if limit.algorithm() == Algorithm::TokenBucket { capacity } else { undelayed.min(capacity) }
}

/// Gives a place in flight back. [`read_whether`](super::read_whether) reads whether the permit still held one.
pub(crate) fn release(
    subject: Subject<'_>,
    permit: PermitId,
    prefix: &[u8],
    time: Time,
) -> Result<Call, Unsupported> {
    Ok(with_permit(Job::Release, &subject, permit, (prefix, time)))
}

/// Starts a lease anew. [`read_whether`](super::read_whether) reads whether the permit still held its place.
pub(crate) fn renew(
    subject: Subject<'_>,
    permit: PermitId,
    prefix: &[u8],
    time: Time,
) -> Result<Call, Unsupported> {
    Ok(with_permit(Job::Renew, &subject, permit, (prefix, time)))
}

/// The number of a permit, by the name under which a server keeps it.
pub(super) fn permit_of(name: &str) -> Option<PermitId> {
    let (units, number) = name.split_once(':')?;
    let (units, number): (u64, u64) = (units.parse().ok()?, number.parse().ok()?);
    let fits = units < 1 << UNIT_BITS && number < 1 << (64 - UNIT_BITS);
    PermitId::from_number(number << UNIT_BITS | units).filter(|_| fits && units > 0)
}

/// Answers that need no look at anything.
const NEEDS_PERMIT: u8 = b'2';
const CAPPED: u8 = b'0';

fn answered(answer: u8, subject: &Subject<'_>, prefix: &[u8]) -> Call {
    let keys = vec![state_key(prefix, subject)];
    Call { script: Job::Nothing.script(), keys, arguments: vec![vec![b'n', answer]] }
}

fn with_permit(job: Job, subject: &Subject<'_>, permit: PermitId, to: (&[u8], Time)) -> Call {
    if subject.limit.algorithm() != Algorithm::Concurrency {
        return answered(CAPPED, subject, to.0);
    }
    call(job, subject, vec![pack_permit(subject.limit, permit).into_bytes()], to)
}

fn pack_permit(limit: &Limit, permit: PermitId) -> Pack {
    let [_, lease, ..] = limit.numbers();
    let number = permit.number();
    let name = permit_name(number % (1 << UNIT_BITS), number >> UNIT_BITS);
    Pack::new(b'c').micros(lease).text(&name)
}

fn call(job: Job, subject: &Subject<'_>, mut arguments: Vec<Vec<u8>>, to: (&[u8], Time)) -> Call {
    arguments.extend(to.1.arguments());
    Call { script: job.script(), keys: vec![state_key(to.0, subject)], arguments }
}

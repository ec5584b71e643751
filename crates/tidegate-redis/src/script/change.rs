//! Calls that change state: adjust, give a take back, release and renew a permit.
//!
//! Every call names one state, and a mark of that state where receipts are concerned. A call that cannot apply to the
//! algorithm is answered by a script that reads nothing, so that all operations take the same path.

use tidegate_core::{Adjustment, Algorithm, Cost, Decision, Limit, PermitId, State, Timestamp};

use super::bid::{Begin, Target};
use super::key::{StateName, letter, mark_name};
use super::limits::{holders_letter, pace_price, pack_adjustment, pack_priced_pace, permit_name};
use super::pack::Pack;
use super::text::{Job, Kind};
use super::{Call, TICKS, Time};

/// The number of low bits of a permit id that hold its units. The others are random. So a permit has at most 2,097,151
/// units, and 43 random bits distinguish permits of one key.
const UNIT_BITS: u32 = 21;
pub(super) const NUMBER_BITS: u32 = 64 - UNIT_BITS;

/// The data needed to give one take back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TakeRecord {
    /// The algorithm of the limit.
    algorithm: Algorithm,
    /// The units that were taken.
    cost: Cost,
    /// The server's time of the take.
    taken_at: Timestamp,
    /// The instant under which it is stored. For a log, the time of its entry; for slots, the start of the newest slot.
    at: Timestamp,
    /// The time at which its debt is fully repaid.
    pub(super) clear_at: Timestamp,
    /// The price it paid, for algorithms where that is a span of time.
    paid: u64,
    /// The permit, under a concurrency limit.
    permit: Option<PermitId>,
}

impl TakeRecord {
    /// Creates the record of a take, at this time or shortly after.
    pub(super) fn new(
        limit: &Limit,
        state: &State,
        cost: Cost,
        now: Timestamp,
        decision: &Decision,
    ) -> TakeRecord {
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
            // As in the library, a price that does not fit is not given back.
            Algorithm::Pacer => u64::try_from(pace_price(limit, cost.get())).unwrap_or(0),
            _ => 0,
        };
        let (algorithm, permit) = (limit.algorithm(), decision.permit());
        TakeRecord { algorithm, cost, taken_at: now, at, clear_at, paid, permit }
    }
}

impl TakeRecord {
    /// Returns the part that belongs to one of several asks that were taken as one. The parts of all asks add up to the
    /// whole.
    #[must_use]
    pub(crate) fn part(&self, limit: &Limit, cost: Cost) -> TakeRecord {
        let paid = match self.algorithm {
            Algorithm::TokenBucket | Algorithm::LeakyBucket => limit.numbers()[1].saturating_mul(cost.get()),
            _ => self.paid,
        };
        TakeRecord { cost, paid, ..*self }
    }

    /// Returns the time at which its debt is fully repaid.
    pub(crate) fn clear_at(&self) -> Timestamp {
        self.clear_at
    }

    /// Records that units were refunded, so that they are no longer debt. Windows and logs need no such record: their
    /// units are found on the server.
    pub(crate) fn use_up(&mut self, limit: &Limit, units: Cost) {
        if matches!(self.algorithm, Algorithm::TokenBucket | Algorithm::LeakyBucket) {
            self.paid = self.paid.saturating_sub(limit.numbers()[1].saturating_mul(units.get()));
        }
    }
}

/// Builds a charge or a refund. [`read_adjust`](super::read_adjust) parses the reply. With `begin`, a key without a
/// live state is adjusted from its initial state.
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
    let mut arguments = vec![pack_adjustment(limit, time, cost, is_charge).into_bytes(), word.to_vec()];
    arguments.extend(begin.map(|begin| begin.argument(limit)));
    call_with_mark(Job::Adjust(Kind::of(limit.algorithm())), target, arguments, time)
}

/// Builds a removal of states of one slot. The reply is the number of states that existed. It also leaves a mark for
/// each state.
pub(crate) fn reset(states: &[StateName], time: Time) -> Call {
    let keys = states.iter().flat_map(|state| [state.clone(), mark_name(state)]).collect();
    let mut arguments = vec![b"reset".to_vec()];
    arguments.extend(time.arguments());
    Call { script: Job::Reset.script(), keys, arguments }
}

/// Builds the call that gives one take back, as far as it certainly still exists. [`read_adjust`](super::read_adjust)
/// parses the reply.
///
/// For a bucket, later takes may have followed, if none of them is delayed; then the time since the take is deducted.
/// For a log, at most 64 entries may have followed the take. For a pacer, only the last take can be given back.
pub(crate) fn give_back(target: &Target, taken: &TakeRecord, time: Time) -> Call {
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
        Algorithm::FixedWindow | Algorithm::Calendar => {
            pack_adjustment(limit, time, cost, false).micros(clear_at)
        }
        Algorithm::SlidingWindow => pack_adjustment(limit, time, cost, false).micros(taken.at.ticks()),
        Algorithm::Pacer => pack_priced_pace(limit, taken.paid.into(), 0).ticks(clear_at),
        _ => match taken.permit {
            Some(permit) => pack_permit(target, permit),
            None => return answered(NEEDS_PERMIT, target),
        },
    };
    call_about(taken, Job::GiveBack(Kind::of(limit.algorithm())), target, pack, time)
}

/// Builds a refund of units of one take, as far as they are still debt. Returns `None` if nothing can be refunded.
/// [`read_adjust`](super::read_adjust) parses the reply.
///
/// For a bucket, the refund is the price minus the time since the take, and zero while any request may be delayed.
/// Windows, slots and logs behave as in [`give_back`]. A pacer stores only the last grant, without its owner.
pub(crate) fn refund(target: &Target, taken: &TakeRecord, units: Cost, time: Time) -> Option<Call> {
    let limit = &target.limit;
    match limit.algorithm() {
        algorithm if algorithm != taken.algorithm => None,
        Algorithm::TokenBucket | Algorithm::LeakyBucket => {
            let price = limit.numbers()[1].saturating_mul(units.get());
            let pack = Pack::new(letter(taken.algorithm)).ticks(price).ticks(taken.paid).ticks(quiet(limit));
            Some(call_about(taken, Job::RefundDebt, target, pack, time))
        }
        Algorithm::FixedWindow | Algorithm::Calendar | Algorithm::SlidingLog | Algorithm::SlidingWindow => {
            Some(give_back(target, &TakeRecord { cost: units, ..*taken }, time))
        }
        _ => None,
    }
}

/// Returns the debt up to which no allowed request is still delayed.
fn quiet(limit: &Limit) -> u64 {
    let [_, _, capacity, _, undelayed] = limit.numbers();
    if limit.algorithm() == Algorithm::TokenBucket { capacity } else { undelayed.min(capacity) }
}

/// Builds the release of a permit. [`read_whether`](super::read_whether) parses whether the permit was still held. A
/// second release of the same permit does nothing.
pub(crate) fn release(target: &Target, permit: PermitId, time: Time) -> Call {
    with_permit(Job::Release, target, permit, time)
}

/// Builds the renewal of a lease. [`read_whether`](super::read_whether) parses whether the permit was still held. The
/// lease begins anew, at the server's time.
pub(crate) fn renew(target: &Target, permit: PermitId, time: Time) -> Call {
    with_permit(Job::Renew, target, permit, time)
}

/// Returns the id of a permit from its name on the server.
pub(super) fn permit_of(name: &str) -> Option<PermitId> {
    let (units, number) = name.split_once(':')?;
    permit_id(units.parse().ok()?, number.parse().ok()?)
}

/// Returns the id of a permit with this many units. `None` if the units or the number need too many bits. Then the cost
/// exceeds any concurrency limit.
pub(super) fn permit_id(units: u64, number: u64) -> Option<PermitId> {
    let fits = units > 0 && units < 1 << UNIT_BITS && number < 1 << NUMBER_BITS;
    fits.then(|| PermitId::from_number(number << UNIT_BITS | units)).flatten()
}

/// Replies that need no access to the state.
const NEEDS_PERMIT: u8 = b'2';
const CAPPED: u8 = b'0';

/// Builds a call whose script replies with this digit. It still names the state, and so goes to the right node.
fn answered(answer: u8, target: &Target) -> Call {
    let keys = vec![target.name.clone()];
    Call { script: Job::Nothing.script(), keys, arguments: vec![vec![b'n', answer]] }
}

/// Builds a call about a permit. Other algorithms have no permits, and get the reply `0`.
fn with_permit(job: Job, target: &Target, permit: PermitId, time: Time) -> Call {
    if target.limit.algorithm() != Algorithm::Concurrency {
        return answered(CAPPED, target);
    }
    call(job, target, vec![pack_permit(target, permit).into_bytes()], time)
}

/// Encodes a permit by its name, after the lease of the limit.
fn pack_permit(target: &Target, permit: PermitId) -> Pack {
    let [_, lease, ..] = target.limit.numbers();
    let number = permit.number();
    let name = permit_name(number % (1 << UNIT_BITS), number >> UNIT_BITS);
    Pack::new(holders_letter(target)).micros(lease).text(&name)
}

/// Builds a call about one take. The script does nothing if units were removed without a receipt since. The mark of the
/// state says so.
fn call_about(taken: &TakeRecord, job: Job, target: &Target, pack: Pack, time: Time) -> Call {
    let taken_at = Pack::new(b'x').micros(taken.taken_at.ticks());
    call_with_mark(job, target, vec![pack.into_bytes(), taken_at.into_bytes()], time)
}

/// Builds a call whose second key is the mark of the state.
fn call_with_mark(job: Job, target: &Target, arguments: Vec<Vec<u8>>, time: Time) -> Call {
    let mut call = call(job, target, arguments, time);
    call.keys.push(mark_name(&target.name));
    call
}

/// Builds a call about one state.
fn call(job: Job, target: &Target, mut arguments: Vec<Vec<u8>>, time: Time) -> Call {
    arguments.extend(time.arguments());
    Call { script: job.script(), keys: vec![target.name.clone()], arguments }
}

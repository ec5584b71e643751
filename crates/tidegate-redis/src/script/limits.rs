//! The limits that a script supports, and their encoding as numbers.
//!
//! A script counts microseconds. All times in the library's grammar are whole microseconds with two exceptions: an
//! interval, whose ticks are kept, and the slots of a sliding window. Slots are lengthened to whole microseconds where
//! that costs at most a thousandth. Both the script and the reader of its reply use that limit.
//!
//! A limit that a script cannot apply exactly is unsupported, and rejected when it is configured. The alternative would
//! be a decision that differs from that in memory.

use std::fmt;
use std::time::Duration;

use tidegate_core::{Algorithm, Ask, CalendarPeriods, Cost, DAY, Limit, LimitBuilder, Ticks, WindowMode};

use super::bid::{Bid, Target};
use super::key::letter;
use super::pack::Pack;
use super::{EPOCH, TICKS, Time, span};

/// The largest count that a script can add without loss, with room for one more of that size.
const MOST_COUNTED: u64 = 1 << 52;

/// An error: a Redis server cannot support the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unsupported {
    /// The limit. It is boxed, so that results stay small.
    limit: Box<Limit>,
    /// The reason.
    why: Why,
}

/// The reason why a limit is unsupported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// More than one unit per microsecond: the interval would be no time at all.
    TooFast,
    /// A count that a double cannot hold exactly after an addition.
    CountTooLarge,
    /// Slots that cannot be lengthened to whole microseconds within a thousandth.
    SlotsTooFine,
    /// An algorithm of a newer library.
    UnknownAlgorithm,
}

impl Unsupported {
    /// Returns the fault and its remedy, to follow the text of the limit.
    pub(crate) fn reason(&self) -> String {
        let why = match self.why {
            Why::TooFast => {
                "more than 1,000,000 per second; Redis tells the time in microseconds: write a lower rate"
            }
            Why::CountTooLarge => {
                "a count with max-debt above 2^52; Redis counts no further: write a lower max-debt"
            }
            Why::SlotsTooFine => "its slots are no whole microseconds; Redis counts those: write fewer slots",
            Why::UnknownAlgorithm => "an algorithm that no script knows; write another",
        };
        format!("{why}, or keep it in memory")
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "limit \"{}\": {}", self.limit, self.reason())
    }
}

impl std::error::Error for Unsupported {}

/// Checks that a Redis server supports this limit. The gate and the server call it when a configuration is loaded.
pub(crate) fn supports(limit: &Limit) -> Result<(), Unsupported> {
    held(limit).map(|_| ())
}

/// Returns the limit as a script applies it. It equals the given limit, except for the length of slots.
pub(crate) fn held(limit: &Limit) -> Result<Limit, Unsupported> {
    let refused = |why| Err(Unsupported { limit: Box::new(*limit), why });
    let is_too_fast = |amount: u64, period: u64| period / TICKS < amount;
    match (limit.algorithm(), limit.numbers()) {
        (Algorithm::TokenBucket | Algorithm::LeakyBucket, [_, interval, ..]) if interval < TICKS => {
            refused(Why::TooFast)
        }
        (Algorithm::Pacer, [interval, ..]) if interval > 0 && interval < TICKS => refused(Why::TooFast),
        (Algorithm::FixedWindow | Algorithm::SlidingLog, [amount, period, ..])
            if is_too_fast(amount, period) =>
        {
            refused(Why::TooFast)
        }
        (Algorithm::FixedWindow | Algorithm::Calendar, [_, _, _, most, _]) if most > MOST_COUNTED => {
            refused(Why::CountTooLarge)
        }
        (Algorithm::SlidingWindow, [amount, width, slots, _, _]) if is_too_fast(amount, width * slots) => {
            refused(Why::TooFast)
        }
        (Algorithm::SlidingWindow, [_, _, _, _, most]) if most > MOST_COUNTED => refused(Why::CountTooLarge),
        (Algorithm::SlidingWindow, numbers) if numbers[1] % TICKS != 0 => {
            with_whole_slots(numbers).map_or_else(|| refused(Why::SlotsTooFine), Ok)
        }
        (
            Algorithm::TokenBucket
            | Algorithm::LeakyBucket
            | Algorithm::FixedWindow
            | Algorithm::SlidingLog
            | Algorithm::SlidingWindow
            | Algorithm::Pacer
            | Algorithm::Concurrency
            | Algorithm::Calendar,
            _,
        ) => Ok(*limit),
        _ => refused(Why::UnknownAlgorithm),
    }
}

/// Returns the same window with slots of whole microseconds, or `None` if that is more than a thousandth longer. A
/// longer window is stricter, so the limit is never exceeded by this.
fn with_whole_slots([amount, width, slots, _, most]: [u64; 5]) -> Option<Limit> {
    let whole = width.next_multiple_of(TICKS);
    if (whole - width) > width / 1000 {
        return None;
    }
    // An estimate has one slot of a whole period, which is whole microseconds already.
    let draft =
        LimitBuilder::new(Algorithm::SlidingWindow, amount, Duration::from_micros(whole / TICKS * slots));
    draft.mode(WindowMode::Strict).slots(slots).max_debt(most - amount).build().ok()
}

/// Returns the numbers that a script uses for a limit with these numbers. It is the form for numbers that were read
/// from a table, where no limit exists.
pub(super) fn held_numbers(algorithm: Algorithm, numbers: [u64; 5]) -> Option<[u64; 5]> {
    if algorithm == Algorithm::SlidingWindow && !numbers[1].is_multiple_of(TICKS) {
        return with_whole_slots(numbers).map(|limit| limit.numbers());
    }
    Some(numbers)
}

/// Returns the longest time for which a state under this limit can matter, apart from the debt of a pacer. Table
/// entries and leases of pending releases are at least that long.
pub(crate) fn longest_use(limit: &Limit) -> Ticks {
    match (limit.algorithm(), limit.numbers()) {
        (Algorithm::TokenBucket | Algorithm::LeakyBucket, [_, _, capacity, max_debt, _]) => {
            span(capacity.saturating_add(max_debt))
        }
        (Algorithm::SlidingWindow, [_, width, slots, ..]) => span(width.saturating_mul(slots + 2)),
        (Algorithm::Pacer, [interval, _, most, warm_up, _]) => {
            span(interval.saturating_add(most).saturating_add(warm_up))
        }
        // A zone's clock is set back by less than a day, which makes a period longer.
        (Algorithm::Calendar, _) => Ticks::saturating_from(limit.time_to_full() + DAY),
        (_, [_, period, ..]) => span(period),
    }
}

/// Encodes an ask under a supported limit.
///
/// The numbers of several debts are concatenated in one argument; the other algorithms have an argument for each ask.
/// `others` is the argument so far; it stays empty for other algorithms than buckets.
pub(super) fn pack_take(bid: &Bid, time: Time, others: Vec<u8>) -> Vec<u8> {
    let (target, limit, ask) = (&bid.target, &bid.target.limit, bid.ask);
    let (cost, max_wait, numbers) = (ask.cost.get(), ask.max_wait.get(), limit.numbers());
    let pack = match limit.algorithm() {
        Algorithm::TokenBucket | Algorithm::LeakyBucket => pack_debt(limit, ask, others),
        Algorithm::Pacer => pack_pace(limit, cost, max_wait),
        Algorithm::Concurrency => {
            let [most, lease, ..] = numbers;
            let units = bid.units_held();
            let pack = Pack::new(holders_letter(target)).number(most).micros(lease).number(units);
            pack.text(&bid.permit_name())
        }
        // Any cost above the limit is equally too large.
        _ => pack_counter(limit, time, cost.min(numbers[0] + 1)),
    };
    pack.into_bytes()
}

/// Returns the letter of the holders. Under a rule they are one set, in which each permit keeps the lease that it was
/// granted. The script then stores the longest of these leases beside them.
pub(super) fn holders_letter(target: &Target) -> u8 {
    if target.is_one_set { b'o' } else { b'c' }
}

/// Encodes an adjustment of a debt or a count. Costs beyond the largest count are capped: the result is the same for
/// any of them.
pub(super) fn pack_adjustment(limit: &Limit, time: Time, cost: Cost, is_charge: bool) -> Pack {
    match limit.algorithm() {
        Algorithm::TokenBucket | Algorithm::LeakyBucket => {
            let [_, interval, capacity, max_debt, _] = limit.numbers();
            let price = interval.saturating_mul(cost.get());
            let debt =
                Debt { price, bar: Some(capacity), depth: capacity.saturating_add(max_debt), interval };
            debt.pack(Pack::new(letter(limit.algorithm())))
        }
        Algorithm::Pacer if is_charge => pack_pace(limit, cost.get(), 0),
        // A refund cannot exceed the largest count.
        Algorithm::Pacer => pack_priced_pace(limit, pace_price(limit, cost.get()).min(u64::MAX.into()), 0),
        _ => pack_counter(limit, time, cost.get().min(2 * MOST_COUNTED)),
    }
}

/// Encodes a take from a bucket: price, largest debt allowed after it, and depth. A leaky bucket allows more debt only
/// to a caller that waits.
fn pack_debt(limit: &Limit, ask: Ask, others: Vec<u8>) -> Pack {
    let [_, interval, capacity, max_debt, undelayed] = limit.numbers();
    let price = interval.checked_mul(ask.cost.get()).filter(|price| *price <= capacity);
    let max_wait = ask.max_wait.get();
    let bar = price.map(|price| match limit.algorithm() {
        Algorithm::TokenBucket => capacity.saturating_add(max_wait.min(max_debt)),
        _ => capacity.min(undelayed.saturating_add(max_wait).saturating_add(price)),
    });
    let depth = capacity.saturating_add(max_debt);
    Debt { price: price.unwrap_or(0), bar, depth, interval }
        .pack(Pack::behind(others, letter(limit.algorithm())))
}

/// The numbers by which a script decides about a debt.
struct Debt {
    /// The price of the ask in ticks; zero if it exceeds the capacity.
    price: u64,
    /// The largest debt allowed after the price is paid; `None` if the price exceeds the capacity.
    bar: Option<u64>,
    /// The largest possible debt.
    depth: u64,
    /// The interval between units, in ticks.
    interval: u64,
}

impl Debt {
    /// Appends the numbers in the order in which the scripts unpack them: 54 bytes with the letter.
    fn pack(&self, pack: Pack) -> Pack {
        let pack = pack.micros(self.price).number(self.block());
        let pack = match self.bar {
            Some(bar) => pack.micros(bar),
            None => pack.negative(),
        };
        pack.micros_text(self.price).rest(self.price).rest(self.bar.unwrap_or(0)).ticks(self.depth)
    }

    /// Returns the length in microseconds of the blocks at whose ends frequently used keys expire. It is a whole number
    /// of seconds, and at most sixteen intervals and a sixteenth of the depth.
    fn block(&self) -> u64 {
        let ticks = (self.depth / 16).min(self.interval.saturating_mul(16));
        (ticks / TICKS / 1_000_000).max(1) * 1_000_000
    }
}

/// Encodes a window, a calendar, a log or slots. The layout of each is that of `unpack` in its file. The last number is always that
/// of the units, but for a calendar: it has the layout of a window and then the boundaries of its periods.
fn pack_counter(limit: &Limit, time: Time, units: u64) -> Pack {
    if let Some(periods) = limit.periods() {
        return pack_calendar(limit, &periods, time, units);
    }
    let [first, second, third, fourth, fifth] = limit.numbers();
    match limit.algorithm() {
        Algorithm::FixedWindow => {
            Pack::new(b'f').number(first).micros(second).flag(third == 1).number(fourth).number(units)
        }
        Algorithm::SlidingLog => Pack::new(b'g').number(first).micros(second).flag(third == 1).number(units),
        _ => {
            let pack = Pack::new(b's').number(first).micros(second).number(third);
            pack.flag(fourth == 1).number(fifth).number(units)
        }
    }
}

/// Encodes a calendar. The script chooses the period by its own clock. That clock may be a period from this one, so it
/// gets the period before this one and two later ones.
fn pack_calendar(limit: &Limit, periods: &CalendarPeriods, time: Time, units: u64) -> Pack {
    let [amount, _, _, most, _] = limit.numbers();
    let longest = periods.longest_period();
    let pack = Pack::new(letter(limit.algorithm())).number(amount).micros(longest.get()).flag(false);
    let pack = pack.number(most).number(units);
    // A period that began before the epoch of the script has a negative beginning.
    let seconds = i64::try_from(time.expected().ticks() / TICKS / 1_000_000 + EPOCH).unwrap_or(i64::MAX);
    let present = periods.period_of(seconds);
    let (before, next) = (periods.period_of(present.start - 1), periods.period_of(present.end));
    let boundaries = [before.start, present.start, present.end, next.end, periods.period_of(next.end).end];
    boundaries.into_iter().fold(pack, |pack, at| pack.signed((at - EPOCH.cast_signed()) * 1_000_000))
}

/// Returns the price of one permit of a pacer in intervals, in the units of its savings. With warm-up it is even,
/// because the area under the line is half of a product.
fn intervals_per_permit(cold_factor: u64) -> u64 {
    if cold_factor == 0 { 1 } else { 2 * (1 + cold_factor) }
}

/// Encodes permits of a pacer by their price.
fn pack_pace(limit: &Limit, permits: u64, max_wait: u64) -> Pack {
    let price = pace_price(limit, permits);
    pack_priced_pace(limit, price, max_wait)
}

/// Encodes a price in savings, and as time at the stable rate with the remainder of an interval.
pub(super) fn pack_priced_pace(limit: &Limit, price: u128, max_wait: u64) -> Pack {
    let [interval, pays_own, most, warm_up, cold_factor] = limit.numbers();
    let scale = if cold_factor == 0 { 1 } else { 5 + cold_factor };
    let full = if cold_factor == 0 { most } else { warm_up * scale };
    let per_permit = u128::from(intervals_per_permit(cold_factor));
    let (stable, rest) = (price / per_permit, (price % per_permit) as u64);
    let pack = Pack::new(b'p').flag(interval == 0).flag(pays_own == 1).number(scale).ticks(full);
    let pack = pack.ticks(saturated(price)).ticks(saturated(stable)).number(rest);
    pack.ticks(max_wait).micros(warm_up).number(cold_factor)
}

/// Returns the price of permits in the savings of a pacer.
pub(super) fn pace_price(limit: &Limit, permits: u64) -> u128 {
    let [interval, _, _, _, cold_factor] = limit.numbers();
    u128::from(interval) * u128::from(intervals_per_permit(cold_factor)) * u128::from(permits)
}

/// Saturates: any time beyond the largest is equally too large.
fn saturated(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Returns the name of a permit on the server. The script reads the units from the name, so a lease needs no other
/// field.
pub(super) fn permit_name(units: u64, number: u64) -> String {
    format!("{units}:{number}")
}

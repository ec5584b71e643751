//! I-1 of calendars, at the instants where it shows: right before, onto and right behind the boundaries of periods.

use std::collections::HashMap;

use tidegate::{Ask, Cost, Key, Limit, Timestamp};

use crate::calendar::{Boundaries, Calendar};
use crate::promise::Promise;
use crate::random::Random;

/// No boundary after this is used: 20 years.
const LATE: u64 = 20 * 365 * 86_400 * 16_000_000_000;

/// One take: its instant, the number of its boundary, and its cost.
type Event = (u64, usize, u64);

/// A key with a calendar limit, whose takes lie around one boundary.
struct Around {
    limit: Limit,
    amount: u64,
    periods: Boundaries,
    /// The units that were admitted in each period.
    admitted: HashMap<usize, u64>,
}

/// Asks around so many random boundaries of random calendars, so often each, and compares each reply with a count per
/// period. `take` returns whether it admits a take at an instant. Instants never go back, and are multiples of
/// `resolution` ticks. Returns the number of takes that were admitted.
///
/// At most the amount per period is admitted, and not one unit less.
pub fn boundaries_are_exact(
    seed: u64,
    boundaries: usize,
    takes: usize,
    resolution: u64,
    mut take: impl FnMut(Timestamp, &Limit, &Key, Ask) -> bool,
) -> Result<u64, String> {
    let mut random = Random::new(seed);
    let (mut all, mut events) = (Vec::new(), Vec::<Event>::new());
    for number in 0..boundaries {
        let Promise::Calendar { amount, calendar, max_debt } = Promise::modest("calendar", &mut random)
        else {
            unreachable!("it is the kind that was asked for")
        };
        let periods = calendar.boundaries();
        let known: Vec<u64> = periods.in_ticks().take_while(|begin| *begin < LATE).skip(1).collect();
        let boundary = random.pick(&known);
        events.extend((0..takes).map(|_| {
            let at = around(&mut random, boundary, &calendar, resolution);
            (at, number, random.between(1, amount + 1))
        }));
        let limit = Promise::Calendar { amount, calendar, max_debt }.limit();
        all.push(Around { limit, amount, periods, admitted: HashMap::new() });
    }
    events.sort_by_key(|(at, ..)| *at);
    let mut passed = 0;
    for (at, number, units) in events {
        let Around { limit, amount, periods, admitted } = &mut all[number];
        let counted = admitted.entry(periods.number_of(at.into())).or_default();
        let expected = *counted + units <= *amount;
        let ask = Ask::new(Cost::of(units));
        let allowed = take(Timestamp::from_ticks(at), limit, &Key::new(("boundary", number as u64)), ask);
        if allowed != expected {
            return Err(format!(
                "I-1: at {at}t {units} allowed: {allowed}, after {counted} in this period under {limit}\nseed {seed}"
            ));
        }
        if allowed {
            *counted += units;
            passed += 1;
        }
    }
    Ok(passed)
}

/// An instant around a boundary, some of them as close as can be.
fn around(random: &mut Random, boundary: u64, calendar: &Calendar, resolution: u64) -> u64 {
    let distance = match random.between(0, 9) {
        0..3 => random.between(0, 2) * resolution,
        3..6 => random.sized(1, 16_000_000_000),
        _ => random.between(0, calendar.usual()),
    };
    let at = if random.percent(50) { boundary + distance } else { boundary.saturating_sub(distance.max(1)) };
    at - at % resolution
}

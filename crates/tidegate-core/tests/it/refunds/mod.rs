//! Tests of refunds by receipt, on every holder of states.

mod bounds;
mod flight;
mod kept;
mod unused;
mod worthless;

use std::sync::Arc;
use std::time::Duration;

use tidegate::{
    Acquire, Adjusted, Ask, Clock, Cost, Decision, DirectLimiter, Limit, Limiter, ManualClock, Map,
    Timestamp, TrackedTake, Zone, ask,
};

/// A time at which every pacer has saved its maximum.
const START: Duration = Duration::from_secs(30 * 24 * 3600);

/// One key under one limit, in one kind of store.
enum Arm {
    Keyed(Limiter),
    Direct(DirectLimiter),
}

/// The holder of the state of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Zone,
    Map,
    Single,
    /// A file that other processes may use.
    File,
}

const IN_PROCESS: [Place; 3] = [Place::Zone, Place::Map, Place::Single];
const EVERYWHERE: [Place; 4] = [Place::Zone, Place::Map, Place::Single, Place::File];

/// Every algorithm that can refund more than the last take; each allows 20 units at once.
const LIMITS: [&str; 8] = [
    "20/m burst 20",
    "20/m queue 19 delay-after all leaky-bucket",
    "20/m fixed-window",
    "20/m fixed-window align first-hit",
    "20/m sliding-log",
    "20/m sliding-window",
    "20/m sliding-window mode estimate",
    "20/m pacer burst 60s pay self",
];

impl Arm {
    fn new(place: Place, limit: Limit, clock: &Arc<ManualClock>) -> Arm {
        let clock: Arc<dyn Clock> = clock.clone();
        match place {
            Place::Zone => Arm::Keyed(Limiter::on(&Zone::with_clock(1 << 14, clock), "", limit)),
            Place::Map => Arm::Keyed(Limiter::on(&Map::with_clock(clock).max_keys(64), "", limit)),
            Place::Single => Arm::Direct(DirectLimiter::with_clock(limit, clock)),
            Place::File => Arm::Keyed(Limiter::on(&zone_in_file(clock), "", limit)),
        }
    }

    fn take(&self, units: u64, max_wait: Duration) -> (Decision, Option<TrackedTake>) {
        match self {
            Arm::Keyed(limiter) => limiter.admit_tracked(ask("ana").cost(units).max_wait(max_wait)),
            Arm::Direct(single) => single.admit_tracked(Ask::new(Cost::of(units)).max_wait(max_wait)),
        }
    }

    fn take_untracked(&self, units: u64, max_wait: Duration) -> Decision {
        match self {
            Arm::Keyed(limiter) => limiter.admit(ask("ana").cost(units).max_wait(max_wait)),
            Arm::Direct(single) => single.admit_with(Ask::new(Cost::of(units)).max_wait(max_wait)),
        }
    }

    fn reset(&self) {
        match self {
            Arm::Keyed(limiter) => limiter.reset("ana"),
            Arm::Direct(single) => single.reset(),
        }
    }

    /// Refunds a unit without a receipt.
    fn refund_any(&self) -> Adjusted {
        match self {
            Arm::Keyed(limiter) => limiter.refund("ana"),
            Arm::Direct(single) => single.refund(1),
        }
    }

    fn acquire(&self, units: u64) -> Acquire {
        match self {
            Arm::Keyed(limiter) => limiter.acquire(ask("ana").cost(units)),
            Arm::Direct(single) => single.acquire_units(units),
        }
    }

    /// Returns the remaining units, and the time until the debt is repaid.
    fn rest(&self) -> (u64, Duration) {
        let decision = match self {
            Arm::Keyed(limiter) => limiter.peek("ana"),
            Arm::Direct(single) => single.peek(),
        };
        (decision.remaining(), decision.reset_after())
    }
}

/// Returns a zone in a file that other processes could open, and none does.
fn zone_in_file(clock: Arc<dyn Clock>) -> Zone {
    Zone::in_file_with_clock(conformance::Folder::new().zone(), 1 << 16, clock).expect("a new file")
}

fn clock() -> Arc<ManualClock> {
    let clock = Arc::new(ManualClock::new());
    clock.set(Timestamp::after_epoch(START));
    clock
}

fn limit(text: &str) -> Limit {
    text.parse().expect(text)
}

//! The state machine of a circuit breaker. It is pure: the time is an argument.
//!
//! ```text
//!             too many fail       the share is below 1/32          the pause is over
//!    clear -----------------> limiting --------------------> shut -------------------> half-open
//!      ^                      |  ^   |                        ^                        |  |
//!      `----------------------'  |   `- falls while too       `--- a probe fails ------'  |
//!         grown to all calls     |      many fail                                         |
//!                                `------------------- the probes succeed -----------------'
//! ```
//!
//! Every change begins an epoch. Calls admitted before it carry no information about the new state and are ignored.
//! Calls of the epoch that are still in flight are not silence: a timeout may be longer than the window.

use super::window::{CallTally, CallWindow};
use super::{BreakerSettings, BreakerState};
use crate::adaptive::Outcome;
use crate::time::{OUT_OF_ORDER, Ticks, Timestamp};

/// The whole share: every call passes.
pub(super) const FULL: u32 = 1024;
/// The first share of a breaker that starts to limit. Each further cut halves the share.
const HALF: u32 = FULL / 2;
/// The step by which the share grows, and the first share after a pause.
const STEP: u32 = FULL / 8;
/// The smallest share; below it the breaker opens.
const LEAST: u32 = FULL / 32;
/// The number of windows for which calls in flight, or failures, suspend the growth of the share.
const TIMEOUT: u64 = 8;

/// The state of a circuit breaker.
#[derive(Clone, Copy, Debug)]
pub(super) struct BreakerHistory {
    now: Timestamp,
    epoch: u64,
    stage: Stage,
    /// The last pause since the breaker was closed.
    pause: Option<Ticks>,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Closed: all calls pass, and the window counts how they end.
    Clear(CallWindow),
    /// A share of the calls passes.
    Limiting(Limiting),
    /// Open: no call passes until this time.
    Shut { until: Timestamp },
    /// A few probes pass.
    HalfOpen(HalfOpen),
}

/// The share of the calls that passes, and the results since it last changed.
#[derive(Clone, Copy, Debug)]
struct Limiting {
    share: u32,
    /// The accumulated fraction of a call, below one call.
    credit: u32,
    in_flight: u64,
    since: Timestamp,
    /// The time of the last judged call.
    heard: Timestamp,
    tally: CallTally,
}

/// The probes after a pause.
#[derive(Clone, Copy, Debug)]
struct HalfOpen {
    in_flight: u64,
    succeeded: u64,
    /// Probes whose result is no longer awaited; they still count if they end.
    overdue: u64,
    /// The time at which a probe was last admitted, or given up.
    since: Timestamp,
}

impl BreakerHistory {
    pub(super) fn new(now: Timestamp) -> BreakerHistory {
        BreakerHistory { now, epoch: 0, stage: Stage::Clear(CallWindow::beginning(now)), pause: None }
    }

    /// Admits a call and returns its epoch, or returns the time until the next attempt.
    pub(super) fn admit(&mut self, now: Timestamp, settings: &BreakerSettings) -> Result<u64, Ticks> {
        self.advance(now, settings);
        let passes = match &mut self.stage {
            Stage::Clear(_) => true,
            Stage::Limiting(limiting) => limiting.pass(),
            Stage::HalfOpen(half_open) => half_open.pass(self.now, settings),
            Stage::Shut { until } => return Err(until.since(self.now)),
        };
        if passes { Ok(self.epoch) } else { Err(settings.slot) }
    }

    /// Records the end of a call that was admitted in this epoch.
    pub(super) fn end(&mut self, epoch: u64, outcome: Outcome, now: Timestamp, settings: &BreakerSettings) {
        self.advance(now, settings);
        if epoch != self.epoch {
            return;
        }
        match &mut self.stage {
            Stage::Limiting(limiting) => limiting.in_flight = limiting.in_flight.saturating_sub(1),
            Stage::HalfOpen(half_open) => half_open.leave(),
            Stage::Clear(_) | Stage::Shut { .. } => {}
        }
        let is_bad = match outcome {
            Outcome::Done => false,
            Outcome::Failed | Outcome::Overloaded => true,
            Outcome::Ignored => return,
        };
        match &mut self.stage {
            Stage::Clear(window) => {
                let tally = window.count(self.now, settings.slot, is_bad);
                if tally.judged >= settings.at_least && tally.hurts(settings.percent) {
                    self.limit_to(HALF);
                }
            }
            Stage::Limiting(limiting) => {
                limiting.tally.add(is_bad);
                limiting.heard = self.now;
                self.advance(now, settings);
            }
            Stage::HalfOpen(_) if is_bad => self.shut(settings),
            Stage::HalfOpen(half_open) => {
                half_open.succeeded += 1;
                if half_open.succeeded >= settings.probes {
                    self.limit_to(STEP);
                }
            }
            Stage::Shut { .. } => {}
        }
    }

    /// Returns the current state.
    pub(super) fn state(&mut self, now: Timestamp, settings: &BreakerSettings) -> BreakerState {
        self.advance(now, settings);
        match self.stage {
            Stage::Clear(_) => BreakerState::Clear,
            Stage::Limiting(limiting) => {
                BreakerState::Limiting { percent: u64::from(limiting.share * 100 / FULL) }
            }
            Stage::Shut { until } => BreakerState::Shut { left: until.since(self.now).to_duration() },
            Stage::HalfOpen(_) => BreakerState::HalfOpen,
        }
    }

    /// Applies all changes that are due by now.
    fn advance(&mut self, now: Timestamp, settings: &BreakerSettings) {
        if now.saturating_add(OUT_OF_ORDER) < self.now {
            self.step_back(now, settings);
        }
        self.now = self.now.max(now);
        self.catch_up(settings);
    }

    /// Applies the change that is due in this stage.
    fn catch_up(&mut self, settings: &BreakerSettings) {
        match &mut self.stage {
            Stage::Clear(_) => {}
            Stage::Shut { until } if *until <= self.now => self.try_out(),
            Stage::Shut { .. } => {}
            Stage::HalfOpen(half_open) => half_open.give_up(self.now, settings),
            Stage::Limiting(limiting) => {
                let limiting = *limiting;
                self.judge(limiting, settings);
            }
        }
    }

    /// Decides about the share as soon as there are enough results. With too few, the share grows with time.
    fn judge(&mut self, limiting: Limiting, settings: &BreakerSettings) {
        if limiting.tally.judged >= settings.probes {
            let due = limiting.since.saturating_add(settings.slot).max(limiting.heard);
            if due <= self.now {
                // A late caller applies the change as of its due time: a pause that followed may be over already.
                let now = std::mem::replace(&mut self.now, due);
                self.decide(limiting, settings);
                self.now = now;
                self.catch_up(settings);
            }
            return;
        }
        let elapsed = self.now.since(limiting.since);
        // There are too few results to decide: the share grows by a step per window.
        let windows = elapsed.get() / settings.window().get().max(1);
        let steps = if limiting.is_silent() { windows } else { windows.saturating_sub(TIMEOUT - 1) };
        if steps > 0 {
            self.ease(limiting, steps);
        }
    }

    /// Halves the share if too many calls failed, and opens below the least share; otherwise the share grows.
    fn decide(&mut self, limiting: Limiting, settings: &BreakerSettings) {
        if !limiting.tally.hurts(settings.percent) {
            return self.ease(limiting, 1);
        }
        match limiting.share / 2 {
            share if share < LEAST => self.shut(settings),
            share => self.limit_to(share),
        }
    }

    /// Raises the share by so many eighths; the full share closes the breaker.
    fn ease(&mut self, limiting: Limiting, steps: u64) {
        let steps = u32::try_from(steps.min(u64::from(FULL / STEP))).unwrap_or(1);
        match limiting.share + steps * STEP {
            share if share >= FULL => self.clear(),
            share => self.limit_to(share),
        }
    }

    /// Closes the breaker. The next pause is then as short as the first.
    fn clear(&mut self) {
        self.pause = None;
        self.begin(Stage::Clear(CallWindow::beginning(self.now)));
    }

    /// Starts to admit this share of the calls.
    fn limit_to(&mut self, share: u32) {
        let (since, heard, tally) = (self.now, self.now, CallTally::default());
        self.begin(Stage::Limiting(Limiting { share, credit: 0, in_flight: 0, since, heard, tally }));
    }

    /// Opens the breaker, for twice the previous pause or for the first one.
    fn shut(&mut self, settings: &BreakerSettings) {
        let pause = settings.next_pause(self.pause);
        self.pause = Some(pause);
        self.begin(Stage::Shut { until: self.now.saturating_add(pause) });
    }

    /// Half-opens the breaker.
    fn try_out(&mut self) {
        self.begin(Stage::HalfOpen(HalfOpen { in_flight: 0, succeeded: 0, overdue: 0, since: self.now }));
    }

    /// Enters a stage, and begins an epoch.
    fn begin(&mut self, stage: Stage) {
        self.epoch = self.epoch.wrapping_add(1);
        self.stage = stage;
    }

    /// Handles a clock that was set back: timers restart, and no pause lasts longer than a full one from now.
    fn step_back(&mut self, now: Timestamp, settings: &BreakerSettings) {
        self.now = now;
        match &mut self.stage {
            Stage::Clear(window) => *window = CallWindow::beginning(now),
            Stage::Limiting(limiting) => (limiting.since, limiting.heard) = (now, now),
            Stage::HalfOpen(half_open) => half_open.since = now,
            Stage::Shut { until } => {
                *until = (*until).min(now.saturating_add(self.pause.unwrap_or(settings.pause)));
            }
        }
    }
}

impl Limiting {
    /// Returns true if this call passes. Of any number of consecutive calls, exactly the share passes, rounded down.
    fn pass(&mut self) -> bool {
        self.credit += self.share;
        let is_due = self.credit >= FULL;
        if is_due {
            self.credit -= FULL;
            self.in_flight += 1;
        }
        is_due
    }

    /// Returns true if no call is in flight, and none has failed.
    fn is_silent(&self) -> bool {
        self.in_flight == 0 && self.tally.bad == 0
    }
}

impl HalfOpen {
    /// Takes a probe slot, if one is free. Returns true if it did.
    fn pass(&mut self, now: Timestamp, settings: &BreakerSettings) -> bool {
        let is_free = !self.is_full(settings);
        if is_free {
            self.in_flight += 1;
            self.since = now;
        }
        is_free
    }

    /// Removes a probe that has ended.
    fn leave(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.overdue = self.overdue.min(self.in_flight);
    }

    /// Frees one more probe slot if no probe in flight has ended for the longest pause. A few probes that never end
    /// must not keep the breaker half-open for ever.
    fn give_up(&mut self, now: Timestamp, settings: &BreakerSettings) {
        if self.is_full(settings) && now.since(self.since) >= settings.longest_pause() {
            self.overdue += 1;
            self.since = now;
        }
    }

    /// Returns true if all probe slots are in use; an overdue probe uses none.
    fn is_full(&self, settings: &BreakerSettings) -> bool {
        self.in_flight - self.overdue >= settings.probes
    }
}

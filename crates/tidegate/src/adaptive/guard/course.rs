//! What a guard does, as a pure machine: the time is an argument.
//!
//! ```text
//!            too many fail          the share is nothing          the pause is over
//!   clear -----------------> limiting --------------------> shut -------------------> half-open
//!     ^                      |  ^   |                        ^                        |  |
//!     `----------------------'  |   `- falls while it hurts  `--- a probe fails ------'  |
//!        eased off to the full  `------------------- the probes succeed -----------------'
//! ```
//!
//! Every change begins an epoch. A call that was let in before it says nothing about what is so since then.
//! Calls of an epoch that are still in flight are no silence: a time-out may be longer than the window.

use super::window::{Tally, Window};
use super::{GuardState, Settings};
use crate::adaptive::Outcome;
use crate::time::{OUT_OF_ORDER, Ticks, Timestamp};

/// All of what is asked, in parts of a share.
pub(super) const FULL: u32 = 1024;
/// What it begins with, and what a share falls to: half of what it was.
const HALF: u32 = FULL / 2;
/// What it eases off by, and what it begins with after a pause.
const STEP: u32 = FULL / 8;
/// A share below this is nothing.
const LEAST: u32 = FULL / 32;
/// So many windows long what is in flight, or was bad, keeps it from easing off.
const PATIENCE: u64 = 8;

/// Where a guard is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    now: Timestamp,
    epoch: u64,
    stage: Stage,
    /// The last pause since all was clear.
    pause: Option<Ticks>,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Clear(Window),
    Limiting(Limiting),
    Shut { until: Timestamp },
    HalfOpen(HalfOpen),
}

#[derive(Clone, Copy, Debug)]
struct Limiting {
    share: u32,
    /// What is due to those who ask, below one call.
    credit: u32,
    in_flight: u64,
    since: Timestamp,
    /// When a call was last judged.
    heard: Timestamp,
    tally: Tally,
}

#[derive(Clone, Copy, Debug)]
struct HalfOpen {
    in_flight: u64,
    succeeded: u64,
    /// Probes that are waited for no longer; they count if they end after all.
    overdue: u64,
    /// When a probe was last let in, or given up.
    since: Timestamp,
}

impl Course {
    pub(super) fn new(now: Timestamp) -> Course {
        Course { now, epoch: 0, stage: Stage::Clear(Window::beginning(now)), pause: None }
    }

    /// Lets a call pass and says in which epoch, or when to ask again.
    pub(super) fn admit(&mut self, now: Timestamp, settings: &Settings) -> Result<u64, Ticks> {
        self.advance(now, settings);
        let passes = match &mut self.stage {
            Stage::Clear(_) => true,
            Stage::Limiting(limiting) => limiting.pass(),
            Stage::HalfOpen(half_open) => half_open.pass(self.now, settings),
            Stage::Shut { until } => return Err(until.since(self.now)),
        };
        if passes { Ok(self.epoch) } else { Err(settings.slot) }
    }

    /// A call that passed in this epoch has ended.
    pub(super) fn end(&mut self, epoch: u64, outcome: Outcome, now: Timestamp, settings: &Settings) {
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

    /// What it does now.
    pub(super) fn state(&mut self, now: Timestamp, settings: &Settings) -> GuardState {
        self.advance(now, settings);
        match self.stage {
            Stage::Clear(_) => GuardState::Clear,
            Stage::Limiting(limiting) => {
                GuardState::Limiting { percent: u64::from(limiting.share * 100 / FULL) }
            }
            Stage::Shut { until } => GuardState::Shut { left: until.since(self.now).to_duration() },
            Stage::HalfOpen(_) => GuardState::HalfOpen,
        }
    }

    /// Does what is due by now.
    fn advance(&mut self, now: Timestamp, settings: &Settings) {
        if now.saturating_add(OUT_OF_ORDER) < self.now {
            self.step_back(now, settings);
        }
        self.now = self.now.max(now);
        self.catch_up(settings);
    }

    fn catch_up(&mut self, settings: &Settings) {
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

    fn judge(&mut self, limiting: Limiting, settings: &Settings) {
        if limiting.tally.judged >= settings.probes {
            let due = limiting.since.saturating_add(settings.slot).max(limiting.heard);
            if due <= self.now {
                // Whoever looks late finds what has been so since then: a pause may be over already.
                let now = std::mem::replace(&mut self.now, due);
                self.decide(limiting, settings);
                self.now = now;
                self.catch_up(settings);
            }
            return;
        }
        let elapsed = self.now.since(limiting.since);
        // Too little is heard to tell: it eases off, a step per window.
        let windows = elapsed.get() / settings.window().get().max(1);
        let steps = if limiting.is_silent() { windows } else { windows.saturating_sub(PATIENCE - 1) };
        if steps > 0 {
            self.ease(limiting, steps);
        }
    }

    fn decide(&mut self, limiting: Limiting, settings: &Settings) {
        if !limiting.tally.hurts(settings.percent) {
            return self.ease(limiting, 1);
        }
        match limiting.share / 2 {
            share if share < LEAST => self.shut(settings),
            share => self.limit_to(share),
        }
    }

    fn ease(&mut self, limiting: Limiting, steps: u64) {
        let steps = u32::try_from(steps.min(u64::from(FULL / STEP))).unwrap_or(1);
        match limiting.share + steps * STEP {
            share if share >= FULL => self.clear(),
            share => self.limit_to(share),
        }
    }

    fn clear(&mut self) {
        self.pause = None;
        self.begin(Stage::Clear(Window::beginning(self.now)));
    }

    fn limit_to(&mut self, share: u32) {
        let (since, heard, tally) = (self.now, self.now, Tally::default());
        self.begin(Stage::Limiting(Limiting { share, credit: 0, in_flight: 0, since, heard, tally }));
    }

    fn shut(&mut self, settings: &Settings) {
        let pause = settings.next_pause(self.pause);
        self.pause = Some(pause);
        self.begin(Stage::Shut { until: self.now.saturating_add(pause) });
    }

    fn try_out(&mut self) {
        self.begin(Stage::HalfOpen(HalfOpen { in_flight: 0, succeeded: 0, overdue: 0, since: self.now }));
    }

    fn begin(&mut self, stage: Stage) {
        self.epoch = self.epoch.wrapping_add(1);
        self.stage = stage;
    }

    /// The clock was set back: what is timed begins anew, and no pause lasts longer than it would from now.
    fn step_back(&mut self, now: Timestamp, settings: &Settings) {
        self.now = now;
        match &mut self.stage {
            Stage::Clear(window) => *window = Window::beginning(now),
            Stage::Limiting(limiting) => (limiting.since, limiting.heard) = (now, now),
            Stage::HalfOpen(half_open) => half_open.since = now,
            Stage::Shut { until } => {
                *until = (*until).min(now.saturating_add(self.pause.unwrap_or(settings.pause)));
            }
        }
    }
}

impl Limiting {
    /// Whether the share says that this one passes: of any number that ask one after the other, exactly the share passes, rounded down.
    fn pass(&mut self) -> bool {
        self.credit += self.share;
        let is_due = self.credit >= FULL;
        if is_due {
            self.credit -= FULL;
            self.in_flight += 1;
        }
        is_due
    }

    /// Whether nothing is still to be heard, and nothing bad was.
    fn is_silent(&self) -> bool {
        self.in_flight == 0 && self.tally.bad == 0
    }
}

impl HalfOpen {
    /// Whether there is room for one more probe, which it takes.
    fn pass(&mut self, now: Timestamp, settings: &Settings) -> bool {
        let is_free = !self.is_full(settings);
        if is_free {
            self.in_flight += 1;
            self.since = now;
        }
        is_free
    }

    fn leave(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.overdue = self.overdue.min(self.in_flight);
    }

    /// Makes room for one more probe when nothing was heard of those in flight for the longest pause: a few that
    /// never end must not keep it half-open for ever.
    fn give_up(&mut self, now: Timestamp, settings: &Settings) {
        if self.is_full(settings) && now.since(self.since) >= settings.longest_pause() {
            self.overdue += 1;
            self.since = now;
        }
    }

    fn is_full(&self, settings: &Settings) -> bool {
        self.in_flight - self.overdue >= settings.probes
    }
}

//! An error-rate guard: while too many calls fail, only a share of them passes.
//!
//! A breaker that is either open or closed turns a service that fails half of its calls into one that fails all of
//! them. A guard lets the share pass that does not hurt, shuts only when no share helps, and never judges by
//! too few calls.

mod course;
#[cfg(all(test, not(tidegate_models)))]
mod tests;
mod window;

use std::sync::Arc;
use std::time::Duration;

use self::course::Course;
use super::Outcome;
use crate::refusal::Refusal;
use crate::sync::Mutex;
use crate::time::{Clock, MILLISECOND, SECOND, Source, Ticks, Timestamp};

/// Watches how calls end and, while too many fail, lets only a share of them pass; clones share what they know.
///
/// Settings come first: each of them makes a new guard that has seen nothing yet.
///
/// ```
/// use tidegate::{Guard, Outcome, SECOND};
///
/// let guard = Guard::new().window(10 * SECOND).at_least(20).percent(50);
/// match guard.admit() {
///     Ok(passage) => passage.done(Outcome::Done), // after the call, by how it went
///     Err(refusal) => println!("not now: {refusal}"),
/// }
/// ```
///
/// # What it does
///
/// Clear, everything passes. When the window holds at least so many judged calls, and more than the percentage
/// of them failed or found the service overloaded, half of what is asked passes, exactly, without chance. A tenth of
/// the window later, if calls of since then have ended: half of that again if it still hurts, an eighth of the
/// whole more if not, until all of it passes. When the share has fallen below a thirty-second, nothing passes
/// for the pause. Then a few probes do: if they succeed, an eighth of what is asked passes, and it eases off from
/// there; if one fails, it is shut for twice as long, at most for eight times the first pause.
///
/// # What it does about silence
///
/// While so few ask that nothing can be told, the share eases off by an eighth per window; but not, for eight
/// windows, while a call is in flight that was let in since the share changed last, nor when one of those went
/// wrong. So time-outs may be up to eight times as long as the window. Probes have all the time they need; when
/// nothing is heard of them for eight pauses, one more is let in, and so on: a probe that never ends does not
/// shut a service out that is well again.
#[derive(Clone, Debug)]
pub struct Guard {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    clock: Source,
    course: Mutex<Course>,
}

/// A window has so many slots.
const SLOTS: u64 = 10;

/// A pause grows to so many times the first one.
const LONGEST_PAUSE: u64 = 8;

/// When a guard begins to limit, and how it finds out that it need not any longer.
#[derive(Clone, Copy, Debug)]
struct Settings {
    /// One slot of the window, and one step of the share.
    slot: Ticks,
    at_least: u64,
    percent: u64,
    probes: u64,
    pause: Ticks,
}

impl Settings {
    const DEFAULT: Settings = Settings {
        slot: Ticks::saturating_from(SECOND),
        at_least: 20,
        percent: 50,
        probes: 3,
        pause: Ticks::saturating_from(Duration::from_secs(5)),
    };

    fn window(&self) -> Ticks {
        Ticks::new(self.slot.get().saturating_mul(SLOTS))
    }

    /// The longest pause there is.
    fn longest_pause(&self) -> Ticks {
        Ticks::new(self.pause.get().saturating_mul(LONGEST_PAUSE))
    }

    /// The pause that follows this one.
    fn next_pause(&self, last: Option<Ticks>) -> Ticks {
        last.map_or(self.pause, |last| last.saturating_add(last).min(self.longest_pause()))
    }
}

/// What a guard does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardState {
    /// Everything passes.
    Clear,
    /// So many in a hundred pass, rounded down.
    Limiting {
        /// How many in a hundred pass.
        percent: u64,
    },
    /// Nothing passes.
    Shut {
        /// The time until probes pass.
        left: Duration,
    },
    /// Only a few probes pass.
    HalfOpen,
}

impl Guard {
    /// A guard by the defaults: a window of ten seconds with at least 20 judged calls, more than 50 percent of them
    /// bad; three probes after a pause of five seconds.
    pub fn new() -> Guard {
        Guard::of(Settings::DEFAULT, Source::default())
    }

    fn of(settings: Settings, clock: Source) -> Guard {
        let course = Mutex::new(Course::new(clock.now()));
        Guard { shared: Arc::new(Shared { settings, clock, course }) }
    }

    /// Judges by the calls that ended within this time; ten seconds unless set, at least a millisecond.
    #[must_use]
    pub fn window(self, window: Duration) -> Guard {
        let window = Ticks::saturating_from(window.max(MILLISECOND));
        self.with(|settings| settings.slot = Ticks::new(window.get() / SLOTS))
    }

    /// Never begins to limit by fewer judged calls than this; 20 unless set, at least one.
    #[must_use]
    pub fn at_least(self, calls: u64) -> Guard {
        self.with(|settings| settings.at_least = calls.max(1))
    }

    /// Begins to limit when more than this share went wrong; 50 unless set. 100 never does.
    #[must_use]
    pub fn percent(self, percent: u64) -> Guard {
        self.with(|settings| settings.percent = percent.min(100))
    }

    /// Lets so many pass at a time after a pause, and needs so many judged calls for each further step; 3 unless
    /// set, at least one.
    #[must_use]
    pub fn probes(self, probes: u64) -> Guard {
        self.with(|settings| settings.probes = probes.max(1))
    }

    /// Lets nothing pass for this time when no share helps; five seconds unless set, at least a millisecond.
    #[must_use]
    pub fn pause(self, pause: Duration) -> Guard {
        self.with(|settings| settings.pause = Ticks::saturating_from(pause.max(MILLISECOND)))
    }

    /// Goes by another clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Guard {
        Guard::of(self.shared.settings, Source::Given(clock))
    }

    /// A new guard with other settings.
    fn with(self, change: impl FnOnce(&mut Settings)) -> Guard {
        let mut settings = self.shared.settings;
        change(&mut settings);
        Guard::of(settings, self.shared.clock.clone())
    }

    /// Lets one call pass, or says when to ask again.
    pub fn admit(&self) -> Result<Passage, Refusal> {
        let Shared { settings, clock, course } = &*self.shared;
        let (began, admitted) = {
            let mut course = course.lock();
            let now = clock.now();
            (now, course.admit(now, settings))
        };
        match admitted {
            Ok(epoch) => {
                Ok(Passage { shared: Arc::clone(&self.shared), epoch, began, outcome: Outcome::Ignored })
            }
            Err(retry_after) => Err(Refusal::overloaded(0, retry_after)),
        }
    }

    /// What it does now.
    pub fn state(&self) -> GuardState {
        let Shared { settings, clock, course } = &*self.shared;
        course.lock().state(clock.now(), settings)
    }
}

impl Default for Guard {
    fn default() -> Guard {
        Guard::new()
    }
}

/// A call that a guard let pass. Dropped without a word it is [`Outcome::Ignored`].
#[must_use = "a guard learns only from how calls end"]
#[derive(Debug)]
pub struct Passage {
    shared: Arc<Shared>,
    epoch: u64,
    began: Timestamp,
    outcome: Outcome,
}

impl Passage {
    /// How long ago the call was let pass.
    pub fn lasted(&self) -> Duration {
        self.shared.clock.now().since(self.began).to_duration()
    }

    /// Says how the call ended.
    pub fn done(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        let Shared { settings, clock, course } = &*self.shared;
        let mut course = course.lock();
        course.end(self.epoch, self.outcome, clock.now(), settings);
    }
}

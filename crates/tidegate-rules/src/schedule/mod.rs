//! Schedules: time windows in which a part of a rule is replaced.
//!
//! A window is active at every instant at which the local time of its zone is at or after its beginning and before its
//! end. So a part that is skipped by a clock change never occurs, and a part that is repeated occurs twice.
//!
//! ```text
//!  wall clock  01:00      02:00=03:00      04:00          01:00   02:00=01:00   02:00
//!  instants    ──┴────────────┴──────────────┴──          ──┴──────────┴──────────┴──
//!  02:30–03:30                [──────)               01:30–02:00  [────)     [────)
//!  02:10–02:50                                       01:10–01:40 [───)      [───)
//!              forward: from the jump on, or not at all       back: whenever it is shown
//! ```

mod days;
mod last_answer;
mod moment;
#[cfg(test)]
mod tests;
mod timetable;
mod window;
mod zone;

pub(crate) use days::Days;
pub(crate) use moment::Moment;
pub(crate) use timetable::{MAX_WINDOWS, Timetable};
pub(crate) use window::Window;
pub(crate) use zone::{calendar_zone, time_zone};

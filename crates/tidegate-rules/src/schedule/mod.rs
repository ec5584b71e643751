//! When a rule is another one: windows of time in which a part of it is replaced.
//!
//! A window holds at every instant at which the clocks of its zone show a time from its beginning up to but without
//! its end. So the part of it that is skipped does not come, and the part that is repeated comes twice.
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
pub(crate) use zone::time_zone;

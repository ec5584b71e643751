//! When a rule is another one: windows of time in which a part of it is replaced.
//!
//! A window is written in wall-clock times of a zone and meant in instants, from one up to but without another.
//! A written time is the first instant at which a clock of the zone shows it or a later time.
//! So a time that is skipped is the jump, one that comes twice is the first, and what is in order stays in order.
//!
//! ```text
//!  wall clock  01:00      02:00=03:00      04:00          01:00      01:00      02:00
//!  instants    ──┴────────────┴──────────────┴──          ──┴──────────┴──────────┴──
//!  02:30–03:30                [──────)               01:30–02:00  [───────────────)
//!              forward: from the jump on                  back: from the first 01:30 to the only 02:00
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

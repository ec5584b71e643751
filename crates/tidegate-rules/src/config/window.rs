//! Parsing of a window of a schedule.
//!
//! All fields are parsed before the window is created, so that each of them is reported. The window itself checks that
//! both ends have the same recurrence.

use tidegate_support::{Complaint, Complaints};

use super::written::{WindowText, Written};
use crate::schedule::{Days, Moment, Window, time_zone};

/// Parses a window, or reports its errors.
///
/// The time zone is UTC unless one is written. Days restrict the day on which the window begins, so a window across
/// midnight on `fri` ends on Saturday.
pub(super) fn window(text: &WindowText, complaints: &mut Complaints) -> Option<Window> {
    let mut fail =
        |span: &std::ops::Range<usize>, what: String| complaints.push(Complaint::at(span.clone(), what));
    let mut moment = |name: &str, written: &Option<Written<String>>| match written {
        Some(written) => Moment::parse(&written.value)
            .map_err(|what| fail(&written.span, format!("{name} {:?}: {what}", written.value)))
            .ok(),
        None if text.fields.contains(&name) => None,
        None => {
            let example = if name == "from" { "11-11T00:00" } else { "11-12T00:00" };
            let what = format!("schedule: the window has no {name:?}; add one, as in {name} = {example:?}");
            fail(&text.span, what);
            None
        }
    };
    let (from, to) = (moment("from", &text.from), moment("to", &text.to));
    let zone = match &text.timezone {
        Some(written) => time_zone(&written.value)
            .map_err(|what| fail(&written.span, format!("timezone {:?}: {what}", written.value)))
            .ok(),
        None => time_zone("UTC").ok(),
    };
    let days = match &text.days {
        Some(written) => Some(days(written, &mut fail)?),
        None => None,
    };
    let (from, to, zone) = (from?, to?, zone?);
    Window::new(from, to, days, zone).map_err(|what| fail(&text.span, format!("schedule: {what}"))).ok()
}

/// Parses a list of days. One invalid day makes the whole list invalid; each of them is reported.
fn days(written: &[Written<String>], fail: &mut impl FnMut(&std::ops::Range<usize>, String)) -> Option<Days> {
    let mut days = Some(Days::default());
    for day in written {
        match (Days::one(&day.value), days) {
            (Ok(one), Some(known)) => days = Some(known.and(one)),
            (Ok(_), None) => {}
            (Err(what), _) => {
                fail(&day.span, format!("days {:?}: {what}", day.value));
                days = None;
            }
        }
    }
    days
}

//! Threads and processes that meet over the first asks of a new key.
//!
//! A newcomer wants a cell; of all who bring it at once, only one may get it. Were there two, each would admit a
//! burst. Neighbours come and go all the time, so that cells become free in front of everybody's eyes. No key has to
//! share: what passes is exactly the burst.

mod meeting;
mod processes;
mod threads;

use harness::{Options, Report, thousands};
use tidegate::HOUR;

use crate::Outcome;
use crate::account::Bucket;
use meeting::Meetings;
use threads::Room;

pub(crate) use processes::{PART, part};

const KEYS: u64 = 100_000;
/// What is promised to each key; it earns nothing as long as the drill takes.
const LIMIT: Bucket = Bucket::new(3, HOUR, 3);
/// On a busy machine threads meet rarely, but not never.
const LEAST_MET: u64 = 10;
/// How often each thread asks for each key.
const ASKS: u64 = 2;

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome {
    let keys = options.scaled(KEYS);
    judge("8 threads", &threads::run(keys, Room::Wide, report.name()), report);
    judge("8 threads in a narrow zone", &threads::run(5 * keys, Room::Narrow, report.name()), report);
    let found = processes::run(keys, report.name())?;
    judge("2 processes of 4 threads", &found, report);
    Ok(())
}

/// The bytes of one cell.
const CELL: usize = 16;
/// More strangers than are alive at any time.
const STRANGERS: usize = 100_000;

/// A zone in which all keys and the strangers beside them have room, and half of it is empty in the end.
fn zone_bytes(keys: u64) -> usize {
    2 * CELL * (keys as usize + STRANGERS)
}

fn judge(who: &str, found: &Found, report: &mut Report) {
    let meetings = &found.meetings;
    let keys = thousands(meetings.keys());
    report.fact(format!(
        "{who}: {keys} new keys, {} asks each, in {:.1} s; {} strangers came and went beside them",
        found.asks,
        found.took.as_secs_f64(),
        thousands(found.strangers),
    ));
    let parties: Vec<_> =
        (1..).zip(meetings.parties()).map(|(many, keys)| format!("{keys} by {many}")).collect();
    report.fact(format!("{who}: keys whose burst was shared by so many of them: {}", parties.join(", ")));
    let counts = &found.counts;
    report.fact(format!(
        "{who}: cells {}, live {}, got a cell {}, retries {}, decided sharing {}",
        counts.cells, counts.live, counts.inserts, counts.retries, counts.shared_decisions,
    ));
    let claim = format!("{who}: exactly {} of each key are admitted", LIMIT.burst());
    report.claim(meetings.wrong() == 0, &claim, meetings.first_wrong());
    let claim = format!("{who}: they do meet");
    let (met, of_what) = &found.met;
    report.claim(*met >= LEAST_MET, &claim, format!("{} {of_what}", thousands(*met)));
    let claim = format!("{who}: no key had to share a cell");
    report.claim(counts.shared_decisions == 0, &claim, counts.shared_decisions);
}

/// What came of the meetings of one kind.
struct Found {
    meetings: Meetings,
    asks: u64,
    strangers: u64,
    counts: tidegate::ZoneCounts,
    /// What shows that they met, and what that is.
    met: (u64, &'static str),
    took: std::time::Duration,
}

//! Two processes with four threads each, on one file.
//!
//! They agree beforehand when each key is due and wait for that by the clock, so that nothing passes between them but
//! the file. A late process asks at once: each thread asks for each key, however late.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use harness::{Folder, Process, Progress, Stopwatch, now, unix_time};
use tidegate::{Limiter, Zone};

use super::meeting::{Meetings, Neighbours, share};
use super::{ASKS, Found, LIMIT, zone_bytes};
use crate::Outcome;
use crate::number;
use crate::waiting::wait_until;

/// The name of the part that the second process does.
pub(crate) const PART: &str = "zone-newcomers-part";

const THREADS: u64 = 4;
/// From one key to the next.
const PACE: Duration = Duration::from_micros(150);
/// Strangers of each limit that each process brings with each key.
const STRANGERS: u64 = 4;
/// Until both processes are there.
const HEAD_START: Duration = Duration::from_millis(300);

/// What one of the two processes does.
struct Side {
    file: PathBuf,
    keys: u64,
    /// When the first key is due.
    start: Instant,
    /// The first or the second.
    number: u64,
}

pub(super) fn run(keys: u64, drill: &str) -> Result<Found, String> {
    let (scratch, watch) = (Folder::new(drill), Stopwatch::start());
    let file = scratch.file("zone.tg");
    let zone = open(&file, keys)?;
    let wall = unix_time() + HEAD_START;
    let arguments = [file.display().to_string(), keys.to_string(), wall.as_nanos().to_string()];
    let mut other = Process::part(&[PART, &arguments[0], &arguments[1], &arguments[2]])?;
    let mut output = other.output();
    let side = Side { file, keys, start: now() + wall.saturating_sub(unix_time()), number: 0 };
    let (mine, strangers) = side.ask(&zone, &Progress::new(format!("{drill} processes"), keys));
    let mut theirs = Vec::new();
    output.read_to_end(&mut theirs).map_err(|error| error.to_string())?;
    other.finish()?;
    if theirs.len() != keys as usize {
        return Err(format!("the other process reported {} keys", theirs.len()));
    }
    let mut meetings = Meetings::new(LIMIT.burst());
    for (mine, theirs) in mine.iter().zip(theirs) {
        // For whether the two processes met it is all the same who of a process was admitted.
        let mine = mine.load(Ordering::SeqCst) & u64::from(u32::MAX);
        meetings.enter(share(mine) + share(u64::from(theirs)));
    }
    let (counts, met) = (zone.counts(), (meetings.shared(), "keys whose burst went to both"));
    let (asks, strangers) = (2 * THREADS * ASKS, 2 * strangers);
    Ok(Found { meetings, asks, strangers, counts, met, took: watch.elapsed() })
}

/// The second process: asks like the first, and writes a byte for each key.
pub(crate) fn part(arguments: &[String]) -> Outcome {
    let file = PathBuf::from(arguments.first().ok_or("the first argument is a file")?);
    let wall = Duration::from_nanos(number(arguments, 2)?);
    let start = now() + wall.saturating_sub(unix_time());
    let side = Side { file, keys: number(arguments, 1)?, start, number: 1 };
    let zone = open(&side.file, side.keys)?;
    let (admitted, _) = side.ask(&zone, &Progress::new("", u64::MAX));
    let bytes: Vec<u8> = admitted.iter().map(|share| share.load(Ordering::SeqCst) as u8).collect();
    std::io::stdout().write_all(&bytes).map_err(|error| error.to_string())
}

impl Side {
    /// Asks for each key when it is due. The shares of each key, and how many strangers came with them.
    fn ask(&self, zone: &Zone, progress: &Progress) -> (Vec<AtomicU64>, u64) {
        let shares: Vec<_> = (0..self.keys).map(|_| AtomicU64::new(0)).collect();
        let limiter = Limiter::on(zone, "newcomers", LIMIT.limit());
        let mut neighbours = Neighbours::new(zone, self.number, 2);
        thread::scope(|scope| {
            for _ in 1..THREADS {
                scope.spawn(|| self.ask_each(&limiter, &shares, |_| ()));
            }
            self.ask_each(&limiter, &shares, |key| {
                neighbours.come(STRANGERS);
                if self.number == 0 {
                    progress.at(key, "");
                }
            });
        });
        (shares, neighbours.came())
    }

    fn ask_each(&self, limiter: &Limiter, shares: &[AtomicU64], mut after: impl FnMut(u64)) {
        for (key, shares) in (0..).zip(shares) {
            let due = self.start + PACE * key as u32;
            wait_until(|| now() >= due);
            let name = u64::to_le_bytes(key);
            let admitted = (0..ASKS).filter(|_| limiter.admit(&name[..]).is_allowed()).count();
            shares.fetch_add(share(admitted as u64), Ordering::SeqCst);
            after(key);
        }
    }
}

fn open(file: &PathBuf, keys: u64) -> Result<Zone, String> {
    Zone::in_file(file, zone_bytes(keys)).map_err(|error| error.to_string())
}

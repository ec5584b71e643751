//! A process is killed again and again in the middle of its work on a zone in a file.
//!
//! Two threads of it ask for a thousand keys as fast as they can, and write the number of each key that is admitted
//! into a pipe before they go on. After a random time the process is killed as by `kill -9`, what it wrote is read to
//! the end, and the next one opens the same file. What was charged but not written is lost, which only lowers the
//! counts. All admissions of some rounds in a row happened between the start of the first process and the end of the
//! last: for every such stretch no key may have more than its limit allows in that time.

mod load;

use std::io::Read;
use std::path::Path;
use std::thread;
use std::time::Duration;

use conformance::random::Random;
use harness::{Folder, Options, Process, Progress, Report, pause, thousands};
use tidegate::{Clock, SystemClock, Timestamp};

use crate::Outcome;
use crate::stretches::{Judged, Round, fewest_and_most, span};

pub(crate) use load::{PART, part};

const ROUNDS: u64 = 100;
/// The milliseconds after which a process is killed.
const LIVES: (u64, u64) = (1, 300);

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome {
    let scratch = Folder::new(report.name());
    let file = scratch.file("zone.tg");
    let (mut random, clock) = (Random::new(options.seed), SystemClock::new());
    let count = options.scaled(ROUNDS);
    let progress = Progress::new(report.name(), count);
    let mut rounds = Vec::new();
    for number in 0..count {
        let life = Duration::from_millis(random.between(LIVES.0, LIVES.1));
        rounds.push(live_and_die(&file, life, random.number(), &clock)?);
        progress.at(number + 1, format!("{} admissions in this round", rounds[rounds.len() - 1].total()));
    }
    say(&rounds, report);
    Ok(())
}

/// One process from its start to its end.
fn live_and_die(file: &Path, life: Duration, seed: u64, clock: &SystemClock) -> Result<Round, String> {
    let start = clock.now();
    let mut part = Process::part(&[PART, &file.display().to_string(), &seed.to_string()])?;
    let mut output = part.output();
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        output.read_to_end(&mut bytes).map(|_| bytes)
    });
    pause(life);
    part.kill().map_err(|error| format!("it could not be killed: {error}"))?;
    let bytes = reader.join().map_err(|_| "the reader panicked")?.map_err(|error| error.to_string())?;
    read(&bytes, start, clock.now())
}

/// Reads what a process wrote: four bytes per admission.
fn read(bytes: &[u8], start: Timestamp, end: Timestamp) -> Result<Round, String> {
    let mut counts = vec![0; load::KEYS as usize];
    let (records, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(format!("{} bytes are no whole number of admissions", bytes.len()));
    }
    for record in records {
        let key = u32::from_le_bytes(*record);
        *counts.get_mut(key as usize).ok_or_else(|| format!("there is no key {key}"))? += 1;
    }
    Ok(Round { counts, start, end })
}

fn say(rounds: &[Round], report: &mut Report) {
    let (admissions, span) = (rounds.iter().map(Round::total).sum(), span(rounds));
    let early = rounds.iter().filter(|round| round.total() == 0).count();
    report.fact(format!(
        "{} rounds in {:.1} s, {early} of them killed before anything was admitted; {} admissions of {} keys",
        rounds.len(),
        span.as_secs_f64(),
        thousands(admissions),
        load::KEYS,
    ));
    for (index, bucket) in load::LIMITS.iter().enumerate() {
        let (fewest, most) =
            fewest_and_most(rounds, (index..load::KEYS as usize).step_by(load::LIMITS.len()));
        report.fact(format!(
            "{}: each key between {fewest} and {most} times, its bound for the whole run is {}",
            bucket.limit(),
            bucket.worst_case(span),
        ));
    }
    let name = |key: usize| format!("key {key} at {}", load::limit_of(key).limit());
    Judged::of(rounds, name, |key, span| load::limit_of(key).worst_case(span)).claim(report);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_an_admission_and_an_unknown_key_are_refused() {
        let read = |bytes: &[u8]| read(bytes, Timestamp::EPOCH, Timestamp::EPOCH);
        assert!(read(&[0, 0, 0]).is_err() && read(&[255; 4]).is_err() && read(&[]).is_ok());
        assert_eq!(read(&[0; 8]).unwrap().counts[0], 2);
    }
}

//! A process is killed again and again in the middle of its work on a zone in a file.
//!
//! Two threads of it ask for a thousand keys as fast as they can, and write the number of each key that is admitted
//! into a pipe before they go on. After a random time the process is killed as by `kill -9`, what it wrote is read to
//! the end, and the next one opens the same file. What was charged but not written is lost, which only lowers the
//! counts. All admissions of some rounds in a row happened between the start of the first process and the end of the
//! last: for every such stretch no key may have more than its limit allows in that time.

mod judge;
mod load;

use std::io::Read;
use std::path::Path;
use std::thread;
use std::time::Duration;

use conformance::random::Random;
use tidegate::{Clock, SystemClock};

use crate::Outcome;
use crate::child::Part;
use crate::options::Options;
use crate::progress::Progress;
use crate::report::{Report, thousands};
use crate::scratch::{Scratch, text};
use crate::stopwatch::pause;
use judge::{Round, Stretch};

pub(crate) use load::{PART, part};

const ROUNDS: u64 = 100;
/// The milliseconds after which a process is killed.
const LIVES: (u64, u64) = (1, 300);

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome {
    let scratch = Scratch::new(report.name())?;
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
    let mut part = Part::start(PART, &[text(file), seed.to_string()])?;
    let mut output = part.output();
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        output.read_to_end(&mut bytes).map(|_| bytes)
    });
    pause(life);
    part.kill().map_err(|error| format!("it could not be killed: {error}"))?;
    let bytes = reader.join().map_err(|_| "the reader panicked")?.map_err(|error| error.to_string())?;
    Round::read(&bytes, start, clock.now())
}

fn say(rounds: &[Round], report: &mut Report) {
    let admissions: u64 = rounds.iter().map(Round::total).sum();
    let early = rounds.iter().filter(|round| round.total() == 0).count();
    let whole = judge::whole(rounds);
    report.fact(format!(
        "{} rounds in {:.1} s, {early} of them killed before anything was admitted; {} admissions of {} keys",
        rounds.len(),
        whole.span.as_secs_f64(),
        thousands(admissions),
        load::KEYS,
    ));
    for (index, bucket) in load::LIMITS.iter().enumerate() {
        let keys = (index as u64..load::KEYS).step_by(load::LIMITS.len());
        let counts: Vec<u64> = keys.map(|key| judge::admitted(rounds, key)).collect();
        report.fact(format!(
            "{}: each key between {} and {} times, its bound for the whole run is {}",
            bucket.limit(),
            counts.iter().min().copied().unwrap_or_default(),
            counts.iter().max().copied().unwrap_or_default(),
            bucket.most_in(whole.span),
        ));
    }
    report.fact(format!("the tightest over the whole run: {}", judge::tightest(rounds, whole)));
    let stretches = judge::stretches(rounds.len());
    let tightest = stretches.iter().map(|stretch| judge::tightest(rounds, Stretch::of(rounds, *stretch)));
    let above: Vec<_> = tightest.filter(|tightest| tightest.is_above()).collect();
    report.claim(
        above.is_empty(),
        "no key above its bound in any stretch of rounds",
        match above.first() {
            None => format!("{} stretches", thousands(stretches.len() as u64)),
            Some(first) => format!("{} stretches are, the first: {first}", above.len()),
        },
    );
}

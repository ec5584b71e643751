//! The process whose calls are counted.

use std::fs::{File, OpenOptions};
use std::hint::spin_loop;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tidegate::{HOUR, Limit, Limiter, MINUTE, SystemClock, Zone};

use crate::allocations::allocations;
use crate::{Outcome, number};

/// The name of this part.
pub(crate) const PART: &str = "zone-quiet-part";

/// The argument that asks for this clock, where else a file is named.
pub(super) const SYSTEM_CLOCK: &str = "--system-clock";

const ROOMY: usize = 64 << 20;
const SMALLEST: usize = 256;
const KNOWN_KEYS: u64 = 10_000;

/// What it says of itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) decisions: u64,
    pub(super) admitted: u64,
    pub(super) allocations: u64,
    pub(super) inserts: u64,
    pub(super) shared: u64,
    pub(super) retries: u64,
}

impl Counted {
    fn words(&self) -> [u64; 6] {
        [self.decisions, self.admitted, self.allocations, self.inserts, self.shared, self.retries]
    }

    /// Reads what the process has written.
    pub(super) fn read(line: &str) -> Result<Counted, String> {
        let words: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [decisions, admitted, allocations, inserts, shared, retries] = words[..] else {
            return Err(format!("the part said \"{line}\""));
        };
        Ok(Counted { decisions, admitted, allocations, inserts, shared, retries })
    }
}

/// Where the two threads meet without a system call.
#[derive(Default)]
struct Stage {
    ready: AtomicU64,
    begun: AtomicU64,
    done: AtomicU64,
    admitted: AtomicU64,
    ended: AtomicU64,
}

/// Takes the decisions, and says what was counted.
pub(crate) fn part(arguments: &[String]) -> Outcome {
    let decisions: u64 = number(arguments, 0)?;
    let zones = match arguments.get(1).map_or("", String::as_str) {
        "" => [ROOMY, SMALLEST].map(Zone::new),
        SYSTEM_CLOCK => [ROOMY, SMALLEST].map(|bytes| Zone::with_clock(bytes, Arc::new(SystemClock::new()))),
        file => [Zone::in_file(file, ROOMY).map_err(|error| error.to_string())?, Zone::new(SMALLEST)],
    };
    let [known, crowded] = [0, 1].map(|zone| Limiter::on(&zones[zone], "quiet", limit(zone)));
    for key in 0..KNOWN_KEYS {
        let _ = (known.admit(&key.to_le_bytes()[..]), crowded.admit(&key.to_le_bytes()[..]));
    }
    let (stage, quarter) = (Stage::default(), (decisions / 8).max(1));
    let mut null = OpenOptions::new().write(true).open("/dev/null").map_err(|error| error.to_string())?;
    let allocations = thread::scope(|scope| {
        scope.spawn(|| {
            stage.ready.store(1, Ordering::SeqCst);
            wait_for(&stage.begun, 1);
            stage.decide(&known, &crowded, quarter, 1);
            wait_for(&stage.ended, 1);
        });
        measured(&stage, &mut null, || stage.decide(&known, &crowded, quarter, 0))
    })?;
    let counts = zones.map(|zone| zone.counts());
    let counted = Counted {
        decisions: quarter * 8,
        admitted: stage.admitted.load(Ordering::SeqCst),
        allocations,
        inserts: counts[0].inserts,
        shared: counts[1].shared_decisions,
        retries: counts[0].retries + counts[1].retries,
    };
    println!("{}", counted.words().map(|word| word.to_string()).join(" "));
    Ok(())
}

/// The known may have much, so that they are admitted; the crowd is to stay.
fn limit(zone: usize) -> Limit {
    [Limit::token_bucket(1_000_000, MINUTE), Limit::token_bucket(1, HOUR)][zone]
}

/// What was allocated while both threads decided, between the marks.
fn measured(stage: &Stage, null: &mut File, decide: impl FnOnce()) -> Result<u64, String> {
    // A thread that is only beginning makes calls of its own.
    wait_for(&stage.ready, 1);
    let marked = null.write_all(MARKS[0].as_bytes());
    let before = allocations();
    stage.begun.store(1, Ordering::SeqCst);
    decide();
    wait_for(&stage.done, 2);
    let after = allocations();
    let marked = marked.and_then(|()| null.write_all(MARKS[1].as_bytes()));
    stage.ended.store(1, Ordering::SeqCst);
    marked.map_err(|error| error.to_string()).map(|()| after - before)
}

impl Stage {
    /// So many decisions of each of four kinds.
    fn decide(&self, known: &Limiter, crowded: &Limiter, each: u64, thread: u64) {
        let mut admitted = 0;
        let mut ask = |limiter: &Limiter, key: u64| {
            admitted += u64::from(limiter.admit(&key.to_le_bytes()[..]).is_allowed());
        };
        for round in 0..each {
            let newcomer = KNOWN_KEYS + 2 * round + thread;
            ask(known, 0);
            ask(known, round % KNOWN_KEYS);
            ask(known, newcomer);
            ask(crowded, newcomer);
        }
        self.admitted.fetch_add(admitted, Ordering::SeqCst);
        self.done.fetch_add(1, Ordering::SeqCst);
    }
}

/// Looks until a number is there; giving way to others would be a system call.
fn wait_for(number: &AtomicU64, awaited: u64) {
    while number.load(Ordering::SeqCst) < awaited {
        spin_loop();
    }
}

/// What is written before the decisions, and after them.
pub(super) const MARKS: [&str; 2] = ["quiet-begins", "quiet-ends"];

/// The system calls between the two marks, of any thread.
pub(super) fn between_marks(trace: &str) -> Result<Vec<&str>, String> {
    let lines: Vec<&str> = trace.lines().collect();
    let place = |mark: &str| {
        let mark = format!("\"{mark}\"");
        let found = lines.iter().position(|line| line.contains(&mark));
        found.ok_or_else(|| format!("the trace has no {mark}"))
    };
    let (begin, end) = (place(MARKS[0])?, place(MARKS[1])?);
    let between = lines.get(begin + 1..end).ok_or("the marks are in the wrong order")?;
    Ok(between.iter().copied().filter(|line| is_call(line)).collect())
}

/// Signals and ends of threads are no calls.
fn is_call(line: &str) -> bool {
    let after_number = line.trim_start().trim_start_matches(|character: char| character.is_ascii_digit());
    !after_number.trim_start().starts_with(['-', '+'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_read_as_it_was_said() {
        let counted =
            Counted { decisions: 6, admitted: 5, allocations: 4, inserts: 3, shared: 2, retries: 1 };
        let line = counted.words().map(|word| word.to_string()).join(" ");
        assert_eq!(Counted::read(&line), Ok(counted));
        assert!(Counted::read("1 2 3").is_err() && Counted::read("").is_err());
    }

    const QUIET: &str = "\
7 write(3, \"quiet-begins\", 12) = 12
7 --- SIGALRM {si_signo=SIGALRM} ---
7 write(3, \"quiet-ends\", 10) = 10
7 exit_group(0) = ?
7 +++ exited with 0 +++
";

    #[test]
    fn only_calls_between_the_marks_count() {
        assert_eq!(between_marks(QUIET), Ok(vec![]));
        let call = "8 futex(0x7f00, FUTEX_WAIT, 1, NULL <unfinished ...>";
        let loud = QUIET.replace("7 ---", &format!("{call}\n7 ---"));
        assert_eq!(between_marks(&loud), Ok(vec![call]));
    }

    #[test]
    fn a_trace_without_marks_proves_nothing() {
        assert!(between_marks("7 exit_group(0) = ?\n").is_err());
        let ends_first: String = QUIET.lines().rev().map(|line| format!("{line}\n")).collect();
        assert!(between_marks(&ends_first).is_err());
    }
}

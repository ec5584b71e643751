//! `Zone`, the default store, beside governor, throttlecrab and our own `Map`, in one run.
//!
//! A key is at hand when it is asked about, as in a server that has just read it: few keys lie ready, many are
//! written into a buffer, and what only that costs is a row of its own; nothing is subtracted.
//! `zone SECTION...` measures only these, `--plot` draws what a decision costs by the number of keys, and
//! `--instructions` counts with valgrind instead.

mod curve;
mod instructions;
mod sides;
mod states;
mod table;
mod turnover;
mod visits;
mod worst;

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;

use harness::{Folder, Goal, Section, Sections, mebibytes, most_resident};
use tidegate::{Clock, CounterClock, Zone};

use self::sides::{
    BATCHES_OF_16, BATCHES_OF_64, DENIED, FEW_KEYS, FILE, GOVERNOR, Keys, MANY_KEYS, MAP, Side, ZONE, first,
    main_sides, on, other_sides, zone_bytes, zone_for,
};
use self::table::{Candidate, FEWEST_MET, ROUNDS, Table};
use self::visits::Visits;
use crate::promise::Promise;

/// How many threads decide at the same time, in one table after the other.
const THREADS: [usize; 2] = [1, 2];

const MILLION: u32 = 1_000_000;

const IDEAL: &str = "(nothing shared: hash and clock only)";
/// Each side, and its name with two threads.
const TWICE: [(&str, &str); 5] = [
    (IDEAL, "nothing, two"),
    (ZONE, "zone, two"),
    (BATCHES_OF_16, "batches, two"),
    (MAP, "map, two"),
    (GOVERNOR, "governor, two"),
];

/// Whether a picture is drawn is all that sections have to know.
const SECTIONS: [Section<bool>; 6] = [
    ("hot", "one hot key, and two in turn", |_| Ok(hot())),
    ("million", "1,000,000 keys: one by one, in batches, in a file; what a second thread is worth", |_| {
        Ok(million())
    }),
    ("states", "states of more than one word, in memory and in a file; a start with a full file", |_| {
        Ok(states::run())
    }),
    ("curve", "1,000 to 10,000,000 keys", |plot| curve::run(*plot)),
    ("memory", "resident memory while keys come and go, in processes of their own", |_| Ok(turnover::run())),
    ("worst", "the worst call while keys come and go", |_| Ok(worst::run())),
];

/// Runs the bench, or what a part of it needs in a process of its own.
pub(crate) fn run(arguments: &[&str]) -> ExitCode {
    match arguments {
        ["resident", name] => turnover::print_one(name),
        ["decide", name, decisions] => instructions::decide(name, decisions),
        ["--instructions"] => instructions::compare(),
        _ => match Sections::read("zone", arguments, &SECTIONS, &["--plot"]) {
            Ok(sections) => {
                println!("{}", legend());
                let code = sections.run("zone", &SECTIONS, &sections.has("--plot"));
                eprintln!(
                    "zone: at most {} resident",
                    most_resident().map_or_else(|problem| problem, mebibytes)
                );
                code
            }
            Err(usage) => {
                eprintln!("{usage} | zone --instructions");
                ExitCode::from(2)
            }
        },
    }
}

/// A folder beside this program, which is in the target folder: a file there is on a disk.
fn folder() -> Folder {
    let program = env::current_exe().expect("a program knows where it is");
    Folder::within(program.parent().unwrap_or(Path::new(".")), "bench-zone")
}

/// Measures each side with one thread and with two, and prints a table for each. Returns the first.
fn measure(sides: &[Side<'_>], visits: &Visits, title: &str) -> Table {
    let [alone, _] = THREADS.map(|threads| {
        let candidates: Vec<_> = sides.iter().map(|side| Candidate::new(side, threads, visits)).collect();
        let table = Table::measure(&candidates);
        table.print(&format!("{title}, {threads} thread(s)"));
        table
    });
    alone
}

/// One hot key, and two in turn: a thread remembers where the last key of a limiter was, and not the one before.
fn hot() -> Vec<Goal> {
    println!("not measured here: making the keys, which are at hand; newcomers\n");
    let [allowed, denied] = [(FEW_KEYS, "allowed"), (DENIED, "denied")].map(|(promise, kind)| {
        let promise = Promise::read(promise);
        let [one, _] = [(1, "one hot key"), (2, "two hot keys in turn")].map(|(count, title)| {
            let (keys, visits) = (first(count), Visits::in_turn(count));
            let keys = Keys::Ready(&keys);
            let mut sides = main_sides(&zone_for(count, promise), promise, count, keys);
            sides.extend(other_sides(promise, count, keys));
            measure(&sides, &visits, &format!("{title}, {kind}, {promise}")).ratio(ZONE, GOVERNOR)
        });
        one
    });
    vec![
        Goal::at_most("zone/hot-allowed", allowed, 0.7, 0.5),
        Goal::at_most("zone/hot-denied", denied, 0.7, 0.5),
    ]
}

/// A million keys: uniform and zipf, one thread and two, one by one, in batches, and in a file.
fn million() -> Vec<Goal> {
    println!("not measured here: newcomers (each key was met before the first round and stays live)\n");
    let folder = folder();
    let promise = Promise::read(MANY_KEYS);
    let zone = zone_for(MILLION, promise);
    let file = Zone::in_file(folder.file("zone"), zone_bytes(MILLION)).expect("a new file");
    let file = on(&file, promise);
    let mut sides = main_sides(&zone, promise, MILLION, Keys::Written);
    sides.push(Side::in_batches(BATCHES_OF_16, 16, zone.clone()));
    sides.push(Side::in_batches(BATCHES_OF_64, 64, zone));
    sides.push(Side::new(FILE, Keys::Written, move |key| file.admit(key).is_allowed()).meet(MILLION));
    sides.extend(other_sides(promise, MILLION, Keys::Written));
    let uniform = Visits::uniform(MILLION);
    let alone = measure(&sides, &uniform, &format!("{MILLION} keys, uniform, {MANY_KEYS}"));
    measure(&sides, &Visits::zipf(MILLION), &format!("{MILLION} keys, zipf(1.0), {MANY_KEYS}"));
    let of_ideal = second_thread(&sides, &uniform);
    vec![
        Goal::at_most("zone/million-uniform", alone.ratio(ZONE, GOVERNOR), 0.45, 0.33),
        Goal::at_most("zone/batches-of-16", alone.ratio(BATCHES_OF_16, GOVERNOR), 0.2, 0.1),
        Goal::at_most("zone/in-a-file", alone.ratio(FILE, GOVERNOR), 0.6, 0.45),
        Goal::at_least("zone/two-threads-of-ideal", of_ideal, 0.8, 1.0),
    ]
}

/// How much more two threads of the zone decide than one, divided by how much more those do that share nothing.
///
/// Decisions per second follow from the CPU time of a decision, as if both threads always had a processor each; by
/// wall time they also wait for one on a busy machine.
fn second_thread(sides: &[Side<'_>], visits: &Visits) -> f64 {
    let hasher = RandomState::new();
    let ideal = Side::new(IDEAL, Keys::Written, |key| {
        black_box(hasher.hash_one(key));
        black_box(CounterClock::new().now()).ticks() > 0
    });
    let mut candidates = Vec::new();
    for (name, two) in TWICE {
        let side = sides.iter().chain([&ideal]).find(|side| side.name == name).expect("it is there");
        candidates.push(Candidate::new(side, 1, visits));
        candidates.push(Candidate { name: two, ..Candidate::new(side, 2, visits) });
    }
    let table = Table::measure(&candidates);
    let gain = |(one, two): (&str, &str)| 2.0 * table.ratio(one, two);
    println!("decisions per second with 2 threads divided by those with 1, keys uniform");
    println!(
        "{:<40} {:>9} {:>9} {:>4} {:>7} {:>8} {:>8}",
        "", "ns CPU, 1", "ns CPU, 2", "met", "gain", "of ideal", "by wall"
    );
    for (name, two) in TWICE {
        println!(
            "{name:<40} {:>9.1} {:>9.1} {:>4} {:>7.2} {:>8.2} {:>8.2}",
            table.cpu(name),
            table.cpu(two),
            table.met(two),
            gain((name, two)),
            gain((name, two)) / gain(TWICE[0]),
            table.compare(name, two, |sample| sample.wall),
        );
    }
    println!();
    gain(TWICE[1]) / gain(TWICE[0])
}

/// The meaning of the columns of the tables.
fn legend() -> String {
    format!(
        "medians of {ROUNDS} interleaved rounds; a clock is read for each decision, or batch of them\n\
         ns CPU: time on processors, of all threads, per decision\n\
         ns wall: less waiting for a processor; with 2 threads that of a round divided by the decisions of both\n\
         met: rounds in which all threads had a processor most of the time. Only these count, if they are \
         {FEWEST_MET} or more;\n  fewer are of threads that sleep at a lock, or of a machine that is too busy to tell\n\
         \u{f7} governor: CPU time divided by that of governor's default in the same round, median of the rounds\n"
    )
}

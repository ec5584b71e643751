//! The process that is killed.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::thread;

use conformance::random::Random;
use tidegate::{Limiter, MINUTE, SECOND, Zone};

use crate::Outcome;
use crate::account::Bucket;
use crate::number;

/// The name of this part.
pub(crate) const PART: &str = "zone-kill-part";

pub(super) const KEYS: u64 = 1000;
const ZONE_BYTES: usize = 1 << 18;
const THREADS: u64 = 2;

/// Under the first a key is done for nearly the whole drill after its burst, under the last it comes back at once.
pub(super) const LIMITS: [Bucket; 4] = [
    Bucket::new(5, MINUTE, 5),
    Bucket::new(2, SECOND, 5),
    Bucket::new(20, SECOND, 10),
    Bucket::new(100, SECOND, 3),
];

/// What is promised to a key.
pub(super) fn limit_of(key: usize) -> &'static Bucket {
    &LIMITS[key % LIMITS.len()]
}

/// Asks and writes until it is killed, or no process reads any more.
pub(crate) fn part(arguments: &[String]) -> Outcome {
    let file = arguments.first().ok_or("the first argument is a file")?;
    let seed: u64 = number(arguments, 1)?;
    let zone = Zone::in_file(file, ZONE_BYTES).map_err(|error| error.to_string())?;
    let limiters = LIMITS.map(|bucket| Limiter::on(&zone, &bucket.limit().to_string(), bucket.limit()));
    let asking = |number: u64| ask(&limiters, Random::new(seed.wrapping_add(number)));
    thread::scope(|scope| {
        let asking = &asking;
        let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || asking(number))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })
}

fn ask(limiters: &[Limiter], mut random: Random) -> Outcome {
    // Not through the buffer of `io::stdout`: each key is to be in the pipe before the next is asked for.
    let output = io::stdout().as_fd().try_clone_to_owned().map_err(|error| error.to_string())?;
    let mut output = File::from(output);
    loop {
        let key = random.between(0, KEYS - 1);
        if limiters[key as usize % limiters.len()].admit(&key.to_le_bytes()[..]).is_allowed() {
            output.write_all(&(key as u32).to_le_bytes()).map_err(|error| error.to_string())?;
        }
    }
}

//! Looks at this process ten times a second.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use harness::{Stopwatch, pause, resident};
use tidegate_redis::RedisStore;

const EVERY: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);
/// Looks before memory is compared: until then everything is used for the first time.
const WARM: usize = 10;
/// How the kernel calls a connection that is open on both sides.
const ESTABLISHED: &str = "01";

/// One look.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Duration,
    resident: u64,
    /// Open connections to the Redis.
    connections: u64,
    /// Attempts to connect so far.
    connects: u64,
}

/// All looks.
#[derive(Debug)]
pub(super) struct Samples(Vec<Sample>);

/// The sampling thread.
pub(super) struct Sampler {
    is_over: Arc<AtomicBool>,
    looking: JoinHandle<Result<Vec<Sample>, String>>,
}

impl Sampler {
    /// Begins to look.
    pub(super) fn start(store: RedisStore) -> Result<Sampler, String> {
        let url = store.url().to_string();
        let port = url.rsplit_once(':').and_then(|(_, port)| port.trim_end_matches('/').parse::<u16>().ok());
        let port = port.ok_or_else(|| format!("no port in {url}"))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let looking = thread::spawn(move || {
            let (mut samples, watch) = (Vec::new(), Stopwatch::start());
            while !ends.load(Ordering::Relaxed) {
                let table = fs::read_to_string("/proc/net/tcp").map_err(|error| error.to_string())?;
                let (resident, connections) = (resident()?, connections_to(port, &table));
                let (at, connects) = (watch.elapsed(), store.status().connects);
                samples.push(Sample { at, resident, connections, connects });
                pause(EVERY);
            }
            Ok(samples)
        });
        Ok(Sampler { is_over, looking })
    }

    pub(super) fn finish(self) -> Result<Samples, String> {
        self.is_over.store(true, Ordering::Relaxed);
        self.looking.join().map_err(|_| "the sampling thread has panicked".to_owned())?.map(Samples)
    }
}

impl Samples {
    pub(super) fn most_connections(&self) -> u64 {
        self.0.iter().map(|sample| sample.connections).max().unwrap_or_default()
    }

    pub(super) fn connects(&self) -> u64 {
        self.0.last().map_or(0, |sample| sample.connects)
    }

    pub(super) fn most_connects_in_a_second(&self) -> u64 {
        let in_a_second = self.0.iter().enumerate().map(|(place, first)| {
            let within = self.0[place..].iter().take_while(|later| later.at - first.at <= SECOND);
            within.last().map_or(0, |last| last.connects - first.connects)
        });
        in_a_second.max().unwrap_or_default()
    }

    /// The longest time between two looks.
    pub(super) fn longest_gap(&self) -> Duration {
        self.0.windows(2).map(|pair| pair[1].at - pair[0].at).max().unwrap_or_default()
    }

    /// By how much memory grew after the beginning.
    pub(super) fn growth(&self) -> u64 {
        let first = self.0.get(WARM).or(self.0.last()).map_or(0, |sample| sample.resident);
        let most = self.0.iter().map(|sample| sample.resident).max().unwrap_or_default();
        most.saturating_sub(first)
    }
}

/// How many connections lead to a port, in the kernel's table.
fn connections_to(port: u16, table: &str) -> u64 {
    let port = format!(":{port:04X}");
    let is_one = |line: &&str| {
        let mut words = line.split_whitespace().skip(2);
        words.next().is_some_and(|remote| remote.ends_with(&port)) && words.next() == Some(ESTABLISHED)
    };
    table.lines().filter(is_one).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_open_connections_to_the_port_count() {
        let table = "  sl  local_address rem_address   st\n\
                     0: 0100007F:1F90 0100007F:18EB 01 x\n\
                     1: 0100007F:18EB 0100007F:1F90 01 x\n\
                     2: 0100007F:1F91 0100007F:18EB 06 x\n";
        assert_eq!(connections_to(6379, table), 1);
        assert_eq!(connections_to(8080, table), 1);
    }

    #[test]
    fn the_busiest_second_is_found_wherever_it_begins() {
        let sample = |place: u64, at| Sample {
            at: Duration::from_millis(at),
            resident: 0,
            connections: 0,
            connects: place.saturating_sub(14),
        };
        let samples = Samples((0..30).map(|place| sample(place, 100 * place)).collect());
        assert_eq!((samples.most_connects_in_a_second(), samples.connects()), (10, 15));
        assert_eq!(samples.longest_gap(), Duration::from_millis(100));
        let late = Samples(vec![sample(14, 0), sample(20, 900), sample(29, 2000)]);
        assert_eq!(late.most_connects_in_a_second(), 6);
    }
}

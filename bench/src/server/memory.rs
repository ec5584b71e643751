//! What is resident of a whole server after a thousand keys and after three million, each once.
//!
//! Our zone has its configured size, and its pages become resident as keys come; what counts as growth is
//! everything else.

use std::fs;

use harness::Goal;
use harness::load::{Clients, Until};

use super::CONNECTIONS;
use super::candidate::{Call, address};
use super::host::{Programs, Server};

const FEW: u32 = 1000;
const MANY: u32 = 3_000_000;
/// So many requests are made at a time: a whole number of pipelines.
const MADE_TOGETHER: u32 = 64_000;
const DEPTH: u32 = 64;
/// The default zone of a server.
const ZONE_BYTES: u64 = 64 << 20;

/// Bytes that are resident.
#[derive(Clone, Copy, Debug)]
struct Resident {
    all: u64,
    /// Pages of the mapping that has the most, up to the size of a zone.
    zone: u64,
}

/// Prints a table.
pub(super) fn run(programs: &Programs) -> Result<Vec<Goal>, String> {
    println!(
        "resident MiB of a whole server after {FEW} keys and after {MANY}, each asked about once over RESP"
    );
    println!("{:<44} {:>9} {:>9} {:>9} {:>12}", "", "few keys", "many", "growth", "bytes a key");
    let ours = match programs.tidegate() {
        Some(server) => Some(measure("tidegate CL.THROTTLE", &server, &Call::ClThrottle)?),
        None => None,
    };
    if let Some(server) = programs.redis() {
        measure("redis-server Lua GCRA", &server, &Call::Script(server.load_script()?))?;
    }
    if let Some(server) = programs.throttlecrab() {
        measure("throttlecrab THROTTLE", &server, &Call::Throttle)?;
    }
    println!();
    let resident = ours.map_or(f64::NAN, |(_, after)| mebibytes(after.all));
    let growth = ours.map_or(f64::NAN, |(before, after)| after.rest() - before.rest());
    if let Some((before, after)) = ours {
        let [before, after] = [before, after].map(|resident| mebibytes(resident.zone));
        println!("of tidegate, the pages of its zone: {before:.1} MiB, then {after:.1} MiB\n");
    }
    Ok(vec![
        Goal::at_most("server/resident", resident, 96.0, 80.0),
        Goal::at_most("server/resident-growth", growth, 8.0, 2.0),
    ])
}

/// What is resident after few keys and after many; prints it.
fn measure(name: &str, server: &Server, call: &Call) -> Result<(Resident, Resident), String> {
    eprintln!("server memory: {name}");
    let mut clients = Clients::connect(address(server, call)?, CONNECTIONS, &call.scanner())?;
    let mut ask = |from: u32, to: u32| {
        let mut requests = call.requests_about(from..to);
        let depth = DEPTH.min(to - from);
        clients.closed(&mut requests, depth as usize, Until::Requests(u64::from(to - from)))
    };
    ask(0, FEW).map_err(|problem| format!("{name}: {problem}"))?;
    let few = Resident::of(server)?;
    for from in (0..MANY).step_by(MADE_TOGETHER as usize) {
        ask(from, MANY.min(from + MADE_TOGETHER)).map_err(|problem| format!("{name}: {problem}"))?;
    }
    let many = Resident::of(server)?;
    let (before, after) = (mebibytes(few.all), mebibytes(many.all));
    let (growth, per_key) = (after - before, many.all as f64 / f64::from(MANY));
    println!("{name:<44} {before:>9.1} {after:>9.1} {growth:>9.1} {per_key:>12.1}");
    Ok((few, many))
}

impl Resident {
    fn of(server: &Server) -> Result<Resident, String> {
        let maps = fs::read_to_string(format!("/proc/{}/smaps", server.pid));
        let maps = maps.map_err(|error| format!("no maps of a server: {error}"))?;
        Ok(Resident { all: server.resident()?, zone: resident_of_largest(&maps).min(ZONE_BYTES) })
    }

    /// MiB that are not the zone's.
    fn rest(self) -> f64 {
        mebibytes(self.all.saturating_sub(self.zone))
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Resident bytes of the mapping in an `smaps` that has the most of them.
fn resident_of_largest(maps: &str) -> u64 {
    let kib = |line: &str| line.strip_prefix("Rss:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok();
    maps.lines().filter_map(kib).max().unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_is_the_largest_mapping() {
        let maps = "55d0-55d1 r--p 00000000 fe:00 42 /bin/tidegate\nSize:   512 kB\nKernelPageSize:  4 kB\nRss:  512 kB\n\
                    7f00-7f01 rw-p 00000000 00:00 0\nSize:   65536 kB\nRss:    2048 kB\nPss:  2048 kB\n";
        assert_eq!(resident_of_largest(maps), 2 << 20);
        assert_eq!(resident_of_largest(""), 0);
    }
}

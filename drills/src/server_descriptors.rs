//! A server that may open few files meets many who want to come in.
//!
//! It has 256 descriptors, and 2,000 clients connect and stay. There is no descriptor for most of them, which a server
//! may neither end by nor spin over, and open connections go on being served. Then all leave, and the next who
//! comes is served at once. The second time no process reads what the server logs: its standard error is a
//! pipe without a reader.

mod storm;

use std::time::Duration;

use crate::Outcome;
use harness::{Complaints, Options, Report, Stopwatch, pause, raise_open_files, thousands};
use storm::{Client, Server, Storm};

/// Files that the server may have open.
const DESCRIPTORS: u64 = 256;
const CLIENTS: u64 = 2_000;
/// Storms that one server survives.
const STORMS: u64 = 3;
/// For how long it has no descriptors left.
const STARVED: Duration = Duration::from_secs(2);
/// What it may compute in that time: a tenth of it.
const MOST_PROCESSOR_TIME: Duration = Duration::from_millis(200);
/// How soon a new client is served when all have left.
const SOON: Duration = Duration::from_secs(1);
/// Descriptors that are still in use when all have left: those of connections that the server has just not closed yet.
const SOME: usize = 4;

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome {
    let descriptors = raise_open_files()?;
    if descriptors < CLIENTS + 1000 {
        return Err(format!("{descriptors} open files are too few; `ulimit -Hn` says how many there may be"));
    }
    for (complaints, name) in [(Complaints::Read, "read"), (Complaints::Unread, "not read")] {
        let mut server = Server::start(DESCRIPTORS, complaints)?;
        report.fact(format!("a server with {DESCRIPTORS} descriptors, its complaints {name}"));
        let before = server.descriptors()?;
        for number in 1..=STORMS {
            weather(options.scaled(CLIENTS), number, &mut server, report)?;
        }
        let after = descriptors_at_rest(&server, before)?;
        report.claim(
            after <= before + SOME,
            "no descriptor is lost",
            format!("{after} are open, {before} were at the start"),
        );
    }
    Ok(())
}

/// One storm from its first client to the first that comes after it.
fn weather(clients: u64, number: u64, server: &mut Server, report: &mut Report) -> Outcome {
    let mut inside = Client::of_resp(server.resp)?;
    inside.ask()?;
    let storm = Storm::of(clients, &[server.resp, server.http])?;
    let computed = server.processor_time()?;
    pause(STARVED);
    let computed = server.processor_time()?.saturating_sub(computed);
    report.fact(format!("storm {number}: {} came, {} is the server's most", thousands(clients), DESCRIPTORS));
    report.claim(server.is_running(), "it runs while there are no descriptors", server.id());
    report.claim(
        computed <= MOST_PROCESSOR_TIME,
        "it does not spin",
        format!("{} ms of processor time in {STARVED:?}", computed.as_millis()),
    );
    let answered = inside.ask();
    report.claim(answered.is_ok(), "open connections are served", format!("{answered:?}"));
    storm.leave();
    let watch = Stopwatch::start();
    for (front, client) in [("RESP", Client::of_resp(server.resp)), ("HTTP", Client::of_http(server.http))] {
        let answered = client.and_then(|mut client| client.ask());
        let waited = watch.elapsed();
        report.claim(
            answered.is_ok() && waited <= SOON,
            "a later client is served at once",
            format!("{front}, {answered:?} after {} ms", waited.as_millis()),
        );
    }
    report.claim(server.is_running(), "it runs when all have left", server.id());
    Ok(())
}

/// How many descriptors are open when the server has noticed that all have left.
fn descriptors_at_rest(server: &Server, before: usize) -> Result<usize, String> {
    for _ in 0..50 {
        if server.descriptors()? <= before + SOME {
            break;
        }
        pause(Duration::from_millis(100));
    }
    server.descriptors()
}

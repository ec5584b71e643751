//! Clients of four servers ask one Redis about the same key at the same moment.
//!
//! 64 clients, each with a connection of its own to one of four servers, wait for each other and ask all at once, a
//! thousand times about another key. Nothing is regained meanwhile, so exactly the burst passes, in whatever order.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;

use harness::{Complaints, Options, Progress, Report, Server, beside, thousands};
use testbed::{Connection, Flavour, Redis, Reply};

use crate::Outcome;

const ROUNDS: u64 = 1000;
const SERVERS: usize = 4;
const CLIENTS: usize = 64;
/// How many pass, by turns.
const BURSTS: [u64; 5] = [10, 1, 33, 63, 64];
/// A machine on which 64 threads begin at once is slower than a limiter may be.
const DEADLINE: &str = "5s";

/// The decision that one client got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decided {
    is_allowed: bool,
    /// Whether the Redis has decided; it is not said by `CL.THROTTLE`.
    is_by_redis: Option<bool>,
}

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome {
    let rounds = options.counted(ROUNDS);
    let redis = Redis::start(Flavour::Redis7);
    let servers = (0..SERVERS).map(|_| serve(&redis)).collect::<Result<Vec<_>, _>>()?;
    let addresses = servers.iter().map(|server| server.address("resp")).collect::<Result<Vec<_>, _>>()?;
    let barrier = Barrier::new(CLIENTS);
    let admitted: Vec<AtomicU64> = (0..rounds).map(|_| AtomicU64::new(0)).collect();
    let (not_by_redis, problems) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let progress = Progress::new(report.name(), rounds);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (address, barrier, progress) = (addresses[client % SERVERS], &barrier, &progress);
            let (admitted, not_by_redis, problems) = (&admitted, &not_by_redis, &problems);
            scope.spawn(move || {
                let mut connection = Connection::open(address);
                for (round, admitted) in (0..).zip(admitted) {
                    barrier.wait();
                    let connection = connection.as_mut().map_err(|error| error.to_string());
                    match connection.and_then(|connection| ask(connection, round)) {
                        Ok(decided) => {
                            admitted.fetch_add(u64::from(decided.is_allowed), Ordering::Relaxed);
                            not_by_redis
                                .fetch_add(u64::from(decided.is_by_redis == Some(false)), Ordering::Relaxed);
                        }
                        Err(problem) => problems
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push(format!("round {round}: {problem}")),
                    }
                    if client == 0 {
                        progress.at(round + 1, "");
                    }
                }
            });
        }
    });
    let problems = problems.into_inner().unwrap_or_else(PoisonError::into_inner);
    let admitted = admitted.into_iter().map(AtomicU64::into_inner).collect::<Vec<_>>();
    say(&admitted, (not_by_redis.into_inner(), &problems), report);
    let redis_keys = redis.command(&["DBSIZE"]);
    report.fact(format!("{redis_keys} keys in the Redis, {} of its clients", redis.clients()));
    Ok(())
}

fn say(admitted: &[u64], (not_by_redis, problems): (u64, &[String]), report: &mut Report) {
    report.fact(format!(
        "{} rounds of {CLIENTS} clients on {SERVERS} servers, {} admitted",
        thousands(admitted.len() as u64),
        thousands(admitted.iter().sum()),
    ));
    let is_wrong = |(round, admitted): &(u64, &u64)| **admitted != burst(*round);
    let wrong: Vec<_> = (0..).zip(admitted).filter(is_wrong).collect();
    let first = wrong.first().map(|(round, admitted)| {
        format!(", the first is round {round}: {admitted} of {} were admitted", burst(*round))
    });
    report.claim(
        wrong.is_empty(),
        "exactly the burst passes in every round",
        format!("{} rounds otherwise{}", wrong.len(), first.unwrap_or_default()),
    );
    report.claim(not_by_redis == 0, "the Redis decides everything", format!("{not_by_redis} otherwise"));
    let first = problems.first().map(String::as_str).unwrap_or_default();
    report.claim(problems.is_empty(), "everybody is answered", format!("{} not {first}", problems.len()));
}

fn burst(round: u64) -> u64 {
    BURSTS[(round % BURSTS.len() as u64) as usize]
}

fn serve(redis: &Redis) -> Result<Server, String> {
    let mut command = Command::new(beside("tidegate", "tidegate-server")?);
    command.args(["serve", "--resp", "127.0.0.1:0", "--http", "off", "--json", "--store-kind", "redis"]);
    command.args(["--store-url", &redis.url(), "--store-nodes", &SERVERS.to_string()]);
    command.args(["--store-deadline", DEADLINE, "--on-store-failure", "closed"]);
    Server::start(&mut command, Complaints::Read)
}

/// Asks about the key of this round, in one of two languages.
fn ask(connection: &mut Connection, round: u64) -> Result<Decided, String> {
    let (key, burst) = (format!("round {round}"), burst(round));
    let is_throttle = round.is_multiple_of(4);
    let reply = if is_throttle {
        connection.call(&["CL.THROTTLE", &key, &(burst - 1).to_string(), "1", "86400"])
    } else {
        connection.call(&["TG.TAKE", &key, "LIMIT", &format!("1/d burst {burst}")])
    };
    let reply = reply.map_err(|error| error.to_string())?;
    let decided = if is_throttle { of_throttle(&reply) } else { of_take(&reply) };
    decided.ok_or_else(|| reply.text())
}

fn of_throttle(reply: &Reply) -> Option<Decided> {
    let is_limited = reply.parts().first()?.number()?;
    Some(Decided { is_allowed: is_limited == 0, is_by_redis: None })
}

fn of_take(reply: &Reply) -> Option<Decided> {
    let field = |name: &str| {
        let pair = reply.parts().chunks_exact(2).find(|pair| pair[0].text() == name)?;
        Some(pair[1].clone())
    };
    let is_allowed = field("allowed")?.number()? == 1;
    Some(Decided { is_allowed, is_by_redis: Some(field("decided_by")?.text() == "redis") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_languages_are_understood() {
        let bulk = |text: &str| Reply::Bulk(text.as_bytes().to_vec());
        let take = Reply::Array(vec![bulk("allowed"), Reply::Integer(1), bulk("decided_by"), bulk("local")]);
        assert_eq!(of_take(&take), Some(Decided { is_allowed: true, is_by_redis: Some(false) }));
        let throttle = Reply::Array([1, 10, 0, 5, 9].map(Reply::Integer).to_vec());
        assert_eq!(of_throttle(&throttle), Some(Decided { is_allowed: false, is_by_redis: None }));
        assert_eq!(of_take(&Reply::Error("no".to_owned())), None);
    }
}

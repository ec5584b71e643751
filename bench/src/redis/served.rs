//! Our server with its limits in a Redis, beside a plain script that is called once for each key.
//!
//! Both servers are on one core, the load is on another. Measured are the CPU times of the Redis and of our server for each
//! request. With `TIDEGATE_BEFORE=PROGRAM` another build of our server is measured in the same rounds, and the ratios of
//! both builds are goals. Not measured: networks, keys that come and go.

use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::load::{Clients, Requests, Scanner, Until, command, shuffled};
use harness::{Goal, median};
use testbed::Flavour;

use super::ROOMY;
use super::sides::{Keys, MANY, Question, Who};
use crate::server::CONNECTIONS;
use crate::server::host::{Server, build_tidegate};

const ROUNDS: usize = 7;
const TURN: Duration = Duration::from_millis(400);
/// The number of requests in flight on each connection, and of callers that wait for each reply.
const DEPTH: usize = 16;
const ALONE: usize = 1;
/// The variable that names another build of our server.
const BEFORE: &str = "TIDEGATE_BEFORE";
/// Under these rules no key is denied here.
const RULES: &str = "[[rule]]\nname = 'user'\nkey = ['user']\nlimit = '100/h burst 1000'\n\
                     [[rule]]\nname = 'site'\nkey = ['user']\nlimit = '200/h burst 2000'\n";

const PLAIN: &str = "plain script, called once for each key";
const THROTTLE: &str = "CL.THROTTLE";
const ADMIT: &str = "TG.ADMIT with two rules";

/// Something to be measured.
struct Side<'a> {
    name: &'static str,
    /// The build of our server that is asked; nothing, if the Redis is.
    build: Option<&'static str>,
    server: Option<&'a Server>,
    clients: Clients,
    requests: Requests,
    samples: Vec<Sample>,
}

/// The figures of one turn, each for one request, in microseconds.
#[derive(Clone, Copy)]
struct Sample {
    redis: f64,
    server: f64,
    latency: f64,
}

/// Prints a table for requests in a pipeline, and one for callers that wait for each reply.
pub(super) fn run(&flavour: &Flavour) -> Result<Vec<Goal>, String> {
    let redis = Server::redis(flavour)?;
    let config = format!(
        "[store]\nkind = 'redis'\nurl = 'redis://{}'\ndeadline = '1s'\nprefix = 'new:'\n{RULES}",
        redis.resp
    );
    let ours = Server::tidegate(&build_tidegate()?, Some(&config))?;
    let before = match std::env::var_os(BEFORE).map(PathBuf::from) {
        Some(program) => Some(start_before(&program, &config)?),
        None => None,
    };
    let mut sides = vec![Side::plain(&redis)?];
    for (build, server) in [("now", Some(&ours)), ("before", before.as_ref())] {
        let Some(server) = server else { continue };
        sides.push(Side::of(server, (THROTTLE, build), throttle)?);
        sides.push(Side::of(server, (ADMIT, build), admit)?);
    }
    for side in &mut sides {
        side.clients.closed(&mut side.requests, DEPTH, Until::Requests(2 * u64::from(MANY)))?;
    }
    measure(&mut sides, &redis, DEPTH)?;
    let of = |name, build, of: fn(&Sample) -> f64| figures(&sides, name, build, of);
    let ratio = |one: Vec<f64>, other: Vec<f64>| median(one.iter().zip(&other).map(|(a, b)| a / b));
    let (redis_cpu, server_cpu) = (|sample: &Sample| sample.redis, |sample: &Sample| sample.server);
    let plain = of(PLAIN, None, redis_cpu);
    let mut goals = vec![Goal::at_most(
        "redis/served: CPU of Redis for CL.THROTTLE \u{f7} plain script",
        ratio(of(THROTTLE, Some("now"), redis_cpu), plain),
        0.7,
        0.6,
    )];
    if before.is_some() {
        let both = |name| ratio(of(name, Some("now"), server_cpu), of(name, Some("before"), server_cpu));
        goals.push(Goal::at_most(
            "redis/served: CPU of the server for CL.THROTTLE \u{f7} before",
            both(THROTTLE),
            0.57,
            0.5,
        ));
        goals.push(Goal::at_most(
            "redis/served: CPU of the server for TG.ADMIT \u{f7} before",
            both(ADMIT),
            0.56,
            0.5,
        ));
    }
    sides.iter_mut().for_each(|side| side.samples.clear());
    measure(&mut sides, &redis, ALONE)?;
    Ok(goals)
}

fn start_before(program: &Path, config: &str) -> Result<Server, String> {
    Server::tidegate(program, Some(&config.replace("'new:'", "'old:'")))
}

fn throttle(key: &str) -> Vec<u8> {
    command(&["CL.THROTTLE", key, "999", "100", "3600"])
}

fn admit(key: &str) -> Vec<u8> {
    command(&["TG.ADMIT", "user", key])
}

/// Measures all sides in turns, with so many requests in flight on each connection, and prints.
fn measure(sides: &mut [Side<'_>], redis: &Server, depth: usize) -> Result<(), String> {
    for round in 0..=ROUNDS {
        for side in &mut *sides {
            let sample = side.turn(redis, depth)?;
            if round > 0 {
                side.samples.push(sample);
            }
        }
    }
    println!(
        "limits in a Redis, pipeline {depth}, {CONNECTIONS} connections; \u{b5}s of CPU for each request"
    );
    println!("{:<46} {:>10} {:>10} {:>10}", "", "Redis", "server", "p50 \u{b5}s");
    for side in &*sides {
        let of = |of: fn(&Sample) -> f64| median(side.samples.iter().map(of));
        let name = side.build.map_or_else(|| side.name.to_owned(), |build| format!("{}, {build}", side.name));
        let (redis, server) = (of(|sample| sample.redis), of(|sample| sample.server));
        println!("{name:<46} {redis:>10.2} {server:>10.2} {:>10.0}", of(|sample| sample.latency));
    }
    println!();
    Ok(())
}

/// The figures of one side, round by round.
fn figures(sides: &[Side<'_>], name: &str, build: Option<&str>, of: fn(&Sample) -> f64) -> Vec<f64> {
    let side = sides.iter().find(|side| side.name == name && side.build == build);
    side.map_or_else(|| vec![f64::NAN], |side| side.samples.iter().map(of).collect())
}

impl<'a> Side<'a> {
    fn plain(redis: &Server) -> Result<Side<'a>, String> {
        let question = Question::new(Who::Plain, 'p', ROOMY, redis)?;
        let clients = Clients::connect(redis.resp, CONNECTIONS, &Scanner::any())?;
        let requests = question.requests(Keys::Many);
        Ok(Side { name: PLAIN, build: None, server: None, clients, requests, samples: Vec::new() })
    }

    fn of(
        server: &'a Server,
        (name, build): (&'static str, &'static str),
        write: impl Fn(&str) -> Vec<u8>,
    ) -> Result<Side<'a>, String> {
        let clients = Clients::connect(server.resp, CONNECTIONS, &Scanner::any())?;
        let requests = Requests::about(shuffled(MANY), write);
        let (build, server) = (Some(build), Some(server));
        Ok(Side { name, build, server, clients, requests, samples: Vec::new() })
    }

    fn turn(&mut self, redis: &Server, depth: usize) -> Result<Sample, String> {
        let spent = |server: &Server| server.cpu_time();
        let before = (spent(redis)?, self.server.map(spent).transpose()?.unwrap_or_default());
        let load = self.clients.closed(&mut self.requests, depth, Until::Elapsed(TURN))?;
        let after = (spent(redis)?, self.server.map(spent).transpose()?.unwrap_or_default());
        let each = |time: Duration| time.as_secs_f64() * 1e6 / load.tally.replies as f64;
        let (redis, server) =
            (each(after.0.saturating_sub(before.0)), each(after.1.saturating_sub(before.1)));
        Ok(Sample { redis, server, latency: load.latency(0.5) })
    }
}

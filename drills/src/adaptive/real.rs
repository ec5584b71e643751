//! A real HTTP service on this machine: twenty worker threads that become four, and twenty again.
//!
//! Requests come at random, at 130 % of what twenty threads can do, each with its work in the path, so that every run
//! has the same. The server stands behind the layer `ConcurrencyLimitLayer`; nothing of this was looked at when the algorithms'
//! constants were chosen.

mod load;
mod pool;
mod server;

use std::time::Duration;

use harness::{Options, Report};
use tidegate::ConcurrencyLimiter;
use tokio::runtime::Builder;
use tokio::time::sleep;

use super::contest::{ALGORITHMS, adapt};
use super::counted::{Best, Counted, Entry, HEADING, strict};
use crate::Outcome;
use load::{Ended, Request};
use pool::Pool;
use server::Server;

const WORKERS: [usize; 3] = [20, 4, 20];
/// What twenty threads do per second at 29 ms for each piece of work.
const CAPACITY: f64 = 20.0 / 0.029;
const DEADLINE: Duration = Duration::from_millis(150);
const PHASE: Duration = Duration::from_secs(15);
/// Fixed limits that are tried.
const FIXED: [u64; 6] = [4, 6, 10, 22, 28, 50];

pub(super) fn run(options: &Options, report: &mut Report) -> Outcome {
    let length = PHASE.mul_f64(options.scale).max(Duration::from_secs(1));
    let requests = load::schedule(options.seed, 1.3 * CAPACITY, 3 * length);
    report.fact(format!("real: 130 % load, 20 threads, then 4, then 20; {} requests", requests.len()));
    let mut best = [Best::default(); 3];
    for limit in FIXED {
        let phases = serve(ConcurrencyLimiter::at_most(limit), &requests, length)?;
        let good = [0, 1, 2].map(|phase| phases[phase].good);
        report.fact(format!("fixed limit {limit}: {good:?} answers in time"));
        for (best, good) in best.iter_mut().zip(good) {
            *best = best.or(limit, good);
        }
    }
    let best = strict(best);
    report.fact(HEADING);
    for algorithm in ALGORITHMS {
        let phases = serve(ConcurrencyLimiter::adaptive(adapt(algorithm, DEADLINE)), &requests, length)?;
        let entry = Entry {
            algorithm,
            seed: options.seed,
            best: &best,
            phases: &phases,
            deadline: DEADLINE,
            phase_length: length,
        };
        entry.lines(report);
        entry.claims("a real server", report);
    }
    Ok(())
}

/// One run of all three phases.
fn serve(places: ConcurrencyLimiter, requests: &[Request], length: Duration) -> Result<[Counted; 3], String> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| format!("a runtime: {error}"))?;
    let pool = Pool::start(WORKERS[0]);
    let ended = runtime.block_on(async {
        let server = Server::start(places, pool.desk(), DEADLINE).await.map_err(|error| error.to_string())?;
        let phases = async {
            for (phase, workers) in WORKERS.into_iter().enumerate() {
                pool.begin_phase(phase, workers);
                sleep(length).await;
            }
        };
        let (ended, ()) = tokio::join!(load::send(requests, server.address), phases);
        Ok::<_, String>(ended)
    })?;
    runtime.shutdown_background();
    count(requests, &ended, &pool.end(), length)
}

fn count(
    requests: &[Request],
    ended: &[Ended],
    finished: &[(usize, Duration)],
    length: Duration,
) -> Result<[Counted; 3], String> {
    let mut phases: [Counted; 3] = Default::default();
    for (request, ended) in requests.iter().zip(ended) {
        let phase = (request.at.as_secs_f64() / length.as_secs_f64()) as usize;
        let counted = &mut phases[phase.min(2)];
        counted.offered += 1;
        let is_good = match ended {
            Ok((200, took)) => *took <= DEADLINE,
            Ok((504, _)) => false,
            Ok((503, _)) => continue,
            Ok((status, _)) => return Err(format!("status {status} was not expected")),
            Err(error) => return Err(format!("a request failed: {error}")),
        };
        counted.admitted += 1;
        counted.good += u64::from(is_good);
        counted.late += u64::from(!is_good);
    }
    for (phase, took) in finished {
        phases[*phase].latencies.push(*took);
    }
    Ok(phases)
}

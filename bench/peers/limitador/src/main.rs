//! limitador's library, to be measured beside ours.
//!
//! `limitador-peer LIMITS` makes so many limits in one namespace: one for everybody, by address, and one for each
//! tenant, by user. Each line of its input is a number of requests, all of the first tenant; it makes them and
//! writes how many nanoseconds its thread spent on a processor.

use std::collections::HashMap;
use std::io::{self, BufRead as _, Write as _};

use limitador::RateLimiter;
use limitador::limit::{Context, Limit, Namespace};
use rustix::time::{ClockId, clock_gettime};

const NAMESPACE: &str = "api";
/// More than all rounds ask for.
const ROOMY: u64 = 1_000_000_000;
const SECONDS: u64 = 3600;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let limits: u32 = std::env::args().nth(1).ok_or("usage: limitador-peer LIMITS")?.parse()?;
    let limiter = limiter(limits)?;
    let namespace = Namespace::from(NAMESPACE);
    let context = request();
    for line in io::stdin().lock().lines() {
        let times: u32 = line?.trim().parse()?;
        let before = cpu_nanoseconds();
        for _ in 0..times {
            let answer = limiter.check_rate_limited_and_update(&namespace, &context, 1)?;
            if answer.limited || answer.counters.len() != 2 {
                return Err("not the answer that is measured".into());
            }
        }
        println!("{}", cpu_nanoseconds() - before);
        io::stdout().flush()?;
    }
    Ok(())
}

fn limiter(limits: u32) -> Result<RateLimiter, Failure> {
    let limiter = RateLimiter::new(10_000);
    limiter.add_limit(Limit::new(NAMESPACE, ROOMY, SECONDS, vec![], vec!["ip".try_into()?]));
    for tenant in 1..limits {
        let condition = format!("tenant == 'tenant{tenant:05}'");
        let conditions = vec![condition.as_str().try_into()?];
        limiter.add_limit(Limit::new(NAMESPACE, ROOMY, SECONDS, conditions, vec!["user".try_into()?]));
    }
    Ok(limiter)
}

fn request() -> Context<'static> {
    let known = [
        ("ip", "10.0.1.200"),
        ("method", "GET"),
        ("host", "api.example.com"),
        ("path", "/api/v1/orders/4217"),
        ("tenant", "tenant00001"),
        ("user", "ana"),
        ("plan", "free"),
        ("api_key", "team00001-k3y"),
    ];
    let known: HashMap<_, _> =
        known.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Context::from(known)
}

fn cpu_nanoseconds() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

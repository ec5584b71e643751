//! The checks of one server: version, role, eviction, clock and latency.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, PushInfo, Value};
use tokio::time::{Instant, timeout};

use super::{Finding, TIMEOUT};
use crate::dial::Dialer;
use crate::fault::{ErrorReply, Fault, describe};
use crate::options::Options;
use crate::url::{Address, Deployment};

/// The oldest supported version, as its first two numbers.
const OLDEST: (u32, u32) = (6, 2);
/// The clock difference above which a finding is reported.
const FAR_APART: Duration = Duration::from_secs(1);
/// The number of latency measurements.
const PINGS: usize = 20;

/// The clock of a server relative to this machine.
#[derive(Clone, Debug)]
pub(super) struct ServerClock {
    address: Address,
    /// The offset from this machine's clock, in microseconds.
    ahead: i128,
}

/// Examines a server. Returns its clock, if it was reached.
pub(super) async fn look(
    address: &Address,
    options: &Options,
    findings: &mut Vec<Finding>,
) -> Option<ServerClock> {
    let deaf = |_: PushInfo| Ok::<(), ()>(());
    let connecting = async { Dialer::new(options).connect(address, deaf).await };
    let mut connection = match timeout(TIMEOUT, connecting).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => {
            findings.push(Finding::bad("reach", describe(address, &error)));
            return None;
        }
        Err(_) => {
            findings.push(Finding::bad(
                "reach",
                format!("{address}: no answer; see whether the address is right"),
            ));
            return None;
        }
    };
    findings.push(Finding::good("reach", format!("{address} answers")));
    match ask(&mut connection, address, redis::cmd("INFO").arg("everything")).await {
        Ok(Value::VerbatimString { text, .. }) => about(address, &text, options, findings),
        Ok(Value::BulkString(text)) => about(address, &String::from_utf8_lossy(&text), options, findings),
        Ok(_) => findings.push(Finding::warning("version", format!("{address}: its INFO makes no sense"))),
        Err(why) => findings.push(Finding::warning(
            "version",
            format!("its version and memory cannot be seen: {why} (only the doctor needs INFO: +info)"),
        )),
    }
    distance(&mut connection, address, options, findings).await;
    clock(&mut connection, address, findings).await
}

async fn ask(
    connection: &mut MultiplexedConnection,
    address: &Address,
    command: &Cmd,
) -> Result<Value, String> {
    match timeout(TIMEOUT, connection.send_packed_command(command)).await {
        Ok(Ok(Value::ServerError(error))) => {
            Err(Fault::Refused(ErrorReply::new(address, &error)).to_string())
        }
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(describe(address, &error)),
        Err(_) => Err(format!("{address}: no answer")),
    }
}

/// Evaluates the reply to `INFO`.
fn about(address: &Address, text: &str, options: &Options, findings: &mut Vec<Finding>) {
    let field =
        |name: &str| text.lines().find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':'));
    findings.push(version(address, field("redis_version"), field("valkey_version")));
    findings.push(role(address, field("role"), field("redis_mode"), options));
    findings.push(eviction(address, field("maxmemory_policy"), field("maxmemory")));
    findings.push(replicas(address, field("connected_slaves"), options));
}

fn version(address: &Address, redis: Option<&str>, valkey: Option<&str>) -> Finding {
    if let Some(valkey) = valkey {
        return Finding::good("version", format!("{address} is Valkey {valkey}"));
    }
    let numbers = redis.and_then(|redis| {
        let mut parts = redis.split('.').map_while(|part| part.parse().ok());
        Some((parts.next()?, parts.next()?))
    });
    let shown = redis.unwrap_or("of an unknown version");
    match numbers {
        Some(numbers) if numbers >= OLDEST => Finding::good("version", format!("{address} is Redis {shown}")),
        Some(_) => Finding::bad(
            "version",
            format!("{address} is Redis {shown}, which is too old; run Redis 6.2 or later, or Valkey"),
        ),
        None => {
            Finding::warning("version", format!("{address} is Redis {shown}; 6.2 or later is known to do"))
        }
    }
}

fn role(address: &Address, role: Option<&str>, mode: Option<&str>, options: &Options) -> Finding {
    let wants_cluster = matches!(options.url.place, Deployment::Cluster(_));
    match (role, mode) {
        (Some("slave"), _) => Finding::bad(
            "role",
            format!(
                "{address} is a replica, which refuses to count; name its primary, or the Sentinels, in the URL"
            ),
        ),
        (_, Some("sentinel")) => Finding::bad(
            "role",
            format!(
                "{address} is a Sentinel; write redis+sentinel://{address}/SERVICE with the name of the service"
            ),
        ),
        (_, Some("cluster")) if !wants_cluster => Finding::bad(
            "role",
            format!("{address} is a node of a cluster; write redis+cluster://{address} in the URL"),
        ),
        _ => Finding::good("role", format!("{address} is a primary")),
    }
}

/// All keys have an expiry, so any policy that evicts such keys evicts these.
fn eviction(address: &Address, policy: Option<&str>, maxmemory: Option<&str>) -> Finding {
    let policy = policy.unwrap_or("unknown");
    let advice = "whoever was refused is admitted again when memory is full; forbid it: CONFIG SET maxmemory-policy noeviction";
    match (policy, maxmemory) {
        ("noeviction", _) => {
            Finding::good("eviction", format!("{address} forgets nothing when its memory is full"))
        }
        ("unknown", _) => Finding::warning(
            "eviction",
            format!(
                "{address} does not tell what it forgets when its memory is full; see that maxmemory-policy is noeviction"
            ),
        ),
        (_, None | Some("0")) => Finding::warning(
            "eviction",
            format!("{address} has maxmemory-policy {policy}, and no maxmemory yet: once it has, {advice}"),
        ),
        _ => Finding::bad("eviction", format!("{address} has maxmemory-policy {policy}: {advice}")),
    }
}

fn replicas(address: &Address, replicas: Option<&str>, options: &Options) -> Finding {
    let replicas: u32 = replicas.and_then(|replicas| replicas.parse().ok()).unwrap_or(0);
    match (&options.url.place, replicas) {
        (Deployment::Standalone(_), _) => Finding::good(
            "replicas",
            format!("{address} stands alone: while it is gone, rules decide by their on_store_failure"),
        ),
        (_, 0) => Finding::warning(
            "replicas",
            format!("{address} has no replica, so nobody takes over when it is gone; give it one"),
        ),
        (_, 1) => Finding::good("replicas", format!("{address} has 1 replica")),
        (_, replicas) => Finding::good("replicas", format!("{address} has {replicas} replicas")),
    }
}

/// Measures the round trip against the deadline.
async fn distance(
    connection: &mut MultiplexedConnection,
    address: &Address,
    options: &Options,
    findings: &mut Vec<Finding>,
) {
    let mut ways = Vec::with_capacity(PINGS);
    for _ in 0..PINGS {
        let begin = Instant::now();
        if let Err(why) = ask(connection, address, &redis::cmd("PING")).await {
            findings.push(Finding::warning("distance", why));
            return;
        }
        ways.push(begin.elapsed());
    }
    ways.sort_unstable();
    let (median, longest) = (ways[PINGS / 2], ways[PINGS - 1]);
    let seen = format!(
        "{address} is {median:.1?} away, {longest:.1?} at worst of {PINGS}; the deadline is {:?}",
        options.deadline
    );
    findings.push(if longest * 2 <= options.deadline {
        Finding::good("distance", seen)
    } else {
        Finding::warning(
            "distance",
            format!("{seen}; raise it, or move closer, or decisions will fail now and then"),
        )
    });
}

#[expect(clippy::disallowed_methods, reason = "the server's wall clock is compared with this one")]
async fn clock(
    connection: &mut MultiplexedConnection,
    address: &Address,
    findings: &mut Vec<Finding>,
) -> Option<ServerClock> {
    let before = SystemTime::now();
    let answer = ask(connection, address, &redis::cmd("TIME")).await;
    let after = SystemTime::now();
    let told = match answer {
        Ok(Value::Array(parts)) => {
            let number = |value: &Value| match value {
                Value::BulkString(text) => std::str::from_utf8(text).ok()?.parse::<i128>().ok(),
                _ => None,
            };
            number(parts.first()?)? * 1_000_000 + number(parts.get(1)?)?
        }
        Ok(_) => return None,
        Err(why) => {
            findings.push(Finding::warning(
                "clock",
                format!("its time cannot be seen: {why} (only the doctor needs TIME by itself)"),
            ));
            return None;
        }
    };
    let micros = |time: SystemTime| {
        time.duration_since(UNIX_EPOCH).map_or(0, |since| i128::try_from(since.as_micros()).unwrap_or(0))
    };
    let here = (micros(before) + micros(after)) / 2;
    Some(ServerClock { address: address.clone(), ahead: told - here })
}

/// Compares the clocks of all servers.
pub(super) fn compare(clocks: &[ServerClock], findings: &mut Vec<Finding>) {
    let far = i128::from(FAR_APART.as_secs()) * 1_000_000;
    for clock in clocks {
        let (address, seconds) = (&clock.address, clock.ahead as f64 / 1e6);
        findings.push(if clock.ahead.abs() < far {
            Finding::good("clock", format!("{address} and this machine agree within {FAR_APART:?}"))
        } else {
            Finding::warning("clock", format!("the clock of {address} is {seconds:+.1} s from this machine's; limits go by the server's, and windows begin by it: run NTP on both"))
        });
    }
    let (least, most) =
        (clocks.iter().map(|clock| clock.ahead).min(), clocks.iter().map(|clock| clock.ahead).max());
    if let (Some(least), Some(most)) = (least, most) {
        if most - least >= far {
            let apart = (most - least) as f64 / 1e6;
            findings.push(Finding::bad("clock", format!("the servers' clocks are {apart:.1} s apart; a failover would admit as much too soon or too late: run NTP on all of them")));
        }
    }
}

#[cfg(test)]
mod tests;

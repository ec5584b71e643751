//! The checks of one server: version, role, eviction, clock and latency.
//!
//! The checks use a connection of their own, with the credentials and certificates of the store. They need the commands
//! `INFO`, `PING` and `TIME`. A user without permission for one of them gets a warning, because decisions do not need
//! them as separate commands.

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
///
/// Redis 6.2 introduced `COPY`, by which a script restores states if one of several asks for a state is denied. Valkey
/// starts at a later version, so it is always new enough.
const OLDEST: (u32, u32) = (6, 2);
/// The clock difference above which a finding is reported. After a failover between servers whose clocks differ, limits
/// admit that much too early or too late.
const FAR_APART: Duration = Duration::from_secs(1);
/// The number of latency measurements. The slowest of them is compared with the deadline.
const PINGS: usize = 20;

/// The clock of a server relative to this machine. It is measured once per examination.
#[derive(Clone, Debug)]
pub(super) struct ServerClock {
    /// The server.
    address: Address,
    /// The offset from this machine's clock, in microseconds. Positive if the server is ahead. The error is half a
    /// round trip.
    ahead: i128,
}

/// Examines a server. Returns its clock, if it was reached. The checks run one after the other. If one cannot be made,
/// its finding is a warning, and the next one runs.
pub(super) async fn look(
    address: &Address,
    options: &Options,
    findings: &mut Vec<Finding>,
) -> Option<ServerClock> {
    // Push messages are ignored: nothing is cached on this connection.
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
    // RESP3 replies with a verbatim string; a proxy may send a bulk string.
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

/// Sends one command and waits for at most [`TIMEOUT`]. The error is a message with a remedy, for a finding. An error
/// reply gets the same remedy as in a decision.
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

/// Evaluates the reply to `INFO`. Fields that the server does not report count as unknown, which is a warning at most.
/// The checks of version, role, eviction and replicas share this one reply.
fn about(address: &Address, text: &str, options: &Options, findings: &mut Vec<Finding>) {
    // A line of `INFO` is `name:value`, ended by CR LF.
    let field =
        |name: &str| text.lines().find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':'));
    findings.push(version(address, field("redis_version"), field("valkey_version")));
    findings.push(role(address, field("role"), field("redis_mode"), options));
    findings.push(eviction(address, field("maxmemory_policy"), field("maxmemory")));
    findings.push(replicas(address, field("connected_slaves"), options));
}

/// Compares the version with [`OLDEST`]. Valkey reports a compatible Redis version too, so its own field is looked up
/// first. A version that cannot be read is a warning, because a proxy may hide it.
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
        // Only the first two numbers are compared; patch releases do not matter.
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

/// Checks that the server is a primary of the kind that the URL names. The remedy of a wrong kind is the right URL. A
/// replica is a fault even if reads are allowed on it, because every decision writes.
fn role(address: &Address, role: Option<&str>, mode: Option<&str>, options: &Options) -> Finding {
    let wants_cluster = matches!(options.url.place, Deployment::Cluster(_));
    // The role comes first: a replica of a cluster node is reported as a replica.
    match (role, mode) {
        (Some("slave"), _) => Finding::bad(
            "role",
            format!(
                "{address} is a replica, which cannot count; name its primary, or the Sentinels, in the URL"
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

/// All keys have an expiry, so any policy that evicts such keys evicts these. An evicted key is unused again, so its
/// caller is admitted too early. Without `maxmemory` nothing is evicted yet, which is a warning. `maxmemory-policy` has
/// to be `noeviction`. A full server then rejects takes, and rules decide by their `on_store_failure`.
fn eviction(address: &Address, policy: Option<&str>, maxmemory: Option<&str>) -> Finding {
    let policy = policy.unwrap_or("unknown");
    let advice = "denied callers are admitted again when memory is full; forbid it: CONFIG SET maxmemory-policy noeviction";
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
        // With `volatile-*` and `allkeys-*` alike, keys with an expiry are evicted.
        _ => Finding::bad("eviction", format!("{address} has maxmemory-policy {policy}: {advice}")),
    }
}

/// Checks that a deployment with failover has a replica. A standalone server needs none. The number is that of
/// connected replicas, so it is zero while a replica is restarting.
fn replicas(address: &Address, replicas: Option<&str>, options: &Options) -> Finding {
    let replicas: u32 = replicas.and_then(|replicas| replicas.parse().ok()).unwrap_or(0);
    match (&options.url.place, replicas) {
        // Nothing would use a replica of a standalone server.
        (Deployment::Standalone(_), _) => Finding::good(
            "replicas",
            format!("{address} stands alone: while it is gone, rules decide by their on_store_failure"),
        ),
        (_, 0) => Finding::warning(
            "replicas",
            format!("{address} has no replica, so none takes over when it is down; give it one"),
        ),
        (_, 1) => Finding::good("replicas", format!("{address} has 1 replica")),
        (_, replicas) => Finding::good("replicas", format!("{address} has {replicas} replicas")),
    }
}

/// Measures the round trip against the deadline. Round trips are measured one after the other on an idle connection, so
/// they are a lower bound under load. A deadline of less than twice the slowest one is a warning. The finding has the
/// median and the longest round trip.
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
    // With twenty measurements the longest is a rough estimate of the 95th percentile.
    let (median, longest) = (ways[PINGS / 2], ways[PINGS - 1]);
    let seen = format!(
        "{address} is {median:.1?} away, {longest:.1?} at worst of {PINGS}; the deadline is {:?}",
        options.deadline
    );
    // A decision under load waits behind others, so half of the deadline has to suffice without load.
    findings.push(if longest * 2 <= options.deadline {
        Finding::good("distance", seen)
    } else {
        Finding::warning(
            "distance",
            format!("{seen}; raise it, or move closer, or decisions will fail now and then"),
        )
    });
}

/// Reads the server's clock between two readings of this machine's, and compares it with their mean. Returns `None`
/// with a warning if `TIME` is not permitted. The clocks of several servers are compared by [`compare`].
#[expect(clippy::disallowed_methods, reason = "the server's wall clock is compared with this one")]
async fn clock(
    connection: &mut MultiplexedConnection,
    address: &Address,
    findings: &mut Vec<Finding>,
) -> Option<ServerClock> {
    let before = SystemTime::now();
    let answer = ask(connection, address, &redis::cmd("TIME")).await;
    let after = SystemTime::now();
    let reported = match answer {
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
    // The server read its clock between both readings; the mean halves the largest error.
    let here = (micros(before) + micros(after)) / 2;
    Some(ServerClock { address: address.clone(), ahead: reported - here })
}

/// Compares the clocks of all servers. A difference to this machine is a warning: limits use the server's clock alone.
/// A difference between servers is a fault, because a failover then moves the time. With a single server only the first
/// comparison applies. No server in the list means no finding.
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
        // A failover between these servers moves the time of all limits by the difference.
        if most - least >= far {
            let apart = (most - least) as f64 / 1e6;
            findings.push(Finding::bad("clock", format!("the servers' clocks are {apart:.1} s apart; a failover would admit as much too soon or too late: run NTP on all of them")));
        }
    }
}

#[cfg(test)]
mod tests;

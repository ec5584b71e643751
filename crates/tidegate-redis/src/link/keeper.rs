//! The task that connects and reconnects a link.
//!
//! A reconnect is one attempt at a time per server. Backoff starts below 25 ms and is bounded by 500 ms, with jitter.
//! It is reset only by a connection that has answered a request.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Pipeline, PushInfo, PushKind, Value};
use tokio::time::{Instant, sleep, timeout};

use super::memory_id::next_connection;
use super::{Link, State};
use crate::dial::CONNECT_TIMEOUT;
use crate::fault::{ErrorReply, Fault, describe};
use crate::url::Address;

/// The pause before the second attempt. The first follows almost immediately.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Keeps a link connected until it is dropped. It holds a weak reference while it waits, so that a link without users
/// is dropped, and its connection with it.
pub(super) async fn keep(link: Weak<Link>) {
    let mut tries = 0_u32;
    loop {
        let Some(held) = link.upgrade() else { return };
        let number = next_connection();
        match reach(&held, number).await {
            Ok(connection) => {
                // A new connection may lead to another server, so the last error says nothing about it.
                held.complaint().take();
                held.has_answered.store(false, Ordering::Relaxed);
                held.state.send_replace(State::Up(connection, number));
            }
            Err(why) => {
                held.state.send_replace(State::Down(why.into()));
                held.trunk.doubts.notify_one();
            }
        }
        let mut state = held.state.subscribe();
        drop(held);
        // The wait also ends when the link is dropped.
        // While the connection works, the task only waits here.
        if state.wait_for(|state| !matches!(state, State::Up(..))).await.is_err() {
            return;
        }
        // A connection that never answered a request does not reset the backoff.
        if link.upgrade().is_some_and(|link| link.has_answered.swap(false, Ordering::Relaxed)) {
            tries = 0;
        }
        sleep(pause(tries)).await;
        tries += 1;
    }
}

/// Returns a pause that grows with the attempts, with jitter, so that clients of the same server do not reconnect at
/// the same time. The first pause is below 25 ms: a single lost connection is usually replaced at once.
fn pause(tries: u32) -> Duration {
    let longest = match tries {
        0 => FIRST_PAUSE / 2,
        _ => FIRST_PAUSE.saturating_mul(1 << tries.min(8)).min(LONGEST_PAUSE),
    };
    let shortest = if tries == 0 { Duration::ZERO } else { longest / 2 };
    shortest + (longest - shortest).mul_f64(fastrand::f64())
}

/// Opens a new connection to a server that is a primary. The checks are: TCP, TLS and authentication within one second,
/// the role of a primary, and a reply within the deadline of decisions. Each failure is described with its remedy.
async fn reach(link: &Arc<Link>, number: u64) -> Result<MultiplexedConnection, String> {
    link.trunk.counts.connects.add();
    // The driver keeps the closure as long as the connection, so it must not keep the link alive.
    let weak = Arc::downgrade(link);
    // Push messages are received by the driver's task. They only change the state of the link, so they never block it.
    let hears = move |heard: PushInfo| {
        match (heard.kind, weak.upgrade()) {
            (PushKind::Disconnection, Some(link)) => {
                link.lose(number, format!("{}: the connection was closed", link.address));
            }
            // No key is tracked, so the message reports a flush of all keys.
            (PushKind::Invalidate, Some(link)) => link.flushed(),
            _ => {}
        }
        Ok::<(), ()>(())
    };
    let address = &link.address;
    let connecting = link.trunk.dialer.connect(address, hears);
    let connection = connecting.await.map_err(|error| describe(address, &error))?;
    let begin = Instant::now();
    let connection = match timeout(CONNECT_TIMEOUT, introduce(connection, address)).await {
        Ok(connection) => connection?,
        Err(_) => return Err(format!("{address}: no answer; see whether the server is stuck")),
    };
    // A server that is too slow for `ROLE` is too slow for decisions.
    match (begin.elapsed(), link.trunk.deadline) {
        (taken, deadline) if taken > deadline => Err(format!(
            "{address}: an answer took {taken:.0?}, and the deadline is {deadline:?}; raise it, or move closer"
        )),
        _ => Ok(connection),
    }
}

/// Requests the role of a server, and a message whenever all data is flushed. Both commands are sent at once. Only the
/// reply to `ROLE` is checked. A load balancer or a DNS name may lead to a replica, which would reject every script.
async fn introduce(
    mut connection: MultiplexedConnection,
    address: &Address,
) -> Result<MultiplexedConnection, String> {
    let mut both = Pipeline::with_capacity(2);
    // With client-side caching the server also reports a flush, before any reply that follows it. With OPTIN it tracks
    // no key, so this costs the server nothing. A server that does not allow it is used regardless: its tables are read
    // at intervals.
    both.cmd("ROLE").cmd("CLIENT").arg("TRACKING").arg("ON").arg("OPTIN");
    let answers = connection.send_packed_commands(&both, 0, 2).await;
    let role = answers.map_err(|error| describe(address, &error))?.into_iter().next();
    let role = match role.unwrap_or(Value::Nil) {
        Value::ServerError(error) => {
            return Err(Fault::Refused(ErrorReply::new(address, &error)).to_string());
        }
        Value::Array(parts) => parts.into_iter().next().and_then(|role| match role {
            Value::BulkString(role) => String::from_utf8(role).ok(),
            Value::SimpleString(role) => Some(role),
            _ => None,
        }),
        _ => None,
    };
    match role.as_deref() {
        // The words are those of the protocol: `master` and `slave`.
        Some("master") => Ok(connection),
        Some("slave" | "replica") => Err(format!(
            "{address}: this server is a replica; name its primary, or the Sentinels, in the URL"
        )),
        Some("sentinel") => Err(format!(
            "{address}: this is a Sentinel; write redis+sentinel://{address}/SERVICE with the name of the service"
        )),
        _ => Err(format!(
            "{address}: this server does not say whether it is a primary; run Redis 6.2 or later, or Valkey"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_differ() {
        for tries in 0..40 {
            let pauses: Vec<_> = (0..100).map(|_| pause(tries)).collect();
            assert!(pauses.iter().all(|pause| *pause <= LONGEST_PAUSE));
            assert!(pauses.iter().any(|pause| *pause != pauses[0]), "they are all {:?}", pauses[0]);
        }
        assert!((0..100).all(|_| pause(20) >= LONGEST_PAUSE / 2));
    }
}

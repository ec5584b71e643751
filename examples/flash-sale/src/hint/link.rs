//! The connection to Redis, with a timeout and a circuit breaker.
//!
//! The first call that fails opens the circuit: from then on calls end at once, without Redis. A background task tries
//! a new connection each second, with a longer timeout than that of a buyer's call. When that connection works and has
//! loaded the scripts, calls use it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, RedisResult, ScriptInvocation};
use tokio::time::{sleep, timeout};

use super::{GIVE_BACK, KNOW, SET, TAKE};

/// The time between a failure and the next try, and between two tries.
const REST: Duration = Duration::from_secs(1);

/// The timeout of a try to connect and to load the scripts: a remote Redis needs several round trips.
const TRY: Duration = Duration::from_secs(1);

/// The maximum number of calls in flight on one connection. Further calls wait, within their timeout.
const PIPELINE: usize = 1024;

/// A connection, shared by clones.
#[derive(Clone)]
pub(super) struct Link(Arc<Shared>);

struct Shared {
    client: Client,
    timeout: Duration,
    state: Mutex<State>,
}

enum State {
    /// There was no call yet.
    Fresh,
    Open(ConnectionManager),
    /// The circuit is open: Redis gets no calls until the task has reached it.
    Resting,
}

impl Link {
    pub(super) fn new(client: Client, timeout: Duration) -> Link {
        Link(Arc::new(Shared { client, timeout, state: Mutex::new(State::Fresh) }))
    }

    /// Returns the result of a script; `None` if there is none in time.
    pub(super) async fn ask(&self, script: &ScriptInvocation<'_>) -> Option<i64> {
        let mut connection = self.0.connection()?;
        if let Ok(Ok(reply)) = timeout(self.0.timeout, script.invoke_async(&mut connection)).await {
            return Some(reply);
        }
        self.rest();
        None
    }

    /// Opens the circuit until Redis can be reached; the first failure starts the task.
    fn rest(&self) {
        let mut state = self.0.state();
        if !matches!(*state, State::Resting) {
            *state = State::Resting;
            tokio::spawn(return_to(Arc::downgrade(&self.0)));
        }
    }
}

impl fmt::Debug for Link {
    // The client contains the password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Link").finish_non_exhaustive()
    }
}

impl Shared {
    fn connection(&self) -> Option<ConnectionManager> {
        let mut state = self.state();
        match &*state {
            State::Open(connection) => Some(connection.clone()),
            State::Resting => None,
            State::Fresh => {
                let connection = self.dial().ok()?;
                *state = State::Open(connection.clone());
                Some(connection)
            }
        }
    }

    /// Returns a connection that connects at its first call, and does not retry: the task does.
    fn dial(&self) -> RedisResult<ConnectionManager> {
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(TRY))
            .set_response_timeout(None)
            .set_number_of_retries(0)
            .set_pipeline_buffer_size(PIPELINE);
        ConnectionManager::new_lazy_with_config(self.client.clone(), config)
    }

    /// Returns a new connection that works: the old one may hang in a network that has dropped it.
    async fn reach(&self) -> RedisResult<ConnectionManager> {
        let mut connection = self.dial()?;
        for script in [&TAKE, &GIVE_BACK, &KNOW, &SET] {
            script.load_async(&mut connection).await?;
        }
        Ok(connection)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tries each second until Redis can be reached or the link is dropped.
async fn return_to(link: Weak<Shared>) {
    loop {
        sleep(REST).await;
        let Some(shared) = link.upgrade() else { return };
        if let Ok(Ok(connection)) = timeout(TRY, shared.reach()).await {
            *shared.state() = State::Open(connection);
            return;
        }
    }
}

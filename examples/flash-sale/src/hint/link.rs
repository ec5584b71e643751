//! The connection: bounded in time, and left alone while it hurts.
//!
//! The first call that fails sends everybody away: from then on calls end at once, without Redis.
//! A task of its own tries a new connection each second, with more patience than a buyer has.
//! When that one works and knows the scripts, calls go through it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, RedisResult, ScriptInvocation};
use tokio::time::{sleep, timeout};

use super::{GIVE_BACK, KNOW, SET, TAKE};

/// Between a failure and the next try, and between two tries.
const REST: Duration = Duration::from_secs(1);

/// How long a try may take to connect and to load the scripts: a Redis far away needs several round trips.
const TRY: Duration = Duration::from_secs(1);

/// How many calls may be on their way into one connection; beyond, they wait within their patience.
const PIPELINE: usize = 1024;

/// One connection, shared by clones.
#[derive(Clone)]
pub(super) struct Link(Arc<Shared>);

struct Shared {
    client: Client,
    patience: Duration,
    state: Mutex<State>,
}

enum State {
    /// Nobody has asked yet.
    Fresh,
    Open(ConnectionManager),
    /// Redis is left alone until the task has reached it.
    Resting,
}

impl Link {
    pub(super) fn new(client: Client, patience: Duration) -> Link {
        Link(Arc::new(Shared { client, patience, state: Mutex::new(State::Fresh) }))
    }

    /// What a script gives; nothing if it is not known in time.
    pub(super) async fn ask(&self, script: &ScriptInvocation<'_>) -> Option<i64> {
        let mut connection = self.0.connection()?;
        if let Ok(Ok(reply)) = timeout(self.0.patience, script.invoke_async(&mut connection)).await {
            return Some(reply);
        }
        self.rest();
        None
    }

    /// Leaves Redis alone until it can be reached; the first who fails starts the task.
    fn rest(&self) {
        let mut state = self.0.state();
        if !matches!(*state, State::Resting) {
            *state = State::Resting;
            tokio::spawn(return_to(Arc::downgrade(&self.0)));
        }
    }
}

impl fmt::Debug for Link {
    // The client knows the password.
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

    /// A connection that connects with its first call, and does not retry: the task does.
    fn dial(&self) -> RedisResult<ConnectionManager> {
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(TRY))
            .set_response_timeout(None)
            .set_number_of_retries(0)
            .set_pipeline_buffer_size(PIPELINE);
        ConnectionManager::new_lazy_with_config(self.client.clone(), config)
    }

    /// A new connection that works: the old one may hang in a network that has forgotten it.
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

/// Tries each second until Redis can be reached or nobody holds the link any more.
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

//! Overrides that last: kept in a file beside the rules, or in Redis for all servers that share it.
//!
//! ```text
//!   change:  lock the place --> read --> check, change --> audit log --> write --> in force here --> reply
//!   look:    has the place another version? --> read --> in force here          several times a second
//! ```
//!
//! The place is the truth: each server puts in force what it reads there, and a change starts from it. So servers with
//! one place merge their changes, and a precondition is checked against what any server has put last. While the place
//! cannot be read, the overrides that were read last stay in force, and changes fail and change nothing.

mod audit;
mod file;
mod record;
mod shared;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_redis::RedisStore;
use tidegate_rules::{Gate, OverrideSet};
use tokio::sync::Mutex as TurnMutex;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout, timeout_at};

pub(crate) use audit::{AuditLog, AuditRecord, Author, audited};
pub(crate) use record::{AllowOrDeny, OverrideRecord};

use crate::engine::Engine;
use crate::reload::Pace;
use crate::settings::Settings;
use file::{OverridesFile, SeenFile};
use shared::{SeenTable, SharedOverrides};

/// Timeout of the first read from Redis, which a start waits for.
const FIRST_READ: Duration = Duration::from_millis(500);
/// The time for which a change waits for changes before it, and for the lock of the file. A process that is stopped while it
/// has the lock must not block the callers of others for ever.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The overrides of a server, and the place where they are kept.
#[derive(Debug)]
pub(crate) struct OverrideKeeper {
    place: OverridePlace,
    /// Serializes reads and changes of the place, and what this server knows of it.
    turn: Arc<TurnMutex<KnownOverrides>>,
    /// The state of the place, for reports and replies.
    status: Mutex<PlaceStatus>,
}

/// The place where overrides are kept.
#[derive(Debug)]
enum OverridePlace {
    /// The memory of this server. They end with it.
    Memory,
    /// A file, which servers on one machine may share.
    File(Arc<OverridesFile>),
    /// Redis, under the prefix of the store.
    Shared(SharedOverrides),
}

/// The content of the place at the last read.
#[derive(Debug, Default)]
struct KnownOverrides {
    /// The metadata of the file.
    file: Option<SeenFile>,
    /// The version in Redis of which the overrides are in force.
    version: Option<u64>,
    /// The table in Redis at the last read.
    seen: Option<SeenTable>,
}

/// The state of the place.
#[derive(Debug, Default)]
struct PlaceStatus {
    /// The reason why the place cannot be read, until it can.
    wrong: Option<String>,
    /// True if that was reported.
    is_reported: bool,
    /// The overrides without effect that were reported.
    idle: BTreeSet<String>,
}

/// The reason why a change was not kept, with a remedy. Nothing has changed, unless the text says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotKept(pub(crate) String);

impl fmt::Display for NotKept {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl OverrideKeeper {
    /// Opens the place of these settings: Redis if there is a shared store, else a file if one is named, else memory.
    /// Puts the overrides of a file in force; those in Redis come with [`OverrideKeeper::first_look`].
    ///
    /// Returns an error if the file is broken, of another user, or cannot be read.
    pub(crate) fn open(
        settings: &Settings,
        redis: Option<&RedisStore>,
        gate: &Gate,
    ) -> Result<OverrideKeeper, NotKept> {
        let mut known = KnownOverrides::default();
        let place = match (redis, &settings.overrides_file) {
            (Some(redis), _) => OverridePlace::Shared(SharedOverrides::new(redis)),
            (None, Some(path)) => {
                let file = OverridesFile::new(path.clone());
                let (seen, found) = file.read()?;
                gate.replace_overrides(found.unwrap_or_default());
                known.file = Some(seen);
                OverridePlace::File(Arc::new(file))
            }
            (None, None) => OverridePlace::Memory,
        };
        Ok(OverrideKeeper { place, turn: Arc::new(TurnMutex::new(known)), status: Mutex::default() })
    }

    /// Returns the name of the place, for replies.
    pub(crate) fn kept_in(&self) -> &'static str {
        match self.place {
            OverridePlace::Memory => "memory",
            OverridePlace::File(_) => "file",
            OverridePlace::Shared(_) => "redis",
        }
    }

    /// Returns the reason why the place could not be read at the last look. The overrides that were read before it are
    /// in force then.
    pub(crate) fn wrong(&self) -> Option<String> {
        self.status().wrong.clone()
    }

    fn status(&self) -> MutexGuard<'_, PlaceStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Changes the overrides: `apply` gets those that are kept and have not ended, and checks and changes them. The change is
/// in the audit log, kept, and in force on this server before this returns. It goes on if the caller does not wait.
///
/// `apply` is called again if another server was faster. If it changes nothing, nothing is written.
pub(crate) async fn change<T, E>(
    engine: Arc<Engine>,
    audit: AuditRecord,
    apply: impl Fn(&mut OverrideSet) -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<NotKept> + Send + 'static,
{
    let keeper = engine.overrides();
    let deadline = Instant::now() + MAX_WAIT;
    let Ok(mut known) = timeout_at(deadline, keeper.turn.clone().lock_owned()).await else {
        let why = "changes of overrides before this one take too long; nothing was changed. Try again, and look at the log";
        return Err(NotKept(why.to_owned()).into());
    };
    let stopped = |_| E::from(NotKept("the change was interrupted; look before trying again".to_owned()));
    match &keeper.place {
        OverridePlace::Shared(_) => {
            let task = tokio::spawn(async move {
                let OverridePlace::Shared(shared) = &engine.overrides().place else {
                    return Err(interrupted());
                };
                shared.change(&engine, &mut known, &audit, apply).await
            });
            task.await.map_err(stopped)?
        }
        OverridePlace::File(file) => {
            let file = file.clone();
            spawn_blocking(move || file.change(&engine, &mut known, &audit, deadline, apply))
                .await
                .map_err(stopped)?
        }
        OverridePlace::Memory => {
            let task = spawn_blocking(move || {
                let _turn = known;
                engine.gate().change_overrides(|set| {
                    let before = set.clone();
                    let changed = apply(set)?;
                    if *set != before {
                        engine.audit().append(&audit)?;
                    }
                    Ok(changed)
                })
            });
            task.await.map_err(stopped)?
        }
    }
}

/// Returns the error of a place that is not the expected one.
fn interrupted<E: From<NotKept>>() -> E {
    NotKept("overrides are not kept in Redis; restart the server".to_owned()).into()
}

/// Looks once, and puts in force what has changed. Overrides that were read before stay in force if it fails.
pub(crate) async fn look(engine: &Arc<Engine>) {
    let keeper = engine.overrides();
    let looked = match &keeper.place {
        OverridePlace::Memory => Ok(()),
        OverridePlace::Shared(shared) => shared.look(engine, &mut *keeper.turn.lock().await).await,
        OverridePlace::File(file) => {
            let mut known = keeper.turn.clone().lock_owned().await;
            match file.has_changed(known.file.as_ref()) {
                false => Ok(()),
                true => {
                    let (file, engine) = (file.clone(), engine.clone());
                    let looked = spawn_blocking(move || file.look(&engine, &mut known)).await;
                    looked.unwrap_or_else(|ended| Err(NotKept(ended.to_string())))
                }
            }
        }
    };
    report(engine, looked.err());
}

/// Looks for the first time, for at most [`FIRST_READ`]: a server that can reach Redis starts with the overrides in it.
pub(crate) async fn first_look(engine: &Arc<Engine>) {
    let Some(redis) = engine.redis() else { return };
    let first = async {
        // Without a connection, the look fails with the reason.
        let _ = redis.ready().await;
        look(engine).await;
    };
    // One of the next looks reads them.
    let _ = timeout(FIRST_READ, first).await;
}

/// Looks again and again. Never returns.
pub(crate) async fn watch(engine: Arc<Engine>, mut pace: impl Pace) {
    loop {
        pace.next_look().await;
        look(&engine).await;
    }
}

/// Reports a change of the state of the place, and overrides that have no effect, each once.
fn report(engine: &Engine, wrong: Option<NotKept>) {
    let mut status = engine.overrides().status();
    let wrong = wrong.map(|NotKept(what)| what);
    if status.wrong != wrong {
        let was_reported = status.is_reported;
        status.is_reported = false;
        if wrong.is_none() && was_reported {
            engine.rules().report("the overrides are read again", &[]);
        }
        status.wrong = wrong;
    }
    if let Some(what) = status.wrong.as_ref().filter(|_| !status.is_reported) {
        let first = "the overrides that were read last stay in force, and cannot be changed";
        status.is_reported = engine.rules().report(first, std::slice::from_ref(what));
    }
    let idle = engine.gate().idle_overrides();
    if idle.is_empty() && status.idle.is_empty() {
        return;
    }
    let shown = idle.iter().map(|idle| {
        format!("override of {}: has no effect: {}", OverrideRecord::from(&idle.one).shown_key(), idle.why)
    });
    let shown: BTreeSet<String> = shown.collect();
    let new: Vec<_> = shown.difference(&status.idle).cloned().collect();
    if new.is_empty() || engine.rules().report("overrides without effect are kept", &new) {
        status.idle = shown;
    }
}

//! Watches the rules file, and reloads it when it changes.
//!
//! A look at the metadata of the path costs microseconds, so a task on a worker thread takes it. A read is slow and
//! runs on its own thread. Reads run one at a time, so that frequent changes do not pile up.
//!
//! A file that is invalid changes nothing: the rules in force stay, and the complaint is reported once. SIGHUP and
//! `PUT /v1/rules` use the same code without waiting for a look.

mod file;
#[cfg(test)]
pub(crate) mod folder;
mod look;
mod reports;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::sleep;

pub(crate) use file::{read_regular, replace_whole, write_whole};
pub(crate) use look::{Look, Watched};
pub(crate) use reports::ReportListener;

use crate::engine::Engine;
use crate::rules::Reloaded;

/// The period between two looks at the file.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The schedule of the watcher. A server uses the system clock; a test triggers each look.
pub(crate) trait Pace: Send + 'static {
    /// Resolves when the next look is due. The previous look, and the read that it caused, have ended by then.
    fn next_look(&mut self) -> impl Future<Output = ()> + Send;
}

/// A look after each period, measured from the end of the previous look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Every;

impl Pace for Every {
    async fn next_look(&mut self) {
        sleep(LOOK_EVERY).await;
    }
}

/// Reloads the rules whenever their file has changed and is at rest.
///
/// Returns at once if the rules cannot be read again, for example if they came from a pipe. Otherwise it never
/// returns.
pub(crate) async fn watch(engine: Arc<Engine>, mut pace: impl Pace) {
    let Some(path) = engine.rules().path() else { return };
    let mut watched = Watched::default();
    loop {
        pace.next_look().await;
        engine.rules().tell_dropped_counts();
        engine.rules().tell_unknown_attributes();
        let Some(occasion) = watched.is_to_be_read(Look::at(&path)) else { continue };
        let engine = engine.clone();
        // If no thread can be created, one of the next looks reads the file.
        let read = aside(move || engine.rules().reload(engine.settings(), occasion)).await;
        if read == Some(Reloaded::Unfinished) {
            watched.wait_for_the_rest();
        }
    }
}

/// Runs slow work on its own thread, which a shutdown does not wait for. Returns `None` if no thread can be created, or
/// if it panics.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (done, result) = oneshot::channel();
    let thread = thread::Builder::new().name("tidegate-rules".to_owned());
    // The caller may be gone.
    thread.spawn(move || drop(done.send(work()))).ok()?;
    result.await.ok()
}

#[cfg(test)]
mod tests;

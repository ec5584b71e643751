//! Sees that the file of rules is another one, and has it read again.
//!
//! A look at what the path points to costs microseconds, so it is taken by a task among the connections. Reading
//! takes long and has a thread of its own, one at a time: however often the file changes, nothing piles up.

mod file;
#[cfg(test)]
pub(crate) mod folder;
mod look;
mod said;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::sleep;

pub(crate) use file::{read_regular, write_whole};
pub(crate) use look::{Look, Watched};
pub(crate) use said::Tell;

use crate::engine::Engine;
use crate::rules::Reloaded;

/// The period between two looks at the file.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// When the watcher looks at the file. A server goes by the system's clock, a test says so.
pub(crate) trait Pace: Send + 'static {
    /// Resolves when the next look is due. The look before it, and the reading that it led to, are over by then.
    fn next_look(&mut self) -> impl Future<Output = ()> + Send;
}

/// A look after each period, counted from the end of the look before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Every;

impl Pace for Every {
    async fn next_look(&mut self) {
        sleep(LOOK_EVERY).await;
    }
}

/// Has the rules read again whenever their file has changed and rests.
pub(crate) async fn watch(engine: Arc<Engine>, mut pace: impl Pace) {
    let Some(path) = engine.rules().path() else { return };
    let mut watched = Watched::default();
    loop {
        pace.next_look().await;
        engine.rules().tell_dropped_counts();
        let Some(occasion) = watched.is_to_be_read(Look::at(&path)) else { continue };
        let engine = engine.clone();
        // If there is no thread to be had, the file is read with one of the next looks.
        let read = aside(move || engine.rules().reload(engine.settings(), occasion)).await;
        if read == Some(Reloaded::Unfinished) {
            watched.wait_for_the_rest();
        }
    }
}

/// Does what takes long on a thread of its own, which a stop does not wait for. Nothing if there is no thread.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (done, result) = oneshot::channel();
    let thread = thread::Builder::new().name("tidegate-rules".to_owned());
    // Whoever asked may have gone.
    thread.spawn(move || drop(done.send(work()))).ok()?;
    result.await.ok()
}

#[cfg(test)]
mod tests;

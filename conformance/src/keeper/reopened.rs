//! A zone in files that is closed and opened again all the time: whatever a process knows beside its files is gone.

use std::sync::{Arc, Mutex, PoisonError};

use tidegate::{
    Adjusted, Adjustment, Ask, Clock, Decision, Decisions, MemoryStore, PermitId, Receipt, State, Subject,
    Zone,
};

use super::Sheltering;
use crate::Folder;

/// More than any crowd here fills.
const BYTES: usize = 1 << 20;
/// The zone is opened again before every so many calls.
const EVERY: u64 = 3;

/// A zone in files that outlives any number of processes.
#[derive(Debug)]
pub struct Reopened {
    folder: Folder,
    clock: Arc<dyn Clock>,
    open: Mutex<(Option<Zone>, u64)>,
}

impl Reopened {
    /// Calls the zone, which is opened anew before some of the calls.
    fn with<R>(&self, call: impl FnOnce(&Zone) -> R) -> R {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (zone, calls) = &mut *open;
        *calls += 1;
        if *calls % EVERY == 0 {
            *zone = None;
        }
        let zone = zone.get_or_insert_with(|| {
            Zone::in_file_with_clock(self.folder.zone(), BYTES, self.clock.clone())
                .unwrap_or_else(|error| panic!("{error}"))
        });
        call(zone)
    }
}

impl Sheltering for Reopened {
    const NAME: &'static str = "zone in files that is opened again";
    const LIMITER: &'static str = "limiter on a zone in files";
    const ADHOC: &'static str = "ad-hoc limits on a zone in files";
    const HOLDS_ALL: bool = false;

    fn empty(clock: Arc<dyn Clock>) -> Reopened {
        Reopened { folder: Folder::in_memory(), clock, open: Mutex::new((None, 0)) }
    }

    fn memory(&self) -> MemoryStore {
        self.with(|zone| MemoryStore::from(zone))
    }

    fn take(&self, subject: Subject<'_>, ask: Ask) -> (Decision, Option<Receipt>) {
        self.with(|zone| zone.take(subject, ask))
    }

    fn take_all(&self, asks: &[(Subject<'_>, Ask)]) -> Decisions {
        self.with(|zone| zone.take_all(asks))
    }

    fn peek(&self, subject: Subject<'_>, ask: Ask) -> Decision {
        self.with(|zone| zone.peek(subject, ask))
    }

    fn adjust(&self, subject: Subject<'_>, adjustment: Adjustment) -> Adjusted {
        self.with(|zone| zone.adjust(subject, adjustment))
    }

    fn give_back(&self, subject: Subject<'_>, receipt: Receipt) -> Adjusted {
        self.with(|zone| zone.give_back(subject, receipt))
    }

    fn release(&self, subject: Subject<'_>, permit: PermitId) -> bool {
        self.with(|zone| zone.release(subject, permit))
    }

    fn renew(&self, subject: Subject<'_>, permit: PermitId) -> bool {
        self.with(|zone| zone.renew(subject, permit))
    }

    fn reset(&self, subject: Subject<'_>) {
        self.with(|zone| zone.reset(subject).expect("few limits are in use"));
    }

    fn state(&self, subject: Subject<'_>) -> State {
        self.with(|zone| zone.state(subject))
    }
}

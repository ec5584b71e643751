//! The detection of a wall clock that is set while a zone is in use.
//!
//! A reboot is bridged by the wall clock, from its time when the record was written. A machine without a battery for
//! its clock starts with a wrong one and sets it when it has a network. The record of a zone that was opened before
//! would then make the next reboot look years long. Every key would lose all of its debt.
//!
//! The clocks are therefore compared about once per second in which the time of the zone is read, with each flush, and
//! when the zone is dropped. If the wall clock was set, the record is rewritten, in the place that is not in force.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, TryLockError};

use super::epoch::{Reading, after_setting};
use super::file::ZoneFile;
use super::record::ClockRecord;
use crate::time::boot::BootId;
use crate::time::{Mark, Timestamp};

/// The clocks of the machine.
pub(super) trait Clocks: fmt::Debug + Send + Sync {
    /// Reads the clocks, under this boot of the machine.
    fn read(&self, boot: Option<BootId>) -> Reading;
}

/// The clocks of the machine that this process runs on.
#[derive(Debug)]
pub(super) struct SystemClocks;

impl Clocks for SystemClocks {
    fn read(&self, boot: Option<BootId>) -> Reading {
        Reading::since(boot)
    }
}

/// A watch that keeps the record of a zone's file in step with the wall clock, and stores the latest time in the file.
#[derive(Debug)]
pub(super) struct WallWatch {
    file: Arc<ZoneFile>,
    clocks: Box<dyn Clocks>,
    /// The record in force when it was last read.
    known: Mutex<ClockRecord>,
}

impl WallWatch {
    pub(super) fn new(file: Arc<ZoneFile>, clocks: Box<dyn Clocks>) -> WallWatch {
        let known = Mutex::new(file.record.clone());
        WallWatch { file, clocks, known }
    }

    /// Compares the clocks, and rewrites the record if the wall clock was set. Does not wait: if another thread or
    /// process has the file locked, the next call does it.
    fn look(&self) {
        let mut known = match self.known.try_lock() {
            Ok(known) => known,
            Err(TryLockError::Poisoned(known)) => known.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let now = self.clocks.read(known.boot);
        if after_setting(&known, &now).is_none() || !self.file.try_lock() {
            return;
        }
        // If the disk fails, the next call tries again.
        if let Ok(record) = self.file.renew_record(&now) {
            *known = record;
        }
        self.file.unlock();
    }
}

impl Mark for WallWatch {
    fn reached(&self, now: Timestamp) {
        self.file.latest().fetch_max(now.ticks(), Ordering::Relaxed);
        self.look();
    }
}

impl Drop for WallWatch {
    fn drop(&mut self) {
        self.look();
    }
}

#[cfg(test)]
#[cfg(all(target_os = "linux", not(tidegate_models)))]
mod tests;

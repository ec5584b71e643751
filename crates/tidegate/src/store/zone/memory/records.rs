//! The table of limits in a zone's file, which other processes use at the same time.
//!
//! Records are read and written under the lock of the file. It is not waited for: a process that was stopped while it
//! has the lock must not stop the decisions of others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::file::ZoneFile;
use super::mapping::Part;
use crate::store::limit_table::{RECORD_WORDS, UNTIL_WORD};

/// The records of a zone's file.
#[derive(Debug)]
pub(crate) struct SharedRecords {
    file: Arc<ZoneFile>,
    words: Part<AtomicU64>,
}

impl SharedRecords {
    pub(crate) fn new(file: Arc<ZoneFile>) -> SharedRecords {
        let words = file.record_words();
        SharedRecords { file, words }
    }

    /// The file that they are in.
    pub(crate) fn file(&self) -> Arc<ZoneFile> {
        Arc::clone(&self.file)
    }

    /// Locks the records for this process. Returns false if another one has them all the time.
    pub(crate) fn try_lock(&self, attempts: usize) -> bool {
        (0..attempts).any(|attempt| {
            if attempt > 0 {
                std::thread::yield_now();
            }
            self.file.try_lock()
        })
    }

    pub(crate) fn unlock(&self) {
        self.file.unlock();
    }

    pub(crate) fn read(&self, place: usize) -> [u64; RECORD_WORDS] {
        std::array::from_fn(|index| self.word(place, index).load(Ordering::Acquire))
    }

    /// Writes a record in a free place. It is free until its last word is written, wherever this process ends.
    pub(crate) fn write(&self, place: usize, words: [u64; RECORD_WORDS]) {
        self.word(place, UNTIL_WORD).store(0, Ordering::Release);
        for (index, word) in words.into_iter().enumerate().filter(|(index, _)| *index != UNTIL_WORD) {
            self.word(place, index).store(word, Ordering::Release);
        }
        self.word(place, UNTIL_WORD).store(words[UNTIL_WORD], Ordering::Release);
    }

    /// Changes one word of a record.
    pub(crate) fn set(&self, place: usize, index: usize, word: u64) {
        self.word(place, index).store(word, Ordering::Release);
    }

    /// Makes one word of a record at least this large.
    pub(crate) fn raise(&self, place: usize, index: usize, word: u64) {
        self.word(place, index).fetch_max(word, Ordering::AcqRel);
    }

    fn word(&self, place: usize, index: usize) -> &AtomicU64 {
        &self.words[place * RECORD_WORDS + index]
    }
}

//! A seqlock: a few words with many readers and rare writers, without a lock on the reader's side.
//!
//! Two slots alternate: a writer fills the slot that is not in use and then increments the turn. A reader that was
//! overtaken by two writers sees that the turn has changed, and reads again.

use crate::sync::{AtomicU64, Mutex, Ordering, fence};

/// The words that were published last.
///
/// Readers never block a writer and never wait for a lock. A reader repeats its read if a publication ends
/// meanwhile, so publications must be rare.
#[derive(Debug)]
pub(crate) struct SeqLock<const N: usize> {
    /// The number of publications; its lowest bit selects the slot in use.
    turn: AtomicU64,
    slots: [[AtomicU64; N]; 2],
    /// Held by the writer: publications are serial.
    writing: Mutex<()>,
}

impl<const N: usize> SeqLock<N> {
    /// Creates a lock with these words in both slots.
    pub(crate) fn new(words: [u64; N]) -> SeqLock<N> {
        let slot = || std::array::from_fn(|index| AtomicU64::new(words[index]));
        SeqLock { turn: AtomicU64::new(0), slots: [slot(), slot()], writing: Mutex::new(()) }
    }

    /// Returns the words, all from the same publication.
    #[inline(always)]
    pub(crate) fn read(&self) -> [u64; N] {
        loop {
            let turn = self.turn.load(Ordering::Acquire);
            let slot = &self.slots[(turn & 1) as usize];
            let words = std::array::from_fn(|index| slot[index].load(Ordering::Relaxed));
            // A reader that has seen a word of a later publication also sees its turn.
            fence(Ordering::Acquire);
            if self.turn.load(Ordering::Relaxed) == turn {
                return words;
            }
        }
    }

    /// Replaces the words by a function of the current ones.
    pub(crate) fn replace(&self, change: impl FnOnce([u64; N]) -> [u64; N]) {
        let _alone = self.writing.lock();
        let turn = self.turn.load(Ordering::Relaxed).wrapping_add(1);
        let words = change(self.read());
        // A reader that sees one of these words also sees the turn of the previous publication.
        fence(Ordering::Release);
        for (word, slot) in words.iter().zip(&self.slots[(turn & 1) as usize]) {
            slot.store(*word, Ordering::Relaxed);
        }
        self.turn.store(turn, Ordering::Release);
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;

    #[test]
    fn a_read_returns_the_last_publication() {
        let published = SeqLock::new([1, 2]);
        assert_eq!(published.read(), [1, 2]);
        for word in 3..9 {
            published.replace(|[first, _]| [first + 1, word]);
            assert_eq!(published.read(), [word - 1, word]);
        }
    }

    #[test]
    fn words_of_two_publications_are_never_mixed() {
        let rounds = if cfg!(miri) { 50 } else { 20_000 };
        let published = SeqLock::new([0; 4]);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut last = 0;
                    while last < rounds {
                        let words = published.read();
                        assert!(words.iter().all(|word| *word == words[0]), "{words:?}");
                        assert!(words[0] >= last, "{} after {last}", words[0]);
                        last = words[0];
                    }
                });
            }
            for _ in 0..rounds {
                published.replace(|words| words.map(|word| word + 1));
            }
        });
    }
}

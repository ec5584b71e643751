//! The metadata of the watched path, and the rule that decides when to read the file.
//!
//! A change of the metadata starts a count of equal looks. The file is read after [`RESTS`] of them, so a writer
//! that is at work postpones the read. Polling also works where notification of changes does not: on network
//! filesystems, and for mounted volumes of containers.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::rules::Occasion;

/// The number of equal looks in a row after which a changed file is read. The writer is assumed to have finished by
/// then.
pub(super) const RESTS: u32 = 2;
/// The same number for a file that is empty, missing, or has only a prefix of the text in force. Many writers truncate
/// or remove a file first, and can be delayed before they write.
pub(super) const RESTS_WITHOUT_TEXT: u32 = 8;
/// The number of equal looks after which a file is read anyway: not every filesystem records each change.
const READ_ANYWAY: u32 = 40;

/// The metadata of the target of a path, with all symbolic links followed. It differs if the file is replaced or
/// changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The file or directory that the path leads to; `changed` has the times of modification and of status change.
    There { device: u64, inode: u64, size: u64, changed: [(i64, i64); 2] },
    /// There is nothing to inspect, for this reason.
    NotThere(ErrorKind),
}

impl Look {
    /// Looks at the path once.
    pub(crate) fn at(path: &Path) -> Look {
        match fs::metadata(path) {
            Ok(seen) => Look::There {
                device: seen.dev(),
                inode: seen.ino(),
                size: seen.size(),
                changed: [(seen.mtime(), seen.mtime_nsec()), (seen.ctime(), seen.ctime_nsec())],
            },
            Err(error) => Look::NotThere(error.kind()),
        }
    }

    /// Returns the number of equal looks in a row that a read requires.
    fn rests(self) -> u32 {
        match self {
            Look::There { size: 0, .. } | Look::NotThere(_) => RESTS_WITHOUT_TEXT,
            Look::There { .. } => RESTS,
        }
    }
}

/// The state of the watcher of one file. The first look counts as a change, because the time of the last read is not
/// known.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// The metadata at the last read.
    read: Option<Look>,
    /// The metadata at the last look.
    last: Option<Look>,
    /// The number of equal looks in a row, since the last read if there was one.
    times: u32,
    /// True if the last read found a prefix of the text in force.
    is_short: bool,
}

impl Watched {
    /// Returns the cause of a read if one is due: the file has changed and is at rest, or has looked the same for long.
    pub(crate) fn is_to_be_read(&mut self, look: Look) -> Option<Occasion> {
        if self.last != Some(look) {
            (self.last, self.times, self.is_short) = (Some(look), 0, false);
        }
        self.times += 1;
        let enough = match self.read == Some(look) {
            _ if self.is_short => RESTS_WITHOUT_TEXT,
            true => READ_ANYWAY,
            false => look.rests(),
        };
        if self.times < enough {
            return None;
        }
        (self.read, self.times, self.is_short) = (Some(look), 0, false);
        // A change that is found after [`READ_ANYWAY`] equal looks may be a moment old, so it counts as just seen.
        Some(if enough == RESTS_WITHOUT_TEXT { Occasion::Rested(look) } else { Occasion::Seen(look) })
    }

    /// Schedules one more read of the same file: the text was a prefix, and the writer may add the rest.
    pub(crate) fn wait_for_the_rest(&mut self) {
        (self.times, self.is_short) = (RESTS, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(size: u64) -> Look {
        Look::There { device: 1, inode: 2, size, changed: [(3, 4); 2] }
    }

    /// Returns, for each look, whether it leads to a read.
    fn read(watched: &mut Watched, sizes: &[u64]) -> Vec<bool> {
        sizes.iter().map(|size| watched.is_to_be_read(look(*size)).is_some()).collect()
    }

    #[test]
    fn a_file_is_read_when_it_rests() {
        let mut watched = Watched::default();
        assert_eq!(read(&mut watched, &[1, 1, 1, 2, 2, 2]), [false, true, false, false, true, false]);
    }

    #[test]
    fn a_file_that_is_being_written_is_left_alone() {
        let mut watched = Watched::default();
        read(&mut watched, &[1, 1]);
        assert_eq!(read(&mut watched, &[2, 3, 4, 5, 6, 7]), [false; 6]);
        assert_eq!(read(&mut watched, &[7]), [true]);
    }

    #[test]
    fn a_file_that_is_back_as_it_was_is_not_read() {
        let mut watched = Watched::default();
        read(&mut watched, &[1, 1]);
        assert_eq!(read(&mut watched, &[2, 1, 2, 1]), [false; 4], "seen twice, but not in a row");
        assert_eq!(read(&mut watched, &[2, 2]), [false, true]);
    }

    #[test]
    fn a_file_that_is_empty_for_a_while_is_left_alone() {
        let mut watched = Watched::default();
        read(&mut watched, &[1, 1]);
        assert_eq!(read(&mut watched, &[0; RESTS_WITHOUT_TEXT as usize - 1]), [false; 7]);
        assert_eq!(read(&mut watched, &[2, 2]), [false, true]);
        assert!(read(&mut watched, &[0; RESTS_WITHOUT_TEXT as usize])[7]);
    }

    #[test]
    fn what_may_be_a_beginning_is_read_once_more_when_it_has_rested_like_an_empty_file() {
        let mut watched = Watched::default();
        assert_eq!(watched.is_to_be_read(look(1)), None);
        assert_eq!(watched.is_to_be_read(look(1)), Some(Occasion::Seen(look(1))));
        watched.wait_for_the_rest();
        assert_eq!(read(&mut watched, &[1; 5]), [false; 5]);
        assert_eq!(watched.is_to_be_read(look(1)), Some(Occasion::Rested(look(1))));
        assert_eq!(read(&mut watched, &[1; READ_ANYWAY as usize - 1]), [false; 39]);
        watched.wait_for_the_rest();
        assert_eq!(read(&mut watched, &[2, 2]), [false, true], "it has changed");
    }

    #[test]
    fn a_file_that_looks_the_same_is_read_anyway_once_in_a_while() {
        let mut watched = Watched::default();
        read(&mut watched, &[1, 1]);
        for _ in 0..3 {
            let looks = read(&mut watched, &[1; READ_ANYWAY as usize]);
            assert_eq!(looks.iter().position(|read| *read), Some(READ_ANYWAY as usize - 1));
        }
    }

    #[test]
    fn that_it_is_gone_is_seen_like_a_change() {
        let mut watched = Watched::default();
        read(&mut watched, &[1, 1]);
        let gone = Look::NotThere(ErrorKind::NotFound);
        let looks = [gone; RESTS_WITHOUT_TEXT as usize + 1].map(|look| watched.is_to_be_read(look).is_some());
        assert_eq!(looks.iter().position(|read| *read), Some(RESTS_WITHOUT_TEXT as usize - 1));
        assert_eq!(looks.iter().filter(|read| **read).count(), 1);
        assert_eq!(read(&mut watched, &[1, 1]), [false, true]);
    }
}

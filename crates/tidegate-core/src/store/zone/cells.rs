//! The memory of a zone as buckets of cells.
//!
//! | build | memory | shared with other processes |
//! |---|---|---|
//! | usual | pages from the system, huge ones from 2 MiB on | no |
//! | usual, with a file | pages of the file | yes |
//! | models | a boxed slice of locks | no |
//!
//! All three have the same methods, so the rest of the zone does not depend on the choice.

use super::table::Bucket;

#[cfg(not(tidegate_models))]
pub(super) use mapped::Cells;
/// Models need locks, which cannot be in raw memory.
#[cfg(tidegate_models)]
pub(super) use model::Cells;

#[cfg(not(tidegate_models))]
mod mapped {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::super::memory::{MappedPart, Mapping, ZoneFile};
    use super::Bucket;

    /// The buckets of a zone, in memory or in a file.
    #[derive(Debug)]
    pub(in crate::store::zone) struct Cells {
        buckets: MappedPart<Bucket>,
        file: Option<Arc<ZoneFile>>,
        /// The longest debt of any limit in use, unless the file stores it.
        deepest: AtomicU64,
    }

    impl Cells {
        /// Creates empty buckets. Without memory the process ends, as after every failed allocation.
        pub(in crate::store::zone) fn anonymous(buckets: usize) -> Cells {
            Cells::of(Mapping::anonymous(buckets * size_of::<Bucket>()), buckets)
        }

        /// Creates empty buckets, or returns an error if the system provides no memory.
        pub(in crate::store::zone) fn try_anonymous(buckets: usize) -> io::Result<Cells> {
            Ok(Cells::of(Mapping::try_anonymous(buckets * size_of::<Bucket>())?, buckets))
        }

        /// Uses the whole mapping as buckets; zero bytes are free cells.
        fn of(mapping: Mapping, buckets: usize) -> Cells {
            let buckets = Arc::new(mapping).part(0, buckets);
            Cells { buckets, file: None, deepest: AtomicU64::new(0) }
        }

        /// Returns the buckets of a file.
        pub(in crate::store::zone) fn of_file(file: Arc<ZoneFile>) -> Cells {
            Cells { buckets: file.cells(), file: Some(file), deepest: AtomicU64::new(0) }
        }

        /// Returns all buckets. Their cells change while they are read.
        #[inline(always)]
        pub(in crate::store::zone) fn buckets(&self) -> &[Bucket] {
            &self.buckets
        }

        /// Returns the longest debt of any limit in use, also by other processes. Raises it to `at_least` first.
        #[inline]
        pub(in crate::store::zone) fn deepest(&self, at_least: u64) -> u64 {
            let deepest = self.file.as_ref().map_or(&self.deepest, |file| file.deepest());
            let known = deepest.load(Ordering::Relaxed);
            if at_least <= known {
                known
            } else {
                deepest.fetch_max(at_least, Ordering::Relaxed).max(at_least)
            }
        }

        /// Returns true if other processes may use the buckets as well.
        pub(in crate::store::zone) fn is_in_file(&self) -> bool {
            self.file.is_some()
        }

        /// Waits until the cells are on disk. In memory there is nothing to do.
        pub(in crate::store::zone) fn flush(&self) -> io::Result<()> {
            self.file.as_ref().map_or(Ok(()), |file| file.flush())
        }
    }
}

#[cfg(tidegate_models)]
mod model {
    use std::io;

    use super::Bucket;
    use crate::sync::{AtomicU64, Ordering};

    /// The buckets of a model: few, and each cell behind a lock.
    #[derive(Debug)]
    pub(in crate::store::zone) struct Cells {
        buckets: Box<[Bucket]>,
        deepest: AtomicU64,
    }

    impl Cells {
        pub(in crate::store::zone) fn anonymous(buckets: usize) -> Cells {
            Cells { buckets: (0..buckets).map(|_| Bucket::new()).collect(), deepest: AtomicU64::new(0) }
        }

        pub(in crate::store::zone) fn try_anonymous(buckets: usize) -> io::Result<Cells> {
            Ok(Cells::anonymous(buckets))
        }

        pub(in crate::store::zone) fn buckets(&self) -> &[Bucket] {
            &self.buckets
        }

        pub(in crate::store::zone) fn deepest(&self, at_least: u64) -> u64 {
            self.deepest.fetch_max(at_least, Ordering::Relaxed).max(at_least)
        }

        pub(in crate::store::zone) fn is_in_file(&self) -> bool {
            false
        }

        pub(in crate::store::zone) fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }
}

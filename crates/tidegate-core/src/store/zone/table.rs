//! The table of all cells of a zone. Four cells are a cache line, two lines are a bucket, and each key has two buckets.
//!
//! ```text
//!        first bucket                   second bucket
//!   +----+----+----+----+          +----+----+----+----+
//!   |cell|cell|cell|cell|  line    |cell|cell|cell|cell|
//!   +----+----+----+----+          +----+----+----+----+
//!   |cell|cell|cell|cell|  line    |cell|cell|cell|cell|
//!   +----+----+----+----+          +----+----+----+----+
//! ```
//!
//! With two buckets of eight to choose from, all cells but one in a thousand can be in use before a new key finds none.
//! `docs/zone.md` has the figures.

use super::atomic::{Cell, LINE, Wide};
use super::cell::{Content, Fingerprint, Kind};
use super::cells::Cells;
use crate::time::Timestamp;

/// The cache lines of a bucket, which processors fetch together.
const LINES: usize = if cfg!(tidegate_models) { 1 } else { 2 };
/// The bytes of a bucket.
pub(super) const BUCKET_BYTES: usize = BUCKET * size_of::<Content>();
/// The cells of a bucket.
pub(super) const BUCKET: usize = LINES * LINE;
/// The cells in which the state of a key may be.
const REACH: usize = 2 * BUCKET;
/// The fewest buckets of a zone: a key has two different ones.
const FEWEST: usize = 2;

/// A group of cells that are searched together.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Bucket([[Cell; LINE]; LINES]);

#[cfg(not(tidegate_models))]
#[expect(unsafe_code, reason = "only who knows a type can promise this")]
// SAFETY: a bucket contains only cells: any bytes are valid, and a cell is changed in one atomic step.
unsafe impl super::memory::Shareable for Bucket {}

#[cfg(tidegate_models)]
impl Bucket {
    pub(super) fn new() -> Bucket {
        Bucket([(); LINES].map(|()| [(); LINE].map(|()| Cell::new())))
    }
}

/// The two buckets of a key, and its fingerprint.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketPair {
    pub(super) fingerprint: Fingerprint,
    first: usize,
    second: usize,
}

impl BucketPair {
    /// A placeholder that matches no key.
    pub(super) const NOWHERE: BucketPair = BucketPair { fingerprint: Fingerprint::NONE, first: 0, second: 0 };

    /// Returns a number that spreads keys over the stripes of striped counters.
    pub(super) fn place(&self) -> usize {
        self.first
    }
}

/// The cells of a zone, and the instructions to access them.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) cells: Cells,
    wide: Wide,
}

impl Table {
    /// Returns the number of buckets that fit into `bytes`, at least [`FEWEST`].
    pub(super) fn buckets_in(bytes: usize) -> usize {
        (bytes / BUCKET_BYTES).max(FEWEST)
    }

    pub(super) fn new(cells: Cells) -> Table {
        Table { cells, wide: Wide::detect() }
    }

    /// Returns the number of buckets, which never changes.
    pub(super) fn buckets(&self) -> usize {
        self.cells.buckets().len()
    }

    /// Returns the number of cells, the most keys that can have one at the same time.
    pub(super) fn cell_count(&self) -> usize {
        self.buckets() * BUCKET
    }

    /// Returns the buckets and the fingerprint of the key with this hash. The first half of the hash selects both
    /// buckets by multiplication, which needs no power of two; the second half is the fingerprint.
    #[inline(always)]
    pub(super) fn spot(&self, [place, rest]: [u64; 2]) -> BucketPair {
        let buckets = self.buckets();
        let share = |bits: u64| ((u128::from(bits) * buckets as u128) >> 64) as usize;
        let (first, mut second) = (share(place), share(place.rotate_left(32)));
        if second == first {
            second = if first == 0 { 1 } else { first - 1 };
        }
        BucketPair { fingerprint: Fingerprint::new(rest), first, second }
    }

    /// Prefetches the cache lines in which a key nearly always is.
    #[inline]
    pub(super) fn prefetch(&self, spot: &BucketPair) {
        let buckets = self.cells.buckets();
        Cell::prefetch(&buckets[spot.first].0[0]);
        Cell::prefetch(&buckets[spot.second].0[0]);
    }

    /// Returns the cell of a key and its content. A tentative cell of the key counts.
    #[inline(always)]
    pub(super) fn find(&self, spot: &BucketPair) -> Option<(&Cell, Content)> {
        let found = self.find_in(spot.first, 0, spot.fingerprint);
        if found.is_some() { found } else { self.find_in_second(spot) }
    }

    /// Searches the other cache lines: new keys go into the first line of a bucket while it has a free cell.
    #[inline]
    fn find_in_second(&self, spot: &BucketPair) -> Option<(&Cell, Content)> {
        let find = |bucket, line| self.find_in(bucket, line, spot.fingerprint);
        let both = |line| find(spot.first, line).or_else(|| find(spot.second, line));
        find(spot.second, 0).or_else(|| (1..LINES).find_map(both))
    }

    /// Returns the cell of a fingerprint in one cache line.
    #[inline(always)]
    fn find_in(&self, bucket: usize, line: usize, fingerprint: Fingerprint) -> Option<(&Cell, Content)> {
        let line = &self.cells.buckets()[bucket].0[line];
        self.wide.find_in_line(line, |content| content.is_of(fingerprint))
    }

    /// Replaces the content of a cell by compare-and-swap. Returns false if it has changed since it was read.
    #[inline(always)]
    pub(super) fn replace(&self, cell: &Cell, old: Content, new: Content) -> bool {
        self.wide.replace(cell, old, new)
    }

    /// Reads all cells of both buckets of a key. It is not atomic as a whole: a cell may change before the next one is
    /// read. Every write therefore compares the content first.
    pub(super) fn view(&self, spot: &BucketPair) -> View<'_> {
        let buckets = self.cells.buckets();
        let lines = [spot.first, spot.second].map(|bucket| &buckets[bucket].0);
        let mut seen = [Content::NOTHING; REACH];
        for (contents, line) in seen.chunks_exact_mut(LINE).zip(lines.into_iter().flatten()) {
            contents.copy_from_slice(&self.wide.load_line(line));
        }
        View { table: self, spot: *spot, seen }
    }

    /// Returns the contents of a bucket, for statistics.
    pub(super) fn contents(&self, bucket: usize) -> impl Iterator<Item = Content> + '_ {
        self.cells.buckets()[bucket].0.iter().flat_map(|line| self.wide.load_line(line))
    }
}

/// A snapshot of the cells of a key's two buckets, read one after the other.
#[derive(Debug)]
pub(super) struct View<'a> {
    table: &'a Table,
    spot: BucketPair,
    seen: [Content; REACH],
}

/// One cell of a view: a snapshot of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CellSnapshot {
    index: usize,
    pub(super) content: Content,
    /// The number of the cell among all cells, by which all threads order cells in the same way.
    pub(super) number: usize,
}

impl CellSnapshot {
    /// Returns the same cell after `content` was written to it.
    pub(super) fn with(self, content: Content) -> CellSnapshot {
        CellSnapshot { content, ..self }
    }
}

impl<'a> View<'a> {
    /// Returns all cells, those of the first bucket first.
    fn all(&self) -> impl Iterator<Item = CellSnapshot> + '_ {
        (0..REACH).map(|index| self.sighting(index))
    }

    /// Returns the bucket of a cell of the view.
    fn bucket(&self, index: usize) -> usize {
        if index < BUCKET { self.spot.first } else { self.spot.second }
    }

    /// Returns the cell of a snapshot.
    fn cell(&self, sighting: CellSnapshot) -> &'a Cell {
        let CellSnapshot { index, .. } = sighting;
        &self.table.cells.buckets()[self.bucket(index)].0[index % BUCKET / LINE][index % LINE]
    }

    /// Replaces the content of a cell by compare-and-swap. Returns false if it has changed since it was read.
    pub(super) fn replace(&self, sighting: CellSnapshot, new: Content) -> bool {
        self.table.replace(self.cell(sighting), sighting.content, new)
    }

    /// Returns the key's own cells; there is more than one while several threads insert the key.
    pub(super) fn own(&self) -> impl Iterator<Item = CellSnapshot> + '_ {
        self.all().filter(|sighting| sighting.content.is_of(self.spot.fingerprint))
    }

    /// Collects the cells that a key without a cell can use.
    pub(super) fn survey(&self, now: Timestamp) -> Survey {
        let mut survey = Survey::default();
        let mut free = [(0, None); 2];
        for (index, content) in self.seen.iter().enumerate() {
            let (half, word) = (index / BUCKET, content.word);
            if content.is_free(now) {
                free[half].0 += 1;
                free[half].1.get_or_insert(index);
            }
            match content.kind() {
                Kind::Shared => {
                    survey.shared_until = survey.shared_until.max(content.clear_at());
                    if half == 0 {
                        survey.shared.get_or_insert(index);
                    }
                }
                Kind::Forgettable => less(&mut survey.forgettable, index, word),
                Kind::Own if half == 0 => less(&mut survey.least, index, word),
                Kind::Own | Kind::Tentative => {}
            }
        }
        let [first, second] = free;
        survey.free = if second.0 > first.0 { second.1 } else { first.1 };
        survey
    }

    /// Returns one cell of the snapshot.
    pub(super) fn sighting(&self, index: usize) -> CellSnapshot {
        let number = self.bucket(index) * BUCKET + index % BUCKET;
        CellSnapshot { index, content: self.seen[index], number }
    }

    /// Returns a tentative cell of the first bucket.
    pub(super) fn wanted(&self) -> Option<CellSnapshot> {
        self.all().take(BUCKET).find(|sighting| sighting.content.kind() == Kind::Tentative)
    }

    /// Returns an upper bound of the debt of a key without a cell: the latest time of the shared cells of both buckets.
    pub(super) fn shared_until(&self) -> Timestamp {
        let shared = self.seen.iter().filter(|content| content.is_shared());
        shared.map(|content| content.clear_at()).max().unwrap_or(Timestamp::EPOCH)
    }

    /// Returns true if `one` is still the shared cell that this key charges, and no other shared cell has a time after
    /// `until`.
    pub(super) fn is_charged_in(&self, one: CellSnapshot, until: Timestamp) -> bool {
        let shared = |index: &usize| self.seen[*index].is_shared();
        (0..BUCKET).find(shared) == Some(one.index)
            && (0..REACH)
                .filter(shared)
                .all(|index| index == one.index || self.seen[index].clear_at() <= until)
    }

    /// Returns the cells whose time is later than `time`.
    pub(super) fn later_than(&self, time: Timestamp) -> impl Iterator<Item = CellSnapshot> + '_ {
        self.all().filter(move |sighting| sighting.content.clear_at() > time)
    }
}

/// The cells of a view that a key without a cell of its own can use, by index.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// A free cell in the bucket that has more of them.
    pub(super) free: Option<usize>,
    /// The [`Kind::Forgettable`] cell with the smallest word, and that word.
    pub(super) forgettable: Option<(usize, u64)>,
    /// The [`Kind::Own`] cell of the first bucket with the smallest word, and that word.
    pub(super) least: Option<(usize, u64)>,
    /// The shared cell that this key charges: the first one of the first bucket.
    pub(super) shared: Option<usize>,
    /// An upper bound of the debt of such a key: the latest time of the shared cells of both buckets.
    pub(super) shared_until: Timestamp,
}

impl Survey {
    /// Returns a cell for a new key: a free one, or the forgettable one with the smallest word.
    pub(super) fn room(&self) -> Option<usize> {
        self.free.or(self.forgettable.map(|(index, _)| index))
    }
}

/// Keeps the cell with the smaller word.
fn less(found: &mut Option<(usize, u64)>, index: usize, word: u64) {
    if found.is_none_or(|(_, least)| word < least) {
        *found = Some((index, word));
    }
}

#[cfg(all(test, not(tidegate_models)))]
impl Table {
    /// Writes `content` into an empty cell.
    pub(super) fn put(&self, bucket: usize, index: usize, content: Content) -> bool {
        let cell = &self.cells.buckets()[bucket].0[index / LINE][index % LINE];
        self.replace(cell, Content::NOTHING, content)
    }
}

#[cfg(all(test, not(tidegate_models)))]
impl BucketPair {
    pub(super) fn buckets(&self) -> (usize, usize) {
        (self.first, self.second)
    }
}

//! All cells of a zone: lines of four, two of which are a bucket, two of which are where a subject may be.
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
//! With two buckets of eight to choose from, all cells but one in a thousand can be in use before somebody finds
//! none; `docs/zone.md` has the figures.

use super::atomic::{Cell, LINE, Wide};
use super::cell::{Content, Fingerprint, Kind};
use super::cells::Cells;
use crate::time::Timestamp;

/// Lines of a bucket, which processors fetch together.
const LINES: usize = if cfg!(tidegate_models) { 1 } else { 2 };
/// Bytes of a bucket.
pub(super) const BUCKET_BYTES: usize = BUCKET * size_of::<Content>();
/// Cells of a bucket.
pub(super) const BUCKET: usize = LINES * LINE;
/// Cells in which a subject may be.
const REACH: usize = 2 * BUCKET;
/// The fewest buckets of a zone: a subject has two different ones.
const FEWEST: usize = 2;

/// As many cells as are looked at together.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Bucket([[Cell; LINE]; LINES]);

#[cfg(not(tidegate_models))]
#[expect(unsafe_code, reason = "only who knows a type can promise this")]
// SAFETY: a bucket is cells and nothing else: any bytes will do, and a cell is changed in one atomic step.
unsafe impl super::memory::Shareable for Bucket {}

#[cfg(tidegate_models)]
impl Bucket {
    pub(super) fn new() -> Bucket {
        Bucket([(); LINES].map(|()| [(); LINE].map(|()| Cell::new())))
    }
}

/// Where a subject may be, and what it is known by there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) fingerprint: Fingerprint,
    first: usize,
    second: usize,
}

impl Spot {
    /// Where nobody is looked for.
    pub(super) const NOWHERE: Spot = Spot { fingerprint: Fingerprint::NOBODY, first: 0, second: 0 };

    /// A number that spreads subjects, for those who count them in several places.
    pub(super) fn place(&self) -> usize {
        self.first
    }
}

#[derive(Debug)]
pub(super) struct Table {
    pub(super) cells: Cells,
    wide: Wide,
}

impl Table {
    /// As many buckets as fit so many bytes.
    pub(super) fn buckets_in(bytes: usize) -> usize {
        (bytes / BUCKET_BYTES).max(FEWEST)
    }

    pub(super) fn new(cells: Cells) -> Table {
        Table { cells, wide: Wide::detect() }
    }

    pub(super) fn buckets(&self) -> usize {
        self.cells.buckets().len()
    }

    pub(super) fn cell_count(&self) -> usize {
        self.buckets() * BUCKET
    }

    /// The place of the subject with this hash.
    #[inline(always)]
    pub(super) fn spot(&self, [place, rest]: [u64; 2]) -> Spot {
        let buckets = self.buckets();
        let share = |bits: u64| ((u128::from(bits) * buckets as u128) >> 64) as usize;
        let (first, mut second) = (share(place), share(place.rotate_left(32)));
        if second == first {
            second = if first == 0 { 1 } else { first - 1 };
        }
        Spot { fingerprint: Fingerprint::new(rest), first, second }
    }

    /// Has a subject's lines at hand soon in which it nearly always is.
    #[inline]
    pub(super) fn prefetch(&self, spot: &Spot) {
        let buckets = self.cells.buckets();
        Cell::prefetch(&buckets[spot.first].0[0]);
        Cell::prefetch(&buckets[spot.second].0[0]);
    }

    /// Where this subject is, and what is there; a place that is wanted for it counts.
    #[inline(always)]
    pub(super) fn find(&self, spot: &Spot) -> Option<(&Cell, Content)> {
        let found = self.find_in(spot.first, 0, spot.fingerprint);
        if found.is_some() { found } else { self.find_elsewhere(spot) }
    }

    /// The same in the other lines: newcomers are put into the first line of a bucket as long as it has room.
    #[inline]
    fn find_elsewhere(&self, spot: &Spot) -> Option<(&Cell, Content)> {
        let find = |bucket, line| self.find_in(bucket, line, spot.fingerprint);
        let both = |line| find(spot.first, line).or_else(|| find(spot.second, line));
        find(spot.second, 0).or_else(|| (1..LINES).find_map(both))
    }

    #[inline(always)]
    fn find_in(&self, bucket: usize, line: usize, fingerprint: Fingerprint) -> Option<(&Cell, Content)> {
        let line = &self.cells.buckets()[bucket].0[line];
        self.wide.find_in_line(line, |content| content.is_of(fingerprint))
    }

    /// Puts something else into a cell, unless it has changed since it was seen.
    #[inline(always)]
    pub(super) fn replace(&self, cell: &Cell, old: Content, new: Content) -> bool {
        self.wide.replace(cell, old, new)
    }

    /// Everything where this subject may be.
    pub(super) fn view(&self, spot: &Spot) -> View<'_> {
        let buckets = self.cells.buckets();
        let lines = [spot.first, spot.second].map(|bucket| &buckets[bucket].0);
        let mut seen = [Content::NOTHING; REACH];
        for (contents, line) in seen.chunks_exact_mut(LINE).zip(lines.into_iter().flatten()) {
            contents.copy_from_slice(&self.wide.load_line(line));
        }
        View { table: self, spot: *spot, seen }
    }

    /// What is in a bucket, for those who count.
    pub(super) fn contents(&self, bucket: usize) -> impl Iterator<Item = Content> + '_ {
        self.cells.buckets()[bucket].0.iter().flat_map(|line| self.wide.load_line(line))
    }
}

/// What was in the cells of a subject's two buckets when they were looked at, one after the other.
#[derive(Debug)]
pub(super) struct View<'a> {
    table: &'a Table,
    spot: Spot,
    seen: [Content; REACH],
}

/// One of the cells of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    index: usize,
    pub(super) content: Content,
    /// Its number among all cells, by which everybody puts cells in the same order.
    pub(super) number: usize,
}

impl Sighting {
    /// The same cell after something else was put there.
    pub(super) fn with(self, content: Content) -> Sighting {
        Sighting { content, ..self }
    }
}

impl<'a> View<'a> {
    /// All cells, those of the first bucket first.
    fn all(&self) -> impl Iterator<Item = Sighting> + '_ {
        (0..REACH).map(|index| self.sighting(index))
    }

    fn bucket(&self, index: usize) -> usize {
        if index < BUCKET { self.spot.first } else { self.spot.second }
    }

    fn cell(&self, sighting: Sighting) -> &'a Cell {
        let Sighting { index, .. } = sighting;
        &self.table.cells.buckets()[self.bucket(index)].0[index % BUCKET / LINE][index % LINE]
    }

    /// Puts something else into a cell, unless it has changed since it was seen.
    pub(super) fn replace(&self, sighting: Sighting, new: Content) -> bool {
        self.table.replace(self.cell(sighting), sighting.content, new)
    }

    /// The cells of the subject itself; more than one while newcomers meet.
    pub(super) fn own(&self) -> impl Iterator<Item = Sighting> + '_ {
        self.all().filter(|sighting| sighting.content.is_of(self.spot.fingerprint))
    }

    /// What there is for a subject that has no cell.
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

    /// One of the cells that were seen.
    pub(super) fn sighting(&self, index: usize) -> Sighting {
        let number = self.bucket(index) * BUCKET + index % BUCKET;
        Sighting { index, content: self.seen[index], number }
    }

    /// A cell of the first bucket that is only wanted.
    pub(super) fn wanted(&self) -> Option<Sighting> {
        self.all().take(BUCKET).find(|sighting| sighting.content.kind() == Kind::Tentative)
    }

    /// Until when a subject without a cell may owe: the latest of what both buckets share.
    pub(super) fn shared_until(&self) -> Timestamp {
        let shared = self.seen.iter().filter(|content| content.is_shared());
        shared.map(|content| content.clear_at()).max().unwrap_or(Timestamp::EPOCH)
    }

    /// Whether one shared cell is still the one that is charged for this subject, and no other says more than this.
    pub(super) fn is_charged_in(&self, one: Sighting, until: Timestamp) -> bool {
        let shared = |index: &usize| self.seen[*index].is_shared();
        (0..BUCKET).find(shared) == Some(one.index)
            && (0..REACH)
                .filter(shared)
                .all(|index| index == one.index || self.seen[index].clear_at() <= until)
    }

    /// Cells whose time is later than this.
    pub(super) fn later_than(&self, time: Timestamp) -> impl Iterator<Item = Sighting> + '_ {
        self.all().filter(move |sighting| sighting.content.clear_at() > time)
    }
}

/// What there is in a view for a subject that has no cell of its own, by index.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// A free cell in the bucket that has more of them.
    pub(super) free: Option<usize>,
    /// The cell of somebody who may be forgotten that is worth the least, and what it is worth.
    pub(super) forgettable: Option<(usize, u64)>,
    /// The cell of somebody in the first bucket who owes the least.
    pub(super) least: Option<(usize, u64)>,
    /// The shared cell that is charged for this subject: the first of the first bucket.
    pub(super) shared: Option<usize>,
    /// Until when such a subject may owe: the latest of what both buckets share.
    pub(super) shared_until: Timestamp,
}

impl Survey {
    /// A cell that a newcomer may have: a free one, or that of somebody who may be forgotten.
    pub(super) fn room(&self) -> Option<usize> {
        self.free.or(self.forgettable.map(|(index, _)| index))
    }
}

/// Remembers the cell with the smaller word.
fn less(found: &mut Option<(usize, u64)>, index: usize, word: u64) {
    if found.is_none_or(|(_, least)| word < least) {
        *found = Some((index, word));
    }
}

#[cfg(all(test, not(tidegate_models)))]
impl Table {
    /// Puts something into a cell that is empty.
    pub(super) fn put(&self, bucket: usize, index: usize, content: Content) -> bool {
        let cell = &self.cells.buckets()[bucket].0[index / LINE][index % LINE];
        self.replace(cell, Content::NOTHING, content)
    }
}

#[cfg(all(test, not(tidegate_models)))]
impl Spot {
    pub(super) fn buckets(&self) -> (usize, usize) {
        (self.first, self.second)
    }
}

//! Time zones as plain numbers: a name, and the instants at which the offset from UTC changes.
//!
//! This library has no time zone database. A program hands the changes of a zone down once, and from then on the zone
//! is a `Copy` value: its table is kept for the rest of the process, once for each name. The crate `tidegate-rules`
//! does this with the database of the machine.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};

/// The longest name, in bytes. The longest of the IANA database has 32.
const MAX_NAME: usize = 64;
/// The most changes of one zone. Twice a year from 1900 to 2400 are 1,000.
const MAX_CHANGES: usize = 1_024;
/// The most zones of a process. The IANA database has about 600 names.
const MAX_ZONES: usize = 2_048;
/// The largest offset from UTC, in seconds: more than any zone ever had.
const MAX_OFFSET: i32 = 26 * 3600;

/// The zones of this process, by the digest of their names.
static ZONES: Mutex<BTreeMap<u64, &'static OffsetTable>> = Mutex::new(BTreeMap::new());
/// The zones without offsets of this process, by the digest of their names.
static NAMES: Mutex<BTreeMap<u64, &'static ZoneName>> = Mutex::new(BTreeMap::new());

/// A time zone: a name, and its offsets from UTC.
///
/// ```
/// use tidegate::TimeZone;
///
/// // One hour before UTC from 1970 on, two hours from 2026-03-29T01:00Z on.
/// let zone = TimeZone::new("Example/Summer", 3600, [(1_774_746_000, 7200)])?;
/// assert_eq!(zone.name(), "Example/Summer");
/// assert_eq!(zone, TimeZone::new("Example/Summer", 3600, [(1_774_746_000, 7200)])?);
/// # Ok::<(), tidegate::TimeZoneError>(())
/// ```
#[doc(alias("tz", "IANA", "daylight saving time", "DST"))]
#[derive(Clone, Copy)]
pub struct TimeZone(Inner);

#[derive(Clone, Copy)]
enum Inner {
    Utc,
    Known(&'static OffsetTable),
    /// The digest of a zone that no limit of this process names. It comes from a file or a server that has had a limit
    /// in that zone.
    Unresolved(u64),
    /// The name of a zone whose offsets are not known.
    Named(&'static ZoneName),
}

/// The name of a zone without offsets.
#[derive(Debug)]
struct ZoneName {
    name: Box<str>,
    digest: u64,
}

/// The offsets of one zone.
#[derive(Debug, PartialEq, Eq)]
struct OffsetTable {
    name: Box<str>,
    digest: u64,
    /// The offset before the first change.
    first: i32,
    /// The seconds since 1970 of each change, and the offset from then on.
    changes: Box<[(i64, i32)]>,
    /// The largest step back of the zone's clock, in seconds.
    largest_step_back: u32,
}

impl TimeZone {
    /// UTC.
    pub const UTC: TimeZone = TimeZone(Inner::Utc);

    /// Creates a zone from its offsets in seconds east of UTC: the first one, and each change with its time since 1970.
    ///
    /// The table is kept for the rest of the process. A second call with the same name returns the zone of the first.
    /// The name `UTC` is [`TimeZone::UTC`].
    pub fn new(
        name: &str,
        first: i32,
        changes: impl IntoIterator<Item = (i64, i32)>,
    ) -> Result<TimeZone, TimeZoneError> {
        if name == "UTC" {
            return Ok(TimeZone::UTC);
        }
        if let Some(known) = TimeZone::known(digest(name)) {
            return Ok(known);
        }
        let table = OffsetTable::new(name, first, changes)?;
        let mut zones = ZONES.lock().unwrap_or_else(PoisonError::into_inner);
        if zones.len() >= MAX_ZONES {
            return Err(TimeZoneError("a process has at most 2,048 time zones; use fewer"));
        }
        let kept: &'static OffsetTable =
            zones.entry(table.digest).or_insert_with(|| Box::leak(Box::new(table)));
        Ok(TimeZone(Inner::Known(kept)))
    }

    /// Creates a zone without offsets: a zone that a document names and the database of this machine does not have.
    ///
    /// A limit in it keeps its text. It decides nothing that is meant: check [`TimeZone::is_resolved`] before it is used.
    /// The name is kept for the rest of the process. A zone of this name that has offsets takes precedence.
    pub fn unresolved(name: &str) -> Result<TimeZone, TimeZoneError> {
        if let Some(known) = TimeZone::get(name) {
            return Ok(known);
        }
        let OffsetTable { name, digest, .. } = OffsetTable::new(name, 0, [])?;
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= MAX_ZONES && !names.contains_key(&digest) {
            return Err(TimeZoneError("a process has at most 2,048 time zones; use fewer"));
        }
        let kept: &'static ZoneName =
            names.entry(digest).or_insert_with(|| Box::leak(Box::new(ZoneName { name, digest })));
        Ok(TimeZone(Inner::Named(kept)))
    }

    /// Returns the zone of this name, if this process has created it.
    pub fn get(name: &str) -> Option<TimeZone> {
        if name == "UTC" { Some(TimeZone::UTC) } else { TimeZone::known(digest(name)) }
    }

    /// Returns the zone whose name has this digest, if this process has one.
    fn known(digest: u64) -> Option<TimeZone> {
        let zones = ZONES.lock().unwrap_or_else(PoisonError::into_inner);
        zones.get(&digest).map(|table| TimeZone(Inner::Known(table)))
    }

    /// Returns the zone with this digest. A zone that this process does not know has no offsets.
    pub(crate) fn of_digest(digest: u64) -> TimeZone {
        match digest {
            0 => TimeZone::UTC,
            _ => TimeZone::known(digest).unwrap_or(TimeZone(Inner::Unresolved(digest))),
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        match self.0 {
            Inner::Utc => "UTC",
            Inner::Known(table) => &table.name,
            Inner::Unresolved(_) => "unknown",
            Inner::Named(zone) => &zone.name,
        }
    }

    /// Returns the digest of the name; zero for UTC. It names states, so it must never change.
    pub(crate) const fn digest(&self) -> u64 {
        match self.0 {
            Inner::Utc => 0,
            Inner::Known(table) => table.digest,
            Inner::Unresolved(digest) => digest,
            Inner::Named(zone) => zone.digest,
        }
    }

    /// Returns false if the offsets are not known.
    pub fn is_resolved(&self) -> bool {
        !matches!(self.0, Inner::Unresolved(_) | Inner::Named(_))
    }

    /// Returns the largest step back of the zone's clock, in seconds.
    pub(super) fn largest_step_back(&self) -> u32 {
        if let Inner::Known(table) = self.0 { table.largest_step_back } else { 0 }
    }

    /// Returns the instants within a stretch at which the zone's clock is set.
    pub(super) fn changes_within(&self, stretch: std::ops::Range<i64>) -> impl Iterator<Item = i64> {
        let changes: &[(i64, i32)] = if let Inner::Known(table) = self.0 { &table.changes } else { &[] };
        changes.iter().map(|(at, _)| *at).filter(move |at| stretch.contains(at))
    }

    /// Returns the local time at an instant, in seconds since 1970 as the zone's clock shows them.
    pub(super) fn local(&self, at: i64) -> i64 {
        let Inner::Known(table) = self.0 else { return at };
        at.saturating_add(table.offset(table.changes_up_to(at)).into())
    }

    /// Returns the first instant at which the zone's clock shows this local time or a later one.
    ///
    /// A local time that is skipped begins with the change that skips it. One that is repeated begins the first time.
    pub(super) fn first_at_or_after(&self, local: i64) -> i64 {
        let Inner::Known(table) = self.0 else { return local };
        // Before that, every offset shows an earlier time.
        let mut passed = table.changes_up_to(local.saturating_sub(i64::from(MAX_OFFSET)));
        loop {
            let begin = passed.checked_sub(1).map_or(i64::MIN, |last| table.changes[last].0);
            let shown = local.saturating_sub(table.offset(passed).into()).max(begin);
            match table.changes.get(passed) {
                Some((next, _)) if shown >= *next => passed += 1,
                _ => return shown,
            }
        }
    }
}

impl OffsetTable {
    fn new(
        name: &str,
        first: i32,
        changes: impl IntoIterator<Item = (i64, i32)>,
    ) -> Result<OffsetTable, TimeZoneError> {
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TimeZoneError(
                "the name of a time zone has 1 to 64 visible ASCII letters; use the IANA name",
            ));
        }
        // One more than the most is enough to find out that there are too many.
        let changes: Box<[(i64, i32)]> = changes.into_iter().take(MAX_CHANGES + 1).collect();
        if changes.len() > MAX_CHANGES {
            return Err(TimeZoneError("a time zone has at most 1,024 changes; leave the oldest out"));
        }
        if !changes.is_sorted_by(|one, next| one.0 < next.0) {
            return Err(TimeZoneError("the changes of a time zone are in the order of time; sort them"));
        }
        let offsets = || std::iter::once(first).chain(changes.iter().map(|(_, offset)| *offset));
        if offsets().any(|offset| offset.abs() > MAX_OFFSET) {
            return Err(TimeZoneError("an offset is at most 26 hours; give it in seconds"));
        }
        let largest_step_back =
            offsets().zip(offsets().skip(1)).map(|(one, next)| one.saturating_sub(next)).max().unwrap_or(0);
        Ok(OffsetTable {
            name: name.into(),
            digest: digest(name),
            first,
            largest_step_back: largest_step_back.max(0).unsigned_abs(),
            changes,
        })
    }

    /// Returns the number of changes up to this instant.
    fn changes_up_to(&self, at: i64) -> usize {
        self.changes.partition_point(|(change, _)| *change <= at)
    }

    /// Returns the offset after so many changes.
    fn offset(&self, changes: usize) -> i32 {
        changes.checked_sub(1).map_or(self.first, |last| self.changes[last].1)
    }
}

/// Returns the FNV-1a hash of a name, which is never zero.
fn digest(name: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, step).max(1)
}

impl PartialEq for TimeZone {
    fn eq(&self, other: &TimeZone) -> bool {
        self.digest() == other.digest()
    }
}

impl Eq for TimeZone {}

impl Hash for TimeZone {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.digest().hash(hasher);
    }
}

impl fmt::Debug for TimeZone {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "TimeZone({})", self.name())
    }
}

/// Prints the name.
impl fmt::Display for TimeZone {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// The error of an invalid name, or of invalid offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeZoneError(&'static str);

impl fmt::Display for TimeZoneError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

impl std::error::Error for TimeZoneError {}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;

    #[test]
    fn a_zone_without_offsets_keeps_its_name_and_is_no_zone_for_others() {
        let zone = TimeZone::unresolved("Test/Without").unwrap();
        assert_eq!((zone.name(), zone.is_resolved()), ("Test/Without", false));
        assert_eq!(TimeZone::get("Test/Without"), None);
        assert!(TimeZone::unresolved("").is_err() && TimeZone::unresolved("UTC") == Ok(TimeZone::UTC));
        let known = TimeZone::new("Test/Without", 3600, []).unwrap();
        assert!(known.is_resolved() && known == zone);
        assert!(TimeZone::unresolved("Test/Without").unwrap().is_resolved());
    }

    #[test]
    fn one_name_is_one_zone() {
        let zone = TimeZone::new("Test/One", 3600, []).unwrap();
        assert_eq!(TimeZone::new("Test/One", 7200, []).unwrap().local(0), 3600);
        assert_eq!(TimeZone::of_digest(zone.digest()), zone);
        assert_eq!(TimeZone::get("Test/One"), Some(zone));
        assert_eq!((TimeZone::get("UTC"), TimeZone::get("Test/Never")), (Some(TimeZone::UTC), None));
        assert!(TimeZone::of_digest(zone.digest()).is_resolved());
        assert_eq!(TimeZone::new("UTC", 3600, []).unwrap(), TimeZone::UTC);
        assert_eq!((TimeZone::UTC.digest(), TimeZone::of_digest(0)), (0, TimeZone::UTC));
        let unknown = TimeZone::of_digest(77);
        assert!(!unknown.is_resolved() && unknown.digest() == 77 && unknown != zone);
    }

    #[test]
    fn invalid_names_and_offsets_are_rejected() {
        for name in ["", "New York", "a\n", "é", &"n".repeat(MAX_NAME + 1)] {
            assert!(TimeZone::new(name, 0, []).is_err(), "{name:?}");
        }
        assert!(TimeZone::new(&"n".repeat(MAX_NAME), 0, []).is_ok());
        let each = |number: usize| (0..number).map(|at| (at as i64, 0));
        assert!(TimeZone::new("Test/Most", 0, each(MAX_CHANGES)).is_ok());
        assert!(TimeZone::new("Test/TooMany", 0, each(MAX_CHANGES + 1)).is_err());
        assert!(TimeZone::new("Test/Order", 0, [(5, 0), (5, 1)]).is_err());
        assert!(TimeZone::new("Test/Far", MAX_OFFSET, [(5, -MAX_OFFSET)]).is_ok());
        for far in [MAX_OFFSET + 1, -MAX_OFFSET - 1] {
            assert!(TimeZone::new("Test/TooFar", 0, [(5, far)]).is_err());
            assert!(TimeZone::new("Test/TooFar", far, []).is_err());
        }
    }

    #[test]
    fn a_skipped_time_begins_with_the_change_and_a_repeated_one_the_first_time() {
        // Forward by an hour at 10,000, back by half an hour at 20,000.
        let zone = TimeZone::new("Test/Steps", 0, [(10_000, 3600), (20_000, 1800)]).unwrap();
        for (local, first) in [
            (9_999, 9_999),
            (10_000, 10_000),
            (10_001, 10_000),
            (13_600, 10_000),
            (13_601, 10_001),
            (21_800, 18_200),
            (23_599, 19_999),
            (23_600, 21_800),
            (23_601, 21_801),
        ] {
            assert_eq!(zone.first_at_or_after(local), first, "{local}");
            assert!(zone.local(first) >= local);
        }
        assert_eq!(zone.largest_step_back(), 1800);
        for extreme in [i64::MIN, i64::MAX] {
            let _ = (zone.local(extreme), zone.first_at_or_after(extreme));
        }
    }
}

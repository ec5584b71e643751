//! A zone in files: its own file, the state file beside it, and the files of named zones.
//!
//! ```text
//!   zone.tg                   cells: states of one word
//!   zone.tg.states            blocks: states of more than one word
//!   zone.tg.NAME.zone         the same of a zone with a name
//!   zone.tg.NAME.zone.states
//! ```
//!
//! All of them are one set and use the clock of the first.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Zone;
use super::memory::states::{self, Opened};
use super::memory::{Identity, ZoneError, ZoneFile};
use super::table::{BUCKET_BYTES, Table};
use crate::limit::Limit;
use crate::store::Map;
use crate::store::limit_table::LimitTable;
use crate::time::{Clock, Source};

/// The files of a zone.
#[derive(Debug)]
pub(super) struct Files {
    path: PathBuf,
    identity: Identity,
    /// The process that owns the state file, if it is another one.
    owner: Option<u64>,
    /// True if the states were torn by a power failure of the machine, and start empty.
    lost_states: bool,
    /// True if the state file was missing beside its zone, and was created again.
    missed_states: bool,
}

/// The number and the size of the states of more than one word, which a zone stores in the map beside it, and in its
/// state file.
#[doc(alias = "metrics")]
#[doc(alias = "persistence")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateCounts {
    /// The number of states, including clear ones that are not yet dropped.
    pub keys: usize,
    /// The bytes of memory that they take.
    pub memory_bytes: usize,
    /// The bytes of the state file that are in use; zero if there is none.
    pub file_used_bytes: usize,
    /// The bytes of the state file; zero if there is none.
    pub file_bytes: usize,
}

#[cfg(not(tidegate_models))]
impl Zone {
    /// Opens the zone in this file, or creates it if there is no file. Its states survive the process, however it ends.
    ///
    /// The file takes `bytes` bytes and 148 KiB. States of more than one word ([`Zone::keeps`]) are in a second file of
    /// as many bytes, at least 64 KiB, with the same name and the suffix `.states`. Both must be on a disk of this
    /// machine, or in its memory. Time continues while the process is not running, also across a restart of the
    /// machine.
    ///
    /// Other processes on this machine may use the zone at the same time. They share states of one word; those of more
    /// words belong to the process that opened the zone first: [`Zone::supports`]. A process that forks without
    /// starting another program must open the file again in the child.
    ///
    /// A restart of the machine is bridged by the wall clock. If the wall clock is set while the zone is in use, the
    /// next decision writes that to the file, at most once per second. See [`Zone::keep_time`] for a zone that is idle.
    ///
    /// # Errors
    /// If the file exists and is not a valid zone of this size, or cannot be used. The file is not changed, and the
    /// message states the remedy.
    pub fn in_file(path: impl AsRef<Path>, bytes: usize) -> Result<Zone, ZoneError> {
        let path = path.as_ref();
        let file = open_first(path, bytes)?;
        let clock = file.clock();
        Zone::of_file(file, clock, &path.display().to_string())
    }

    /// Opens or creates a zone like [`Zone::in_file`], with another clock, whose time must continue from one process to
    /// the next.
    pub fn in_file_with_clock(
        path: impl AsRef<Path>,
        bytes: usize,
        clock: Arc<dyn Clock>,
    ) -> Result<Zone, ZoneError> {
        let path = path.as_ref();
        Zone::of_file(open_first(path, bytes)?, Source::Given(clock), &path.display().to_string())
    }

    /// Opens or creates a zone of this name and size beside this one, in files of its own. Returns `None` if this zone
    /// is not in a file.
    pub(crate) fn named_beside(&self, name: &str, bytes: usize) -> Result<Option<Zone>, ZoneError> {
        let Some(Files { path, identity, .. }) = &self.inner.files else { return Ok(None) };
        let file = open(&path_of(path, name)?, bytes, Some(identity.named(name)))?;
        Zone::of_file(file, self.clock().clone(), name).map(Some)
    }

    /// Checks that [`Zone::in_file`] can open the files of a zone with these bytes, and those of the named zones beside
    /// it. Changes nothing. Missing files are no error, unless only the first file of a set is missing.
    pub fn check_files<'a>(
        path: impl AsRef<Path>,
        bytes: usize,
        named: impl IntoIterator<Item = (&'a str, usize)>,
    ) -> Result<(), ZoneError> {
        let path = path.as_ref();
        let Some(first) = check(path, bytes, None)? else { return alone(path) };
        for (name, bytes) in named {
            check(&path_of(path, name)?, bytes, Some(first.named(name)))?;
        }
        Ok(())
    }

    /// Returns the files that belong to the zone in this file: its state file, and the files of all named zones beside
    /// it. Files of named zones that are no longer in use are included.
    pub fn files_beside(path: impl AsRef<Path>) -> Vec<PathBuf> {
        files_beside(path.as_ref())
    }

    /// Checks every state in the state file of a zone, and changes nothing. [`Zone::in_file`] does so, too, and
    /// [`Zone::check_files`] does not. A file that another process has open is not checked. The cost is one read of the
    /// whole file.
    pub fn check_states(path: impl AsRef<Path>) -> Result<(), ZoneError> {
        states::check_blocks(&states::path_beside(path.as_ref())).map_err(ZoneError::of_states)
    }

    fn of_file(file: Arc<ZoneFile>, clock: Source, name: &str) -> Result<Zone, ZoneError> {
        use super::cells::Cells;

        let limits = Arc::new(LimitTable::in_file(&file));
        let bytes = file.cells::<super::table::Bucket>().len() * BUCKET_BYTES;
        let missed_states = !file.is_new && !states::path_beside(&file.path).exists();
        let beside = open_states(&file, bytes, &clock, &limits)?;
        let Beside { map, owner, lost_states } = beside;
        let (path, identity) = (file.path.clone(), file.identity());
        let files = Files { path, identity, owner, lost_states, missed_states };
        let zone = Zone::with_files(Cells::of_file(file), limits, clock, name, Some(files));
        // A zone that was just created has no map yet.
        let _ = zone.inner.map.set(map);
        Ok(zone)
    }
}

impl Zone {
    /// Checks that states under this limit can be stored here. The error text states the fault and the remedy. States
    /// of more than one word belong to one process per file. In other processes they are denied, as in a full store.
    pub fn supports(&self, limit: &Limit) -> Result<(), String> {
        let Some((files, owner)) = self.inner.files.as_ref().and_then(|files| Some((files, files.owner?)))
        else {
            return Ok(());
        };
        if limit.fits_cell() {
            return Ok(());
        }
        let (algorithm, path) = (limit.algorithm(), states::path_beside(&files.path));
        let (holder, remedy) = if owner == u64::from(std::process::id()) {
            (format!("this one has {path:?} open already"), "use that zone, or try again when it is closed")
        } else if cfg!(target_os = "linux") && !Path::new(&format!("/proc/{owner}")).exists() {
            (
                format!("process {owner}, which has ended since, had {path:?} when this one opened the zone"),
                "start this one again",
            )
        } else {
            (format!("process {owner} has {path:?}"), "stop that process, or give this one a file of its own")
        };
        Err(format!(
            "states of {algorithm} that take more than one word belong to one process, and {holder}; {remedy}"
        ))
    }

    /// Returns the process that owns the state file of this zone, if it is another one.
    pub fn states_owned_by(&self) -> Option<u64> {
        self.inner.files.as_ref().and_then(|files| files.owner)
    }

    /// Returns true if the states of more than one word start empty, because a power failure interrupted their writing
    /// to disk.
    pub fn lost_states(&self) -> bool {
        self.inner.files.as_ref().is_some_and(|files| files.lost_states)
    }

    /// Returns true if the state file was missing beside an existing zone, so that the states of more than one word
    /// start empty.
    pub fn missed_states(&self) -> bool {
        self.inner.files.as_ref().is_some_and(|files| files.missed_states)
    }

    /// Returns the number and the size of the states of more than one word.
    pub fn state_counts(&self) -> StateCounts {
        let Some(map) = self.inner.map.get() else { return StateCounts::default() };
        let (used, all) = map.states().map_or((0, 0), |states| (states.used_bytes(), states.bytes()));
        StateCounts { keys: map.keys(), memory_bytes: map.bytes(), file_used_bytes: used, file_bytes: all }
    }
}

impl Limit {
    /// Returns the most bytes that the state of one key takes in the files of a [`Zone`](crate::Zone), with a name of
    /// `name_bytes` bytes: that of its rule and of its key. Returns `None` if it is larger than a state file can be.
    ///
    /// ```
    /// use tidegate::{Limit, MINUTE};
    ///
    /// assert_eq!(Limit::per_second(10).file_bytes_per_key(20), Some(24));
    /// assert_eq!(Limit::sliding_window(100, MINUTE).file_bytes_per_key(20), Some(512));
    /// assert_eq!(Limit::sliding_log(1_000, MINUTE).file_bytes_per_key(20), Some(16_384));
    /// ```
    pub fn file_bytes_per_key(&self, name_bytes: usize) -> Option<usize> {
        if self.fits_cell() {
            return Some(self.bytes_per_key());
        }
        states::bytes_of(self.algorithm(), self.terms().most_words(), name_bytes)
    }
}

/// The map beside a zone in a file.
struct Beside {
    map: Map,
    owner: Option<u64>,
    lost_states: bool,
}

fn open_states(
    file: &ZoneFile,
    zone_bytes: usize,
    clock: &Source,
    limits: &Arc<LimitTable>,
) -> Result<Beside, ZoneError> {
    let (path, bytes) = (states::path_beside(&file.path), states::bytes_beside(zone_bytes));
    let states = match states::open(&path, bytes, file.identity()).map_err(ZoneError::of_states)? {
        Opened::Own(states) => states,
        Opened::OwnedBy(process) => {
            let map = Map::without_room(clock.clone(), Arc::clone(limits));
            return Ok(Beside { map, owner: Some(process), lost_states: false });
        }
    };
    let load = || Map::in_file(clock.clone(), Arc::clone(limits), &states);
    let has_restarted = states.has_restarted();
    let (map, lost_states) = match load() {
        Ok(map) => (map, false),
        Err(flaw) if !has_restarted => return Err(states.flawed(flaw)),
        Err(_) => {
            states.empty();
            (load().map_err(|flaw| states.flawed(flaw))?, true)
        }
    };
    Ok(Beside { map, owner: None, lost_states })
}

/// Opens the first zone of a set. Files without the first one are the rest of another set: nothing is created beside
/// them.
fn open_first(path: &Path, bytes: usize) -> Result<Arc<ZoneFile>, ZoneError> {
    alone(path)?;
    open(path, bytes, None)
}

/// Requires that the first file exists, or none of its set.
fn alone(path: &Path) -> Result<(), ZoneError> {
    // The first file is created before the others, so its existence is checked after theirs.
    let others = files_beside(path);
    if others.is_empty() || path.exists() { Ok(()) } else { Err(ZoneError::missing(path, others)) }
}

fn files_beside(path: &Path) -> Vec<PathBuf> {
    let Some(first) = path.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let is_beside = |name: &OsString| {
        let rest = name.to_str().and_then(|name| name.strip_prefix(first)?.strip_prefix('.'));
        rest.is_some_and(|rest| rest == "states" || rest.ends_with(".zone") || rest.ends_with(".zone.states"))
    };
    let mut names: Vec<_> = names.filter(is_beside).collect();
    names.sort_unstable();
    names.iter().map(|name| path.with_file_name(name)).collect()
}

fn open(path: &Path, bytes: usize, identity: Option<Identity>) -> Result<Arc<ZoneFile>, ZoneError> {
    ZoneFile::open(path, Table::buckets_in(bytes) as u64, BUCKET_BYTES, identity).map(Arc::new)
}

fn check(path: &Path, bytes: usize, identity: Option<Identity>) -> Result<Option<Identity>, ZoneError> {
    let buckets = Table::buckets_in(bytes);
    let found = ZoneFile::check(path, buckets as u64, BUCKET_BYTES, identity)?;
    // A named zone that is created again continues with an existing state file.
    if let Some(identity) = found.or(identity) {
        let bytes = states::bytes_beside(buckets * BUCKET_BYTES);
        states::check(&states::path_beside(path), bytes, identity).map_err(ZoneError::of_states)?;
    }
    Ok(found)
}

/// Returns the path of a named zone beside the first. A name with a slash, which would lead into another folder, is an
/// error.
fn path_of(first: &Path, name: &str) -> Result<PathBuf, ZoneError> {
    let mut path = first.as_os_str().to_owned();
    path.push(format!(".{name}.zone"));
    let path = PathBuf::from(path);
    if name.contains(['/', '\0']) { Err(ZoneError::of_unfit_name(&path)) } else { Ok(path) }
}

//! Checks the files of a store as a server would find them.
//!
//! The files may be in use by a running server. They are only read.

use std::fs;
use std::path::{Path, PathBuf};

use tidegate::{Zone, ZoneError};
use tidegate_redis::doctor::Gravity;
use tidegate_rules::{NamedZone, Policy, Rule};
use tidegate_support::Bytes;

use super::Finding;
use crate::command::file_owner::holder;
use crate::files;
use crate::settings::Settings;

/// Returns a finding for each file of the store at `path`, for files that no zone uses, and for their folder.
///
/// If the first file is missing and could not be created either, it is the only finding: the others would repeat
/// the cause.
pub(super) fn look(settings: &Settings, path: &Path) -> Vec<Finding> {
    let policy = &settings.policy;
    let first = files::check_zones(settings, []);
    if let Err(error) = &first
        && !path.exists()
    {
        return vec![finding(gravity(error), files::with_cause(error))];
    }
    let mut found: Vec<_> = of_zone(path, settings.store.size, first.as_ref().err(), policy).into();
    for zone in policy.zones() {
        // A named zone is checked against the default zone, which has its own finding if it is invalid.
        let checked = first.as_ref().map(|()| files::check_zones(settings, [(&*zone.name, zone.bytes)]));
        let error = checked.ok().and_then(Result::err);
        found.extend(of_zone(&zone_file(path, zone), zone.bytes, error.as_ref(), policy));
    }
    found.extend(unused(policy, path));
    found.extend(room(settings, path));
    found.extend(files::open_folder(path).map(|what| finding(Gravity::Warning, what)));
    found
}

/// Returns a finding for each file of a zone that the rules do not name.
///
/// Such files keep their counts for the case that the zone comes back, so they are no error.
fn unused(policy: &Policy, path: &Path) -> Vec<Finding> {
    let named = policy.zones().iter().map(|zone| zone_file(path, zone));
    let used: Vec<_> =
        named.chain([path.to_owned()]).flat_map(|zone| [beside(&zone, "states"), zone]).collect();
    let unused = Zone::files_beside(path).into_iter().filter(|file| !used.contains(file));
    let what = |file| {
        format!(
            "{file:?}: belongs to a zone that the rules do not name; it goes on if the zone comes back, or delete it"
        )
    };
    unused.map(|file| finding(Gravity::Good, what(file))).collect()
}

/// Returns a finding if the disk has too little free space for the files that a server would create.
///
/// A file gets its whole size when it is created. Existing files have theirs already. Without information about the
/// file system there is no finding.
fn room(settings: &Settings, path: &Path) -> Option<Finding> {
    let zones = settings.policy.zones().iter();
    let named = zones.map(|zone| (zone_file(path, zone), zone.bytes));
    let all = named.chain([(path.to_owned(), settings.store.size)]);
    let files = all.flat_map(|(zone, bytes)| [(beside(&zone, "states"), bytes), (zone, bytes)]);
    let wanted: u64 = files.filter(|(file, _)| !file.exists()).map(|(_, bytes)| bytes as u64).sum();
    let folder = files::folder_of(path);
    let system = rustix::fs::statvfs(folder).ok()?;
    no_room(folder, wanted, system.f_bavail.saturating_mul(system.f_frsize))
}

/// Returns the finding about missing disk space.
fn no_room(folder: &Path, wanted: u64, free: u64) -> Option<Finding> {
    let [wanted_in, free_in] =
        [wanted, free].map(|bytes| Bytes(usize::try_from(bytes).unwrap_or(usize::MAX)));
    (free < wanted).then(|| {
        let what = format!(
            "{folder:?}: the files need {wanted_in}, and {free_in} are free; make room, or choose a smaller --store-size"
        );
        finding(Gravity::Bad, what)
    })
}

/// Returns a finding about the store file.
fn finding(gravity: Gravity, what: String) -> Finding {
    ("store file".to_owned(), gravity, what)
}

/// Returns a warning for a file that this user may not open: the user of the server may be able to.
fn gravity(error: &ZoneError) -> Gravity {
    if error.is_forbidden() { Gravity::Warning } else { Gravity::Bad }
}

/// Returns the findings about the file of a zone and its state file.
///
/// The error of a zone is shown at the file that it is about. If another process has the state file open, the
/// finding names it, and tells if a second server could start.
fn of_zone(path: &Path, bytes: usize, error: Option<&ZoneError>, policy: &Policy) -> [Finding; 2] {
    let states = beside(path, "states");
    let of_blocks = error.is_none().then(|| Zone::check_states(path).err()).flatten();
    let error = error.or(of_blocks.as_ref());
    // The text of an error starts with the path of its file.
    let of_states = error.filter(|error| error.to_string().starts_with(&format!("{states:?}:")));
    let of_cells = error.filter(|_| of_states.is_none());
    let (cells, mut kept) = (of_file(path, bytes, of_cells), of_file(&states, bytes, of_states));
    if let Some(holder) = holder(&fs::canonicalize(&states).into_iter().collect::<Vec<_>>()) {
        kept.2 += &format!("; {holder} has it open; a second server {}", without(policy));
    }
    [cells, kept]
}

/// Returns the finding about one file: its error, its size, or that it is missing.
fn of_file(path: &Path, bytes: usize, error: Option<&ZoneError>) -> Finding {
    let (gravity, what) = match (error, fs::metadata(path)) {
        (Some(error), _) => (gravity(error), files::with_cause(error)),
        (None, Ok(found)) => {
            let length = usize::try_from(found.len()).unwrap_or(usize::MAX);
            (Gravity::Good, format!("{path:?}: present, {}", Bytes(length)))
        }
        (None, Err(_)) => {
            (Gravity::Good, format!("{path:?}: is not there yet; a server makes it for {}", Bytes(bytes)))
        }
    };
    finding(gravity, what)
}

/// Returns the behavior of a second server that finds the state file open in another process.
///
/// Only rules whose states take more than one word need the state file for themselves: sliding logs and windows,
/// pacers, and concurrency limits.
fn without(policy: &Policy) -> String {
    let needs = |rule: &&Rule| rule.limits().any(|limit| !limit.fits_cell()) || rule.penalty().is_some();
    let names: Vec<_> =
        policy.rules().iter().filter(needs).map(|rule| format!("{:?}", rule.name())).collect();
    match names.len() {
        0 => "could start beside it, as no rule has states of more than one word".to_owned(),
        1 => format!("waits for it to end, as rule {} needs the file", names[0]),
        _ => format!("waits for it to end, as rules {} need the file", names.join(", ")),
    }
}

/// Returns the file of a named zone.
fn zone_file(path: &Path, zone: &NamedZone) -> PathBuf {
    beside(path, &format!("{}.zone", zone.name))
}

/// Returns the path with one more suffix.
fn beside(path: &Path, part: &str) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{part}"));
    beside.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_need_more_than_is_free_are_bad() {
        let found = |wanted, free| no_room(Path::new("data"), wanted, free);
        assert_eq!((found(64 << 20, 64 << 20), found(0, 0)), (None, None));
        let (about, gravity, what) = found(64 << 20, 3 << 20).expect("too little");
        assert_eq!((about.as_str(), gravity), ("store file", Gravity::Bad));
        let said = "\"data\": the files need 64 MiB, and 3 MiB are free; make room, or choose a smaller --store-size";
        assert_eq!(what, said);
    }
}

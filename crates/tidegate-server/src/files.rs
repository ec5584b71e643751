//! The files in which a server without a shared store keeps its states.
//!
//! A store file has a second file beside it, with the suffix `.states`, for states of more than one word. Each
//! named zone has two files of its own. The names derive from `store.file`. This module checks such files before a
//! server opens them, and formats their errors and warnings.

use std::error::Error;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use tidegate::{Zone, ZoneError};

use crate::settings::Settings;

/// Checks that a server could open the files of these settings, without changing them. Missing files are not an error.
///
/// `tidegate check`, a reload and a start use it, so that all of them reject the same files.
pub(crate) fn check(settings: &Settings) -> Result<(), ZoneError> {
    check_zones(settings, settings.policy.zones().iter().map(|zone| (&*zone.name, zone.bytes)))
}

/// Checks the files of the default zone and of these named zones.
///
/// Does nothing if the store is shared or in memory. A running server is not disturbed:
/// nothing is written.
pub(crate) fn check_zones<'a>(
    settings: &Settings,
    named: impl IntoIterator<Item = (&'a str, usize)>,
) -> Result<(), ZoneError> {
    let Some(path) = settings.store.file.as_ref().filter(|_| settings.store.shared.is_none()) else {
        return Ok(());
    };
    // Settings are also checked on machines that do not support such files.
    if cfg!(not(target_os = "linux")) {
        return Ok(());
    }
    Zone::check_files(path, settings.store.size, named)
}

/// Formats the error of a store file for display.
pub(crate) fn described(error: &ZoneError) -> String {
    format!("store file {}", with_cause(error))
}

/// Formats an error and, on its own line, the cause that the operating system reports.
///
/// Only the direct cause is shown. It is the text of the operating system.
pub(crate) fn with_cause(error: &dyn Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}\n  cause: {cause}"),
        None => error.to_string(),
    }
}

/// Returns the warning about a zone whose states of more than one word were lost, if they were.
///
/// Counts of one word survive in the first file in both cases. The warning names what begins with a full quota.
pub(crate) fn lost(zone: &Zone) -> Option<String> {
    let name = zone.name();
    if zone.lost_states() {
        return Some(format!(
            "zone {name:?}: the machine lost power while states of more than one word were being written; those begin anew"
        ));
    }
    zone.missed_states().then(|| {
        format!(
            "zone {name:?}: its state file was missing and is made anew: counts of sliding logs, sliding windows, pacers \
             and permits begin anew"
        )
    })
}

/// The permission of everyone to create and remove files in a folder.
const ANYONE_WRITES: u32 = 0o002;
/// With this bit only the owner of a file can remove it, as in `/tmp`.
const STICKY: u32 = 0o1000;

/// Returns a warning if anyone can write to the folder of this file.
///
/// The server starts nevertheless: volumes of containers are often such folders, with a single user.
///
/// Returns `None` if the folder has the sticky bit, or cannot be inspected.
pub(crate) fn open_folder(file: &Path) -> Option<String> {
    // A symbolic link in a private folder can point to a folder that is not private.
    let real = fs::canonicalize(file).ok();
    let mode = [Some(file), real.as_deref()].into_iter().flatten().find_map(open_mode)?;
    Some(format!(
        "anyone can write to the folder of {} (mode {mode:o}) and remove the file, so that a restart begins with all counts \
         anew; use a folder of its own, or run `chmod o-w` on this one",
        file.display()
    ))
}

/// Returns the permissions of the folder of this file if anyone can remove the file.
fn open_mode(file: &Path) -> Option<u32> {
    let mode = fs::metadata(folder_of(file)).ok()?.mode() & 0o7777;
    (mode & ANYONE_WRITES != 0 && mode & STICKY == 0).then_some(mode)
}

/// Returns the folder that contains a file.
///
/// The folder of a bare file name is `.`.
pub(crate) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

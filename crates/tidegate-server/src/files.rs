//! The files in which a server without a shared store keeps its counts.

use std::error::Error;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use tidegate::{Zone, ZoneError};

use crate::settings::Settings;

/// Looks whether a server could open the files of these settings, and changes nothing. Files that are not there are no
/// error.
pub(crate) fn check(settings: &Settings) -> Result<(), ZoneError> {
    check_zones(settings, settings.policy.zones().iter().map(|zone| (&*zone.name, zone.bytes)))
}

/// The same for the first zone and these of those with names.
pub(crate) fn check_zones<'a>(
    settings: &Settings,
    named: impl IntoIterator<Item = (&'a str, usize)>,
) -> Result<(), ZoneError> {
    let Some(path) = settings.store.file.as_ref().filter(|_| settings.store.shared.is_none()) else {
        return Ok(());
    };
    // Settings are also checked on machines that cannot have such files.
    if cfg!(not(target_os = "linux")) {
        return Ok(());
    }
    Zone::check_files(path, settings.store.size, named)
}

/// The error of a store's file as people read it.
pub(crate) fn described(error: &ZoneError) -> String {
    format!("store file {}", with_cause(error))
}

/// An error and, on a line of its own, the cause that the system gives.
pub(crate) fn with_cause(error: &dyn Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}\n  cause: {cause}"),
        None => error.to_string(),
    }
}

/// The warning about a zone whose states of more than one word begin anew, if they do.
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
/// With this bit only the owner of a file removes it, as in `/tmp`.
const STICKY: u32 = 0o1000;

/// The warning about a folder of this file to which anyone can write.
///
/// The server starts all the same: volumes of containers are often folders of this kind with one user.
pub(crate) fn open_folder(file: &Path) -> Option<String> {
    // A link that is in a private folder may lead to one that is not.
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

/// The folder in which a file is.
pub(crate) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

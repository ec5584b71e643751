//! Starts a server on its zone. Waits while a previous process still owns the states that rules need.
//!
//! A supervisor may start a new server while the old one still drains its connections. States of more than one word
//! belong to one process per file, so the new one waits for the old one to end. If no rule needs such states, both
//! serve from the same file at once.

use std::io;
use std::path::Path;
use std::time::Duration;

use tidegate::{WallAlignment, Zone};
use tidegate_rules::{Policy, Rule, UnsupportedPolicy};
use tidegate_support::Bytes;

use crate::command::failure::Failure;
use crate::command::file_owner;
use crate::command::output::say;
use crate::files;
use crate::settings::{Settings, StoreSettings};
use crate::{Server, StartError};

/// The pause before the files are opened again.
pub(super) const RETRY: Duration = Duration::from_millis(100);
/// The time that another process has to end, beyond the shutdown timeout.
const MARGIN: Duration = Duration::from_secs(5);

/// Opens the store and starts a server. While another process owns a state file that rules need, it retries after each
/// pause. The retries end after the shutdown timeout and [`MARGIN`]. Returns `None` if a stop signal arrives in a
/// pause.
///
/// All checks of files run before the first one is created or changed. The message about waiting is printed once.
/// `stops_in_pause` waits for [`RETRY`] and returns true if a signal arrived.
pub(super) fn start(
    settings: &Settings,
    mut stops_in_pause: impl FnMut() -> bool,
) -> Result<Option<Server>, Failure> {
    // Checked before any file is created: a new first file would conflict with old files of named zones.
    files::check(settings)?;
    let longest = settings.bounds.shutdown_timeout.saturating_add(MARGIN);
    let pauses = longest.as_millis() / RETRY.as_millis();
    for pause in 0..=pauses {
        let (zone, is_last) = (open(&settings.store)?, pause == pauses);
        warn(&zone, settings, pause == 0);
        let (waiting, shared_with) = (waiting_for(&zone, settings, longest), zone.states_owned_by());
        if is_last || !needs_states(&zone, &settings.policy) {
            match Server::start(settings.clone(), zone) {
                // The other process closes the files of named zones a moment after the first.
                Err(StartError::Unfit(UnsupportedPolicy::NotOwner { .. })) if !is_last => {}
                Ok(server) => {
                    shared_with.iter().for_each(|process| say(sharing(*process)));
                    return Ok(Some(server));
                }
                Err(error) => return Err(with_owner(error, shared_with)),
            }
        }
        if pause == 0 {
            say(waiting);
        }
        if stops_in_pause() {
            return Ok(None);
        }
    }
    unreachable!("the last attempt returns")
}

/// Opens the zone of the store: in memory, or in its file.
fn open(store: &StoreSettings) -> Result<Zone, Failure> {
    match &store.file {
        Some(path) => Ok(Zone::in_file(path, store.size)?),
        None => Zone::try_new(store.size).map_err(|_| {
            let size = Bytes(store.size);
            Failure::failed(format!(
                "a store of {size}: the system has no such memory; choose a smaller --store-size"
            ))
        }),
    }
}

/// Prints the warnings about an opened zone. Lost states are reported on every attempt, other warnings only on the
/// first.
fn warn(zone: &Zone, settings: &Settings, is_first: bool) {
    files::lost(zone).iter().for_each(|warning| say(format_args!("warning: {warning}")));
    if !is_first {
        return;
    }
    let in_open_folder = settings.store.file.as_deref().and_then(files::open_folder);
    in_open_folder.iter().for_each(|warning| say(format_args!("warning: {warning}")));
    if zone.wall_alignment() != WallAlignment::Aligned {
        say(format_args!("warning: {}", zone.wall_alignment()));
    }
}

/// Returns true if a rule has states that another process owns.
fn needs_states(zone: &Zone, policy: &Policy) -> bool {
    policy.rules().iter().flat_map(Rule::limits).any(|limit| zone.supports(limit).is_err())
}

/// Returns the message about the process that is waited for.
fn waiting_for(zone: &Zone, settings: &Settings, longest: Duration) -> String {
    let owner = zone.states_owned_by();
    let owner = owner.map_or_else(|| "another process".to_owned(), |process| format!("process {process}"));
    let file = settings.store.file.as_deref().unwrap_or(Path::new("")).display();
    format!(
        "waiting up to {} s for {owner}, which has the states of more than one word in {file}",
        longest.as_secs()
    )
}

/// Returns the warning of a server that shares its store file with another process.
///
/// That is not an error: counts of one word are safe to share between processes.
fn sharing(process: u64) -> String {
    format!(
        "warning: process {process} serves from the same store file. Counts of one word are shared; limits whose states take \
         more (sliding-log, sliding-window, pacer, concurrency) are errors here"
    )
}

/// Adds the process that uses the port to the error, if the address is in use.
///
/// The process is looked up in `/proc`, so it is named only if it is visible to this user.
fn with_owner(error: StartError, shared_with: Option<u64>) -> Failure {
    let owner = match &error {
        StartError::Bind { address, source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
            file_owner::listener(*address)
        }
        _ => None,
    };
    let failure = Failure::from(error);
    match (owner, shared_with) {
        (Some(owner), Some(process)) => failure.explained(&format!(
            "used by: {owner}; process {process} already serves from this store file: stop it, or give this server other \
             ports"
        )),
        (Some(owner), None) => failure.explained(&format!("used by: {owner}")),
        (None, _) => failure,
    }
}

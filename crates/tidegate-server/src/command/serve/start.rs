//! Starts a server on its zone, and waits while the process before it still has the states that rules need.

use std::io;
use std::path::Path;
use std::time::Duration;

use tidegate::{WallAlignment, Zone};
use tidegate_rules::{Policy, Unfit};
use tidegate_support::Bytes;

use crate::command::failure::Failure;
use crate::command::holder;
use crate::command::output::say;
use crate::files;
use crate::settings::{Settings, StoreSettings};
use crate::{Server, StartError};

/// The pause before the files are opened again.
pub(super) const RETRY: Duration = Duration::from_millis(100);
/// The time beyond its shutdown timeout that another process has to end.
const MARGIN: Duration = Duration::from_secs(5);

/// Opens the store and starts a server. While another process has a state file that rules need, tries again after each
/// pause, for as long as that process may take to shut down. None if a pause says that this process is to stop.
pub(super) fn start(
    settings: &Settings,
    mut stops_in_pause: impl FnMut() -> bool,
) -> Result<Option<Server>, Failure> {
    // Before anything is made: a new first file would be in the way of the old one.
    files::check(settings)?;
    let longest = settings.bounds.grace.saturating_add(MARGIN);
    let pauses = longest.as_millis() / RETRY.as_millis();
    for pause in 0..=pauses {
        let (zone, is_last) = (open(&settings.store)?, pause == pauses);
        warn(&zone, settings, pause == 0);
        let (waiting, shared_with) = (waiting_for(&zone, settings, longest), zone.states_owned_by());
        if is_last || !needs_states(&zone, &settings.policy) {
            match Server::start(settings.clone(), zone) {
                // Files of zones with names are free a moment after the first.
                Err(StartError::Unfit(Unfit::NotOwner { .. })) if !is_last => {}
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

/// Prints the warnings about a zone that was opened. States are lost once, also if the files are opened again.
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

/// Returns true if a rule has states that this zone cannot keep, as another process has them.
fn needs_states(zone: &Zone, policy: &Policy) -> bool {
    policy.rules().iter().any(|rule| {
        let scheduled = rule.schedule().map(|then| then.limit);
        rule.limit().into_iter().chain(scheduled).any(|limit| zone.supports(limit).is_err())
    })
}

fn waiting_for(zone: &Zone, settings: &Settings, longest: Duration) -> String {
    let owner = zone.states_owned_by();
    let owner = owner.map_or_else(|| "another process".to_owned(), |process| format!("process {process}"));
    let file = settings.store.file.as_deref().unwrap_or(Path::new("")).display();
    format!(
        "waiting up to {} s for {owner}, which has the states of more than one word in {file}",
        longest.as_secs()
    )
}

/// What a server says that shares its file with another process.
fn sharing(process: u64) -> String {
    format!(
        "warning: process {process} serves from the same store file. Counts of one word are shared; limits whose states take \
         more (sliding-log, sliding-window, pacer, concurrency) are errors here"
    )
}

/// The failure, and who has the port if that is why.
fn with_owner(error: StartError, shared_with: Option<u64>) -> Failure {
    let owner = match &error {
        StartError::Bind { address, source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
            holder::listener(*address)
        }
        _ => None,
    };
    let failure = Failure::from(error);
    match (owner, shared_with) {
        (Some(owner), Some(process)) => failure.explained(&format!(
            "taken by: {owner}; process {process} already serves from this store file: stop it, or give this server other \
             ports"
        )),
        (Some(owner), None) => failure.explained(&format!("taken by: {owner}")),
        (None, _) => failure,
    }
}

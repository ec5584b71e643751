//! The files of a store, as a server would find them.

use std::fs;
use std::path::{Path, PathBuf};

use tidegate::ZoneError;
use tidegate_redis::doctor::Gravity;
use tidegate_rules::config::Bytes;
use tidegate_rules::{Policy, Rule};

use super::Finding;
use crate::command::holder::holder;
use crate::files;
use crate::settings::Settings;

/// A finding for each file of a store that is in this one.
pub(super) fn look(settings: &Settings, path: &Path) -> Vec<Finding> {
    let policy = &settings.policy;
    let first = files::check_zones(settings, []);
    let mut found: Vec<_> = of_zone(path, settings.store.size, first.as_ref().err(), policy).into();
    for zone in policy.zones() {
        // A zone with a name is compared with the first, which has a finding of its own if it is wrong.
        let checked = first.as_ref().map(|()| files::check_zones(settings, [(&*zone.name, zone.bytes)]));
        let error = checked.ok().and_then(Result::err);
        found.extend(of_zone(
            &beside(path, &format!("{}.zone", zone.name)),
            zone.bytes,
            error.as_ref(),
            policy,
        ));
    }
    found
}

/// Findings about the file of a zone and the state file beside it.
fn of_zone(path: &Path, bytes: usize, error: Option<&ZoneError>, policy: &Policy) -> [Finding; 2] {
    let states = beside(path, "states");
    // The text of an error begins with the path that it is about.
    let of_states = error.filter(|error| error.to_string().starts_with(&format!("{states:?}:")));
    let of_cells = error.filter(|_| of_states.is_none());
    let (cells, mut kept) = (of_file(path, bytes, of_cells), of_file(&states, bytes, of_states));
    if let Some(holder) = holder(&fs::canonicalize(&states).into_iter().collect::<Vec<_>>()) {
        kept.2 += &format!("; {holder} has it, and another server {}", without(policy));
    }
    [cells, kept]
}

fn of_file(path: &Path, bytes: usize, error: Option<&ZoneError>) -> Finding {
    let (gravity, what) = match (error, fs::metadata(path)) {
        (Some(error), _) if error.is_forbidden() => (Gravity::Warning, files::with_cause(error)),
        (Some(error), _) => (Gravity::Bad, files::with_cause(error)),
        (None, Ok(found)) => {
            let length = usize::try_from(found.len()).unwrap_or(usize::MAX);
            (Gravity::Good, format!("{path:?}: present, {}", Bytes(length)))
        }
        (None, Err(_)) => {
            (Gravity::Good, format!("{path:?}: is not there yet; a server makes it for {}", Bytes(bytes)))
        }
    };
    ("store file".to_owned(), gravity, what)
}

/// What a server does that finds the state file with another process.
fn without(policy: &Policy) -> String {
    let needs = |rule: &&Rule| {
        let scheduled = rule.schedule().map(|then| then.limit);
        rule.limit().into_iter().chain(scheduled).any(|limit| !limit.fits_cell())
    };
    let names: Vec<_> =
        policy.rules().iter().filter(needs).map(|rule| format!("{:?}", rule.name())).collect();
    match names.len() {
        0 => "shares its counts, as no rule has states of more than one word".to_owned(),
        1 => format!("waits for it, as rule {} needs it", names[0]),
        _ => format!("waits for it, as rules {} need it", names.join(", ")),
    }
}

/// The path with one more part behind it.
fn beside(path: &Path, part: &str) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{part}"));
    beside.into()
}

//! Looks at what is in the place of a state file, and takes it if it is one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::super::create::create_whole;
use super::super::error::{Attempt, Problem, ZoneError};
use super::super::header::Identity;
use super::super::mapping::Mapping;
use super::super::open::{Links, find, first_page, require_own};
use super::super::system;
use super::header::{Header, OWNER_AT};
use super::{Opened, StateFile};
use crate::time::boot::wall;

/// How often a file may appear and vanish while it is opened.
const ATTEMPTS: usize = 16;

/// Opens the state file of a zone, or makes one if there is none.
pub(crate) fn open(path: &Path, bytes: u64, identity: Identity) -> Result<Opened, ZoneError> {
    for _ in 0..ATTEMPTS {
        if let Some(file) = find(path, Links::Reject)? {
            return take(path, file, bytes, identity);
        }
        let header = Header { identity, bytes, created: wall().as_secs() };
        let length = header.length().ok_or_else(|| ZoneError::new(path, Problem::TooLarge))?;
        create_whole(path, length, &|file| file.write_all_at(&header.encode(), 0))?;
    }
    Err(ZoneError::failed(path, Attempt::Open, io::ErrorKind::NotFound.into()))
}

/// Looks whether the state file could be opened, and changes nothing. Returns false if there is none.
pub(crate) fn check(path: &Path, bytes: u64, identity: Identity) -> Result<bool, ZoneError> {
    let Some(file) = find(path, Links::Reject)? else { return Ok(false) };
    require(path, &file, bytes, identity)?;
    Ok(true)
}

/// Looks at all blocks of a state file, in a copy of them. A file that another process has open is not looked at, and after a
/// restart of the machine blocks may be torn.
pub(crate) fn check_blocks(path: &Path) -> Result<(), ZoneError> {
    let Some(file) = find(path, Links::Reject)? else { return Ok(()) };
    let failed = |error| ZoneError::failed(path, Attempt::Read, error);
    let length = require_own(path, &file)?;
    let page = first_page(&file).map_err(failed)?;
    let header = Header::decode(&page, length).map_err(|flaw| ZoneError::new(path, Problem::Flaw(flaw)))?;
    let bytes = usize::try_from(header.bytes).map_err(|_| ZoneError::new(path, Problem::TooLarge))?;
    if !system::try_lock(&file) {
        return Ok(());
    }
    let copy = Mapping::copy_of_file(&file, usize::try_from(length).unwrap_or(usize::MAX));
    let copy = copy.map_err(|error| ZoneError::failed(path, Attempt::Map, error));
    let copy = copy.map(|mapping| StateFile::over(path, None, Arc::new(mapping), bytes));
    let checked = copy.and_then(|copy| match copy.has_restarted() {
        true => Ok(()),
        false => copy.load(&mut |_| true).map_err(|flaw| copy.flawed(flaw)),
    });
    system::unlock(&file);
    checked
}

/// Requires a whole state file that is what was asked for. Returns its length.
fn require(path: &Path, file: &File, bytes: u64, identity: Identity) -> Result<u64, ZoneError> {
    let flawed = |flaw| ZoneError::new(path, Problem::Flaw(flaw));
    let length = require_own(path, file)?;
    let page = first_page(file).map_err(|error| ZoneError::failed(path, Attempt::Read, error))?;
    let header = Header::decode(&page, length).map_err(flawed)?;
    header.fits(bytes, identity).map_err(flawed)?;
    Ok(length)
}

fn take(path: &Path, file: File, bytes: u64, identity: Identity) -> Result<Opened, ZoneError> {
    let length = require(path, &file, bytes, identity)?;
    let too_large = |_| ZoneError::new(path, Problem::TooLarge);
    let (mapped, blocks) =
        (usize::try_from(length).map_err(too_large)?, usize::try_from(bytes).map_err(too_large)?);
    system::reserve(&file, length).map_err(|error| ZoneError::not_made(path, length, error))?;
    if !system::try_lock(&file) {
        let mut process = [0; 8];
        let read = file.read_exact_at(&mut process, OWNER_AT as u64);
        read.map_err(|error| ZoneError::failed(path, Attempt::Read, error))?;
        return Ok(Opened::OwnedBy(u64::from_ne_bytes(process)));
    }
    let mapping = Mapping::of_file(&file, mapped);
    let mapping = mapping.map_err(|error| ZoneError::failed(path, Attempt::Map, error))?;
    let states = StateFile::over(path, Some(file), Arc::new(mapping), blocks);
    states.note_process();
    Ok(Opened::Own(Arc::new(states)))
}

//! The checks of an existing state file, and its opening.
//!
//! Other than a zone's file it has one owner at a time. A second process that opens it gets the id of the owner, and
//! keeps no states of more than one word in it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::super::create::create_whole;
use super::super::error::{Attempt, ZoneError, ZoneProblem};
use super::super::header::Identity;
use super::super::mapping::Mapping;
use super::super::open::{Links, find, find_or_make, map, require_header};
use super::super::system;
use super::header::{BLOCKS_AT, OWNER_AT, StateFileHeader};
use super::{Opened, StateFile};
use crate::time::boot::wall;

/// Opens the state file of a zone, or creates one if there is none. The process id of the owner may be that of a
/// process in another container, where it means something else.
pub(crate) fn open(path: &Path, bytes: u64, identity: Identity) -> Result<Opened, ZoneError> {
    let make = || {
        let header = StateFileHeader { identity, bytes, created: wall().as_secs() };
        let length = header.length().ok_or_else(|| ZoneError::new(path, ZoneProblem::TooLarge))?;
        create_whole(path, length, &|file| file.write_all_at(&header.encode(), 0))
    };
    let (file, _) = find_or_make(path, Links::Reject, &make)?;
    take(path, file, bytes, identity)
}

/// Checks that the state file can be opened, and changes nothing. Returns false if there is none. The blocks are not
/// read; [`check_blocks`] does that.
pub(crate) fn check(path: &Path, bytes: u64, identity: Identity) -> Result<bool, ZoneError> {
    let Some(file) = find(path, Links::Reject)? else { return Ok(false) };
    require(path, &file, bytes, identity)?;
    Ok(true)
}

/// Checks all blocks of a state file, in a copy of them. A file that another process has open is not checked. After a
/// restart of the machine blocks may be torn, and are not checked either.
pub(crate) fn check_blocks(path: &Path) -> Result<(), ZoneError> {
    let Some(file) = find(path, Links::Reject)? else { return Ok(()) };
    let header = require_header(path, &file, StateFileHeader::decode)?;
    let bytes = usize::try_from(header.bytes).map_err(|_| ZoneError::new(path, ZoneProblem::TooLarge))?;
    if !system::try_lock(&file) {
        return Ok(());
    }
    let copy = Mapping::copy_of_file(&file, bytes.saturating_add(BLOCKS_AT));
    let copy = copy.map_err(|error| ZoneError::failed(path, Attempt::Map, error));
    let copy = copy.map(|mapping| StateFile::over(path, None, Arc::new(mapping), bytes));
    let checked = copy.and_then(|copy| match copy.has_restarted() {
        true => Ok(()),
        false => copy.load(&mut |_| true).map_err(|flaw| copy.flawed(flaw)),
    });
    system::unlock(&file);
    checked
}

/// Requires a valid state file with the requested size and identity.
fn require(path: &Path, file: &File, bytes: u64, identity: Identity) -> Result<StateFileHeader, ZoneError> {
    require_header(path, file, |page, length| {
        let header = StateFileHeader::decode(page, length)?;
        header.fits(bytes, identity)?;
        Ok(header)
    })
}

/// Maps the file and tries its lock. The id of the owner is read from the file, because the lock does not reveal it.
fn take(path: &Path, file: File, bytes: u64, identity: Identity) -> Result<Opened, ZoneError> {
    let header = require(path, &file, bytes, identity)?;
    let mapping = map(path, &file, header.bytes.saturating_add(BLOCKS_AT as u64))?;
    if !system::try_lock(&file) {
        let mut process = [0; 8];
        let read = file.read_exact_at(&mut process, OWNER_AT as u64);
        read.map_err(|error| ZoneError::failed(path, Attempt::Read, error))?;
        return Ok(Opened::OwnedBy(u64::from_ne_bytes(process)));
    }
    let states = StateFile::over(path, Some(file), mapping, bytes as usize);
    states.note_process();
    Ok(Opened::Own(Arc::new(states)))
}

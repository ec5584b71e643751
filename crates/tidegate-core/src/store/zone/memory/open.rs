//! The checks of an existing zone file, and its opening.
//!
//! A rejected file is left as it is: nothing is written before all checks are done.
//!
//! ```text
//!   path      not a link (beside a zone), a plain file      before it is opened
//!   file      local, own, not writable by others            before its content is read
//!   header    version, sizes, checksum, identity            before it is mapped
//!   clock     one whole record of two                       under the lock of the file
//! ```
//!
//! The order matters: opening a device can affect it, and mapping a file of the wrong length can kill the process.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::create::create;
use super::epoch::{Reading, after_setting, is_sane, settle};
use super::error::{Attempt, ZoneError, ZoneProblem};
use super::file::ZoneFile;
use super::header::{Flaw, Geometry, HEADER_BYTES, Header, Identity, WORDS, WORDS_AT};
use super::mapping::Mapping;
use super::record::ClockRecord;
use super::system::{self, Lock};

/// The most attempts when a file repeatedly appears and vanishes while it is opened. It bounds the loop against a
/// program that creates and removes the file all the time.
const ATTEMPTS: usize = 16;

/// The permission bits by which users other than the owner can write to a file. The bits of the group and of all
/// others.
const WRITE_BY_OTHERS: u32 = 0o022;

/// Opens the zone in this file, or creates one if there is no file. It is the first of its set, unless it belongs to
/// one. The clocks are read only when they are needed.
///
/// # Errors
/// If a check fails, if the file cannot be created, or if the disk has no room for all of its bytes.
pub(super) fn open(
    path: &Path,
    wanted: Geometry,
    identity: Option<Identity>,
    read: &dyn Fn() -> Reading,
) -> Result<ZoneFile, ZoneError> {
    // If another process creates the file first, that file is opened.
    let make = || create(path, wanted, identity, &read());
    let (file, is_new) = find_or_make(path, links_of(identity), &make)?;
    let header = require_zone(path, &file, wanted, identity)?;
    take(path, file, header, is_new, read)
}

/// Returns the file, or else the one that `make` creates, and true if it was created. Creation and opening are
/// repeated, because another process may create or remove the file in between.
pub(super) fn find_or_make(
    path: &Path,
    links: Links,
    make: &dyn Fn() -> Result<(), ZoneError>,
) -> Result<(File, bool), ZoneError> {
    for attempt in 0..ATTEMPTS {
        if let Some(file) = find(path, links)? {
            return Ok((file, attempt > 0));
        }
        make()?;
    }
    Err(ZoneError::failed(path, Attempt::Open, io::ErrorKind::NotFound.into()))
}

/// Checks that the zone in this file can be opened, and changes nothing. Returns `None` if there is no file. It takes
/// no lock, so the answer may be outdated once the file is opened.
pub(super) fn check(
    path: &Path,
    wanted: Geometry,
    identity: Option<Identity>,
) -> Result<Option<Identity>, ZoneError> {
    let Some(file) = find(path, links_of(identity))? else { return Ok(None) };
    let header = require_zone(path, &file, wanted, identity)?;
    let page = first_page(&file).map_err(|error| ZoneError::failed(path, Attempt::Read, error))?;
    let torn = || ZoneError::new(path, ZoneProblem::Flaw(Flaw::Clock));
    page.first_chunk().and_then(ClockRecord::in_force).ok_or_else(torn)?;
    Ok(Some(header.identity))
}

/// Rejects cells that are changed under locks of one process. Another process with the same file open does not see
/// these locks, and a killed process leaves half a cell.
pub(super) fn require_atomic_cells(path: &Path, is_lock_free: bool) -> Result<(), ZoneError> {
    if is_lock_free { Ok(()) } else { Err(ZoneError::new(path, ZoneProblem::NotAtomic)) }
}

/// The treatment of a path that is a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    /// Links are followed: a user has named the path.
    Follow,
    /// Links are rejected: the path is derived from another one, so only an intruder can have put a link there.
    Reject,
}

/// Returns the treatment of links: a file with a known identity has a derived path.
fn links_of(identity: Option<Identity>) -> Links {
    if identity.is_some() { Links::Reject } else { Links::Follow }
}

/// Returns the file, if there is one. Anything but a file is not even opened, because that alone can affect a device.
pub(super) fn find(path: &Path, links: Links) -> Result<Option<File>, ZoneError> {
    let failed = |error| ZoneError::failed(path, Attempt::Open, error);
    if links == Links::Reject && path.is_symlink() {
        return Err(ZoneError::new(path, ZoneProblem::Link));
    }
    match fs::metadata(path) {
        Ok(metadata) => require_file(path, &metadata)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
            return Err(ZoneError::new(path, ZoneProblem::LeadsNowhere));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    }
    let flags = if links == Links::Reject { system::NO_LINK } else { system::NO_WAITING };
    let opened = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
    opened.map(Some).map_err(failed)
}

/// Rejects folders, sockets, pipes and devices, each with its own message.
fn require_file(path: &Path, metadata: &Metadata) -> Result<(), ZoneError> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let problem = if kind.is_dir() {
        ZoneProblem::Folder
    } else if kind.is_socket() {
        ZoneProblem::NotFile("socket")
    } else if kind.is_fifo() {
        ZoneProblem::NotFile("pipe")
    } else {
        ZoneProblem::NotFile("device")
    };
    Err(ZoneError::new(path, problem))
}

/// Requires a file on this machine that only the user of this process can write to. Returns its length. Another owner
/// could change the counts at any time, and could truncate the mapped file.
pub(super) fn require_own(path: &Path, file: &File) -> Result<u64, ZoneError> {
    let reading = |error| ZoneError::failed(path, Attempt::Read, error);
    let metadata = file.metadata().map_err(reading)?;
    require_file(path, &metadata)?;
    if let Some(name) = system::network(file).map_err(reading)? {
        return Err(ZoneError::new(path, ZoneProblem::OnNetwork(name)));
    }
    let user = system::user();
    if metadata.uid() != user {
        return Err(ZoneError::new(path, ZoneProblem::OtherOwner { owner: metadata.uid(), user }));
    }
    if metadata.mode() & WRITE_BY_OTHERS != 0 {
        return Err(ZoneError::new(path, ZoneProblem::OthersMayWrite(metadata.mode() & 0o7777)));
    }
    Ok(metadata.len())
}

/// Returns the header of a valid zone with the requested geometry and identity. Without an identity the zone must be
/// the first of its set, whichever set that is.
pub(super) fn require_zone(
    path: &Path,
    file: &File,
    wanted: Geometry,
    identity: Option<Identity>,
) -> Result<Header, ZoneError> {
    require_header(path, file, |page, length| {
        let header = Header::decode(page, length)?;
        header.identity.is_of(identity.unwrap_or(Identity::first(header.identity.set)))?;
        header.fits(wanted)?;
        Ok(header)
    })
}

/// Returns the header of a file that only the user of this process can write to, as `decode` reads it.
pub(super) fn require_header<H>(
    path: &Path,
    file: &File,
    decode: impl FnOnce(&[u8], u64) -> Result<H, Flaw>,
) -> Result<H, ZoneError> {
    let length = require_own(path, file)?;
    let page = first_page(file).map_err(|error| ZoneError::failed(path, Attempt::Read, error))?;
    decode(&page, length).map_err(|flaw| ZoneError::new(path, ZoneProblem::Flaw(flaw)))
}

/// Maps the file into memory, after disk space is reserved for all its bytes. A sparse copy of a zone would otherwise
/// end the process with a signal when the disk is full.
pub(super) fn map(path: &Path, file: &File, length: u64) -> Result<Arc<Mapping>, ZoneError> {
    let bytes = usize::try_from(length).map_err(|_| ZoneError::new(path, ZoneProblem::TooLarge))?;
    system::reserve(file, length).map_err(|error| ZoneError::not_made(path, length, error))?;
    let mapping = Mapping::of_file(file, bytes);
    mapping.map(Arc::new).map_err(|error| ZoneError::failed(path, Attempt::Map, error))
}

/// Maps the file and sets its clock; the header is valid.
fn take(
    path: &Path,
    file: File,
    header: Header,
    is_new: bool,
    read: &dyn Fn() -> Reading,
) -> Result<ZoneFile, ZoneError> {
    let mapping = map(path, &file, header.length)?;
    let words = mapping.part(WORDS_AT, WORDS);
    let record = set_clock(path, &file, &words[0], read)?;
    let (path, is_locked) = (path.to_owned(), AtomicBool::new(false));
    Ok(ZoneFile { path, file, mapping, words, header, record, is_new, is_locked })
}

/// Returns the record with which the zone continues, after it was written to the file. The lock of the file is held
/// meanwhile. The record is synced to disk here, before any decision. The word of the latest time is replaced only if
/// it is impossible.
fn set_clock(
    path: &Path,
    file: &File,
    latest: &AtomicU64,
    read: &dyn Fn() -> Reading,
) -> Result<ClockRecord, ZoneError> {
    let failed = |attempt| move |error| ZoneError::failed(path, attempt, error);
    let _lock = Lock::new(file).map_err(failed(Attempt::Read))?;
    let page = first_page(file).map_err(failed(Attempt::Read))?;
    let torn = || ZoneError::new(path, ZoneProblem::Flaw(Flaw::Clock));
    let (record, place) = page.first_chunk().and_then(ClockRecord::in_force).ok_or_else(torn)?;
    let mark = latest.load(Ordering::Relaxed);
    let settled = settle(&record, mark, &read());
    if settled != record {
        let written = file.write_all_at(&settled.encode(), place as u64).and_then(|()| file.sync_data());
        written.map_err(failed(Attempt::Write))?;
    }
    if !is_sane(mark, &record) {
        latest.store(settled.zone, Ordering::Relaxed);
    }
    Ok(settled)
}

/// Returns the record in force of a zone in use, rewritten if the wall clock was set since. The caller holds the lock.
///
/// The record is not synced to disk, like the cells, so that no decision waits for it. A torn record leaves the other
/// one in force.
pub(super) fn renew_record(file: &File, now: &Reading) -> io::Result<ClockRecord> {
    let page = first_page(file)?;
    let in_force = page.first_chunk().and_then(ClockRecord::in_force);
    let (record, place) = in_force.ok_or(io::ErrorKind::InvalidData)?;
    let Some(next) = after_setting(&record, now) else { return Ok(record) };
    file.write_all_at(&next.encode(), place as u64)?;
    Ok(next)
}

/// Reads the first page, or as much of it as exists.
pub(super) fn first_page(mut file: &File) -> io::Result<Vec<u8>> {
    let mut page = Vec::with_capacity(HEADER_BYTES);
    file.rewind()?;
    file.take(HEADER_BYTES as u64).read_to_end(&mut page)?;
    Ok(page)
}

#[cfg(test)]
#[cfg(not(tidegate_models))]
mod tests;

//! Looks at what is in the place of a zone, and takes it if it is one.
//!
//! What is refused is left as it is: nothing is written before everything has been looked at.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::create::create;
use super::epoch::{Reading, after_setting, is_sane, settle};
use super::error::{Attempt, Problem, ZoneError};
use super::file::ZoneFile;
use super::header::{Flaw, Geometry, HEADER_BYTES, Header, Identity, WORDS, WORDS_AT};
use super::mapping::Mapping;
use super::record::Record;
use super::system::{self, Lock};

/// How often a file may appear and vanish while it is opened.
const ATTEMPTS: usize = 16;

/// Everything that others than its owner need to write to a file.
const WRITE_BY_OTHERS: u32 = 0o022;

/// Opens the zone in this file, or makes one if there is no file. It is the first of its set, unless it belongs to one.
/// The clocks are read when it is their turn.
pub(super) fn open(
    path: &Path,
    wanted: Geometry,
    identity: Option<Identity>,
    read: &dyn Fn() -> Reading,
) -> Result<ZoneFile, ZoneError> {
    // Whoever else made one in the meantime was first, and theirs is opened.
    let make = || create(path, wanted, identity, &read());
    let (file, is_new) = find_or_make(path, links_of(identity), &make)?;
    let header = require_zone(path, &file, wanted, identity)?;
    take(path, file, header, is_new, read)
}

/// The file, or else the one that `make` makes, and whether it was made.
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

/// Looks whether the zone in this file could be opened, and changes nothing. Nothing if there is no file.
pub(super) fn check(
    path: &Path,
    wanted: Geometry,
    identity: Option<Identity>,
) -> Result<Option<Identity>, ZoneError> {
    let Some(file) = find(path, links_of(identity))? else { return Ok(None) };
    let header = require_zone(path, &file, wanted, identity)?;
    let page = first_page(&file).map_err(|error| ZoneError::failed(path, Attempt::Read, error))?;
    let torn = || ZoneError::new(path, Problem::Flaw(Flaw::Clock));
    page.first_chunk().and_then(Record::in_force).ok_or_else(torn)?;
    Ok(Some(header.identity))
}

/// Denies what would be changed by locks of one process: another process with the same file open does not see them, and
/// one that is killed in the middle leaves half a cell.
pub(super) fn require_atomic_cells(path: &Path, is_lock_free: bool) -> Result<(), ZoneError> {
    if is_lock_free { Ok(()) } else { Err(ZoneError::new(path, Problem::NotAtomic)) }
}

/// Whether a path may be a link to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    /// A user has named the path.
    Follow,
    /// The path follows from another one, so only an intruder can have put a link there.
    Reject,
}

fn links_of(identity: Option<Identity>) -> Links {
    if identity.is_some() { Links::Reject } else { Links::Follow }
}

/// The file, if there is one. What is not a file is not even opened: that alone can do something to a device.
pub(super) fn find(path: &Path, links: Links) -> Result<Option<File>, ZoneError> {
    let failed = |error| ZoneError::failed(path, Attempt::Open, error);
    if links == Links::Reject && path.is_symlink() {
        return Err(ZoneError::new(path, Problem::Link));
    }
    match fs::metadata(path) {
        Ok(metadata) => require_file(path, &metadata)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
            return Err(ZoneError::new(path, Problem::LeadsNowhere));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    }
    let flags = if links == Links::Reject { system::NO_LINK } else { system::NO_WAITING };
    let opened = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
    opened.map(Some).map_err(failed)
}

fn require_file(path: &Path, metadata: &Metadata) -> Result<(), ZoneError> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let problem = if kind.is_dir() {
        Problem::Folder
    } else if kind.is_socket() {
        Problem::NotFile("socket")
    } else if kind.is_fifo() {
        Problem::NotFile("pipe")
    } else {
        Problem::NotFile("device")
    };
    Err(ZoneError::new(path, problem))
}

/// Requires a file on this machine that only the user of this process can write to. Returns its length.
pub(super) fn require_own(path: &Path, file: &File) -> Result<u64, ZoneError> {
    let reading = |error| ZoneError::failed(path, Attempt::Read, error);
    let metadata = file.metadata().map_err(reading)?;
    require_file(path, &metadata)?;
    if let Some(name) = system::network(file).map_err(reading)? {
        return Err(ZoneError::new(path, Problem::OnNetwork(name)));
    }
    let user = system::user();
    if metadata.uid() != user {
        return Err(ZoneError::new(path, Problem::OtherOwner { owner: metadata.uid(), user }));
    }
    if metadata.mode() & WRITE_BY_OTHERS != 0 {
        return Err(ZoneError::new(path, Problem::OthersMayWrite(metadata.mode() & 0o7777)));
    }
    Ok(metadata.len())
}

/// The header of a whole zone that is what was asked for.
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

/// The header of a file that only the user of this process can write to, as `decode` reads it.
pub(super) fn require_header<H>(
    path: &Path,
    file: &File,
    decode: impl FnOnce(&[u8], u64) -> Result<H, Flaw>,
) -> Result<H, ZoneError> {
    let length = require_own(path, file)?;
    let page = first_page(file).map_err(|error| ZoneError::failed(path, Attempt::Read, error))?;
    decode(&page, length).map_err(|flaw| ZoneError::new(path, Problem::Flaw(flaw)))
}

/// The file in memory, all of whose bytes have room on the disk.
pub(super) fn map(path: &Path, file: &File, length: u64) -> Result<Arc<Mapping>, ZoneError> {
    let bytes = usize::try_from(length).map_err(|_| ZoneError::new(path, Problem::TooLarge))?;
    system::reserve(file, length).map_err(|error| ZoneError::not_made(path, length, error))?;
    let mapping = Mapping::of_file(file, bytes);
    mapping.map(Arc::new).map_err(|error| ZoneError::failed(path, Attempt::Map, error))
}

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

/// The record by which the zone goes on; it is in the file. Nobody else does this at the same time.
fn set_clock(
    path: &Path,
    file: &File,
    latest: &AtomicU64,
    read: &dyn Fn() -> Reading,
) -> Result<Record, ZoneError> {
    let failed = |attempt| move |error| ZoneError::failed(path, attempt, error);
    let _lock = Lock::new(file).map_err(failed(Attempt::Read))?;
    let page = first_page(file).map_err(failed(Attempt::Read))?;
    let torn = || ZoneError::new(path, Problem::Flaw(Flaw::Clock));
    let (record, place) = page.first_chunk().and_then(Record::in_force).ok_or_else(torn)?;
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

/// The record in force of a zone in use, written anew if the wall clock was set since. The caller has the lock.
///
/// The disk follows by itself, as it does with cells, so that no decision waits for it. A record that is torn leaves the
/// other one in force.
pub(super) fn renew_record(file: &File, now: &Reading) -> io::Result<Record> {
    let page = first_page(file)?;
    let in_force = page.first_chunk().and_then(Record::in_force);
    let (record, place) = in_force.ok_or(io::ErrorKind::InvalidData)?;
    let Some(next) = after_setting(&record, now) else { return Ok(record) };
    file.write_all_at(&next.encode(), place as u64)?;
    Ok(next)
}

/// As much of the first page as there is.
pub(super) fn first_page(mut file: &File) -> io::Result<Vec<u8>> {
    let mut page = Vec::with_capacity(HEADER_BYTES);
    file.rewind()?;
    file.take(HEADER_BYTES as u64).read_to_end(&mut page)?;
    Ok(page)
}

#[cfg(test)]
#[cfg(not(tidegate_models))]
mod tests;

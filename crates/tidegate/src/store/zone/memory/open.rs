//! Looks at what is in the place of a zone, and takes it if it is one.
//!
//! What is refused is left as it is: nothing is written before everything has been looked at.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::create::create;
use super::epoch::{Reading, after_setting, is_sane, settle};
use super::error::{Attempt, Problem, ZoneError};
use super::file::ZoneFile;
use super::header::{Flaw, Geometry, HEADER_BYTES, Header, WORDS, WORDS_AT};
use super::mapping::Mapping;
use super::record::Record;
use super::system::{self, Lock};

/// How often a file may appear and vanish while it is opened.
const ATTEMPTS: usize = 16;

/// Everything that others than its owner need to write to a file.
const WRITE_BY_OTHERS: u32 = 0o022;

/// Opens the zone in this file, or makes one if there is no file. The clocks are read when it is their turn.
pub(super) fn open(path: &Path, wanted: Geometry, read: &dyn Fn() -> Reading) -> Result<ZoneFile, ZoneError> {
    for _ in 0..ATTEMPTS {
        if let Some(file) = find(path)? {
            return take(path, file, wanted, read);
        }
        // Whoever else made one in the meantime was first, and theirs is opened.
        create(path, wanted, &read())?;
    }
    Err(ZoneError::failed(path, Attempt::Open, io::ErrorKind::NotFound.into()))
}

/// Denies what would be changed by locks of one process: another process with the same file open does not see them, and
/// one that is killed in the middle leaves half a cell.
pub(super) fn require_atomic_cells(path: &Path, is_lock_free: bool) -> Result<(), ZoneError> {
    if is_lock_free { Ok(()) } else { Err(ZoneError::new(path, Problem::NotAtomic)) }
}

/// The file, if there is one. What is not a file is not even opened: that alone can do something to a device.
fn find(path: &Path) -> Result<Option<File>, ZoneError> {
    let failed = |error| ZoneError::failed(path, Attempt::Open, error);
    match fs::metadata(path) {
        Ok(metadata) => require_file(path, &metadata)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
            return Err(ZoneError::new(path, Problem::LeadsNowhere));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    }
    let opened = OpenOptions::new().read(true).write(true).custom_flags(system::NO_WAITING).open(path);
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

fn take(
    path: &Path,
    file: File,
    wanted: Geometry,
    read: &dyn Fn() -> Reading,
) -> Result<ZoneFile, ZoneError> {
    let reading = |error| ZoneError::failed(path, Attempt::Read, error);
    let flawed = |flaw| ZoneError::new(path, Problem::Flaw(flaw));
    let metadata = file.metadata().map_err(reading)?;
    require_file(path, &metadata)?;
    if let Some(name) = system::network(&file).map_err(reading)? {
        return Err(ZoneError::new(path, Problem::OnNetwork(name)));
    }
    let user = system::user();
    if metadata.uid() != user {
        return Err(ZoneError::new(path, Problem::OtherOwner { owner: metadata.uid(), user }));
    }
    if metadata.mode() & WRITE_BY_OTHERS != 0 {
        return Err(ZoneError::new(path, Problem::OthersMayWrite(metadata.mode() & 0o7777)));
    }
    let page = first_page(&file).map_err(reading)?;
    let header = Header::decode(&page, metadata.len()).map_err(flawed)?;
    header.fits(wanted).map_err(flawed)?;
    let length = usize::try_from(header.length).map_err(|_| ZoneError::new(path, Problem::TooLarge))?;
    system::reserve(&file, header.length).map_err(|error| ZoneError::not_made(path, header.length, error))?;
    let mapping =
        Mapping::of_file(&file, length).map_err(|error| ZoneError::failed(path, Attempt::Map, error))?;
    let mapping = Arc::new(mapping);
    let words = mapping.part(WORDS_AT, WORDS);
    let record = set_clock(path, &file, &words[0], read)?;
    Ok(ZoneFile::new(file, (mapping, words), header, record))
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
fn first_page(mut file: &File) -> io::Result<Vec<u8>> {
    let mut page = Vec::with_capacity(HEADER_BYTES);
    file.rewind()?;
    file.take(HEADER_BYTES as u64).read_to_end(&mut page)?;
    Ok(page)
}

#[cfg(test)]
#[cfg(not(tidegate_models))]
mod tests;

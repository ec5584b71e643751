//! The error of a zone that cannot use its file, with the fault and the remedy.
//!
//! ```text
//!   "/var/lib/tidegate/zone.tg": was cut off after 512 bytes; put back a copy of all files of the store, or …
//!    path, quoted                fault                         remedy
//! ```
//!
//! A program decides by the methods, such as [`ZoneError::is_damaged`], and a person by the message. An error changes
//! no file, so a remedy can be tried and undone.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::header::{Flaw, VERSION};
use super::states::VERSION as STATES_VERSION;

/// An error for a file that cannot be used as a zone. The counts in the file are unchanged.
///
/// The message states the fault and the remedy.
///
/// ```
/// use tidegate::Zone;
///
/// let error = Zone::in_file("/no/such/folder/zone.tg", 1 << 20).expect_err("the folder does not exist");
/// assert!(!error.is_damaged() && !error.is_wrong_size());
/// ```
#[doc(alias = "corruption")]
#[doc(alias = "damaged file")]
#[doc(alias = "mmap")]
#[derive(Debug)]
#[non_exhaustive]
pub struct ZoneError {
    /// The path of the file, as the caller named it.
    path: PathBuf,
    /// The kind of the file, which determines the remedy.
    kind: FileKind,
    /// The fault.
    problem: ZoneProblem,
    /// The error of the system, if it reported one.
    source: Option<io::Error>,
}

/// The content of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileKind {
    /// Cells; other files may be beside it.
    Zone,
    /// States of more than one word.
    States,
}

/// The fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ZoneProblem {
    /// The content of the file is invalid.
    Flaw(Flaw),
    /// The file is missing, and these files of its set exist.
    Missing(Vec<PathBuf>),
    /// It is a folder.
    Folder,
    /// It is something else that is not a file: this.
    NotFile(&'static str),
    /// The path has no last component.
    NoName,
    /// The name of its zone cannot be part of a file name.
    UnfitName,
    /// It is a link to a file that does not exist.
    LeadsNowhere,
    /// It is a link where links are not followed.
    Link,
    /// It belongs to another user than that of this process.
    OtherOwner { owner: u32, user: u32 },
    /// Other users can write to it; these are its permissions.
    OthersMayWrite(u32),
    /// It is on this kind of network file system.
    OnNetwork(&'static str),
    /// It would have more bytes than a file can have.
    TooLarge,
    /// The system does not support zones in files.
    NotHere,
    /// The processor has no 16-byte atomic compare-and-swap.
    NotAtomic,
    /// The disk has no room for so many bytes.
    NoRoom(u64),
    /// Its folder does not exist.
    NoFolder,
    /// The process lacks permission for this operation.
    Forbidden(Attempt),
    /// This operation failed.
    Failed(Attempt),
}

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// Opening it for reading and writing.
    Open,
    /// Creating it under a temporary name, or giving it its name.
    Create,
    /// Reading its metadata or its first page.
    Read,
    /// Writing its clock record.
    Write,
    /// Mapping it into memory.
    Map,
}

impl ZoneError {
    /// Creates an error for a zone's file, without an error of the system.
    pub(super) fn new(path: &Path, problem: ZoneProblem) -> ZoneError {
        ZoneError { path: path.to_owned(), kind: FileKind::Zone, problem, source: None }
    }

    /// Returns the same error, for a state file.
    pub(crate) fn of_states(self) -> ZoneError {
        ZoneError { kind: FileKind::States, ..self }
    }

    /// Creates an error for a missing first file of a set, of which these other files exist.
    pub(crate) fn missing(path: &Path, others: Vec<PathBuf>) -> ZoneError {
        ZoneError::new(path, ZoneProblem::Missing(others))
    }

    /// Creates an error for a zone whose name cannot be part of a file name.
    pub(crate) fn of_unfit_name(path: &Path) -> ZoneError {
        ZoneError::new(path, ZoneProblem::UnfitName)
    }

    /// Creates an error for an operation that the system did not complete.
    pub(super) fn failed(path: &Path, attempt: Attempt, source: io::Error) -> ZoneError {
        let problem = match (attempt, source.kind()) {
            (_, io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => {
                ZoneProblem::Forbidden(attempt)
            }
            (Attempt::Create, io::ErrorKind::NotFound) | (_, io::ErrorKind::NotADirectory) => {
                ZoneProblem::NoFolder
            }
            (Attempt::Map, io::ErrorKind::Unsupported) => ZoneProblem::NotHere,
            _ => ZoneProblem::Failed(attempt),
        };
        ZoneError { source: Some(source), ..ZoneError::new(path, problem) }
    }

    /// Creates an error for a file of so many bytes that could not be created.
    pub(super) fn not_made(path: &Path, bytes: u64, source: io::Error) -> ZoneError {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        if matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge) {
            return ZoneError { source: Some(source), ..ZoneError::new(path, ZoneProblem::NoRoom(bytes)) };
        }
        ZoneError::failed(path, Attempt::Create, source)
    }

    /// Returns true if the file is a zone of another size than was requested. Open it with the size in the message, or
    /// move it away to start with an empty zone.
    pub fn is_wrong_size(&self) -> bool {
        matches!(self.problem, ZoneProblem::Flaw(Flaw::Size { .. }))
    }

    /// Returns true if the file is a zone that was damaged: truncated, extended, or changed by another program. A copy
    /// of all files of the store restores the counts; there is no repair.
    pub fn is_damaged(&self) -> bool {
        use Flaw::{Blocks, Checksum, Clock, Contradiction, Length, Short};
        let ZoneProblem::Flaw(flaw) = &self.problem else { return false };
        matches!(flaw, Short { .. } | Checksum | Contradiction | Clock | Length { .. } | Blocks { .. })
    }

    /// Returns true if the path is not a zone: another kind of file, an empty one, a folder, a device, or a link that
    /// is not followed.
    pub fn is_not_a_zone(&self) -> bool {
        let is_other = matches!(self.problem, ZoneProblem::Flaw(Flaw::Empty | Flaw::Foreign));
        let is_no_file = matches!(self.problem, ZoneProblem::Folder | ZoneProblem::NotFile(_));
        is_other || is_no_file || matches!(self.problem, ZoneProblem::LeadsNowhere | ZoneProblem::Link)
    }

    /// Returns true if the user of this process may not use the file: it belongs to another user, or the system denies
    /// access. A retry does not help until the owner or the permissions change.
    pub fn is_forbidden(&self) -> bool {
        matches!(self.problem, ZoneProblem::OtherOwner { .. } | ZoneProblem::Forbidden(_))
    }

    /// Returns true if the file is on a network file system, or may be. Memory that is shared through such a file is
    /// not atomic between machines, so it is never used.
    pub fn is_on_network(&self) -> bool {
        matches!(self.problem, ZoneProblem::OnNetwork(_))
    }

    #[cfg(test)]
    pub(super) fn problem(&self) -> ZoneProblem {
        self.problem.clone()
    }
}

impl fmt::Display for ZoneError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}: ", self.path)?;
        match (&self.problem, self.kind) {
            (ZoneProblem::Flaw(flaw), kind) => {
                let (what, remedy) = describe(*flaw, kind);
                match remedy {
                    Remedy::Only(remedy) => write!(out, "{what}; {remedy}"),
                    Remedy::Or(remedy) => write!(out, "{what}; {remedy}, or {}", BeginAnew(self)),
                    Remedy::Size(held) => {
                        write!(out, "{what}; ask for {} ({held} bytes), or {}", Bytes(held), BeginAnew(self))
                    }
                }
            }
            (ZoneProblem::Missing(others), _) => {
                let others = others.iter().map(|path| format!("{path:?}")).collect::<Vec<_>>().join(", ");
                write!(
                    out,
                    "is missing, and other files of its store are there: {others}; put it back, or move these away to begin \
                     with all counts anew"
                )
            }
            (ZoneProblem::Folder, FileKind::Zone) => out.write_str("is a folder; name a file in it"),
            (ZoneProblem::Folder, FileKind::States) => {
                out.write_str("is a folder where a zone keeps its states; move it away")
            }
            (ZoneProblem::NotFile(what), FileKind::Zone) => {
                write!(out, "is a {what}, not a file; name another path")
            }
            (ZoneProblem::NotFile(what), FileKind::States) => {
                write!(out, "is a {what} where a zone keeps its states; move it away")
            }
            (ZoneProblem::UnfitName, _) => {
                out.write_str("a zone in a file has a name without slashes; choose another name")
            }
            (ZoneProblem::NoName, _) => out.write_str("names no file; name one"),
            (ZoneProblem::LeadsNowhere, _) => {
                out.write_str("is a link to a file that does not exist; remove the link, or name that file")
            }
            (ZoneProblem::Link, _) => out.write_str("is a link, which is not followed here; remove it"),
            (ZoneProblem::OtherOwner { owner, user }, _) => write!(
                out,
                "belongs to user {owner}, who can change its counts at any time, and this process runs as user {user}; \
                 run it as user {owner}, or {}",
                BeginAnew(self)
            ),
            (ZoneProblem::OthersMayWrite(mode), _) => write!(
                out,
                "can be written by others (mode {mode:03o}); take that from them with `chmod 600`"
            ),
            (ZoneProblem::OnNetwork(name), _) => write!(
                out,
                "lies on {name}, which may belong to another machine; put it on a local disk or on tmpfs"
            ),
            (ZoneProblem::TooLarge, _) => {
                out.write_str("would be larger than a file can be; ask for fewer bytes")
            }
            (ZoneProblem::NotHere, _) => out.write_str("zones in files need Linux; use a zone in memory"),
            (ZoneProblem::NotAtomic, _) => out.write_str(
                "zones in files need a processor with 16-byte atomic instructions (x86-64 with cmpxchg16b, AArch64); use a zone in memory",
            ),
            (ZoneProblem::NoRoom(bytes), _) => {
                write!(out, "there is no room for a file of {bytes} bytes; make room, or ask for fewer")
            }
            (ZoneProblem::NoFolder, _) => {
                out.write_str("its folder does not exist; create the folder, or name another path")
            }
            (ZoneProblem::Forbidden(attempt), _) => {
                write!(out, "this process may not {attempt}; let its user do so, or name another path")
            }
            (ZoneProblem::Failed(attempt), _) => {
                write!(out, "the system could not {attempt}; its own words are the cause")
            }
        }
    }
}

/// The remedy that replaces unusable files by new ones.
struct BeginAnew<'a>(&'a ZoneError);

impl fmt::Display for BeginAnew<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ZoneError { path, kind, .. } = self.0;
        match kind {
            FileKind::Zone => write!(
                out,
                "stop what uses it and move it and {:?} away to begin with all counts anew",
                beside(path, ".*")
            ),
            FileKind::States => out.write_str(
                "stop what uses it and move it away: counts of sliding logs, sliding windows, pacers and permits begin anew",
            ),
        }
    }
}

/// Returns the path with `more` appended to its last component.
pub(super) fn beside(path: &Path, more: &str) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(more);
    beside.into()
}

impl Error for ZoneError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| source as &(dyn Error + 'static))
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Attempt::Open => "open the file for reading and writing",
            Attempt::Create => "create a file in its folder",
            Attempt::Read => "read the file",
            Attempt::Write => "write to the file",
            Attempt::Map => "map the file into memory",
        })
    }
}

/// The remedy for a flaw.
enum Remedy {
    /// This remedy only.
    Only(&'static str),
    /// This remedy, or new files.
    Or(&'static str),
    /// A request for the size of the file, or new files.
    Size(u64),
}

/// The remedy for a file of another version, which that version can still use.
const OTHER_VERSION: Remedy = Remedy::Or("run the version that wrote it");
/// The remedy for a damaged file: only a copy restores the counts.
const DAMAGED: Remedy = Remedy::Or("put back a copy of all files of the store");

/// Returns the fault of a file of this kind, and its remedy. Each text completes a sentence that begins with the path.
fn describe(flaw: Flaw, kind: FileKind) -> (String, Remedy) {
    use Remedy::{Only, Or};
    let is_zone = kind == FileKind::Zone;
    let known = if is_zone { VERSION } else { STATES_VERSION };
    let plain = |what: &str, remedy| (what.to_owned(), remedy);
    match flaw {
        Flaw::Empty if is_zone => plain("is empty", Only("remove it, and a zone is made in its place")),
        Flaw::Empty => plain("is empty", Only("remove it, and a state file is made in its place")),
        Flaw::Short { bytes } => (format!("was cut off after {bytes} bytes"), DAMAGED),
        Flaw::Foreign if is_zone => plain("is not a zone", Only("name another path, or move the file away")),
        Flaw::Foreign => plain(
            "is not a state file, and a zone keeps its states there",
            Only("move it away, and a state file is made in its place"),
        ),
        Flaw::Newer { version } => {
            (format!("has format {version}, and this program knows {known}"), OTHER_VERSION)
        }
        Flaw::Older { version } => {
            (format!("has format {version}, and this program writes {VERSION}"), OTHER_VERSION)
        }
        Flaw::ByteOrder => plain("was written by a machine of the other byte order", Or("use it there")),
        Flaw::Hash { id } => (format!("finds keys by hash {id}, which is unknown here"), OTHER_VERSION),
        Flaw::Tick { id } => (format!("counts time in unit {id}, which is unknown here"), OTHER_VERSION),
        Flaw::Cell { bytes } => {
            (format!("has cells of {bytes} bytes, which are unknown here"), OTHER_VERSION)
        }
        Flaw::Bucket { cells, wanted } => {
            (format!("has buckets of {cells} cells, and this program has {wanted}"), OTHER_VERSION)
        }
        Flaw::Checksum => plain("was damaged: the checksum of its header is wrong", DAMAGED),
        Flaw::Contradiction => plain("was damaged: its header contradicts itself", DAMAGED),
        Flaw::Clock => plain("was damaged: neither of its clock records is whole", DAMAGED),
        Flaw::Length { made, found } => (format!("has {found} bytes, and was made with {made}"), DAMAGED),
        Flaw::OtherZone => plain("belongs to a zone of another name", Or("put it back in its place")),
        Flaw::OtherSet => plain(
            "belongs to another store: the first file was replaced, or this one was copied",
            Or("put back the files that belong together"),
        ),
        Flaw::Blocks { at } => {
            (format!("was damaged: its blocks contradict each other at byte {at}"), DAMAGED)
        }
        Flaw::Size { held, wanted } => {
            (format!("holds {}, but {} were asked for", Bytes(held), Bytes(wanted)), Remedy::Size(held))
        }
    }
}

/// A number of bytes in the largest unit that divides it.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match units.iter().find(|(size, _)| self.0 >= *size && self.0 % size == 0) {
            Some((size, unit)) => write!(out, "{} {unit}", self.0 / size),
            None => write!(out, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(problem: ZoneProblem) -> String {
        ZoneError::new(Path::new("zone.tg"), problem).to_string()
    }

    fn about(problem: ZoneProblem) -> ZoneError {
        ZoneError::new(Path::new("zone.tg"), problem)
    }

    #[test]
    fn the_path_comes_first_and_is_quoted() {
        let error = ZoneError::new(Path::new("a \"zone\"\n"), ZoneProblem::Folder);
        assert_eq!(error.to_string(), r#""a \"zone\"\n": is a folder; name a file in it"#);
    }

    #[test]
    fn flaws_of_other_programs_say_which_can_go_on() {
        let anew = "stop what uses it and move it and \"zone.tg.*\" away to begin with all counts anew";
        let rest = format!("run the version that wrote it, or {anew}");
        for (flaw, expected) in [
            (Flaw::Newer { version: 5 }, "has format 5, and this program knows 4"),
            (Flaw::Older { version: 2 }, "has format 2, and this program writes 4"),
            (Flaw::Hash { id: 2 }, "finds keys by hash 2, which is unknown here"),
            (Flaw::Tick { id: 3 }, "counts time in unit 3, which is unknown here"),
            (Flaw::Cell { bytes: 32 }, "has cells of 32 bytes, which are unknown here"),
            (Flaw::Bucket { cells: 4, wanted: 8 }, "has buckets of 4 cells, and this program has 8"),
        ] {
            assert_eq!(message(ZoneProblem::Flaw(flaw)), format!("\"zone.tg\": {expected}; {rest}"));
            let error = about(ZoneProblem::Flaw(flaw));
            assert!(!error.is_damaged() && !error.is_not_a_zone());
            assert!(!error.is_wrong_size() && !error.is_on_network());
        }
        assert_eq!(
            message(ZoneProblem::Flaw(Flaw::ByteOrder)),
            format!("\"zone.tg\": was written by a machine of the other byte order; use it there, or {anew}")
        );
        assert_eq!(
            message(ZoneProblem::Flaw(Flaw::Contradiction)),
            format!(
                "\"zone.tg\": was damaged: its header contradicts itself; put back a copy of all files of the store, or {anew}"
            )
        );
    }

    #[test]
    fn sizes_are_reported_in_the_unit_that_fits() {
        for (bytes, expected) in [
            (0, "0 bytes"),
            (256, "256 bytes"),
            (1024, "1 KiB"),
            (1025, "1025 bytes"),
            (64 << 20, "64 MiB"),
            (3 << 30, "3 GiB"),
            ((1 << 30) + (1 << 20), "1025 MiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), expected);
        }
    }

    #[test]
    fn a_file_on_another_machine_is_known_as_such() {
        let error = about(ZoneProblem::OnNetwork("nfs"));
        assert!(error.is_on_network() && !error.is_not_a_zone());
        assert_eq!(
            error.to_string(),
            "\"zone.tg\": lies on nfs, which may belong to another machine; put it on a local disk or on tmpfs"
        );
    }

    #[test]
    fn where_there_are_no_such_files_a_zone_in_memory_is_named() {
        assert_eq!(
            message(ZoneProblem::NotHere),
            "\"zone.tg\": zones in files need Linux; use a zone in memory"
        );
        let error = ZoneError::failed(Path::new("z"), Attempt::Map, io::ErrorKind::Unsupported.into());
        assert_eq!(error.problem(), ZoneProblem::NotHere);
    }

    #[test]
    fn what_the_system_says_is_the_cause() {
        use io::ErrorKind as Kind;
        let failed = |attempt, kind: Kind| ZoneError::failed(Path::new("z"), attempt, kind.into());
        let forbidden = failed(Attempt::Create, Kind::PermissionDenied);
        assert_eq!(
            forbidden.to_string(),
            "\"z\": this process may not create a file in its folder; let its user do so, or name another path"
        );
        assert_eq!(forbidden.source().unwrap().to_string(), "permission denied");
        let problem = |attempt, kind| failed(attempt, kind).problem();
        assert_eq!(problem(Attempt::Open, Kind::ReadOnlyFilesystem), ZoneProblem::Forbidden(Attempt::Open));
        assert_eq!(problem(Attempt::Create, Kind::NotADirectory), ZoneProblem::NoFolder);
        assert_eq!(problem(Attempt::Open, Kind::NotADirectory), ZoneProblem::NoFolder);
        assert_eq!(problem(Attempt::Open, Kind::NotFound), ZoneProblem::Failed(Attempt::Open));
        let texts = [
            (Attempt::Open, "open the file for reading and writing"),
            (Attempt::Read, "read the file"),
            (Attempt::Write, "write to the file"),
            (Attempt::Map, "map the file into memory"),
        ];
        for (attempt, text) in texts {
            assert_eq!(
                failed(attempt, Kind::Other).to_string(),
                format!("\"z\": the system could not {text}; its own words are the cause")
            );
        }
    }

    #[test]
    fn a_file_that_could_not_be_made_for_want_of_room_says_how_much_it_needs() {
        use io::ErrorKind as Kind;
        for kind in [Kind::StorageFull, Kind::QuotaExceeded, Kind::FileTooLarge] {
            let error = ZoneError::not_made(Path::new("z"), 4352, kind.into());
            assert_eq!(error.problem(), ZoneProblem::NoRoom(4352));
        }
        let other = ZoneError::not_made(Path::new("z"), 4352, Kind::PermissionDenied.into());
        assert_eq!(other.problem(), ZoneProblem::Forbidden(Attempt::Create));
    }
}

//! The file of overrides: one JSON document beside the rules file.
//!
//! ```text
//! {"tidegate_overrides":1,"overrides":[
//! {"rule":"api","key":{"ip":"192.0.2.7"},"limit":"100/s","until":"2026-11-15T14:00:00Z","by":"ana","at":"..."},
//! {"rule":"api","key":{"ip":"192.0.2.8"},"decision":"deny","by":"ana","at":"..."}
//! ]}
//! ```
//!
//! A change is a read, a change and a write under an exclusive lock, so servers with the same file merge their changes.
//! The lock is on a file of its own, because the file itself is replaced by each write. A file that cannot be read or
//! is broken is an error and stays as it is.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::process::geteuid;
use serde::de::{self, Deserialize, Deserializer};
use tidegate_rules::{Override, OverrideSet};
use tokio::time::Instant;

use super::record::{OverrideRecord, set_of};
use super::{AuditRecord, KnownOverrides, NotKept};
use crate::engine::Engine;
use crate::reload::{Look, replace_whole};

/// The maximum size of the file. All keys within their bound, escaped, take half of it.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// The pause between two attempts to lock the file.
const PAUSE: Duration = Duration::from_millis(10);
/// The version of the format.
const FORMAT: u32 = 1;

/// A file of overrides.
#[derive(Debug)]
pub(super) struct OverridesFile {
    path: PathBuf,
}

/// The metadata of the file at the last read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeenFile(Look);

/// The content of the file.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FileContent {
    #[serde(rename = "tidegate_overrides")]
    format: u32,
    overrides: Vec<KeptOverride>,
}

/// An override that is valid by itself, so that its error has a line.
struct KeptOverride(Override);

impl<'de> Deserialize<'de> for KeptOverride {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<KeptOverride, D::Error> {
        OverrideRecord::deserialize(from)?.into_override().map(KeptOverride).map_err(de::Error::custom)
    }
}

impl OverridesFile {
    pub(super) fn new(path: PathBuf) -> OverridesFile {
        OverridesFile { path }
    }

    /// Reads the file; `None` if there is none. The metadata is that of the file before the read, so that a file that is
    /// replaced meanwhile is read again.
    pub(super) fn read(&self) -> Result<(SeenFile, Option<OverrideSet>), NotKept> {
        let seen = SeenFile(Look::at(&self.path));
        let now = jiff::Timestamp::now().as_second();
        match open_own(&self.path, OFlags::RDONLY | OFlags::NONBLOCK).and_then(text_of) {
            Ok(text) => {
                let set = parsed(&text, now).map_err(|what| {
                    self.wrong(&format!(
                        "{what}; repair the file, or move it away to begin without overrides"
                    ))
                })?;
                Ok((seen, Some(set)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((seen, None)),
            Err(error) => Err(self.wrong(&format!("cannot be read: {error}"))),
        }
    }

    /// Returns true if the metadata of the file is another one than at the last read.
    pub(super) fn has_changed(&self, known: Option<&SeenFile>) -> bool {
        known != Some(&SeenFile(Look::at(&self.path)))
    }

    /// Reads the file, and puts its overrides in force. A file that is gone is an error if there were overrides in it: an
    /// unmounted folder must not end them.
    pub(super) fn look(&self, engine: &Engine, known: &mut KnownOverrides) -> Result<(), NotKept> {
        let (seen, found) = self.read()?;
        match found {
            Some(found) => engine.gate().replace_overrides(found),
            None if engine.gate().override_set().is_empty() => {}
            None => {
                return Err(self.wrong(
                    "is gone, while overrides of it are in force; put it back. The next change writes it again, with \
                     the overrides in force",
                ));
            }
        }
        known.file = Some(seen);
        Ok(())
    }

    /// Changes the overrides in the file under its lock, and puts the result in force. The lock is not waited for after the
    /// deadline.
    pub(super) fn change<T, E: From<NotKept>>(
        &self,
        engine: &Engine,
        known: &mut KnownOverrides,
        audit: &AuditRecord,
        deadline: Instant,
        apply: impl Fn(&mut OverrideSet) -> Result<T, E>,
    ) -> Result<T, E> {
        let _lock = self.lock(deadline)?;
        let (_, found) = self.read()?;
        let mut set = found.unwrap_or_else(|| engine.gate().override_set());
        set.remove_ended(engine.gate().date());
        let before = set.clone();
        let changed = apply(&mut set)?;
        if set != before {
            engine.audit().append(audit)?;
            self.write(&set).inspect_err(|why| engine.audit().append_failure(audit, why))?;
        }
        engine.gate().replace_overrides(set);
        // The next look reads the file back.
        known.file = None;
        Ok(changed)
    }

    /// Locks the file for a change. The lock ends when the result is dropped, or with the process.
    #[expect(clippy::disallowed_methods, reason = "the system has no lock with a deadline")]
    fn lock(&self, deadline: Instant) -> Result<File, NotKept> {
        let mut path = self.path.clone().into_os_string();
        path.push(".lock");
        let path = PathBuf::from(path);
        let locked = open_own(&path, OFlags::RDWR | OFlags::CREATE).and_then(|file| {
            loop {
                match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                    Err(error) if error == rustix::io::Errno::WOULDBLOCK => {}
                    locked => return locked.map(|()| file).map_err(io::Error::from),
                }
                if Instant::now() >= deadline {
                    return Err(io::Error::other("another server has had the lock for too long; end it"));
                }
                thread::sleep(PAUSE);
            }
        });
        locked.map_err(|error| {
            NotKept(format!(
                "{}: cannot be locked: {error}; let the server's user write it and its folder, or name another file \
                 with [server] overrides_file",
                path.display()
            ))
        })
    }

    /// Writes the file atomically and durably, with one override in each line.
    fn write(&self, set: &OverrideSet) -> Result<(), NotKept> {
        let lines = set.iter().map(|one| serde_json::to_string(&OverrideRecord::from(one)));
        let written = lines.collect::<Result<Vec<_>, _>>().map_err(io::Error::from).and_then(|lines| {
            let text =
                format!("{{\"tidegate_overrides\":{FORMAT},\"overrides\":[\n{}\n]}}\n", lines.join(",\n"));
            replace_whole(&self.path, &text)
        });
        written.map_err(|error| {
            self.wrong(&format!(
                "cannot be written: {error}; let the server's user write it and its folder, or name another file with \
                 [server] overrides_file"
            ))
        })
    }

    fn wrong(&self, what: &str) -> NotKept {
        NotKept(format!("{}: {what}", self.path.display()))
    }
}

/// Parses the text of the file. The error has the line.
fn parsed(text: &str, now: i64) -> Result<OverrideSet, String> {
    let content: FileContent = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if content.format != FORMAT {
        return Err(format!(
            "line 1: tidegate_overrides is {}, and this version reads {FORMAT}",
            content.format
        ));
    }
    set_of(content.overrides.into_iter().map(|KeptOverride(one)| Ok(one)), now)
}

/// Opens a file of this user. It is created with mode 0600 if the flags say so. The file of another user, or one that
/// others may write, is an error: they could lift any limit.
fn open_own(path: &Path, flags: OFlags) -> io::Result<File> {
    let file = File::from(open(path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::RUSR | Mode::WUSR)?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no regular file; move it away"));
    }
    let (owner, user) = (metadata.uid(), geteuid().as_raw());
    if owner != user {
        return Err(io::Error::other(format!(
            "it belongs to user {owner}, and the server runs as user {user}; chown it, or move it away"
        )));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(io::Error::other("other users may write it; chmod 600"));
    }
    Ok(file)
}

/// Reads a text within [`MAX_FILE_BYTES`].
fn text_of(file: File) -> io::Result<String> {
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("it is longer than {MAX_FILE_BYTES} bytes")));
    }
    Ok(text)
}

//! The audit log: the author, the time and the content of each change by an operator, one line of JSON for each.
//!
//! ```text
//! {"at":"2026-11-15T12:00:00Z","by":"ana","from":"192.0.2.9:40112","do":"put_override","rule":"api",
//!  "key":{"ip":"192.0.2.7"},"limit":"100/s","until":"2026-11-15T14:00:00Z"}
//! ```
//!
//! A line is written before the change is made: a change that cannot be logged is not made. If the change fails after
//! that, a second line with the member `failed` says so.

use std::fs::File;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use rustix::process::geteuid;
use serde::Serialize;
use tidegate::{Adjustment, StoreError};
use tidegate_rules::{OverrideId, RuleKey};
use tokio::task::spawn_blocking;

use super::{NotKept, OverrideRecord};
use crate::date;
use crate::engine::not_available;

/// The audit log of a server; it may be off.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuditLog {
    file: Option<PathBuf>,
}

/// The author of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Author {
    /// The name that the request gives.
    pub(crate) name: Option<String>,
    /// The address of the client.
    pub(crate) address: Option<SocketAddr>,
}

/// One line of the log.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AuditRecord {
    /// The time of the change.
    at: String,
    /// The author: the name in the request, or else the address.
    by: Option<String>,
    /// The address of the client.
    from: Option<String>,
    #[serde(rename = "do")]
    what: &'static str,
    /// The override.
    #[serde(flatten)]
    one: Option<OverrideRecord>,
    /// The file that is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// The entity tag of its new text.
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    /// The units of an adjustment: positive for a charge, negative for a refund.
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<i128>,
    /// The reason why the change was not made.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

impl Author {
    /// Returns the author as text: the name, or else the address.
    pub(crate) fn shown(&self) -> Option<String> {
        self.name.clone().or_else(|| self.address.map(|address| address.ip().to_canonical().to_string()))
    }
}

impl AuditRecord {
    fn new(what: &'static str, author: &Author, now: i64) -> AuditRecord {
        AuditRecord {
            at: date::written(now),
            by: author.shown(),
            from: author.address.map(|address| address.to_string()),
            what,
            one: None,
            file: None,
            etag: None,
            amount: None,
            failed: None,
        }
    }

    /// Creates the record of an override that is put.
    pub(crate) fn put(one: &tidegate_rules::Override, author: &Author, now: i64) -> AuditRecord {
        let one = Some(OverrideRecord::without_author(one));
        AuditRecord { one, ..AuditRecord::new("put_override", author, now) }
    }

    /// Creates the record of an override that is removed.
    pub(crate) fn delete(key: OverrideRecord, author: &Author, now: i64) -> AuditRecord {
        AuditRecord { one: Some(key), ..AuditRecord::new("delete_override", author, now) }
    }

    /// Creates the record of a rules file that is written.
    pub(crate) fn put_rules(file: String, etag: String, author: &Author, now: i64) -> AuditRecord {
        AuditRecord { file: Some(file), etag: Some(etag), ..AuditRecord::new("put_rules", author, now) }
    }
}

impl AuditRecord {
    /// Creates the record of a key of a rule that is reset.
    pub(crate) fn reset(key: &RuleKey, author: &Author, now: i64) -> AuditRecord {
        let one = Some(OverrideRecord::of_key(&OverrideId::new(key.rule(), key.key().to_vec())));
        AuditRecord { one, ..AuditRecord::new("reset", author, now) }
    }

    /// Creates the record of a key of a rule that is adjusted.
    pub(crate) fn adjust(key: &RuleKey, by: Adjustment, author: &Author, now: i64) -> AuditRecord {
        let amount = match by {
            Adjustment::Charge(cost) => i128::from(cost.get()),
            Adjustment::Refund(cost) => -i128::from(cost.get()),
        };
        AuditRecord { what: "adjust", amount: Some(amount), ..AuditRecord::reset(key, author, now) }
    }
}

/// Makes a change of a key after its line is in the log, and logs if it failed. The file is written on a thread that may
/// block.
///
/// # Errors
/// [`NotKept`] if the line cannot be written: the change is not made.
pub(crate) async fn audited<T>(
    log: &AuditLog,
    record: AuditRecord,
    change: impl Future<Output = Result<T, StoreError>>,
) -> Result<Result<T, StoreError>, NotKept> {
    if !log.is_on() {
        return Ok(change.await);
    }
    let (to, line) = (log.clone(), record.clone());
    let appended = spawn_blocking(move || to.append(&line)).await;
    appended.unwrap_or_else(|ended| Err(NotKept(ended.to_string())))?;
    let changed = change.await;
    if let Err(error) = &changed {
        let (to, why) = (log.clone(), NotKept(not_available(error)));
        // The caller reports the failure of the change.
        let _ = spawn_blocking(move || to.append_failure(&record, &why)).await;
    }
    Ok(changed)
}

impl AuditLog {
    /// Returns true if changes are logged.
    pub(crate) fn is_on(&self) -> bool {
        self.file.is_some()
    }

    /// Opens the log of these settings; `None` turns it off. Returns an error if the file cannot be appended to.
    pub(crate) fn open(file: Option<&Path>) -> Result<AuditLog, NotKept> {
        let log = AuditLog { file: file.map(Path::to_owned) };
        log.file.as_deref().map(appending).transpose().map_err(|error| log.wrong(&error))?;
        Ok(log)
    }

    /// Appends a line and syncs the file. The file is opened anew for each line, so that it may be rotated.
    pub(crate) fn append(&self, record: &AuditRecord) -> Result<(), NotKept> {
        let Some(path) = &self.file else { return Ok(()) };
        let appended = serde_json::to_string(record).map_err(io::Error::from).and_then(|line| {
            let mut file = appending(path)?;
            // A full disk or a crash may have cut the last line off, which must not spoil this one.
            let begin = if is_cut_off(&file)? { "\n" } else { "" };
            // One write, so that lines of several servers do not mix.
            file.write_all(format!("{begin}{line}\n").as_bytes())?;
            file.sync_data()
        });
        appended.map_err(|error| self.wrong(&error))
    }

    /// Appends that a change was not made after all.
    pub(crate) fn append_failure(&self, record: &AuditRecord, why: &NotKept) {
        let failed = AuditRecord { failed: Some(why.0.clone()), ..record.clone() };
        // The caller reports the first failure.
        let _ = self.append(&failed);
    }

    fn wrong(&self, error: &io::Error) -> NotKept {
        let file = self.file.as_deref().unwrap_or(Path::new("")).display();
        NotKept(format!(
            "audit log {file}: cannot be written: {error}; nothing was changed. Let the server's user write it, or name \
             another file with [server] audit_log"
        ))
    }
}

/// Returns true if the last line of a log has no end.
fn is_cut_off(file: &File) -> io::Result<bool> {
    let Some(last) = file.metadata()?.len().checked_sub(1) else { return Ok(false) };
    let mut byte = [0];
    // Nothing is read if another process has truncated it meanwhile.
    Ok(file.read_at(&mut byte, last)? == 1 && byte != *b"\n")
}

/// Opens a log of this user for appending. It is created with mode 0600.
fn appending(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(open(path, flags, Mode::RUSR | Mode::WUSR)?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    if metadata.uid() != geteuid().as_raw() {
        return Err(io::Error::other(format!("it belongs to user {}", metadata.uid())));
    }
    Ok(file)
}

//! The rules in force, and their replacement as a whole.
//!
//! One lock serializes reads and writes of the file, which are slow. A second lock guards the shared state and is held
//! only briefly. A query of that state therefore never waits for a read of the file.
//!
//! ```text
//!   file --read--> text --load--> policy --prepare--> prepared --put in force--> gate
//!                    |              |                     |
//!                    '--------------+----- an error: the rules in force stay, and the error is reported
//! ```
//!
//! A reload is all or nothing: either every rule of the new file is in force, or none. Counts of keys survive it,
//! also if the numbers of a rule change.

mod outcome;
mod write;

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tidegate::{MAX_PREDECESSORS, StoreError, StoreFuture, Zone};
use tidegate_rules::{
    Admission, Attributes, Batch, Gate, GateStore, PinnedPolicy, Policy, Prepared, Stretch,
    UnsupportedPolicy, differences,
};

pub(crate) use outcome::{Changes, NotWritten, Occasion, Reloaded, Status};
use tidegate_support::{at_once, nearest};

use crate::files;
use crate::memory;
use crate::precondition::Tag;
use crate::reload::{Look, ReportListener, read_regular};
use crate::settings::{Loaded, Settings, SettingsError, Source};

/// The rules in force, their source, and the outcome of the last reload.
#[derive(Debug)]
pub(crate) struct Rules {
    /// Decides by the rules. It swaps policies without blocking decisions.
    pub(crate) gate: Gate,
    /// True if the store answers at once. Another policy does not change that.
    is_in_memory: bool,
    /// Serializes reads and writes of the file. Held for as long as they take.
    turn: Mutex<()>,
    /// The text in force and the outcome of the last reload. Held for moments only.
    known: Mutex<KnownText>,
    /// The listener for reports about reloads, if one is registered.
    tell: OnceLock<ReportListener>,
}

/// The source of the rules, and the last outcome.
#[derive(Debug, Default)]
struct KnownText {
    /// The file, the flags and the variables that settings are loaded from; `None` if a reload is not possible.
    source: Option<Source>,
    /// The text whose rules are in force.
    text: Option<String>,
    /// The entity tag of the text.
    tag: Option<Tag>,
    /// The settings of the last reload; `None` before the first.
    settings: Option<Settings>,
    /// The outcome of all reloads.
    status: Status,
}

impl KnownText {
    /// Sets the text in force, and its tag.
    fn set_text(&mut self, text: Option<String>) {
        self.tag = text.as_deref().map(|text| Tag::of(text.as_bytes()));
        self.text = text;
    }
}

impl Rules {
    /// Creates the rules of these settings on a store. The policy is moved out of `settings`.
    pub(crate) fn new(
        settings: &mut Settings,
        store: impl Into<GateStore>,
    ) -> Result<Rules, UnsupportedPolicy> {
        let gate = Gate::new(std::mem::take(&mut settings.policy), store)?;
        let is_in_memory = gate.is_in_memory();
        let (turn, known, tell) = (Mutex::default(), Mutex::default(), OnceLock::new());
        Ok(Rules { gate, is_in_memory, turn, known, tell })
    }

    /// Sets the source for reloads, and the listener for reports. A pipe or a device cannot be read twice, so it
    /// disables reloads.
    pub(crate) fn come_from(&self, source: Source, text: Option<String>, tell: ReportListener) {
        let is_lasting = text.is_none() || source.path().metadata().is_ok_and(|found| found.is_file());
        let mut known = self.known();
        known.source = Some(source).filter(|_| is_lasting);
        known.set_text(text);
        // It is called once.
        let _ = self.tell.set(tell);
    }

    /// Decides about a request.
    ///
    /// Spends under every rule that applies, or under none of them. A denial releases the permits of shadow rules.
    pub(crate) async fn admit(&self, request: &Attributes<'_>) -> Result<Admission, StoreError> {
        let admission = self.gate.admit(request).await?;
        self.settle(std::slice::from_ref(&admission)).await;
        Ok(admission)
    }

    /// Decides about a request if the store answers at once, as a store in memory does. Otherwise decides nothing and
    /// returns `None`.
    ///
    /// The fronts call it first: it needs no future, and the attributes are not copied.
    pub(crate) fn admit_at_once(&self, request: &Attributes<'_>) -> Option<Admission> {
        self.settled_at_once(|| self.gate.admit(request))
    }

    /// [`Rules::admit_at_once`] by a pinned policy, for a front that reads only the attributes that rules use.
    pub(crate) fn admit_pinned(
        &self,
        policy: &PinnedPolicy<'_>,
        request: &Attributes<'_>,
    ) -> Option<Admission> {
        self.settled_at_once(|| policy.admit(request))
    }

    /// Returns a decision of a store in memory, with the permits of a denial released.
    fn settled_at_once<'a>(&self, admit: impl FnOnce() -> StoreFuture<'a, Admission>) -> Option<Admission> {
        if !self.is_in_memory {
            return None;
        }
        let admission = admit().now().ok()?;
        if !admission.permits().is_empty() {
            at_once(self.settle(std::slice::from_ref(&admission)));
        }
        Some(admission)
    }

    /// Decides about one request by the policy of a batch.
    ///
    /// For a front that has read only the attributes that the rules of this policy use.
    pub(crate) async fn admit_by(
        &self,
        policy: &Batch,
        request: &Attributes<'_>,
    ) -> Result<Admission, StoreError> {
        let admission = policy.admit(request).await?;
        self.settle(std::slice::from_ref(&admission)).await;
        Ok(admission)
    }

    /// Decides about one request of a batch.
    ///
    /// Requests of one stretch are sent to a remote store together. Each is decided after those before it.
    pub(crate) async fn admit_in(
        &self,
        stretch: &Stretch<'_>,
        request: &Attributes<'_>,
    ) -> Result<Admission, StoreError> {
        let admission = stretch.admit(request).await?;
        self.settle(std::slice::from_ref(&admission)).await;
        Ok(admission)
    }

    /// Decides about a batch, all or none.
    ///
    /// All requests are decided at one instant. If one is denied, nothing is spent under any of them.
    pub(crate) async fn admit_all(
        &self,
        batch: &Batch,
        requests: &[Attributes<'_>],
    ) -> Result<Vec<Admission>, StoreError> {
        let admissions = batch.admit_all(requests).await?;
        self.settle(&admissions).await;
        Ok(admissions)
    }

    /// Releases all permits of these admissions if one of them is a denial, including permits of shadow rules.
    ///
    /// The client of a denied request has no permit text, so it could not release them.
    async fn settle(&self, admissions: &[Admission]) {
        if admissions.iter().all(Admission::is_allowed) {
            return;
        }
        for permit in admissions.iter().flat_map(Admission::permits) {
            // If the store is down, the lease expires by itself.
            let _ = self.gate.release(permit).await;
        }
    }

    /// Returns the outcome of all reloads since the start.
    pub(crate) fn status(&self) -> Status {
        self.known().status.clone()
    }

    /// Returns the text of the rules in force, if they come from a file.
    pub(crate) fn text(&self) -> Option<String> {
        self.known().text.clone()
    }

    /// Returns the entity tag of that text. The tag is never newer than rules that the caller reads after it. A change
    /// that names the tag therefore never replaces rules that the caller has not seen.
    pub(crate) fn tag(&self) -> Option<Tag> {
        self.known().tag
    }

    /// Returns the file of the rules in force, if they come from a file.
    pub(crate) fn file(&self) -> Option<String> {
        let known = self.known();
        known.text.as_ref()?;
        known.source.as_ref().map(|source| source.path().display().to_string())
    }

    /// Returns the path that is watched. The file may not exist.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.known().source.as_ref().map(|source| source.path().to_owned())
    }

    /// Reads the file again, and puts its rules in force if it is valid. A missing or unreadable file is invalid.
    ///
    /// Blocks on file I/O, so it runs on its own thread. `now` are the settings of the start, for the list of
    /// settings that need a restart. The result is also reported to the listener.
    pub(crate) fn reload(&self, now: &Settings, occasion: Occasion) -> Reloaded {
        let _turn = lock(&self.turn);
        let Some(source) = self.known().source.clone() else {
            self.say(
                "cannot be read again, as they come from no regular file; restart the server to change them",
            );
            return Reloaded::Same;
        };
        let found = read_regular(source.path());
        if matches!(occasion, Occasion::Seen(look) | Occasion::Rested(look) if look != Look::at(source.path()))
        {
            // The file changed during the read. The watcher sees the change and reads again.
            return Reloaded::Same;
        }
        let is_asked = occasion == Occasion::Asked;
        match found {
            // The fault may be in a file that this one names, so the same text is tried again.
            Ok(text) if self.is_in_force(Some(&text)) && !is_asked && self.status().wrong.is_none() => {
                Reloaded::Same
            }
            // A rule that is not yet written would be off until the writer finishes.
            Ok(text) if matches!(occasion, Occasion::Seen(_)) && self.is_beginning(&text) => {
                Reloaded::Unfinished
            }
            Ok(text) => match self.load(&source, &text) {
                Ok((loaded, prepared)) => self.take_over(&source, loaded, prepared, now, is_asked),
                Err(error) => self.reject(&source, &error, is_asked),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.text().is_none() => {
                if is_asked {
                    self.say(&format!("there is no {} to be read", source.path().display()));
                }
                Reloaded::Same
            }
            Err(error) => self.reject(&source, &not_read(&source, &error), is_asked),
        }
    }

    /// Returns true if the file contains a proper, non-empty prefix of the text in force. The watcher delays the read
    /// of an empty file by itself.
    fn is_beginning(&self, text: &str) -> bool {
        self.known()
            .text
            .as_deref()
            .is_some_and(|whole| !text.is_empty() && whole.len() > text.len() && whole.starts_with(text))
    }

    /// Parses and prepares a text. It has to be valid, its zones have to fit in memory, and existing store files have
    /// to match. Otherwise the next start would fail.
    ///
    /// An empty text does not replace rules: it is more often the result of a full disk or a slip than intended.
    ///
    /// Nothing is in force yet: the caller decides if the prepared policy replaces the current one.
    fn load(&self, source: &Source, text: &str) -> Result<(Loaded, Prepared), SettingsError> {
        if text.trim().is_empty() && self.gate.with_policy(|policy| !policy.rules().is_empty()) {
            let file = source.path().display();
            return Err(SettingsError::alone(format!(
                "{file}: is empty, while rules are in force; write a comment into it if there shall be none: # no rules"
            )));
        }
        let mut loaded = source.load_text(text)?;
        let in_file = |what: String| SettingsError::alone(format!("{}: {what}", source.path().display()));
        memory::suffices_for(&loaded.settings).map_err(in_file)?;
        files::check(&loaded.settings).map_err(|error| in_file(files::described(&error)))?;
        let policy = std::mem::take(&mut loaded.settings.policy);
        let prepared = self.gate.prepare(policy).map_err(|error| in_file(error.to_string()))?;
        Ok((loaded, prepared))
    }

    /// Puts what was read in force, unless the text is in force already, and reports it.
    ///
    /// A text that equals the one in force is not put in force again, but it ends an earlier complaint.
    fn take_over(
        &self,
        source: &Source,
        loaded: Loaded,
        prepared: Prepared,
        now: &Settings,
        is_asked: bool,
    ) -> Reloaded {
        let file = source.path().display();
        let was_wrong = self.known().status.wrong.is_some();
        if self.is_in_force(loaded.text.as_deref()) {
            let differences = self.other_settings(&loaded.settings, now);
            let changes = Changes { differences, ..Changes::default() };
            self.known().status.wrong = None;
            if was_wrong {
                self.say_list(&format!("{file} is valid again and unchanged"), &changes);
            } else if is_asked || !changes.differences.is_empty() {
                let nothing = if changes.differences.is_empty() { ": nothing has changed" } else { "" };
                self.say_list(&format!("{file} was read again{nothing}"), &changes);
            }
            return Reloaded::Same;
        }
        let first = match self.text() {
            None => format!("{file} is there now, and was read"),
            Some(_) if was_wrong => format!("{file} is valid again"),
            Some(_) => format!("{file} was read again"),
        };
        let changes = self.replace(loaded, prepared, now);
        let nothing = if changes.differences.is_empty() { ": no rule has changed" } else { "" };
        self.say_list(&format!("{first}{nothing}"), &changes);
        Reloaded::Replaced
    }

    /// Puts other rules in force. Returns the differences and warnings.
    ///
    /// Cannot fail: all checks were made by [`Rules::load`]. The new rules decide from the next request on.
    fn replace(&self, loaded: Loaded, prepared: Prepared, now: &Settings) -> Changes {
        let Loaded { settings, text, mut warnings, .. } = loaded;
        let before = self.gate.zones();
        let policy = prepared.policy();
        let mut lines = self.gate.with_policy(|old| differences(old, policy));
        if policy.rules().is_empty() && !lines.is_empty() {
            lines.push("! no rules are in force now: nothing is limited by them".to_owned());
        }
        lines.extend(self.other_settings(&settings, now));
        prepared.put_in_force();
        let is_new = |(name, _): &(String, Zone)| !before.iter().any(|(known, _)| known == name);
        warnings
            .extend(self.gate.zones().into_iter().filter(is_new).filter_map(|(_, zone)| files::lost(&zone)));
        let mut known = self.known();
        known.set_text(text);
        known.status.replaced += 1;
        known.status.wrong = None;
        Changes { differences: lines, warnings }
    }

    /// Returns a line for each setting that takes effect only after a restart and has changed since the last read.
    ///
    /// Compares with the last read as well as with the start, so that each change is reported once and a change
    /// back is not reported.
    fn other_settings(&self, read: &Settings, now: &Settings) -> Vec<String> {
        let mut known = self.known();
        let changed = known.settings.as_ref().unwrap_or(now).different_from(read);
        let mut waiting = now.different_from(read);
        waiting.retain(|name| changed.contains(name));
        known.settings = Some(Settings { policy: Policy::default(), ..read.clone() });
        waiting.iter().map(|name| format!("~ {name}: takes effect after a restart")).collect()
    }

    /// Records that a file is invalid. The same complaints are reported once, however often they recur.
    ///
    /// Counts only new complaints, so the counter of rejected files grows once per broken version.
    fn reject(&self, source: &Source, error: &SettingsError, is_asked: bool) -> Reloaded {
        let file = source.path().display();
        let wrong = error.to_string();
        let is_new = self.status().wrong.as_ref() != Some(&wrong);
        if is_new {
            let status = &mut self.known().status;
            status.rejected += 1;
            status.wrong = Some(wrong);
        }
        if is_new {
            if let Some(tell) = self.tell.get() {
                tell.rejected(&file.to_string(), error);
            }
        } else if is_asked {
            self.say(&format!("{file} is still invalid; the previous rules stay in force"));
        }
        if is_new { Reloaded::Rejected } else { Reloaded::Same }
    }

    /// Reports rules whose limit has changed so often that the counts under their oldest limits are dropped.
    pub(crate) fn tell_dropped_counts(&self) {
        for rule in self.gate.take_dropped_counts() {
            self.say(&format!(
                "rule \"{rule}\" has had more than {MAX_PREDECESSORS} other limits that keys still have counts under; \
                 the counts under the oldest of them are carried no more"
            ));
        }
    }

    /// Reports each attribute of requests that no rule uses, once.
    pub(crate) fn tell_unknown_attributes(&self) {
        for name in self.gate.take_unknown_attributes() {
            let near = self.gate.with_policy(|policy| nearest(&name, policy.attributes()).map(str::to_owned));
            let remedy = match near {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("if that is intended, declare it: [attributes] names = [{name:?}]"),
            };
            self.say(&format!("requests have the attribute {name:?}, which no rule uses; {remedy}"));
        }
    }

    /// Reports the warnings about an override of a rule, if there are any.
    pub(crate) fn tell_overridden(&self, rule: &str, warnings: &[String]) {
        if !warnings.is_empty() {
            self.report(&format!("a key of rule \"{rule}\" has an override"), warnings);
        }
    }

    /// Reports one line with warnings. Returns false if there is no listener yet.
    pub(crate) fn report(&self, first: &str, warnings: &[String]) -> bool {
        self.tell.get().map(|tell| tell.list(first, &[], warnings)).is_some()
    }

    /// Reports one line.
    fn say(&self, line: &str) {
        self.say_list(line, &Changes::default());
    }

    /// Reports one line, with differences and warnings. Without a listener nothing is reported.
    fn say_list(&self, first: &str, changes: &Changes) {
        if let Some(tell) = self.tell.get() {
            tell.list(first, &changes.differences, &changes.warnings);
        }
    }

    /// Returns true if this is the text in force; `None` stands for rules without a file.
    fn is_in_force(&self, text: Option<&str>) -> bool {
        self.known().text.as_deref() == text
    }

    /// Locks the file: reads and writes wait while the guard is held.
    #[cfg(test)]
    pub(crate) fn hold_up(&self) -> MutexGuard<'_, ()> {
        lock(&self.turn)
    }

    /// Locks the known text. The guard must not be held during file I/O.
    fn known(&self) -> MutexGuard<'_, KnownText> {
        lock(&self.known)
    }
}

/// Returns the error about a file that cannot be read.
fn not_read(source: &Source, error: &io::Error) -> SettingsError {
    let file = source.path().display();
    SettingsError::alone(match error.kind() {
        io::ErrorKind::NotFound => format!("{file}: is gone; put it back, or restart without it"),
        _ => format!("{file}: cannot be read: {error}; put a file of settings there"),
    })
}

/// Locks a mutex. A panic of another holder does not poison it: the guarded state is valid after every statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

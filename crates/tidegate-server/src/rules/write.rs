//! Writes rules for an operator: to the file, and into force.
//!
//! The order of the checks decides which error an operator gets: first the text, then its precondition, then the
//! file on disk. So an invalid text is reported as such even if it is also outdated.

use std::path::Path;

use super::outcome::{Changes, NotWritten};
use super::{Rules, lock};
use crate::overrides::NotKept;
use crate::precondition::Precondition;
use crate::reload::{read_regular, write_whole};
use crate::settings::{Settings, Source};

impl Rules {
    /// Writes the file and puts its rules in force, if the text is valid and `named` matches the text in force.
    /// `before_write` is called when nothing but the disk can fail any more.
    ///
    /// The file lock is held throughout, so that no other change comes between the check of the text in force and its
    /// replacement.
    pub(crate) fn write(
        &self,
        text: &str,
        now: &Settings,
        named: &Precondition,
        before_write: impl FnOnce(&Path) -> Result<(), NotKept>,
    ) -> Result<Changes, NotWritten> {
        let _turn = lock(&self.turn);
        let source = {
            let known = self.known();
            known.source.clone().filter(|_| known.text.is_some()).ok_or(NotWritten::NoFile)?
        };
        let (loaded, prepared) = self.load(&source, text).map_err(NotWritten::Rejected)?;
        named.check_replacing(self.tag(), self.is_in_force(Some(text))).map_err(NotWritten::Unmet)?;
        if !named.is_for_anything() && self.is_changed(&source) {
            return Err(NotWritten::Changed);
        }
        before_write(source.path()).map_err(NotWritten::NotLogged)?;
        write_whole(source.path(), text).map_err(NotWritten::Io)?;
        let changes = self.replace(loaded, prepared, now);
        self.say_list(&format!("{} was written", source.path().display()), &changes);
        Ok(changes)
    }

    /// Returns true if the file on disk differs from the text in force. A path that is not a file fails later, when it
    /// is written.
    ///
    /// Such a file was edited by hand and not read yet, or was rejected. Only `If-Match: *` overwrites it.
    fn is_changed(&self, source: &Source) -> bool {
        match read_regular(source.path()) {
            Ok(text) => !self.is_in_force(Some(&text)),
            Err(_) => source.path().is_file(),
        }
    }
}

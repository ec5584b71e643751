//! Data of a new database, made once per process and copied for each server: making takes longer than copying.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::account::Account;
use crate::database::DATA;
use crate::folder::Folder;

/// A folder with data that nobody has used.
#[derive(Debug)]
pub(crate) struct Template(OnceLock<Folder>);

impl Template {
    pub(crate) const fn new() -> Template {
        Template(OnceLock::new())
    }

    /// Copies the data to a folder; the first who asks has to make them.
    pub(crate) fn copy(&self, to: &Folder, make: impl FnOnce() -> Folder) {
        let from = self.0.get_or_init(make).file(DATA);
        run(Command::new("cp").arg("-a").args([from, to.file(DATA)]));
    }
}

/// A new folder in which this user may make things.
pub(crate) fn owned_folder(name: &str, account: Option<Account>) -> Folder {
    let folder = Folder::new(name);
    own(folder.path(), account);
    folder
}

/// Makes a folder of this user.
pub(crate) fn make_folder(path: &Path, account: Option<Account>) {
    fs::create_dir(path).unwrap_or_else(|error| panic!("folder {}: {error}", path.display()));
    own(path, account);
}

fn own(path: &Path, account: Option<Account>) {
    if let Some(account) = account {
        account.own(path);
    }
}

/// Runs a program to its end; one that fails panics with what it said.
pub(crate) fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{:?}: {error}", command.get_program()));
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{command:?}: {}: {}", output.status, String::from_utf8_lossy(&said));
}

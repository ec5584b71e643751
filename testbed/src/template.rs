//! Data of a new database, made once per process and copied for each server: making takes longer than copying.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use harness::Folder;
use rustix::process::geteuid;

use crate::database::DATA;

/// A folder with unused data.
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

/// A user of the system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    user: u32,
    group: u32,
}

impl Account {
    /// The user of this name if we are root, and nobody if not: then it is us.
    pub(crate) fn unless_ordinary(name: &str) -> Option<Account> {
        geteuid().is_root().then(|| Account { user: number("-u", name), group: number("-g", name) })
    }

    /// Lets a program run as this user.
    pub(crate) fn run(self, command: &mut Command) {
        command.uid(self.user).gid(self.group);
    }

    /// Gives a folder to this user.
    pub(crate) fn own(self, folder: &Path) {
        let given = chown(folder, Some(self.user), Some(self.group));
        given.unwrap_or_else(|error| panic!("folder {}: {error}", folder.display()));
    }
}

fn number(which: &str, name: &str) -> u32 {
    let output = Command::new("id").args([which, name]).output();
    let number = output.ok().and_then(|output| String::from_utf8_lossy(&output.stdout).trim().parse().ok());
    number.unwrap_or_else(|| panic!("user {name}: there is none; `cargo xtask clients` installs who has it"))
}

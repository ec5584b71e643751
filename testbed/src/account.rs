//! Whom a server runs as that refuses to run as root.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::geteuid;

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

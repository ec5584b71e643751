//! A server process with a rules file, and operations on that file.

use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, str};

use rustix::process::Signal;
use serde_json::Value;

use crate::command::call::{Call, address};
use crate::process::Process;

/// The rules file, or the symbolic link to it.
pub(super) const FILE: &str = "tidegate.toml";
/// Timeout of every wait.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct Place {
    pub(super) process: Process,
    folder: PathBuf,
    ready: Value,
    /// The socket that receives service notifications, in place of systemd.
    manager: UnixDatagram,
}

impl Place {
    /// Starts a server in a folder of this name, which `prepare` fills first.
    pub(super) fn prepared(name: &str, prepare: impl FnOnce(&Path)) -> Place {
        let call = Call::from(&format!("reload_{name}")).variable("NOTIFY_SOCKET", "socket");
        let folder = call.folder().to_owned();
        prepare(&folder);
        let manager = UnixDatagram::bind(folder.join("socket")).expect("a socket can be made");
        manager.set_read_timeout(Some(TIMEOUT)).expect("a socket option can be set");
        let (process, ready) = call.serve(&[]);
        let place = Place { process, folder, ready, manager };
        assert_eq!(place.hears(), "READY=1");
        place
    }

    /// Starts a server with this rules file.
    pub(super) fn with(name: &str, text: &str) -> Place {
        Place::prepared(name, |folder| fs::write(folder.join(FILE), text).expect("a file can be written"))
    }

    pub(super) fn address(&self, front: &str) -> SocketAddr {
        address(&self.ready, front)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file in place.
    pub(super) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).expect("a file can be written");
    }

    /// Replaces a file atomically.
    pub(super) fn put(&self, name: &str, text: impl AsRef<[u8]>) {
        self.write("beside", text);
        self.rename("beside", name);
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).expect("a file can be moved");
    }

    /// Points a symbolic link to `target`, atomically.
    pub(super) fn link(&self, name: &str, target: &str) {
        symlink(target, self.path("beside")).expect("a link can be made");
        self.rename("beside", name);
    }

    /// Reloads the rules by signal, and waits for the end of the reload.
    pub(super) fn reload(&self) {
        self.hang_up();
        assert_eq!(self.hears(), "READY=1");
    }

    /// Reloads the rules by signal, and waits for the start of the reload.
    pub(super) fn hang_up(&self) {
        self.process.signal(Signal::HUP);
        let reloading = self.hears();
        let time = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect(&reloading);
        assert!(time.parse::<u64>().is_ok_and(|time| time > 0), "{time}");
    }

    /// Returns the next service notification.
    pub(super) fn hears(&self) -> String {
        let mut heard = [0; 128];
        let bytes = self.manager.recv(&mut heard).expect("the server tells how far it is");
        str::from_utf8(&heard[..bytes]).expect("it is text").to_owned()
    }

    /// Stops the server. Returns the messages that were not yet read.
    pub(super) fn stop(self) -> String {
        self.process.signal(Signal::TERM);
        let ended = self.process.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.err
    }
}

/// Returns a rule of this name for the path `/{name}`, with `user` as its key.
pub(super) fn rule(name: &str, limit: &str) -> String {
    format!(
        "[[rule]]\nname = \"{name}\"\nwhen = {{ path = \"/{name}\" }}\nkey = [\"user\"]\nlimit = \"{limit}\"\n"
    )
}

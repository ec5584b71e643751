//! A server with its file of rules, and everything that can be done to that.

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

/// The file of rules, or the link to it.
pub(super) const FILE: &str = "tidegate.toml";
/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Place {
    pub(super) process: Process,
    folder: PathBuf,
    ready: Value,
    /// Whom the server tells how far it is, as it would tell systemd.
    manager: UnixDatagram,
}

impl Place {
    /// A server in a folder of this name, prepared by whoever wants it so.
    pub(super) fn prepared(name: &str, prepare: impl FnOnce(&Path)) -> Place {
        let call = Call::from(&format!("reload_{name}")).variable("NOTIFY_SOCKET", "socket");
        let folder = call.folder().to_owned();
        prepare(&folder);
        let manager = UnixDatagram::bind(folder.join("socket")).expect("a socket can be made");
        manager.set_read_timeout(Some(PATIENCE)).expect("a socket can be told");
        let (process, ready) = call.serve(&[]);
        let place = Place { process, folder, ready, manager };
        assert_eq!(place.hears(), "READY=1");
        place
    }

    /// A server with this file.
    pub(super) fn with(name: &str, text: &str) -> Place {
        Place::prepared(name, |folder| fs::write(folder.join(FILE), text).expect("a file can be written"))
    }

    pub(super) fn address(&self, front: &str) -> SocketAddr {
        address(&self.ready, front)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file where it is.
    pub(super) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).expect("a file can be written");
    }

    /// Puts a file in place of another, whole.
    pub(super) fn put(&self, name: &str, text: impl AsRef<[u8]>) {
        self.write("beside", text);
        self.rename("beside", name);
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).expect("a file can be moved");
    }

    /// Has a link point there, in one step.
    pub(super) fn link(&self, name: &str, target: &str) {
        symlink(target, self.path("beside")).expect("a link can be made");
        self.rename("beside", name);
    }

    /// Has the rules read by a signal, and waits until they are.
    pub(super) fn reload(&self) {
        self.hang_up();
        assert_eq!(self.hears(), "READY=1");
    }

    /// Has the rules read by a signal, and waits until that begins.
    pub(super) fn hang_up(&self) {
        self.process.signal(Signal::HUP);
        let reloading = self.hears();
        let time = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect(&reloading);
        assert!(time.parse::<u64>().is_ok_and(|time| time > 0), "{time}");
    }

    /// What a service manager hears next.
    pub(super) fn hears(&self) -> String {
        let mut heard = [0; 128];
        let bytes = self.manager.recv(&mut heard).expect("the server tells how far it is");
        str::from_utf8(&heard[..bytes]).expect("it is text").to_owned()
    }

    /// Stops the server. All that it said and nobody has heard yet.
    pub(super) fn stop(self) -> String {
        self.process.signal(Signal::TERM);
        let ended = self.process.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.err
    }
}

/// A rule of this name for each user on a path of that name.
pub(super) fn rule(name: &str, limit: &str) -> String {
    format!(
        "[[rule]]\nname = \"{name}\"\nwhen = {{ path = \"/{name}\" }}\nkey = [\"user\"]\nlimit = \"{limit}\"\n"
    )
}

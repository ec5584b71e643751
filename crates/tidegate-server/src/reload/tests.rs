//! Tests of a read that blocks, of other connections meanwhile, and of the end of the watcher.

mod by_hand;
mod watched;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::num::NonZeroUsize;
use std::sync::mpsc::channel;
use std::{fs, thread};

use tidegate::Zone;
use tokio::runtime::Builder;
use tokio::task::yield_now;

use super::*;
use crate::Server;
use crate::reload::folder::Folder;
use crate::settings::{Settings, Source};
use by_hand::{Looks, by_hand};

/// Timeout of every wait in these tests.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Starts a server whose watcher looks only when the test triggers it.
fn server(folder: &Folder) -> (Server, Looks) {
    let any_port = "127.0.0.1:0".parse().ok();
    let settings = Settings { resp: any_port, http: None, threads: NonZeroUsize::MIN, ..Settings::default() };
    let server = Server::start(settings, Zone::new(1 << 16)).expect("a free port can be had");
    let text = "[[rule]]\nname = \"once\"\nlimit = \"1/d\"\n";
    folder.put("tidegate.toml", text);
    let source = Source::new(Some(folder.path("tidegate.toml")), Vec::new());
    let (pace, looks) = by_hand();
    server.read_rules_from(source, None, ReportListener::new(|_| ()), pace);
    (server, looks)
}

/// Sends PING, and waits for the reply.
fn is_answered(server: &Server) -> bool {
    let mut client = TcpStream::connect(server.resp().expect("it speaks RESP")).expect("it listens");
    client.set_read_timeout(Some(TIMEOUT)).expect("the timeout can be set");
    client.write_all(b"PING\r\n").expect("it reads");
    let mut pong = [0; 7];
    client.read_exact(&mut pong).is_ok_and(|()| &pong == b"+PONG\r\n")
}

#[test]
fn a_read_that_hangs_holds_up_neither_connections_nor_a_stop() {
    let folder = Folder::new();
    let (server, _looks) = server(&folder);
    let engine = server.engine();
    let turn = engine.rules().hold_up();
    let runtime = Builder::new_current_thread().build().expect("a runtime can be made");
    let reading = runtime.spawn(server.reload());
    runtime.block_on(yield_now());
    assert!(!reading.is_finished() && is_answered(&server));
    let (sender, stopped) = channel();
    thread::spawn(move || {
        server.stop();
        sender.send(())
    });
    assert!(stopped.recv_timeout(TIMEOUT).is_ok(), "it waits for the read");
    assert_eq!(engine.rules().text(), None);
    drop(turn);
    let read = runtime.block_on(reading).expect("the task did not panic");
    assert!(read.is_some(), "the thread goes on by itself");
}

#[test]
fn the_watcher_ends_with_the_server() {
    let folder = Folder::new();
    let (server, _looks) = server(&folder);
    let engine = Arc::downgrade(&server.engine());
    server.stop();
    assert!(engine.upgrade().is_none(), "the engine is still referenced");
}

#[test]
fn a_thread_that_panics_has_no_result() {
    let runtime = Builder::new_current_thread().build().expect("a runtime can be made");
    assert_eq!(runtime.block_on(aside(|| 7)), Some(7));
    assert_eq!(runtime.block_on(aside(|| assert!(fs::metadata("/").is_err()))), None);
}

//! Moves messages of one connection, a thread for each direction.

use std::collections::VecDeque;
use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;

use super::faults::Shared;
use super::link::{Link, Waiting, take_ready, write};
use super::{Afterwards, Direction, Flow};
use crate::resp::{self, Begins, Reply};

/// Moves everything until one side ends.
pub(super) fn run(shared: &Arc<Shared>, link: &Arc<Link>) {
    let Some(server) = &link.server else { return wait_for_end(link) };
    thread::scope(|scope| {
        scope.spawn(|| {
            Replies { shared, link, held: Vec::new(), is_foreign: false }.run(server);
            link.cut();
        });
        Requests { shared, link, held: Vec::new(), is_foreign: false }.run(server);
        link.cut();
        // The other one may wait for a fault to end.
        shared.change(|_| ());
    });
}

/// Reads and forgets.
fn wait_for_end(link: &Link) {
    while read(&link.client).is_some() {}
    link.cut();
}

/// The next bytes.
fn read(mut stream: &TcpStream) -> Option<Vec<u8>> {
    let mut bytes = [0; 64 * 1024];
    match stream.read(&mut bytes) {
        Ok(0) | Err(_) => None,
        Ok(count) => Some(bytes[..count].to_vec()),
    }
}

/// From the client to the server.
struct Requests<'a> {
    shared: &'a Shared,
    link: &'a Link,
    held: Vec<u8>,
    is_foreign: bool,
}

impl Requests<'_> {
    fn run(&mut self, server: &TcpStream) {
        while let Some(bytes) = read(&self.link.client) {
            match self.shared.wait_to_pass(self.link, Direction::Requests) {
                None => return,
                Some(Flow::Swallow) => self.link.deafen(),
                Some(_) => {}
            }
            if self.link.is_deaf() {
                continue;
            }
            self.held.extend_from_slice(&bytes);
            let forward = self.sort();
            let (allowed, is_cut) = self.shared.allowance(Direction::Requests, forward.len());
            if !write(server, &forward[..allowed]) || is_cut || !self.give_ready() {
                return;
            }
        }
    }

    /// The whole requests that go on to the server; those that are answered here wait for their turn.
    fn sort(&mut self) -> Vec<u8> {
        let mut forward = Vec::new();
        while !self.is_foreign {
            match resp::request(&self.held) {
                Begins::Part => return forward,
                Begins::Foreign => self.is_foreign = true,
                Begins::Whole(command, length) => {
                    let request = self.held.drain(..length);
                    if command.is_empty() {
                        // An empty line has no reply.
                        forward.extend(request);
                        continue;
                    }
                    self.shared.count(|counters| counters.requests += 1);
                    let waiting = match self.shared.answer(&command) {
                        Ok(answer) => {
                            self.shared.count(|counters| counters.answered += 1);
                            Waiting::Ready(answer)
                        }
                        Err(is_meant) => {
                            forward.extend(request);
                            Waiting::Server { is_meant }
                        }
                    };
                    self.link.waiting().push_back(waiting);
                }
            }
        }
        forward.append(&mut self.held);
        forward
    }

    /// Gives answers that wait for no other; the other direction gives those that do.
    fn give_ready(&self) -> bool {
        if !matches!(self.link.waiting().front(), Some(Waiting::Ready(_))) {
            return true;
        }
        let Some(flow) = self.shared.wait_to_pass(self.link, Direction::Replies) else { return false };
        let mut waiting = self.link.waiting();
        let mut bytes = Vec::new();
        take_ready(&mut waiting, &mut bytes);
        give(self.shared, self.link, flow, &bytes)
    }
}

/// From the server to the client.
struct Replies<'a> {
    shared: &'a Shared,
    link: &'a Link,
    held: Vec<u8>,
    is_foreign: bool,
}

impl Replies<'_> {
    fn run(&mut self, server: &TcpStream) {
        while let Some(bytes) = read(server) {
            let flow = self.shared.wait_to_pass(self.link, Direction::Replies);
            let Some(flow) = flow else { return };
            self.held.extend_from_slice(&bytes);
            // Held until all is written: an answer from here must not get in between.
            let mut waiting = self.link.waiting();
            let (pass, after) = self.sort(&mut waiting);
            if !give(self.shared, self.link, flow, &pass) || after == Some(Afterwards::Cut) {
                return;
            }
            if after == Some(Afterwards::Silence) {
                self.link.silence();
            }
        }
    }

    /// The whole replies that go on to the client, and what becomes of the connection if one after them was eaten.
    fn sort(&mut self, waiting: &mut VecDeque<Waiting>) -> (Vec<u8>, Option<Afterwards>) {
        let (mut pass, mut after) = (Vec::new(), None);
        while !self.is_foreign {
            match resp::reply(&self.held) {
                Begins::Part => return (pass, after),
                Begins::Foreign => self.is_foreign = true,
                Begins::Whole(reply, length) => {
                    let bytes: Vec<_> = self.held.drain(..length).collect();
                    let mut ready = Vec::new();
                    // An answer that is ready before this reply may not have been given yet.
                    take_ready(waiting, &mut ready);
                    let eaten = if matches!(reply, Reply::Push(_)) { None } else { self.seen(waiting) };
                    if after.is_none() {
                        pass.append(&mut ready);
                    }
                    match (after, eaten) {
                        (_, Some(Afterwards::Cut)) => return (pass, eaten),
                        (_, Some(Afterwards::Silence)) => after = eaten,
                        (None, None) => pass.extend_from_slice(&bytes),
                        _ => {}
                    }
                    take_ready(waiting, &mut ready);
                    if after.is_none() {
                        pass.append(&mut ready);
                    }
                }
            }
        }
        pass.append(&mut self.held);
        (pass, after)
    }

    /// Counts a reply, and says whether it is eaten.
    fn seen(&self, waiting: &mut VecDeque<Waiting>) -> Option<Afterwards> {
        self.shared.count(|counters| counters.replies += 1);
        let is_meant = matches!(waiting.pop_front(), Some(Waiting::Server { is_meant: true }));
        let eaten = is_meant.then(|| self.shared.eat()).flatten();
        if eaten.is_some() {
            self.shared.count(|counters| counters.eaten += 1);
        }
        eaten
    }
}

/// Writes to the client what may reach it; false, if that was the end.
fn give(shared: &Shared, link: &Link, flow: Flow, bytes: &[u8]) -> bool {
    if flow == Flow::Swallow && !bytes.is_empty() {
        link.silence();
    }
    if link.is_silent() {
        return true;
    }
    let (allowed, is_cut) = shared.allowance(Direction::Replies, bytes.len());
    write(&link.client, &bytes[..allowed]) && !is_cut
}

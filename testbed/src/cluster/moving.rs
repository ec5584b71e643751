//! Slots on the move from one primary to another, step by step or at once.
//!
//! Between `begin_move` and `finish_move` the old primary answers ASK for keys that it does not have;
//! afterwards it answers MOVED.

use std::net::SocketAddr;
use std::ops::Range;

use super::{Cluster, View};
use crate::redis::Redis;

/// Keys that are moved with one command.
const BATCH: &str = "100";

impl Cluster {
    /// Moves slots to another primary with all their keys, while clients go on asking.
    pub fn move_slots(&self, slots: Range<u16>, to: SocketAddr) {
        for slot in slots {
            if self.primary_of(slot).address() != to {
                self.begin_move(slot, to);
                self.move_keys(slot, to);
                self.finish_move(slot, to);
            }
        }
    }

    /// Says that a slot is about to move: keys that its primary does not have are asked of the other one from now on.
    pub fn begin_move(&self, slot: u16, to: SocketAddr) {
        let (from, to) = (self.primary_of(slot), self.node(to));
        set_slot(to, slot, &["IMPORTING", &id(from)]);
        set_slot(from, slot, &["MIGRATING", &id(to)]);
    }

    /// Moves the keys of a slot that is about to move.
    pub fn move_keys(&self, slot: u16, to: SocketAddr) {
        let (from, slot) = (self.primary_of(slot), slot.to_string());
        let (host, port) = (to.ip().to_string(), to.port().to_string());
        let mut connection = from.connection();
        loop {
            let keys = connection.call(&["CLUSTER", "GETKEYSINSLOT", &slot, BATCH]);
            let keys = keys.unwrap_or_else(|error| panic!("keys of slot {slot}: {error}"));
            if keys.parts().is_empty() {
                return;
            }
            let mut words: Vec<Vec<u8>> = ["MIGRATE", &host, &port, "", "0", "5000"].map(Vec::from).to_vec();
            words.push(b"KEYS".to_vec());
            words.extend(keys.parts().iter().map(bytes));
            let words: Vec<_> = words.iter().map(Vec::as_slice).collect();
            let moved = connection.call_bytes(&words).unwrap_or_else(|error| panic!("slot {slot}: {error}"));
            assert!(["OK", "NOKEY"].contains(&moved.text().as_str()), "slot {slot}: {}", moved.text());
        }
    }

    /// Says to all primaries, first of all to the new one, that a slot has moved.
    pub fn finish_move(&self, slot: u16, to: SocketAddr) {
        let (from, to) = (self.primary_of(slot), self.node(to));
        let new = id(to);
        set_slot(to, slot, &["NODE", &new]);
        set_slot(from, slot, &["NODE", &new]);
        let others = self
            .primaries()
            .into_iter()
            .filter(|node| ![to, from].map(Redis::address).contains(&node.address()));
        others.for_each(|node| set_slot(node, slot, &["NODE", &new]));
    }
}

fn set_slot(node: &Redis, slot: u16, words: &[&str]) {
    node.command(&[&["CLUSTER", "SETSLOT", &slot.to_string()], words].concat());
}

fn id(node: &Redis) -> String {
    View::of(node)
        .map(|view| view.id)
        .unwrap_or_else(|| panic!("node {}: it does not answer", node.address()))
}

fn bytes(reply: &crate::resp::Reply) -> Vec<u8> {
    match reply {
        crate::resp::Reply::Bulk(bytes) => bytes.clone(),
        other => other.text().into_bytes(),
    }
}

//! The map from slots to nodes, as reported by a node.
//!
//! A map takes 64 KiB, whatever the number of nodes. A lookup is one array access.

use redis::Value;

use crate::url::Address;

/// The number of slots of a cluster.
pub(crate) const SLOTS: usize = 16384;

/// The owner of each slot, as an index into the nodes.
#[derive(Clone, Debug)]
pub(crate) struct SlotMap {
    /// The primaries that own slots, in the order of the reply. Redirections append to it.
    pub(crate) nodes: Vec<Address>,
    /// The index of the owner, for each slot; `None` for a slot without an owner.
    owners: Box<[Option<u16>]>,
}

impl SlotMap {
    /// Parses the reply to `CLUSTER SLOTS`. A node that does not know its own host name gets the address that was used.
    /// Replicas in the reply are ignored. Returns `None` if any range is malformed or outside the slots.
    pub(super) fn read(answer: &Value, asked: &Address) -> Option<SlotMap> {
        let Value::Array(ranges) = answer else { return None };
        let mut map = SlotMap { nodes: Vec::new(), owners: vec![None; SLOTS].into_boxed_slice() };
        for range in ranges {
            let Value::Array(parts) = range else { return None };
            let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = parts.as_slice() else {
                return None;
            };
            let [host, Value::Int(port), ..] = primary.as_slice() else { return None };
            let host = match host {
                Value::BulkString(host) => String::from_utf8_lossy(host).into_owned(),
                Value::SimpleString(host) => host.clone(),
                _ => String::new(),
            };
            let host = if host.is_empty() || host == "?" { asked.host.clone() } else { host };
            let address = Address { host, port: u16::try_from(*port).ok()? };
            let (first, last) = (usize::try_from(*first).ok()?, usize::try_from(*last).ok()?);
            let node = map.place_of(&address);
            map.owners.get_mut(first..=last)?.fill(Some(node));
        }
        Some(map)
    }

    /// Returns the address of the owner of a slot.
    pub(super) fn owner(&self, slot: u16) -> Option<&Address> {
        self.nodes.get(usize::from((*self.owners.get(usize::from(slot))?)?))
    }

    /// Changes the owner of one slot, after a redirection. Other slots of a moving range cause redirections of their
    /// own.
    pub(super) fn set_owner(&mut self, slot: u16, address: &Address) {
        let node = self.place_of(address);
        if let Some(owner) = self.owners.get_mut(usize::from(slot)) {
            *owner = Some(node);
        }
    }

    /// Returns the number of slots without an owner.
    pub(crate) fn missing(&self) -> usize {
        self.owners.iter().filter(|owner| owner.is_none()).count()
    }

    /// Returns the index of a node, and appends the node if it is new.
    fn place_of(&mut self, address: &Address) -> u16 {
        let known = self.nodes.iter().position(|node| node == address);
        let place = known.unwrap_or_else(|| {
            self.nodes.push(address.clone());
            self.nodes.len() - 1
        });
        // There are no more nodes than slots.
        u16::try_from(place).unwrap_or(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: &str, port: i64) -> Value {
        Value::Array(vec![Value::BulkString(host.into()), Value::Int(port), Value::BulkString("id".into())])
    }

    fn range(first: i64, last: i64, primary: Value) -> Value {
        Value::Array(vec![Value::Int(first), Value::Int(last), primary, node("10.0.0.9", 1)])
    }

    fn asked() -> Address {
        Address { host: "here".into(), port: 7000 }
    }

    #[test]
    fn every_slot_has_the_reported_owner() {
        let reported =
            Value::Array(vec![range(0, 100, node("10.0.0.1", 7000)), range(102, 16383, node("", 7001))]);
        let mut map = SlotMap::read(&reported, &asked()).unwrap();
        assert_eq!(map.owner(100).unwrap().to_string(), "10.0.0.1:7000");
        assert_eq!(map.owner(101), None);
        assert_eq!(map.missing(), 1);
        assert_eq!(map.owner(16383).unwrap().to_string(), "here:7001");
        map.set_owner(101, &asked());
        assert_eq!((map.missing(), map.owner(101)), (0, Some(&asked())));
    }

    #[test]
    fn nonsense_is_no_map() {
        for reported in [
            Value::Nil,
            Value::Array(vec![Value::Nil]),
            Value::Array(vec![range(-1, 5, node("a", 1))]),
            Value::Array(vec![range(0, 16384, node("a", 1))]),
            Value::Array(vec![range(9, 3, node("a", 1)), range(0, 1, node("a", 70000))]),
        ] {
            assert!(SlotMap::read(&reported, &asked()).is_none(), "{reported:?}");
        }
    }
}

//! What a node of a cluster knows, read from `CLUSTER NODES`.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::redis::Redis;

/// A node's own place, and whom it knows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    /// Its name.
    pub(super) id: String,
    pub(super) is_primary: bool,
    /// When it was elected, as a number that grows.
    pub(super) epoch: u64,
    /// The slots that it holds itself.
    pub(super) slots: Vec<RangeInclusive<u16>>,
    /// How many nodes it knows well, with itself.
    pub(super) known: usize,
    /// Who holds which slots, according to it.
    pub(super) holders: BTreeSet<(String, String)>,
}

impl View {
    /// What a node says, if it answers.
    pub(super) fn of(node: &Redis) -> Option<View> {
        // Dead nodes are not waited for.
        let reply = node.is_alive().then(|| node.try_command(&["CLUSTER", "NODES"]))?.ok()?;
        Some(View::parse(&reply.text()))
    }

    pub(super) fn holds(&self, slot: u16) -> bool {
        self.slots.iter().any(|range| range.contains(&slot))
    }

    /// Lines of id, address, flags, primary, ping, pong, epoch, link and slots.
    fn parse(text: &str) -> View {
        let mut view = View::default();
        for line in text.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            let [id, _, flags, _, _, _, epoch, _, slots @ ..] = words.as_slice() else { continue };
            let flags: Vec<_> = flags.split(',').collect();
            // A slot on the move stands in brackets.
            let slots = slots.iter().filter(|slots| !slots.starts_with('['));
            if !flags.iter().any(|flag| ["handshake", "noaddr", "fail", "fail?"].contains(flag)) {
                view.known += 1;
            }
            view.holders.extend(slots.clone().map(|slots| ((*slots).to_owned(), (*id).to_owned())));
            if flags.contains(&"myself") {
                view.id = (*id).to_owned();
                view.is_primary = flags.contains(&"master");
                view.epoch = epoch.parse().unwrap_or_default();
                view.slots = slots.filter_map(|slots| range(slots)).collect();
            }
        }
        view
    }
}

fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    Some(from.parse().ok()?..=to.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_tells_what_it_holds_and_whom_it_knows() {
        let view = View::parse(
            "aa 127.0.0.1:1@10001 myself,master - 0 0 3 connected 0-5 7 [8->-bb]\n\
             bb 127.0.0.1:2@10002 master - 0 1 2 connected 8-9\n\
             cc 127.0.0.1:3@10003 slave,fail aa 0 1 1 disconnected\n\
             dd :0@0 handshake - 0 0 0 disconnected\n",
        );
        assert_eq!((view.id.as_str(), view.is_primary, view.epoch, view.known), ("aa", true, 3, 2));
        assert!([0, 5, 7].iter().all(|slot| view.holds(*slot)) && !view.holds(6) && !view.holds(8));
        let holders: Vec<_> = view.holders.iter().map(|(slots, id)| format!("{slots} {id}")).collect();
        assert_eq!(holders, ["0-5 aa", "7 aa", "8-9 bb"]);
    }
}

//! Looks at every interval of one key, in n·log n steps.
//!
//! The fullest intervals begin where something was asked and end where something was answered.
//! Beginnings are tried from the last to the first. For each possible end the tree knows what was admitted from there
//! to the end, less what was regained and what may be more; the largest of these says whether the bound holds.

use super::bound::{Bound, Extra, nanoseconds};
use super::decided::{Breach, Decided};

/// Less than everything that occurs, and still far from the end of the numbers.
const NOTHING: i128 = i128::MIN / 4;

/// The room that is left in the fullest interval, in whole units; nothing, if nothing was admitted.
pub(super) fn sweep(key: &str, admitted: &[&Decided], bound: &Bound) -> Result<Option<u64>, Breach> {
    let mut ends: Vec<i128> = admitted.iter().map(|decided| nanoseconds(decided.answered)).collect();
    ends.sort_unstable();
    let mut latest_first = admitted.to_vec();
    latest_first.sort_by_key(|decided| std::cmp::Reverse(decided.asked));
    let mut extras: Vec<&Extra> = bound.extras().iter().collect();
    extras.sort_by_key(|extra| extra.to);

    let mut tree = Tree::new(ends.len());
    for (place, end) in ends.iter().enumerate() {
        let before = if place == 0 { 0 } else { ends[place - 1] };
        tree.add(place, -bound.regained(end - before));
    }
    let first_at = |time: i128| ends.partition_point(|end| *end < time);
    let mut first_end = ends.len();
    let mut least: Option<i128> = None;
    for same in latest_first.chunk_by(|one, other| one.asked == other.asked) {
        let from = nanoseconds(same[0].asked);
        while let Some(extra) = extras.last().filter(|extra| extra.to >= from) {
            tree.add(first_at(extra.from), -extra.scaled);
            extras.pop();
        }
        for decided in same {
            tree.add(first_at(nanoseconds(decided.answered)), bound.scale(decided.cost));
        }
        for place in first_at(from)..first_end {
            tree.open(place);
        }
        first_end = first_end.min(first_at(from));
        let (place, fullest) = tree.largest();
        let room = bound.at_once() - (fullest + bound.regained(from));
        if room < 0 {
            return Err(breach(key, admitted, bound, (from, ends[place], room)));
        }
        least = Some(least.map_or(room, |least| least.min(room)));
    }
    Ok(least.map(|room| bound.whole(room)))
}

fn breach(key: &str, admitted: &[&Decided], bound: &Bound, (from, to, room): (i128, i128, i128)) -> Breach {
    let is_in =
        |decided: &&&Decided| nanoseconds(decided.asked) >= from && nanoseconds(decided.answered) <= to;
    let sum: u64 = admitted.iter().filter(is_in).map(|decided| decided.cost).sum();
    let time =
        |nanoseconds: i128| std::time::Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
    let at_most = bound.whole(bound.scale(sum) + room);
    Breach::TooMuch { key: key.to_owned(), from: time(from), to: time(to), admitted: sum, at_most }
}

/// Numbers, and the largest sum from the first up to an open place.
struct Tree {
    /// Of each node: the sum of all below it, and the largest sum up to an open place below it. The first is the root's.
    nodes: Vec<(i128, i128)>,
    leaves: usize,
}

impl Tree {
    fn new(places: usize) -> Tree {
        let leaves = places.next_power_of_two();
        Tree { nodes: vec![(0, NOTHING); 2 * leaves], leaves }
    }

    /// Adds to the sums of this place and all after it; a place after the last changes nothing.
    fn add(&mut self, place: usize, number: i128) {
        if place < self.leaves {
            let (sum, largest) = &mut self.nodes[self.leaves + place];
            *sum += number;
            if *largest != NOTHING {
                *largest += number;
            }
            self.renew(place);
        }
    }

    /// Lets a place count.
    fn open(&mut self, place: usize) {
        let leaf = &mut self.nodes[self.leaves + place];
        leaf.1 = leaf.0;
        self.renew(place);
    }

    /// The open place with the largest sum, and that sum.
    fn largest(&self) -> (usize, i128) {
        let mut node = 1;
        while node < self.leaves {
            let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
            node = if left.1 >= left.0 + right.1 { 2 * node } else { 2 * node + 1 };
        }
        (node - self.leaves, self.nodes[1].1)
    }

    fn renew(&mut self, place: usize) {
        let mut node = (self.leaves + place) / 2;
        while node > 0 {
            let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
            self.nodes[node] = (left.0 + right.0, left.1.max(left.0 + right.1));
            node /= 2;
        }
    }
}

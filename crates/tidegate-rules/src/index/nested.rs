//! Sets that are nested or disjoint, such as prefixes and networks, searched by a member.
//!
//! The sets are sorted, each with the index of the smallest enclosing set. Every set that contains a value is the last
//! set that begins at or before it, or one that encloses that set.
//!
//! Sets of a few sizes, as most policies have them, are found by a hash of each size instead, whatever their number.

use std::collections::BTreeSet;
use std::hash::Hash;
use std::net::IpAddr;

use super::QuickMap;
use super::level::BucketId;
use crate::condition::{Network, network::number_of};

/// Sorted sets, outer ones before inner ones.
#[derive(Clone, Debug)]
pub(super) struct Nested<S> {
    sets: Vec<Set<S>>,
}

/// One set with all rules that name it, so that equal sets are one entry.
#[derive(Clone, Debug)]
struct Set<S> {
    set: S,
    buckets: Vec<BucketId>,
    /// The index of the smallest enclosing set.
    around: Option<usize>,
}

impl<S> Default for Nested<S> {
    fn default() -> Nested<S> {
        Nested { sets: Vec::new() }
    }
}

impl<S: PartialEq> Nested<S> {
    /// Creates the structure from sorted sets, outer ones before inner ones.
    fn new(sorted: Vec<(S, BucketId)>, holds: impl Fn(&S, &S) -> bool) -> Nested<S> {
        let mut sets: Vec<Set<S>> = Vec::new();
        for (set, bucket) in sorted {
            if let Some(last) = sets.last_mut().filter(|last| last.set == set) {
                last.buckets.push(bucket);
                continue;
            }
            let mut around = sets.len().checked_sub(1);
            while let Some(outer) = around.filter(|outer| !holds(&sets[*outer].set, &set)) {
                around = sets[outer].around;
            }
            sets.push(Set { set, buckets: vec![bucket], around });
        }
        Nested { sets }
    }

    /// Calls `tell` with the buckets of all sets that contain a value.
    fn each(&self, begins: impl Fn(&S) -> bool, holds: impl Fn(&S) -> bool, mut tell: impl FnMut(BucketId)) {
        let mut at = self.sets.partition_point(|set| begins(&set.set)).checked_sub(1);
        while let Some(set) = at.map(|at| &self.sets[at]) {
            if holds(&set.set) {
                set.buckets.iter().for_each(|bucket| tell(*bucket));
            }
            at = set.around;
        }
    }
}

/// The most sizes of sets that are looked up one by one. With more of them one search is faster.
const FEW_SIZES: usize = 3;

/// An index of prefixes.
#[derive(Clone, Debug)]
pub(super) enum Prefixes {
    /// A lookup for each of a few lengths, longest first.
    OfFewLengths {
        lengths: Vec<usize>,
        buckets: QuickMap<Box<[u8]>, Vec<BucketId>>,
    },
    Nested(Nested<Box<[u8]>>),
}

impl Default for Prefixes {
    fn default() -> Prefixes {
        Prefixes::OfFewLengths { lengths: Vec::new(), buckets: QuickMap::default() }
    }
}

impl Prefixes {
    /// Creates the index. Sorted bytes put a prefix before everything that begins with it.
    pub(super) fn new(mut prefixes: Vec<(Box<[u8]>, BucketId)>) -> Prefixes {
        let lengths = sizes(prefixes.iter().map(|(prefix, _)| prefix.len()));
        if lengths.len() <= FEW_SIZES {
            return Prefixes::OfFewLengths { lengths, buckets: by_set(prefixes) };
        }
        prefixes.sort_unstable();
        Prefixes::Nested(Nested::new(prefixes, |outer, inner| inner.starts_with(outer)))
    }

    /// Calls `tell` with the buckets of all prefixes of this value.
    pub(super) fn each_of(&self, value: &[u8], mut tell: impl FnMut(BucketId)) {
        match self {
            Prefixes::OfFewLengths { lengths, buckets } => {
                let prefixes = lengths.iter().filter_map(|length| value.get(..*length));
                prefixes.filter_map(|prefix| buckets.get(prefix)).flatten().for_each(|bucket| tell(*bucket));
            }
            Prefixes::Nested(nested) => {
                nested.each(|prefix| **prefix <= *value, |prefix| value.starts_with(prefix), tell);
            }
        }
    }
}

/// An index of networks.
#[derive(Clone, Debug)]
pub(super) enum Networks {
    /// A lookup for each of a few sizes, as the bits in which the addresses of a network differ.
    OfFewSizes {
        sizes: Vec<u128>,
        buckets: QuickMap<Network, Vec<BucketId>>,
    },
    Nested(Nested<Network>),
}

impl Default for Networks {
    fn default() -> Networks {
        Networks::OfFewSizes { sizes: Vec::new(), buckets: QuickMap::default() }
    }
}

impl Networks {
    /// Creates the index. Of networks that begin at one address the largest one comes first.
    pub(super) fn new(mut networks: Vec<(Network, BucketId)>) -> Networks {
        let sizes = sizes(networks.iter().map(|(network, _)| network.last - network.first));
        if sizes.len() <= FEW_SIZES {
            return Networks::OfFewSizes { sizes, buckets: by_set(networks) };
        }
        networks.sort_unstable_by_key(|(network, bucket)| {
            (network.first, std::cmp::Reverse(network.last), *bucket)
        });
        Networks::Nested(Nested::new(networks, Network::covers))
    }

    /// Calls `tell` with the buckets of all networks that contain this address.
    pub(super) fn each_around(&self, ip: IpAddr, mut tell: impl FnMut(BucketId)) {
        let number = number_of(ip);
        match self {
            Networks::OfFewSizes { sizes, buckets } => {
                let networks =
                    sizes.iter().map(|size| Network { first: number & !size, last: number | size });
                networks
                    .filter_map(|network| buckets.get(&network))
                    .flatten()
                    .for_each(|bucket| tell(*bucket));
            }
            Networks::Nested(nested) => {
                nested.each(
                    |network| network.first <= number,
                    |network| network.contains_number(number),
                    tell,
                );
            }
        }
    }
}

/// Returns each size once, the largest first.
fn sizes<T: Ord>(each: impl Iterator<Item = T>) -> Vec<T> {
    let all: BTreeSet<T> = each.collect();
    all.into_iter().rev().collect()
}

/// Returns the buckets of each set.
fn by_set<S: Eq + Hash>(sets: Vec<(S, BucketId)>) -> QuickMap<S, Vec<BucketId>> {
    let mut buckets: QuickMap<S, Vec<BucketId>> = QuickMap::default();
    for (set, bucket) in sets {
        buckets.entry(set).or_default().push(bucket);
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_prefixes_of_a_value_are_found_and_no_other() {
        let all = ["", "a", "ab", "abc", "abd", "b", "ba", "a", "abcd", "c"];
        // Prefixes of five lengths, and of two.
        for texts in [&all[..], &["a", "ab", "b", "ba", "a"]] {
            prefixes_are_found(texts);
        }
    }

    fn prefixes_are_found(texts: &[&str]) {
        let each = || (0..).zip(texts.iter().copied());
        let set = Prefixes::new(each().map(|(id, text)| (text.as_bytes().into(), id)).collect());
        for value in ["", "a", "ab", "abz", "abcdz", "abd", "b", "bz", "z", "aa", "abcc"] {
            let mut found = Vec::new();
            set.each_of(value.as_bytes(), |id| found.push(id));
            found.sort_unstable();
            let expected: Vec<_> =
                each().filter(|(_, text)| value.starts_with(text)).map(|(id, _)| id).collect();
            assert_eq!(found, expected, "{value}");
        }
    }

    #[test]
    fn all_networks_around_an_address_are_found_and_no_other() {
        let all =
            ["0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "::/0", "2001:db8::/32", "10.0.0.0/8"];
        // Networks of six sizes, and of three.
        for texts in [&all[..], &["10.0.0.0/8", "::/0", "2001:db8::/32", "10.0.0.0/8"]] {
            networks_are_found(texts);
        }
    }

    fn networks_are_found(texts: &[&str]) {
        let networks: Vec<_> =
            texts.iter().map(|text| Network::new(text.parse().unwrap()).unwrap()).collect();
        let set = Networks::new(networks.iter().copied().zip(0..).collect());
        for ip in ["10.1.2.3", "10.1.2.4", "10.2.0.0", "9.255.255.255", "11.0.0.0", "2001:db8::1", "fe80::1"]
        {
            let ip: IpAddr = ip.parse().unwrap();
            let mut found = Vec::new();
            set.each_around(ip, |id| found.push(id));
            found.sort_unstable();
            let expected: Vec<_> =
                (0..).zip(&networks).filter(|(_, network)| network.contains(ip)).map(|(id, _)| id).collect();
            assert_eq!(found, expected, "{ip}");
        }
    }
}

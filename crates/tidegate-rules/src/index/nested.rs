//! Sets that are nested or disjoint, such as prefixes and networks, searched by a member.
//!
//! The sets are sorted, each with the index of the smallest enclosing set. Every set that contains a value is the last
//! set that begins at or before it, or one that encloses that set.

use std::net::IpAddr;

use super::level::BucketId;
use crate::condition::{Network, network::number_of};

/// Sorted sets, outer ones before inner ones.
#[derive(Clone, Debug)]
struct Nested<S> {
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

/// An index of prefixes.
#[derive(Clone, Debug, Default)]
pub(super) struct Prefixes(Nested<Box<[u8]>>);

impl Prefixes {
    /// Creates the index. Sorted bytes put a prefix before everything that begins with it.
    pub(super) fn new(mut prefixes: Vec<(Box<[u8]>, BucketId)>) -> Prefixes {
        prefixes.sort_unstable();
        Prefixes(Nested::new(prefixes, |outer, inner| inner.starts_with(outer)))
    }

    /// Calls `tell` with the buckets of all prefixes of this value.
    pub(super) fn each_of(&self, value: &[u8], tell: impl FnMut(BucketId)) {
        self.0.each(|prefix| **prefix <= *value, |prefix| value.starts_with(prefix), tell);
    }
}

/// An index of networks.
#[derive(Clone, Debug, Default)]
pub(super) struct Networks(Nested<Network>);

impl Networks {
    /// Creates the index. Of networks that begin at one address the largest one comes first.
    pub(super) fn new(mut networks: Vec<(Network, BucketId)>) -> Networks {
        networks.sort_unstable_by_key(|(network, bucket)| {
            (network.first, std::cmp::Reverse(network.last), *bucket)
        });
        Networks(Nested::new(networks, Network::covers))
    }

    /// Calls `tell` with the buckets of all networks that contain this address.
    pub(super) fn each_around(&self, ip: IpAddr, tell: impl FnMut(BucketId)) {
        let number = number_of(ip);
        self.0.each(|network| network.first <= number, |network| network.contains_number(number), tell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_prefixes_of_a_value_are_found_and_no_other() {
        let texts = ["", "a", "ab", "abc", "abd", "b", "ba", "a", "abcd", "c"];
        let set = Prefixes::new((0..).zip(texts).map(|(id, text)| (text.as_bytes().into(), id)).collect());
        for value in ["", "a", "ab", "abz", "abcdz", "abd", "b", "bz", "z", "aa", "abcc"] {
            let mut found = Vec::new();
            set.each_of(value.as_bytes(), |id| found.push(id));
            found.sort_unstable();
            let expected: Vec<_> =
                (0..).zip(texts).filter(|(_, text)| value.starts_with(text)).map(|(id, _)| id).collect();
            assert_eq!(found, expected, "{value}");
        }
    }

    #[test]
    fn all_networks_around_an_address_are_found_and_no_other() {
        let texts =
            ["0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "::/0", "2001:db8::/32", "10.0.0.0/8"];
        let networks = texts.map(|text| Network::new(text.parse().unwrap()).unwrap());
        let set = Networks::new(networks.into_iter().zip(0..).collect());
        for ip in ["10.1.2.3", "10.1.2.4", "10.2.0.0", "9.255.255.255", "11.0.0.0", "2001:db8::1", "fe80::1"]
        {
            let ip: IpAddr = ip.parse().unwrap();
            let mut found = Vec::new();
            set.each_around(ip, |id| found.push(id));
            found.sort_unstable();
            let expected: Vec<_> =
                (0..).zip(networks).filter(|(_, network)| network.contains(ip)).map(|(id, _)| id).collect();
            assert_eq!(found, expected, "{ip}");
        }
    }
}

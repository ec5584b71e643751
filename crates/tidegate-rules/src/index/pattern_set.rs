//! A lookup of the patterns of one condition, for long lists.
//!
//! The index looks up the values of a request in all rules at once. A condition that is not in the index, such as one of
//! `unless`, is evaluated for one rule; with this set the time does not grow with its list.

use std::net::IpAddr;

use super::level::OfSlot;
use super::nested::{Networks, Prefixes};
use crate::condition::{Network, Pattern};

/// The patterns of a condition, by kind.
#[derive(Clone, Debug)]
pub(crate) struct PatternSet {
    values: OfSlot,
    networks: Networks,
}

impl PatternSet {
    pub(crate) fn new(patterns: &[Pattern]) -> PatternSet {
        let (mut values, mut prefixes, mut networks) = (OfSlot::default(), Vec::new(), Vec::new());
        for pattern in patterns {
            match pattern {
                Pattern::Network(network) => networks.push((*network, 0)),
                Pattern::Present => {
                    networks.push((Network::ALL, 0));
                    prefixes.push((Box::default(), 0));
                }
                Pattern::Prefix(bytes) => prefixes.push((bytes.clone(), 0)),
                Pattern::Exact(bytes) => drop(values.exact.insert(bytes.clone(), 0)),
                Pattern::Path(pattern) => values.paths.insert(pattern, 0),
                Pattern::Missing => {}
            }
        }
        values.prefixes = Prefixes::new(prefixes);
        PatternSet { values, networks: Networks::new(networks) }
    }

    /// Returns true if a pattern matches this value of an attribute other than `ip`.
    pub(crate) fn matches(&self, value: &[u8]) -> bool {
        let mut is_found = false;
        self.values.each_of(value, &mut |_| is_found = true);
        is_found
    }

    /// Returns true if a pattern matches this address.
    pub(crate) fn has(&self, ip: IpAddr) -> bool {
        let mut is_found = false;
        self.networks.each_around(ip, |_| is_found = true);
        is_found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Attributes;
    use crate::condition::{Condition, Spellings, read_pattern};
    use crate::normalized::Slots;

    #[test]
    fn a_long_list_matches_what_its_patterns_match() {
        let list = |attribute: &str, odd: &[&str]| {
            let many = (0..40).map(|number| match attribute {
                "ip" => format!("10.0.{number}.0/24"),
                "path" => format!("/x/{number}"),
                _ => format!("v{number}"),
            });
            let texts = many.chain(odd.iter().map(|text| (*text).to_owned()));
            texts.map(|text| read_pattern(attribute, &text).unwrap()).collect::<Vec<_>>()
        };
        let mut slots = Slots::default();
        for (attribute, odd, more, values) in [
            ("user", &["a*", "b", ""][..], None, &["v3", "v41", "ab", "a", "b", "bb", "", "v"][..]),
            ("user", &[][..], Some(Pattern::Missing), &["v3", "x"][..]),
            ("user", &[][..], Some(Pattern::Present), &["v3", "x", ""][..]),
            (
                "path",
                &["/api/{*rest}", "/u/{id}", "/s*"][..],
                None,
                &["/x/7", "/x/77", "/api/y", "/api", "/u/1", "/sx"][..],
            ),
            ("ip", &["2001:db8::/32"][..], None, &["10.0.3.7", "10.1.0.0", "2001:db8::1", "::1"][..]),
            ("ip", &[][..], Some(Pattern::Present), &["10.1.0.0"][..]),
        ] {
            let mut patterns = list(attribute, odd);
            patterns.extend(more);
            let plain = Condition::new(attribute, slots.of(attribute), patterns);
            let fast = plain.clone().with_lookup();
            for value in values.iter().map(|value| Some(*value)).chain([None]) {
                let request =
                    value.map_or(Attributes::new(), |value| Attributes::new().set(attribute, value));
                let seen = slots.see(&request);
                for reading in [Spellings::Any, Spellings::All] {
                    assert_eq!(fast.holds(&seen, reading), plain.holds(&seen, reading), "{plain} {value:?}");
                }
            }
        }
    }
}

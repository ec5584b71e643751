//! A trie of path patterns by segment. A lookup visits only segments that some rule has.
//!
//! The cost of a lookup depends on the length of the path and on the placeholders along it, not on the number of
//! patterns: at each node at most one literal and one placeholder are followed.

use super::QuickMap;
use super::level::BucketId;
use crate::condition::PathPattern;
use crate::condition::path::{Segment, first_piece};

/// A node of the trie.
#[derive(Clone, Debug, Default)]
pub(super) struct Trie {
    /// The buckets of patterns that end here.
    end: Vec<BucketId>,
    /// The buckets of patterns with a rest after this node.
    rest: Vec<BucketId>,
    literal: QuickMap<Box<[u8]>, Trie>,
    any: Option<Box<Trie>>,
}

impl Trie {
    /// Adds a pattern. Patterns that differ only in the names of placeholders share their nodes.
    pub(super) fn insert(&mut self, pattern: &PathPattern, bucket: BucketId) {
        let mut node = self;
        for segment in &pattern.segments {
            node = match segment {
                Segment::Literal(piece) => node.literal.entry(piece.clone()).or_default(),
                Segment::Any(_) => node.any.get_or_insert_default(),
            };
        }
        if pattern.rest.is_some() { &mut node.rest } else { &mut node.end }.push(bucket);
    }

    /// Calls `tell` with the buckets of all patterns that match this path.
    pub(super) fn each_of(&self, path: &[u8], tell: &mut impl FnMut(BucketId)) {
        if let Some(path) = path.strip_prefix(b"/") {
            self.walk(Some(path), tell);
        }
    }

    /// Visits the rest of a path below this node. `None` means that the path has ended here.
    fn walk(&self, left: Option<&[u8]>, tell: &mut impl FnMut(BucketId)) {
        let Some(left) = left else { return self.end.iter().for_each(|bucket| tell(*bucket)) };
        if !left.is_empty() {
            self.rest.iter().for_each(|bucket| tell(*bucket));
        }
        if self.literal.is_empty() && self.any.is_none() {
            return;
        }
        let (piece, after) = first_piece(left);
        if let Some(next) = self.literal.get(piece) {
            next.walk(after, tell);
        }
        if let Some(next) = self.any.as_deref().filter(|_| !piece.is_empty()) {
            next.walk(after, tell);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_what_matches() {
        let shapes = [
            "/{*rest}",
            "/api/{*rest}",
            "/api/{id}",
            "/api/{id}/x",
            "/{a}/{b}",
            "/api/v1",
            "/{a}/",
            "/{a}/v1/{*r}",
            "/api/{id}",
        ];
        let patterns = shapes.map(|shape| PathPattern::read(shape).unwrap());
        let mut trie = Trie::default();
        (0..).zip(&patterns).for_each(|(id, pattern)| trie.insert(pattern, id));
        for path in ["/", "/api", "/api/", "/api/v1", "/api/v1/", "/api/v1/x", "/x/v1/y/z", "", "x", "/a//b"]
        {
            let mut found = Vec::new();
            trie.each_of(path.as_bytes(), &mut |id| found.push(id));
            found.sort_unstable();
            let matching = (0..).zip(&patterns).filter(|(_, pattern)| pattern.matches(path.as_bytes()));
            assert_eq!(found, matching.map(|(id, _)| id).collect::<Vec<_>>(), "{path}");
        }
    }
}

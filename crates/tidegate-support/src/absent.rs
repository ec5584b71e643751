//! The mark of a key with absent parts.
//!
//! Layers and rules count a request under the same key. A key with a missing or repeated part has one part more than a
//! complete key, at the front: a byte with a bit for each missing part, and, if any part is repeated, a second byte
//! with a bit for each of those. The absent parts themselves are empty. So no value that a caller sends yields the key
//! of another.

/// The largest number of parts of a key: a byte has a bit for each.
const MAX_PARTS: usize = 8;

/// The parts of a key that are missing in a request, or present more than once.
#[doc(alias = "missing key")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AbsentParts([u8; 2]);

impl AbsentParts {
    /// Marks the part at this index as missing.
    #[inline]
    pub fn missing(&mut self, index: usize) {
        debug_assert!(index < MAX_PARTS, "a key has at most {MAX_PARTS} parts");
        self.0[0] |= 1 << index;
    }

    /// Marks the part at this index as repeated.
    #[inline]
    pub fn repeated(&mut self, index: usize) {
        debug_assert!(index < MAX_PARTS, "a key has at most {MAX_PARTS} parts");
        self.0[1] |= 1 << index;
    }

    /// Returns true if a part is missing.
    #[inline]
    pub fn any_missing(self) -> bool {
        self.0[0] != 0
    }

    /// Returns true if the part at this index is missing or repeated.
    #[inline]
    pub fn contains(self, index: usize) -> bool {
        (self.0[0] | self.0[1]) >> index & 1 == 1
    }

    /// Returns the first part of such a key; `None` if the key is complete.
    #[inline]
    pub fn mark(&self) -> Option<&[u8]> {
        match self.0 {
            [0, 0] => None,
            [_, 0] => Some(&self.0[..1]),
            _ => Some(&self.0[..]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_set_of_absent_parts_has_its_own_mark() {
        let mut marks = std::collections::HashSet::new();
        for missing in 0_u8..8 {
            for repeated in (0_u8..8).filter(|repeated| repeated & missing == 0) {
                let mut absent = AbsentParts::default();
                for index in 0..3 {
                    if missing >> index & 1 == 1 {
                        absent.missing(index);
                    }
                    if repeated >> index & 1 == 1 {
                        absent.repeated(index);
                    }
                    assert_eq!(absent.contains(index), (missing | repeated) >> index & 1 == 1);
                }
                assert_eq!(absent.any_missing(), missing != 0);
                assert_eq!(absent.mark().is_none(), missing | repeated == 0);
                assert!(marks.insert(absent.mark().map(<[u8]>::to_vec)), "{absent:?}");
            }
        }
        assert_eq!(marks.len(), 27);
    }
}

//! A vector with inline storage for its first elements.
//!
//! Most requests ask about one to four limits, and their asks, states and decisions then need no allocation.

use std::ops::{Deref, DerefMut};
use std::{array, iter, vec};

/// A vector of up to four inline elements, or more on the heap.
///
/// There is one variant per length, so a move copies only the elements in use. Equal contents may have different
/// variants, because a vector that is given stays [`Few::More`]: read them as a slice.
#[derive(Clone, Debug)]
pub(crate) enum Few<T> {
    Zero,
    One([T; 1]),
    Two([T; 2]),
    Three([T; 3]),
    Four([T; 4]),
    More(Vec<T>),
}

impl<T> Few<T> {
    /// Appends an element. The fifth one moves all elements to the heap.
    #[inline]
    pub(crate) fn push(&mut self, last: T) {
        *self = match std::mem::replace(self, Few::Zero) {
            Few::Zero => Few::One([last]),
            Few::One([a]) => Few::Two([a, last]),
            Few::Two([a, b]) => Few::Three([a, b, last]),
            Few::Three([a, b, c]) => Few::Four([a, b, c, last]),
            Few::Four([a, b, c, d]) => Few::More(vec![a, b, c, d, last]),
            Few::More(mut all) => {
                all.push(last);
                Few::More(all)
            }
        };
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Few::Zero => &[],
            Few::One(all) => all,
            Few::Two(all) => all,
            Few::Three(all) => all,
            Few::Four(all) => all,
            Few::More(all) => all,
        }
    }
}

impl<T> DerefMut for Few<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Few::Zero => &mut [],
            Few::One(all) => all,
            Few::Two(all) => all,
            Few::Three(all) => all,
            Few::Four(all) => all,
            Few::More(all) => all,
        }
    }
}

/// Moves inline elements into their slot once, not again for each element that follows.
impl<T> FromIterator<T> for Few<T> {
    #[inline]
    fn from_iter<I: IntoIterator<Item = T>>(from: I) -> Few<T> {
        let mut from = from.into_iter();
        let Some(a) = from.next() else { return Few::Zero };
        let Some(b) = from.next() else { return Few::One([a]) };
        let Some(c) = from.next() else { return Few::Two([a, b]) };
        let Some(d) = from.next() else { return Few::Three([a, b, c]) };
        let Some(e) = from.next() else { return Few::Four([a, b, c, d]) };
        Few::More([a, b, c, d, e].into_iter().chain(from).collect())
    }
}

impl<T> Extend<T> for Few<T> {
    #[inline]
    fn extend<I: IntoIterator<Item = T>>(&mut self, from: I) {
        from.into_iter().for_each(|element| self.push(element));
    }
}

/// Keeps the vector and its allocation, however short it is.
impl<T> From<Vec<T>> for Few<T> {
    fn from(all: Vec<T>) -> Few<T> {
        Few::More(all)
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = iter::Chain<iter::Flatten<array::IntoIter<Option<T>, 4>>, vec::IntoIter<T>>;

    /// Returns one iterator type for inline elements and for those on the heap.
    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        let (within, more) = match self {
            Few::Zero => ([None, None, None, None], Vec::new()),
            Few::One([a]) => ([Some(a), None, None, None], Vec::new()),
            Few::Two([a, b]) => ([Some(a), Some(b), None, None], Vec::new()),
            Few::Three([a, b, c]) => ([Some(a), Some(b), Some(c), None], Vec::new()),
            Few::Four([a, b, c, d]) => ([Some(a), Some(b), Some(c), Some(d)], Vec::new()),
            Few::More(all) => ([None, None, None, None], all),
        };
        within.into_iter().flatten().chain(more)
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;

    #[test]
    fn elements_are_those_of_a_vector_however_they_came_in() {
        for length in 0..12_u32 {
            let expected: Vec<u32> = (0..length).collect();
            let collected: Few<u32> = (0..length).collect();
            let mut pushed = Few::Zero;
            pushed.extend(0..length);
            for mut few in [collected, pushed, Few::from(expected.clone())] {
                assert_eq!(*few, *expected);
                few.iter_mut().for_each(|element| *element += 1);
                assert!(few.into_iter().eq(1..=length));
            }
        }
    }
}

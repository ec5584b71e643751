//! Whole numbers of things, as text.

use std::num::NonZeroUsize;

/// A number of at least one and at most this.
pub(super) fn count(text: &str, most: usize) -> Result<NonZeroUsize, String> {
    let number = text.parse::<NonZeroUsize>().ok().filter(|number| number.get() <= most);
    number.ok_or_else(|| format!("write a whole number from 1 to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_within_its_bounds() {
        assert_eq!(count("1", 8), Ok(NonZeroUsize::MIN));
        assert_eq!(count("8", 8).map(NonZeroUsize::get), Ok(8));
        for text in ["", "0", "9", "-1", "1.5", "two", "99999999999999999999"] {
            assert_eq!(count(text, 8), Err("write a whole number from 1 to 8".to_owned()), "{text}");
        }
    }
}

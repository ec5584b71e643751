//! Whole numbers of things, as text.

use std::num::NonZeroUsize;

use tidegate_support::{Bytes, byte_count};

/// Twice the longest request, which is a file of rules: with less it could never arrive.
const MIN_UNFINISHED: usize = 8 << 20;

/// A number of bytes for unfinished requests.
pub(super) fn unfinished(text: &str) -> Result<usize, String> {
    match byte_count(text)? {
        bytes if bytes < MIN_UNFINISHED => {
            Err(format!("long requests could never arrive; write at least \"{}\"", Bytes(MIN_UNFINISHED)))
        }
        bytes => Ok(bytes),
    }
}

/// A number of at least one and at most this.
pub(super) fn count(text: &str, most: usize) -> Result<NonZeroUsize, String> {
    let number = text.parse::<NonZeroUsize>().ok().filter(|number| number.get() <= most);
    number.ok_or_else(|| format!("write a whole number from 1 to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_requests_have_at_least_what_the_longest_needs() {
        assert_eq!(unfinished("8MiB"), Ok(8 << 20));
        assert_eq!(unfinished("1GiB"), Ok(1 << 30));
        let least = Err("long requests could never arrive; write at least \"8 MiB\"".to_owned());
        assert_eq!((unfinished("8388607"), unfinished("0")), (least.clone(), least));
        assert!(unfinished("much").unwrap_err().contains("a size begins with a number"));
    }

    #[test]
    fn a_count_is_within_its_bounds() {
        assert_eq!(count("1", 8), Ok(NonZeroUsize::MIN));
        assert_eq!(count("8", 8).map(NonZeroUsize::get), Ok(8));
        for text in ["", "0", "9", "-1", "1.5", "two", "99999999999999999999"] {
            assert_eq!(count(text, 8), Err("write a whole number from 1 to 8".to_owned()), "{text}");
        }
    }
}

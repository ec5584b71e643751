//! Sizes in bytes, as text: `64MiB`.
//!
//! Units are binary (`KiB`, `MiB`, `GiB`). Decimal units and single letters are errors with a suggestion, because `M`
//! means different sizes in different tools.

use std::fmt;

/// The smallest size of a store. A smaller one could not hold the headers of a store.
const SMALLEST: usize = 4 << 10;
/// The units, largest first.
const UNITS: [(&str, usize); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// Parses the size of a store. Fails with a message below 4 KiB. Any other size is valid here; the store checks the
/// upper bound by allocating.
///
/// # Examples
///
/// ```
/// use tidegate_support::size;
///
/// assert_eq!(size("64MiB"), Ok(64 << 20));
/// assert!(size("64M").is_err());
/// ```
#[doc(alias = "bytesize")]
pub fn size(text: &str) -> Result<usize, String> {
    match byte_count(text)? {
        bytes if bytes < SMALLEST => {
            Err(format!("the smallest store has {}; write at least \"4KiB\"", Bytes(SMALLEST)))
        }
        bytes => Ok(bytes),
    }
}

/// Parses a number of bytes, as in `64MiB`. A number without a unit is in bytes. Fails with a message if it does not
/// fit into an address space.
pub fn byte_count(text: &str) -> Result<usize, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = (&text[..digits], text[digits..].trim_start());
    if number.is_empty() {
        return Err("a size begins with a number; write something like \"64MiB\"".to_owned());
    }
    let scale = match unit {
        "" => 1,
        _ => scale(number, unit)?,
    };
    let bytes = number.parse::<usize>().ok().and_then(|number| number.checked_mul(scale));
    bytes
        .filter(|bytes| isize::try_from(*bytes).is_ok())
        .ok_or_else(|| "no machine has so much memory; write something like \"64MiB\"".to_owned())
}

/// Returns the number of bytes of a unit, or a message with the unit that was probably meant.
fn scale(number: &str, unit: &str) -> Result<usize, String> {
    if let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) {
        return Ok(*scale);
    }
    let starts_alike = |name: &str| name.as_bytes()[0] == unit.as_bytes()[0].to_ascii_uppercase();
    Err(match UNITS.iter().find(|(name, _)| starts_alike(name)) {
        Some((name, _)) => format!("unknown unit \"{unit}\"; write \"{number}{name}\""),
        None => format!("unknown unit \"{unit}\"; the units are KiB, MiB and GiB, as in \"64MiB\""),
    })
}

/// A number of bytes in the largest unit that divides it. A number that no unit divides is shown in bytes: `4097
/// bytes`.
#[derive(Clone, Copy, Debug)]
pub struct Bytes(pub usize);

impl fmt::Display for Bytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|(_, scale)| self.0 >= *scale && self.0 % *scale == 0) {
            Some((unit, scale)) => write!(out, "{} {unit}", self.0 / scale),
            None => write!(out, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_and_perhaps_a_unit() {
        for (text, bytes) in
            [("4096", 4096), ("4KiB", 4096), ("64MiB", 64 << 20), ("64 MiB", 64 << 20), ("1GiB", 1 << 30)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        assert_eq!(size(&isize::MAX.to_string()), Ok(isize::MAX as usize));
    }

    #[test]
    fn an_invalid_size_is_reported_with_a_remedy() {
        for (text, expected) in [
            ("", "a size begins with a number; write something like \"64MiB\""),
            ("MiB", "a size begins with a number; write something like \"64MiB\""),
            ("-1", "a size begins with a number; write something like \"64MiB\""),
            ("64MB", "unknown unit \"MB\"; write \"64MiB\""),
            ("64m", "unknown unit \"m\"; write \"64MiB\""),
            ("1.5GiB", "unknown unit \".5GiB\"; the units are KiB, MiB and GiB, as in \"64MiB\""),
            ("64µB", "unknown unit \"µB\"; the units are KiB, MiB and GiB, as in \"64MiB\""),
            ("4095", "the smallest store has 4 KiB; write at least \"4KiB\""),
            ("0", "the smallest store has 4 KiB; write at least \"4KiB\""),
            ("9223372036854775808", "no machine has so much memory; write something like \"64MiB\""),
            ("99999999999999999999", "no machine has so much memory; write something like \"64MiB\""),
            ("17179869184GiB", "no machine has so much memory; write something like \"64MiB\""),
        ] {
            assert_eq!(size(text), Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn bytes_are_shown_in_the_largest_whole_unit() {
        for (bytes, expected) in
            [(4097, "4097 bytes"), (6 << 10, "6 KiB"), (64 << 20, "64 MiB"), (1 << 30, "1 GiB")]
        {
            assert_eq!(Bytes(bytes).to_string(), expected);
        }
    }
}

//! A place in flight as text: all that is needed to release or renew it.
//!
//! ```text
//!   1f.8/30s_concurrency.616e61
//!   |  |                 the key, in hexadecimal
//!   |  the limit it was taken under
//!   the number of the permit
//! ```

use std::fmt::{self, Write as _};

use tidegate::{Algorithm, Limit, PermitId};

use crate::settings::MAX_KEY_BYTES;

/// The longest text of a permit, in bytes.
pub(crate) const MAX_PERMIT_BYTES: usize = 2 * MAX_KEY_BYTES + 256;

/// Whose place it is, under which limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Permit {
    pub(crate) key: Vec<u8>,
    pub(crate) limit: Limit,
    pub(crate) id: PermitId,
}

impl Permit {
    /// The permit that this text names.
    pub(crate) fn parse(text: &[u8]) -> Option<Permit> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= MAX_PERMIT_BYTES)?;
        let (id, rest) = text.split_once('.').filter(|(id, _)| !id.starts_with('+'))?;
        let (limit, key) = rest.split_once('.')?;
        let limit: Limit = limit.replace('_', " ").parse().ok()?;
        let id = PermitId::from_number(u64::from_str_radix(id, 16).ok()?)?;
        (limit.algorithm() == Algorithm::Concurrency).then_some(Permit { key: bytes(key)?, limit, id })
    }
}

impl fmt::Display for Permit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:x}.", self.id.number())?;
        for letter in self.limit.to_string().chars() {
            out.write_char(if letter == ' ' { '_' } else { letter })?;
        }
        out.write_char('.')?;
        self.key.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

/// Bytes from hexadecimal.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<_>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| pairs.map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        for (key, limit) in
            [("ana", "8/30s concurrency"), ("", "1/1m30s concurrency"), ("a.b\n", "2/7d concurrency")]
        {
            let limit: Limit = limit.parse().unwrap();
            let id = PermitId::from_number(0x1f).unwrap();
            let permit = Permit { key: key.into(), limit, id };
            assert_eq!(Permit::parse(permit.to_string().as_bytes()), Some(permit));
        }
    }

    #[test]
    fn anything_else_is_no_permit() {
        for text in [
            "",
            ".",
            "..",
            "1..",
            "1.8/30s_concurrency",
            "0.8/30s_concurrency.61",
            "1.8/30s_concurrency.6",
            "1.8/30s_concurrency.6g",
            "1.8/30s.61",
            "x.8/30s_concurrency.61",
            "-1.8/30s_concurrency.61",
            "+1.8/30s_concurrency.61",
        ] {
            assert_eq!(Permit::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Permit::parse(b"1.8/30s_concurrency.\xff"), None);
        assert_eq!(Permit::parse(&vec![b'1'; MAX_PERMIT_BYTES + 1]), None);
    }
}

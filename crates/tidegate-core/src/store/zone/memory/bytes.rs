//! Little-endian numbers in bytes, and a checksum over them.
//!
//! The headers of both kinds of files are written and read field by field, in the same order, so they have no padding
//! and do not depend on the machine.

/// Returns the FNV-1a checksum with 64 bits, which detects every change of a single byte. It protects against
/// accidents, not against attackers.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(START, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(PRIME))
}

/// A reader of numbers from the front of bytes. Panics if there are too few bytes.
#[derive(Debug)]
pub(super) struct FieldReader<'a> {
    left: &'a [u8],
}

impl<'a> FieldReader<'a> {
    /// Reads from the first byte on.
    pub(super) fn new(bytes: &'a [u8]) -> FieldReader<'a> {
        FieldReader { left: bytes }
    }

    /// Returns the next `N` bytes.
    pub(super) fn take<const N: usize>(&mut self) -> [u8; N] {
        let (taken, left) = self.left.split_first_chunk().expect("as many bytes as the format has");
        self.left = left;
        *taken
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

/// A writer of consecutive numbers into bytes. Panics if there are too few bytes.
#[derive(Debug)]
pub(super) struct FieldWriter<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> FieldWriter<'a> {
    /// Writes from the first byte on; bytes that are not reached stay as they are.
    pub(super) fn new(bytes: &'a mut [u8]) -> FieldWriter<'a> {
        FieldWriter { bytes, at: 0 }
    }

    /// Writes bytes as they are.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.at..][..bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    pub(super) fn u32(&mut self, number: u32) {
        self.put(&number.to_le_bytes());
    }

    pub(super) fn u64(&mut self, number: u64) {
        self.put(&number.to_le_bytes());
    }

    /// Writes the checksum of all bytes written so far.
    pub(super) fn checksum(&mut self) {
        self.u64(checksum(&self.bytes[..self.at]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_published_one() {
        assert_eq!(checksum(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(checksum(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(checksum(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn numbers_come_out_as_they_went_in() {
        let mut bytes = [0; 23];
        let mut writer = FieldWriter::new(&mut bytes);
        writer.put(b"abc");
        writer.u32(0x0102_0304);
        writer.u64(0x0506_0708_090a_0b0c);
        writer.checksum();
        assert_eq!(bytes[..15], *b"abc\x04\x03\x02\x01\x0c\x0b\x0a\x09\x08\x07\x06\x05");
        let mut reader = FieldReader::new(&bytes);
        assert_eq!(reader.take::<3>(), *b"abc");
        assert_eq!((reader.u32(), reader.u64()), (0x0102_0304, 0x0506_0708_090a_0b0c));
        assert_eq!(reader.u64(), checksum(&bytes[..15]));
    }
}

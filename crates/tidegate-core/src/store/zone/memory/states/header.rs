//! The byte layout of the first page of a state file.
//!
//! ```text
//!     0  what never changes: format, size, set and zone; a checksum
//!   512  the process that owns the file, and the start of the machine under which it was last written
//!   536  the rewrite that goes on
//!  4096  blocks
//! ```

use super::super::header::{Flaw, Format, HEADER_BYTES, Identity};

/// The offset of the blocks.
pub(super) const BLOCKS_AT: usize = HEADER_BYTES;
/// The offset of three words: the process, and the boot of the machine in two.
pub(super) const OWNER_AT: usize = 512;
pub(super) const OWNER_WORDS: usize = 3;
/// The offset of the word that records which block is being rewritten, and from which.
pub(super) const REWRITE_AT: usize = OWNER_AT + OWNER_WORDS * size_of::<u64>();

/// The bytes of the fixed fields, with their checksum.
pub(super) const FIXED_BYTES: usize = CHECKED + 8;
const CHECKED: usize = 64;

/// The newest format version that this program supports.
pub(in super::super) const VERSION: u32 = 1;
const FORMAT: Format = Format { magic: *b"tidegate states\n", version: VERSION, checked: CHECKED };

/// The fixed fields of a state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StateFileHeader {
    pub(super) identity: Identity,
    /// The bytes of all blocks.
    pub(super) bytes: u64,
    /// The wall clock when the file was created, in seconds since 1970; for human readers.
    pub(super) created: u64,
}

impl StateFileHeader {
    /// Returns the bytes of the whole file, or `None` on overflow.
    pub(super) fn length(&self) -> Option<u64> {
        self.bytes.checked_add(BLOCKS_AT as u64)
    }

    pub(super) fn encode(&self) -> [u8; FIXED_BYTES] {
        let mut bytes = [0; FIXED_BYTES];
        let mut writer = FORMAT.begin(&mut bytes);
        for number in [self.identity.set, self.identity.zone, self.bytes, self.created, 0] {
            writer.u64(number);
        }
        writer.checksum();
        bytes
    }

    /// Reads the first bytes of a file of `file_bytes` bytes.
    pub(super) fn decode(bytes: &[u8], file_bytes: u64) -> Result<StateFileHeader, Flaw> {
        let mut reader = FORMAT.fields(bytes, file_bytes)?;
        let [set, zone, blocks, created, reserved] = [(); 5].map(|()| reader.u64());
        let header = StateFileHeader { identity: Identity { set, zone }, bytes: blocks, created };
        let is_sane = reserved == 0 && blocks % 64 == 0 && blocks > 0;
        let Some(length) = header.length().filter(|_| is_sane) else { return Err(Flaw::Contradiction) };
        if length != file_bytes {
            return Err(Flaw::Length { made: length, found: file_bytes });
        }
        Ok(header)
    }

    /// Checks that size and identity are the requested ones.
    pub(super) fn fits(&self, bytes: u64, identity: Identity) -> Result<(), Flaw> {
        self.identity.is_of(identity)?;
        if self.bytes != bytes {
            return Err(Flaw::Size { held: self.bytes, wanted: bytes });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::bytes::checksum;
    use super::super::super::header::ORDER;
    use super::*;

    fn header() -> StateFileHeader {
        StateFileHeader { identity: Identity { set: 7, zone: 8 }, bytes: 65_536, created: 1_700_000_000 }
    }

    fn page_of(fixed: &[u8]) -> Vec<u8> {
        let mut page = vec![0; HEADER_BYTES];
        page[..fixed.len()].copy_from_slice(fixed);
        page
    }

    fn page_with(at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut page = page_of(&header().encode());
        page[at..][..bytes.len()].copy_from_slice(bytes);
        let sum = checksum(&page[..CHECKED]);
        page[CHECKED..][..8].copy_from_slice(&sum.to_le_bytes());
        page
    }

    const LENGTH: u64 = 65_536 + 4096;

    #[test]
    fn a_header_comes_back_from_its_bytes() {
        let page = page_of(&header().encode());
        assert_eq!(StateFileHeader::decode(&page, LENGTH), Ok(header()));
        assert_eq!(header().fits(65_536, Identity { set: 7, zone: 8 }), Ok(()));
    }

    #[test]
    fn no_change_of_a_byte_goes_unseen() {
        let mut page = page_of(&header().encode());
        for at in 0..FIXED_BYTES {
            for flip in 1..=255 {
                page[at] ^= flip;
                assert!(StateFileHeader::decode(&page, LENGTH).is_err(), "byte {at} ^ {flip}");
                page[at] ^= flip;
            }
        }
    }

    #[test]
    fn a_file_of_another_kind_is_recognized() {
        let flaw = |page: &[u8], length| StateFileHeader::decode(page, length).unwrap_err();
        let whole = page_of(&header().encode());
        assert_eq!(flaw(&[], 0), Flaw::Empty);
        assert_eq!(flaw(b"tidegate zone\n\0\0", 16), Flaw::Foreign);
        assert_eq!(flaw(&whole[..20], 20), Flaw::Short { bytes: 20 });
        assert_eq!(flaw(&whole, LENGTH - 1), Flaw::Length { made: LENGTH, found: LENGTH - 1 });
        assert_eq!(flaw(&page_with(16, &[2, 0, 0, 0]), LENGTH), Flaw::Newer { version: 2 });
        assert_eq!(flaw(&page_with(16, &[0, 0, 0, 0]), LENGTH), Flaw::Contradiction);
        assert_eq!(flaw(&page_with(40, &[1]), LENGTH), Flaw::Contradiction);
        let order = ORDER.iter().rev().copied().collect::<Vec<_>>();
        assert_eq!(flaw(&page_with(20, &order), LENGTH), Flaw::ByteOrder);
        let fits = |bytes, set, zone| header().fits(bytes, Identity { set, zone });
        assert_eq!(fits(64, 7, 8), Err(Flaw::Size { held: 65_536, wanted: 64 }));
        assert_eq!(fits(65_536, 6, 8), Err(Flaw::OtherSet));
        assert_eq!(fits(65_536, 7, 0), Err(Flaw::OtherZone));
    }
}

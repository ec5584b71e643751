//! The byte layout of a clock record, which ties the time of a zone to the clocks of the machine.
//!
//! There are two places for it. The record that is not in force is overwritten, so that an interrupted write leaves the
//! other one valid.

use super::bytes::{FieldReader, FieldWriter, checksum};
use super::header::HEADER_BYTES;
use crate::time::boot::BootId;

/// The offsets of the records, each in a place of 128 bytes.
pub(super) const PLACES: [usize; 2] = [128, 256];

/// The bytes of a record with its checksum.
pub(super) const RECORD_BYTES: usize = CHECKED + 8;
const CHECKED: usize = 48;

/// The boot id that stands for an unknown one; no machine ever has it.
const UNKNOWN: BootId = [0; 16];

/// The times of a zone and of the machine at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClockRecord {
    /// The sequence number: the later of two records has the higher one.
    pub(super) sequence: u64,
    /// The boot of the machine, if it was known.
    pub(super) boot: Option<BootId>,
    /// The zone's time minus the time since that boot, in ticks, with wrapping arithmetic.
    pub(super) offset: u64,
    /// The wall clock, in nanoseconds since 1970.
    pub(super) wall: u64,
    /// The time of the zone, in ticks.
    pub(super) zone: u64,
}

impl ClockRecord {
    pub(super) fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let mut writer = FieldWriter::new(&mut bytes);
        writer.u64(self.sequence);
        writer.put(&self.boot.unwrap_or(UNKNOWN));
        for number in [self.offset, self.wall, self.zone] {
            writer.u64(number);
        }
        writer.checksum();
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<ClockRecord> {
        let mut reader = FieldReader::new(bytes);
        let (sequence, boot) = (reader.u64(), reader.take());
        let [offset, wall, zone] = [(); 3].map(|()| reader.u64());
        let boot = Some(boot).filter(|boot| *boot != UNKNOWN);
        let holds = reader.u64() == checksum(&bytes[..CHECKED]);
        holds.then_some(ClockRecord { sequence, boot, offset, wall, zone })
    }

    /// Returns the record in force, and the offset for the next one; `None` if neither is valid.
    pub(super) fn in_force(page: &[u8; HEADER_BYTES]) -> Option<(ClockRecord, usize)> {
        let [first, second] = PLACES.map(|place| ClockRecord::decode(&page[place..]));
        match (first, second) {
            (Some(first), Some(second)) if second.sequence > first.sequence => Some((second, PLACES[0])),
            (Some(first), _) => Some((first, PLACES[1])),
            (None, Some(second)) => Some((second, PLACES[0])),
            (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: ClockRecord = ClockRecord {
        sequence: 7,
        boot: Some([9; 16]),
        offset: u64::MAX - 3,
        wall: 1_700_000_000_000_000_000,
        zone: 5,
    };

    fn page(records: [Option<&ClockRecord>; 2]) -> [u8; HEADER_BYTES] {
        let mut page = [0; HEADER_BYTES];
        for (place, record) in PLACES.into_iter().zip(records) {
            if let Some(record) = record {
                page[place..][..RECORD_BYTES].copy_from_slice(&record.encode());
            }
        }
        page
    }

    #[test]
    fn a_record_comes_back_from_its_bytes() {
        for boot in [None, Some([9; 16])] {
            let record = ClockRecord { boot, ..RECORD };
            assert_eq!(ClockRecord::decode(&record.encode()), Some(record));
        }
    }

    #[test]
    fn the_bytes_are_where_the_format_says() {
        let mut expected = Vec::from(7_u64.to_le_bytes());
        expected.extend([9; 16]);
        expected.extend((u64::MAX - 3).to_le_bytes());
        expected.extend(1_700_000_000_000_000_000_u64.to_le_bytes());
        expected.extend(5_u64.to_le_bytes());
        expected.extend(checksum(&expected).to_le_bytes());
        assert_eq!(RECORD.encode().as_slice(), expected);
    }

    #[test]
    fn no_change_of_a_byte_goes_unseen() {
        for at in 0..RECORD_BYTES {
            for flip in (1..=255).step_by(if cfg!(miri) { 127 } else { 1 }) {
                let mut bytes = RECORD.encode();
                bytes[at] ^= flip;
                assert_eq!(ClockRecord::decode(&bytes), None, "byte {at}");
            }
        }
    }

    #[test]
    fn the_later_of_those_that_hold_is_in_force_and_the_other_is_written_next() {
        let (old, new) = (&RECORD, &ClockRecord { sequence: 8, ..RECORD });
        let in_force = |records| ClockRecord::in_force(&page(records));
        assert_eq!(in_force([Some(old), Some(new)]), Some((new.clone(), PLACES[0])));
        assert_eq!(in_force([Some(new), Some(old)]), Some((new.clone(), PLACES[1])));
        assert_eq!(in_force([Some(old), Some(old)]), Some((old.clone(), PLACES[1])));
        assert_eq!(in_force([Some(old), None]), Some((old.clone(), PLACES[1])));
        assert_eq!(in_force([None, Some(old)]), Some((old.clone(), PLACES[0])));
        assert_eq!(in_force([None, None]), None);
    }

    #[test]
    fn a_record_that_was_half_written_leaves_the_other_in_force() {
        let new = ClockRecord { sequence: 8, offset: 1, wall: 2, zone: 3, ..RECORD };
        for written in 0..RECORD_BYTES {
            let mut page = page([Some(&RECORD), None]);
            page[PLACES[1]..][..written].copy_from_slice(&new.encode()[..written]);
            assert_eq!(ClockRecord::in_force(&page), Some((RECORD, PLACES[1])), "{written} bytes");
        }
    }
}

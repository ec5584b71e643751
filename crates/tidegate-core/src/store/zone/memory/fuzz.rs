//! The fuzz target for the first page of a zone's file.
//!
//! Nothing may panic, and a page that is found valid must be, byte for byte, what would have been written.
//!
//! ```text
//!   as it is      random bytes, nearly all of which are rejected
//!   changed       a valid page with the input applied by exclusive-or
//!   mended        the same with correct checksums, which reaches the checks behind them
//! ```

use std::path::Path;
use std::time::Duration;

use super::bytes::checksum;
use super::epoch::{Reading, settle};
use super::error::{ZoneError, ZoneProblem};
use super::header::{FIXED_BYTES, Flaw, Geometry, HEADER_BYTES, Header, Identity, WORDS_AT};
use super::record::{ClockRecord, PLACES, RECORD_BYTES};
use crate::time::Ticks;

const GEOMETRY: Geometry = Geometry { bucket_cells: 8, buckets: 1000 };

/// The offset of the file's length in the header.
const LENGTH_AT: usize = 64;

/// Checks the bytes as they are, a valid zone to which they are applied as changes, and the same with correct
/// checksums.
pub fn zone_header(bytes: &[u8]) {
    examine(bytes);
    let mut page = whole_page();
    for (byte, change) in page.iter_mut().zip(bytes) {
        *byte ^= change;
    }
    examine(&page);
    mend(&mut page, 0, FIXED_BYTES);
    for place in PLACES {
        mend(&mut page, place, RECORD_BYTES);
    }
    examine(&page);
}

/// Returns the first page of a valid zone, with two whole clock records.
fn whole_page() -> [u8; HEADER_BYTES] {
    let mut page = [0; HEADER_BYTES];
    let header = Header::new(GEOMETRY, Identity::first(7), [1, 2], 3).expect("a small zone");
    page[..FIXED_BYTES].copy_from_slice(&header.encode());
    for (place, sequence) in PLACES.into_iter().zip(1..) {
        let record = ClockRecord { sequence, boot: Some([1; 16]), offset: 4, wall: 5, zone: 6 };
        page[place..][..RECORD_BYTES].copy_from_slice(&record.encode());
    }
    page
}

/// Replaces the last eight of the bytes by the checksum of the others.
fn mend(page: &mut [u8], at: usize, bytes: usize) {
    let (checked, sum) = page[at..][..bytes].split_at_mut(bytes - 8);
    sum.copy_from_slice(&checksum(checked).to_le_bytes());
}

/// Decodes a page, once as a file of its own length and once as one of the length in its header.
fn examine(bytes: &[u8]) {
    let said = number(bytes, LENGTH_AT);
    for length in [Some(bytes.len() as u64), said].into_iter().flatten() {
        match Header::decode(bytes, length) {
            Ok(header) => examine_header(bytes, &header, length),
            Err(flaw) => tell(flaw),
        }
    }
    if let Some(page) = bytes.first_chunk() {
        examine_clock(page);
    }
}

/// A header that is accepted must be encoded to the same bytes, and must fit its own geometry.
fn examine_header(bytes: &[u8], header: &Header, length: u64) {
    assert_eq!(header.encode(), bytes[..FIXED_BYTES]);
    assert_eq!(header.geometry.file_bytes(), Some(length));
    assert_eq!(header.fits(header.geometry), Ok(()));
    if let Err(flaw) = header.fits(GEOMETRY) {
        tell(flaw);
    }
}

/// Whatever the record and the clocks of the machine show, the time of the zone never goes back.
fn examine_clock(page: &[u8; HEADER_BYTES]) {
    let Some((record, next)) = ClockRecord::in_force(page) else { return tell(Flaw::Clock) };
    let place = PLACES.into_iter().find(|place| *place != next).expect("there are two");
    assert_eq!(record.encode(), page[place..][..RECORD_BYTES]);
    let latest = number(page, WORDS_AT).expect("within the page");
    for boot in [record.boot, None] {
        let since_boot = Ticks::new(latest.rotate_left(32));
        let now = Reading { boot, since_boot, wall: Duration::from_nanos(latest.reverse_bits()) };
        assert!(settle(&record, latest, &now).zone >= record.zone, "it went back");
    }
}

/// Every flaw has a message with a fault and a remedy, separated by a semicolon.
fn tell(flaw: Flaw) {
    let message = ZoneError::new(Path::new("zone.tg"), ZoneProblem::Flaw(flaw)).to_string();
    assert!(message.contains("; "), "{message} has no remedy");
}

/// Returns the number at an offset; `None` beyond the end.
fn number(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

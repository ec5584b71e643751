use super::*;

const GEOMETRY: Geometry = Geometry { bucket_cells: 8, buckets: 1000 };
const LENGTH: u64 = CELLS_AT as u64 + 1000 * 128;

/// The step between tested values; Miri tests only some of them.
const STEP: usize = if cfg!(miri) { 127 } else { 1 };

fn header() -> Header {
    Header::new(GEOMETRY, Identity::first(33), [11, 22], 1_700_000_000).expect("a small zone")
}

fn page_of(fixed: &[u8]) -> [u8; HEADER_BYTES] {
    let mut page = [0; HEADER_BYTES];
    page[..fixed.len()].copy_from_slice(fixed);
    page
}

fn page() -> [u8; HEADER_BYTES] {
    page_of(&header().encode())
}

/// Returns the page with other bytes in one place, and a correct checksum.
fn page_with(at: usize, bytes: &[u8]) -> [u8; HEADER_BYTES] {
    let mut page = page();
    page[at..][..bytes.len()].copy_from_slice(bytes);
    let sum = checksum(&page[..CHECKED]);
    page[CHECKED..][..8].copy_from_slice(&sum.to_le_bytes());
    page
}

#[test]
fn a_header_comes_back_from_its_bytes() {
    assert_eq!(Header::decode(&page(), LENGTH), Ok(header()));
    assert_eq!(header().fits(GEOMETRY), Ok(()));
    assert_eq!(header().length, LENGTH);
}

#[test]
fn the_bytes_are_where_the_format_says() {
    let mut expected = Vec::from(*b"tidegate zone\n\0\0");
    expected.extend(4_u32.to_le_bytes());
    expected.extend(0x0a0b_0c0d_u32.to_ne_bytes());
    for number in [1, 1, 16, 8_u32] {
        expected.extend(number.to_le_bytes());
    }
    for number in [11, 22, 1000, LENGTH, 1_700_000_000_u64, 33, 0] {
        expected.extend(number.to_le_bytes());
    }
    expected.extend(checksum(&expected).to_le_bytes());
    assert_eq!(header().encode().as_slice(), expected);
    assert_eq!((HEADER_BYTES, FIXED_BYTES, WORDS_AT), (4096, 104, 512));
    assert_eq!((LIMITS_AT, LIMITS_BYTES, CELLS_AT), (4096, 147_456, 151_552));
}

#[test]
fn no_change_of_a_byte_goes_unseen() {
    let mut page = page();
    for at in 0..FIXED_BYTES {
        for flip in (1..=255).step_by(STEP) {
            page[at] ^= flip;
            let flaw = Header::decode(&page, LENGTH).unwrap_err();
            page[at] ^= flip;
            match at {
                0..16 => assert_eq!(flaw, Flaw::Foreign),
                16..20 => assert!(matches!(flaw, Flaw::Newer { .. } | Flaw::Older { .. } | Flaw::Checksum)),
                _ => assert_eq!(flaw, Flaw::Checksum, "byte {at}"),
            }
        }
    }
}

#[test]
fn bytes_without_a_meaning_do_no_harm() {
    let (mut page, header) = (page(), header());
    for at in (FIXED_BYTES..HEADER_BYTES).step_by(STEP) {
        page[at] ^= 0xff;
        assert_eq!(Header::decode(&page, LENGTH).as_ref(), Ok(&header));
    }
}

#[test]
fn a_truncated_zone_and_a_foreign_file_get_different_errors() {
    assert_eq!(Header::decode(&[], 0), Err(Flaw::Empty));
    let (page, mut foreign) = (page(), page());
    foreign[0] = b'T';
    for bytes in (1..HEADER_BYTES).step_by(STEP) {
        let length = bytes as u64;
        assert_eq!(Header::decode(&page[..bytes], length), Err(Flaw::Short { bytes: length }));
        assert_eq!(Header::decode(&foreign[..bytes], length), Err(Flaw::Foreign));
    }
    assert_eq!(Header::decode(b"tidegate zones are here", 23), Err(Flaw::Foreign));
}

#[test]
fn a_file_is_as_long_as_it_was_made() {
    for found in [4096, 4097, LENGTH - 1, LENGTH + 1, u64::MAX] {
        assert_eq!(Header::decode(&page(), found), Err(Flaw::Length { made: LENGTH, found }));
    }
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    let flaw = |at, bytes: &[u8]| Header::decode(&page_with(at, bytes), LENGTH).unwrap_err();
    assert_eq!(flaw(16, &[5, 0, 0, 0]), Flaw::Newer { version: 5 });
    assert_eq!(flaw(16, &[2, 0, 0, 0]), Flaw::Older { version: 2 });
    assert_eq!(flaw(16, &[0, 0, 0, 1]), Flaw::Newer { version: 1 << 24 });
    assert_eq!(flaw(20, &0x0a0b_0c0d_u32.swap_bytes().to_ne_bytes()), Flaw::ByteOrder);
    assert_eq!(flaw(24, &[2, 0, 0, 0]), Flaw::Hash { id: 2 });
    assert_eq!(flaw(28, &[3, 0, 0, 0]), Flaw::Tick { id: 3 });
    assert_eq!(flaw(32, &[32, 0, 0, 0]), Flaw::Cell { bytes: 32 });
}

#[test]
fn what_contradicts_itself_is_refused() {
    let flaw = |at, bytes: &[u8]| Header::decode(&page_with(at, bytes), LENGTH).unwrap_err();
    for (at, bytes) in [(16, [0; 4]), (20, [0; 4]), (36, [9, 0, 0, 0]), (36, [0xff; 4]), (64, [0; 4])] {
        assert_eq!(flaw(at, &bytes), Flaw::Contradiction, "byte {at}");
    }
    assert_eq!(flaw(56, &[0xff; 8]), Flaw::Contradiction);
}

#[test]
fn another_geometry_than_was_asked_for_is_refused() {
    let fits = |bucket_cells, buckets| header().fits(Geometry { bucket_cells, buckets });
    assert_eq!(fits(4, 1000), Err(Flaw::Bucket { cells: 8, wanted: 4 }));
    assert_eq!(fits(8, 999), Err(Flaw::Size { held: 128_000, wanted: 127_872 }));
    assert_eq!(fits(8, u64::MAX), Err(Flaw::Size { held: 128_000, wanted: u64::MAX }));
}

#[test]
fn a_zone_larger_than_can_be_counted_has_no_header() {
    for buckets in [u64::MAX, u64::MAX / 128 + 1, u64::MAX / 128] {
        assert_eq!(Header::new(Geometry { bucket_cells: 8, buckets }, Identity::first(1), [0, 0], 0), None);
    }
}

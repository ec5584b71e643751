//! The fuzz target for a state file.
//!
//! Nothing may panic. A header that is found valid must be, byte for byte, what would have been written. Blocks that
//! are found valid stay valid when states are removed and added again.
//!
//! The blocks are tested in memory, in a mapping that is filled with the input. Half of the loaded states are kept,
//! grown and removed again. At the end everything that is left must load without a flaw.

use std::path::Path;
use std::sync::Arc;

use super::super::bytes::checksum;
use super::super::error::{ZoneError, ZoneProblem};
use super::super::header::{Flaw, HEADER_BYTES};
use super::super::mapping::Mapping;
use super::block::UNIT_WORDS;
use super::header::{BLOCKS_AT, FIXED_BYTES, StateFileHeader};
use super::{BlockName, Rewrite, StateFile};
use crate::algorithm::{Algorithm, State};
use crate::time::Timestamp;

/// Checks the bytes as a header, as a header with a correct checksum, and as blocks. With a correct checksum, the
/// checks behind it are reached, which random bytes alone would never reach.
pub fn state_file(bytes: &[u8]) {
    examine_header(bytes);
    let mut page = vec![0; HEADER_BYTES];
    page.iter_mut().zip(bytes).for_each(|(byte, given)| *byte = *given);
    let (checked, sum) = page[..FIXED_BYTES].split_at_mut(FIXED_BYTES - 8);
    sum.copy_from_slice(&checksum(checked).to_le_bytes());
    examine_header(&page);
    examine_blocks(bytes);
}

/// Decodes a page, once as a file of its own length and once as one of the length in its header.
fn examine_header(bytes: &[u8]) {
    let said = bytes.get(40..48).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    let said = said.map(|blocks| blocks.wrapping_add(BLOCKS_AT as u64));
    for length in [Some(bytes.len() as u64), said].into_iter().flatten() {
        match StateFileHeader::decode(bytes, length) {
            Ok(header) => {
                assert_eq!(header.encode(), bytes[..FIXED_BYTES]);
                assert_eq!(header.length(), Some(length));
                assert_eq!(header.fits(header.bytes, header.identity), Ok(()));
            }
            Err(flaw) => tell(flaw),
        }
    }
}

/// The last two bytes of the input select the blocks of an interrupted rewrite. A flaw is an accepted result: the file
/// is then emptied, as after a restart of the machine. A panic, or a file that does not load at the end, is a failure.
fn examine_blocks(bytes: &[u8]) {
    let units = (bytes.len() / (8 * UNIT_WORDS)).clamp(1, 1 << 10);
    let length = units * UNIT_WORDS * 8;
    let mapping = Arc::new(Mapping::anonymous(BLOCKS_AT + length));
    let states = StateFile::over(Path::new("states"), None, Arc::clone(&mapping), length);
    for (at, chunk) in bytes.chunks_exact(8).take(length / 8).enumerate() {
        states.region.set(at, u64::from_le_bytes(chunk.try_into().expect("eight bytes")));
    }
    // Any block may appear to be rewritten from any other.
    if let Some([block, spare, ..]) = bytes.last_chunk::<8>() {
        let [block, spare] = [block, spare].map(|unit| u32::from(*unit) % (units as u32 + 1));
        states.region.publish_rewrite(Some(Rewrite { block, spare }));
    }
    let mut kept = Vec::new();
    let loaded = states.load(&mut |loaded| {
        let keeps = loaded.digest % 2 == 0;
        if keeps {
            kept.push((loaded.block, loaded.state, loaded.clear_at));
        }
        keeps
    });
    if let Err(flaw) = loaded {
        tell(flaw);
        states.empty();
        kept.clear();
    }
    for (block, mut state, clear_at) in kept {
        let (mut block, words) = (block, state.word_count() + 3);
        if states.reserve(&mut block, &mut state, clear_at, words) {
            states.save(block, &mut state, clear_at);
        }
        states.remove(block);
    }
    let name = BlockName { digest: 1, name: b"name", algorithm: Algorithm::Pacer };
    let mut pace = State::from_words(Algorithm::Pacer, &[1, 2, 3, 4]).expect("a pacer's words");
    let _ = states.insert(name, &mut pace, Timestamp::LAST, 4);
    let again = StateFile::over(Path::new("states"), None, mapping, length);
    assert_eq!(again.load(&mut |_| true), Ok(()), "what was written is whole");
}

/// Every flaw has a message with a fault and a remedy, separated by a semicolon.
fn tell(flaw: Flaw) {
    let message = ZoneError::new(Path::new("states"), ZoneProblem::Flaw(flaw)).to_string();
    assert!(message.contains("; "), "{message} has no remedy");
}

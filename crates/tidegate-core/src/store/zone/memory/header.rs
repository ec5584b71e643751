//! The byte layout of the first page of a zone's file.
//!
//! ```text
//!      0  what never changes: format, geometry, seed, set and name; a checksum
//!    128  a clock record                        ] see `record.rs`: the newer
//!    256  a clock record                        ] of those that hold is in force
//!    512  latest, deepest, unlisted until: three words that the zone itself keeps
//!   4096  the table of limits, see `store/limit_table.rs`
//! 151552  cells
//! ```
//!
//! Numbers are little-endian. Only the words, the table and the cells are in the byte order of the machine, which a
//! marker records. This module neither reads nor writes files.

use super::bytes::{FieldReader, FieldWriter, checksum};
use crate::store::limit_table::{RECORD_WORDS, RECORDS};

/// The bytes of the first page.
pub(super) const HEADER_BYTES: usize = 4096;
/// The offset of the table of limits.
pub(super) const LIMITS_AT: usize = HEADER_BYTES;
/// The bytes of the table of limits.
pub(super) const LIMITS_BYTES: usize = RECORDS * RECORD_WORDS * size_of::<u64>();
/// The offset of the cells.
pub(super) const CELLS_AT: usize = LIMITS_AT + LIMITS_BYTES;
/// The offset of three words: the latest time that was read, the longest debt of any used limit, and the time until
/// which states under unlisted limits may matter.
pub(super) const WORDS_AT: usize = 512;
/// The number of words there.
pub(super) const WORDS: usize = 3;

/// The bytes of the fixed fields, with their checksum.
pub(super) const FIXED_BYTES: usize = CHECKED + 8;
const CHECKED: usize = 96;

/// The newest format version that this program supports.
pub(super) const VERSION: u32 = 4;
const FORMAT: Format = Format { magic: *b"tidegate zone\n\0\0", version: VERSION, checked: CHECKED };

/// The byte order marker, in the byte order of the machine.
pub(super) const ORDER: [u8; 4] = 0x0a0b_0c0d_u32.to_ne_bytes();

/// The common start of each file of a zone: magic, version and byte order, and a checksum after the fixed fields.
pub(super) struct Format {
    pub(super) magic: [u8; 16],
    pub(super) version: u32,
    /// The bytes before the checksum.
    pub(super) checked: usize,
}

impl Format {
    /// Writes magic, version and byte order.
    pub(super) fn begin<'a>(&self, bytes: &'a mut [u8]) -> FieldWriter<'a> {
        let mut writer = FieldWriter::new(bytes);
        writer.put(&self.magic);
        writer.u32(self.version);
        writer.put(&ORDER);
        writer
    }

    /// Checks the first page of a file of this length, and returns a reader positioned at its fields.
    pub(super) fn fields<'a>(&self, bytes: &'a [u8], file_bytes: u64) -> Result<FieldReader<'a>, Flaw> {
        let page = bytes.get(..HEADER_BYTES).filter(|_| file_bytes >= HEADER_BYTES as u64);
        let Some(page) = page else { return Err(self.too_short(bytes, file_bytes)) };
        let mut reader = FieldReader::new(page);
        if reader.take() != self.magic {
            return Err(Flaw::Foreign);
        }
        let version = reader.u32();
        if version > self.version {
            return Err(Flaw::Newer { version });
        }
        if (1..self.version).contains(&version) {
            return Err(Flaw::Older { version });
        }
        let order = reader.take::<4>();
        if order.iter().eq(ORDER.iter().rev()) {
            return Err(Flaw::ByteOrder);
        }
        if FieldReader::new(&page[self.checked..]).u64() != checksum(&page[..self.checked]) {
            return Err(Flaw::Checksum);
        }
        if version != self.version || order != ORDER {
            return Err(Flaw::Contradiction);
        }
        Ok(reader)
    }

    /// Returns the flaw of a file without a complete header. It counts as truncated only if it starts with this magic.
    fn too_short(&self, bytes: &[u8], file_bytes: u64) -> Flaw {
        let seen = bytes.len().min(self.magic.len());
        match bytes.len().min(usize::try_from(file_bytes).unwrap_or(usize::MAX)) {
            0 => Flaw::Empty,
            _ if bytes[..seen] != self.magic[..seen] => Flaw::Foreign,
            _ => Flaw::Short { bytes: file_bytes },
        }
    }
}

/// The identifier of SipHash-1-3 with 128 bits.
const HASH: u32 = 1;
/// The identifier of ticks of 1/16 ns.
const TICK: u32 = 1;
/// The bytes of a cell.
pub(super) const CELL_BYTES: u32 = 16;

/// The number of buckets and their size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    pub(super) bucket_cells: u32,
    pub(super) buckets: u64,
}

impl Geometry {
    /// Returns the geometry of `buckets` buckets of `bucket_bytes` bytes.
    pub(super) fn of(buckets: u64, bucket_bytes: usize) -> Geometry {
        let bucket_cells = u32::try_from(bucket_bytes / CELL_BYTES as usize).expect("buckets are small");
        assert!(buckets > 0 && bucket_cells > 0, "a zone has cells");
        Geometry { bucket_cells, buckets }
    }

    /// Returns the bytes of all cells, or `None` on overflow.
    pub(super) fn bytes(self) -> Option<u64> {
        let bucket = u64::from(self.bucket_cells) * u64::from(CELL_BYTES);
        self.buckets.checked_mul(bucket)
    }

    /// Returns the bytes of the file, or `None` on overflow.
    pub(super) fn file_bytes(self) -> Option<u64> {
        self.bytes()?.checked_add(CELLS_AT as u64)
    }
}

/// The set of files that belong together, and one zone in it.
///
/// A zone, the named zones beside it, and the state files of all of them are one set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The number of the set.
    pub(super) set: u64,
    /// A number for the name of the zone; zero for the first.
    pub(super) zone: u64,
}

impl Identity {
    /// Returns the identity of the first zone of this set.
    pub(super) const fn first(set: u64) -> Identity {
        Identity { set, zone: 0 }
    }

    /// Returns the identity of the zone of this name in the same set.
    pub(crate) fn named(self, name: &str) -> Identity {
        Identity { zone: checksum(name.as_bytes()).max(1), ..self }
    }

    /// Checks that a file of this identity is the requested one.
    pub(super) fn is_of(self, wanted: Identity) -> Result<(), Flaw> {
        match self {
            found if found.zone != wanted.zone => Err(Flaw::OtherZone),
            found if found.set != wanted.set => Err(Flaw::OtherSet),
            _ => Ok(()),
        }
    }
}

/// The fixed fields of a zone's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) geometry: Geometry,
    pub(super) identity: Identity,
    pub(super) seed: [u64; 2],
    /// The bytes of the whole file.
    pub(super) length: u64,
    /// The wall clock when the zone was created, in seconds since 1970; for human readers.
    pub(super) created: u64,
}

/// A fault in the content of a zone's file, or of a state file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The file is empty.
    Empty,
    /// It starts with the magic and ends before its header does.
    Short { bytes: u64 },
    /// It is a file of another kind.
    Foreign,
    /// A later version wrote it.
    Newer { version: u32 },
    /// An earlier version wrote it.
    Older { version: u32 },
    /// A machine of the other byte order wrote it.
    ByteOrder,
    /// Its keys are found by another hash.
    Hash { id: u32 },
    /// Its time is counted in another unit.
    Tick { id: u32 },
    /// Its cells have another size.
    Cell { bytes: u32 },
    /// Its buckets have another number of cells.
    Bucket { cells: u32, wanted: u32 },
    /// The checksum of its fixed fields is wrong.
    Checksum,
    /// Its fixed fields contradict each other.
    Contradiction,
    /// Neither clock record is valid.
    Clock,
    /// The length of the file differs from the recorded one.
    Length { made: u64, found: u64 },
    /// It has another number of buckets than was requested; in bytes of all cells.
    Size { held: u64, wanted: u64 },
    /// It belongs to a zone of another name.
    OtherZone,
    /// It belongs to another set of files.
    OtherSet,
    /// Its blocks contradict each other; this many bytes after the header.
    Blocks { at: u64 },
}

impl Header {
    /// Returns the header of a new zone, or `None` if its size overflows.
    pub(super) fn new(
        geometry: Geometry,
        identity: Identity,
        seed: [u64; 2],
        created: u64,
    ) -> Option<Header> {
        Some(Header { geometry, identity, seed, length: geometry.file_bytes()?, created })
    }

    pub(super) fn encode(&self) -> [u8; FIXED_BYTES] {
        let mut bytes = [0; FIXED_BYTES];
        let mut writer = FORMAT.begin(&mut bytes);
        for number in [HASH, TICK, CELL_BYTES, self.geometry.bucket_cells] {
            writer.u32(number);
        }
        let [first, second] = self.seed;
        let Identity { set, zone } = self.identity;
        for number in [first, second, self.geometry.buckets, self.length, self.created, set, zone] {
            writer.u64(number);
        }
        writer.checksum();
        bytes
    }

    /// Reads the first bytes of a file of `file_bytes` bytes.
    pub(super) fn decode(bytes: &[u8], file_bytes: u64) -> Result<Header, Flaw> {
        let mut reader = FORMAT.fields(bytes, file_bytes)?;
        let [hash, tick, cell_bytes, bucket_cells] = [(); 4].map(|()| reader.u32());
        let [first, second, buckets, length, created, set, zone] = [(); 7].map(|()| reader.u64());
        if hash != HASH {
            return Err(Flaw::Hash { id: hash });
        }
        if tick != TICK {
            return Err(Flaw::Tick { id: tick });
        }
        if cell_bytes != CELL_BYTES {
            return Err(Flaw::Cell { bytes: cell_bytes });
        }
        let geometry = Geometry { bucket_cells, buckets };
        if geometry.file_bytes() != Some(length) {
            return Err(Flaw::Contradiction);
        }
        if length != file_bytes {
            return Err(Flaw::Length { made: length, found: file_bytes });
        }
        let identity = Identity { set, zone };
        Ok(Header { geometry, identity, seed: [first, second], length, created })
    }

    /// Checks that the geometry is the requested one.
    pub(super) fn fits(&self, wanted: Geometry) -> Result<(), Flaw> {
        if self.geometry.bucket_cells != wanted.bucket_cells {
            let (cells, wanted) = (self.geometry.bucket_cells, wanted.bucket_cells);
            return Err(Flaw::Bucket { cells, wanted });
        }
        if self.geometry.buckets != wanted.buckets {
            let bytes = |geometry: Geometry| geometry.bytes().unwrap_or(u64::MAX);
            return Err(Flaw::Size { held: bytes(self.geometry), wanted: bytes(wanted) });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

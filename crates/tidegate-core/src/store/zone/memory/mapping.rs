//! Memory from the system, which many threads and processes may change at once.
//!
//! Only this file of the folder has unsafe code. It does not expose plain memory. Bytes are accessible only as
//! [`Shareable`] types, for which every bit pattern is valid and every change is one atomic step.

use std::alloc::{Layout, handle_alloc_error};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The minimum alignment of all memory here, the size of a page.
const PAGE: usize = 4096;

/// A type that may be in memory that other threads and processes change at the same time.
///
/// # Safety
///
/// Every bit pattern is a valid value, and nothing needs to be dropped. A shared reference changes it only in atomic
/// steps.
#[expect(unsafe_code, reason = "only who knows a type can promise this")]
pub(crate) unsafe trait Shareable {}

#[expect(unsafe_code, reason = "this is the promise")]
// SAFETY: every eight bytes are a valid number, and all access to an atomic one is atomic.
unsafe impl Shareable for AtomicU64 {}

/// A mapping of memory that is returned to the system when it is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
    /// The bytes to return to the system, which may be more than `length`.
    held: usize,
}

#[expect(unsafe_code, reason = "a pointer is bound to its thread unless it is declared otherwise")]
// SAFETY: the memory belongs to the mapping alone, and not to a thread.
unsafe impl Send for Mapping {}

#[expect(unsafe_code, reason = "a pointer is bound to its thread unless it is declared otherwise")]
// SAFETY: shared references access the memory only as `Shareable` types, which are changed in atomic steps.
unsafe impl Sync for Mapping {}

/// The target of writes to a mapping of a file.
#[derive(Clone, Copy, Debug)]
enum Writes {
    /// Writes reach the file, and all other processes that map it.
    InFile,
    /// Writes stay in this process.
    InCopy,
}

impl Mapping {
    /// Maps `bytes` bytes, all zero, which use memory only once they are written to. From two megabytes on they are
    /// aligned for huge pages. Returns an error if the system provides no memory. Panics if `bytes` is zero.
    pub(crate) fn try_anonymous(bytes: usize) -> io::Result<Mapping> {
        assert!(bytes > 0, "a mapping is of at least one byte");
        let (start, held) = system::anonymous(bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, length: bytes, held })
    }

    /// Maps bytes like [`Mapping::try_anonymous`]. Without memory the process ends as after every failed allocation.
    pub(crate) fn anonymous(bytes: usize) -> Mapping {
        Mapping::try_anonymous(bytes).unwrap_or_else(|_| out_of_memory(bytes))
    }

    /// Maps the first `length` bytes of a file, which must have them. Writes to the mapping are writes to the file, and
    /// vice versa. If another program truncates the file later, the next access kills this process.
    pub(crate) fn of_file(file: &File, length: usize) -> io::Result<Mapping> {
        let start = system::of_file(file, length, Writes::InFile)?;
        Ok(Mapping { start, length, held: length })
    }

    /// Maps the first `length` bytes of a file as a private copy: writes are not written to the file.
    pub(crate) fn copy_of_file(file: &File, length: usize) -> io::Result<Mapping> {
        let start = system::of_file(file, length, Writes::InCopy)?;
        Ok(Mapping { start, length, held: length })
    }

    /// Returns `count` values from byte `offset` on. The same bytes must always be used as the same type: accesses of
    /// different sizes are not atomic with respect to each other. Panics if the values are not within the mapping, or
    /// not aligned.
    pub(crate) fn part<T: Shareable>(self: &Arc<Self>, offset: usize, count: usize) -> MappedPart<T> {
        let end = count.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(offset));
        assert!(end.is_some_and(|end| end <= self.length), "a part lies within its mapping");
        assert!(align_of::<T>() <= PAGE && offset % align_of::<T>() == 0, "a part is aligned");
        let start = self.start.as_ptr().wrapping_add(offset).cast();
        MappedPart {
            start: NonNull::new(start).expect("no mapping holds the address zero"),
            count,
            _mapping: Arc::clone(self),
        }
    }

    /// Waits until all writes to the mapping of a file are on disk.
    pub(crate) fn flush(&self) -> io::Result<()> {
        system::flush(self.start, self.length)
    }
}

/// Ends the process by the handler of the allocator.
fn out_of_memory(bytes: usize) -> ! {
    match Layout::from_size_align(bytes, PAGE) {
        Ok(layout) => handle_alloc_error(layout),
        Err(_) => panic!("{bytes} bytes are more than there are addresses"),
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        system::release(self.start, self.held);
    }
}

/// A part of a mapping, which it keeps alive, as values of one type.
#[derive(Debug)]
pub(crate) struct MappedPart<T> {
    start: NonNull<T>,
    count: usize,
    _mapping: Arc<Mapping>,
}

impl<T: Shareable> Deref for MappedPart<T> {
    type Target = [T];

    #[inline]
    #[expect(unsafe_code, reason = "the memory is raw")]
    fn deref(&self) -> &[T] {
        // SAFETY: `Mapping::part` has checked that the values are within the mapping and aligned, and the mapping is
        // alive. By `Shareable` any bytes are valid, and all changes are atomic.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

#[expect(unsafe_code, reason = "a pointer is bound to its thread unless it is declared otherwise")]
// SAFETY: a part is only a shared reference to its values, which needs them to be `Sync`.
unsafe impl<T: Shareable + Sync> Send for MappedPart<T> {}

#[expect(unsafe_code, reason = "a pointer is bound to its thread unless it is declared otherwise")]
// SAFETY: as above.
unsafe impl<T: Shareable + Sync> Sync for MappedPart<T> {}

#[cfg(all(target_os = "linux", not(any(miri, tidegate_models))))]
use linux as system;
#[cfg(not(all(target_os = "linux", not(any(miri, tidegate_models)))))]
use unsupported as system;

#[cfg(all(target_os = "linux", not(any(miri, tidegate_models))))]
mod linux {
    use std::fs::File;
    use std::io;
    use std::ptr::{self, NonNull};

    use rustix::mm::{self, Advice, MapFlags, MsyncFlags, ProtFlags};

    use super::Writes;

    /// The size and the alignment of a huge page, a multiple of every smaller page size.
    pub(super) const HUGE: usize = 2 << 20;

    /// Returns the address and the number of the mapped bytes, or `None` if the system provides none.
    pub(super) fn anonymous(bytes: usize) -> Option<(NonNull<u8>, usize)> {
        if bytes < HUGE {
            return Some((map(bytes)?, bytes));
        }
        // A mapping may start at any page. It is therefore one huge page longer, and the surplus at both ends is
        // unmapped.
        let held = bytes.checked_next_multiple_of(HUGE)?;
        let mapped = map(held.checked_add(HUGE)?)?;
        let (before, after) = surplus(mapped.as_ptr().addr());
        let start = at(mapped, before);
        release(mapped, before);
        release(at(start, held), after);
        advise(start, held);
        Some((start, held))
    }

    /// Returns the surplus bytes before and after the huge pages, in a mapping that is one huge page longer.
    pub(super) fn surplus(address: usize) -> (usize, usize) {
        let before = address.next_multiple_of(HUGE) - address;
        (before, HUGE - before)
    }

    /// Maps zeroed pages that no other process sees.
    #[expect(unsafe_code, reason = "the system's call has no safe form")]
    fn map(bytes: usize) -> Option<NonNull<u8>> {
        let (access, flags) = (ProtFlags::READ.union(ProtFlags::WRITE), MapFlags::PRIVATE);
        // SAFETY: no address is given, so no memory in use is replaced.
        let start = unsafe { mm::mmap_anonymous(ptr::null_mut(), bytes, access, flags) };
        NonNull::new(start.ok()?.cast())
    }

    /// Returns an address within a mapping.
    fn at(start: NonNull<u8>, offset: usize) -> NonNull<u8> {
        NonNull::new(start.as_ptr().wrapping_add(offset)).expect("no mapping holds the address zero")
    }

    /// Requests huge pages. They make a zone faster, and are not required.
    #[expect(unsafe_code, reason = "the system's call has no safe form")]
    fn advise(start: NonNull<u8>, bytes: usize) {
        // SAFETY: the bytes belong to this mapping, and the advice changes none of them.
        let _ = unsafe { mm::madvise(start.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
    }

    #[expect(unsafe_code, reason = "the system's call has no safe form")]
    pub(super) fn of_file(file: &File, length: usize, writes: Writes) -> io::Result<NonNull<u8>> {
        let flags = match writes {
            Writes::InFile => MapFlags::SHARED,
            Writes::InCopy => MapFlags::PRIVATE,
        };
        let access = ProtFlags::READ.union(ProtFlags::WRITE);
        // SAFETY: no address is given, so no memory in use is replaced.
        let start = unsafe { mm::mmap(ptr::null_mut(), length, access, flags, file, 0) }?;
        NonNull::new(start.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    #[expect(unsafe_code, reason = "the system's call has no safe form")]
    pub(super) fn flush(start: NonNull<u8>, length: usize) -> io::Result<()> {
        // SAFETY: the bytes belong to this mapping, and are only read.
        Ok(unsafe { mm::msync(start.as_ptr().cast(), length, MsyncFlags::SYNC) }?)
    }

    #[expect(unsafe_code, reason = "the system's call has no safe form")]
    pub(super) fn release(start: NonNull<u8>, bytes: usize) {
        // SAFETY: the bytes were mapped here, and there is no reference to them any more. A failed call leaves them
        // mapped, which is harmless. A call with zero bytes fails.
        let _ = unsafe { mm::munmap(start.as_ptr().cast(), bytes) };
    }
}

/// The implementation for other systems, where memory comes from the allocator.
#[cfg(not(all(target_os = "linux", not(any(miri, tidegate_models)))))]
mod unsupported {
    use std::alloc::{self, Layout};
    use std::fs::File;
    use std::io;
    use std::ptr::NonNull;

    use super::{PAGE, Writes};

    #[expect(unsafe_code, reason = "the allocator has no safe form")]
    pub(super) fn anonymous(bytes: usize) -> Option<(NonNull<u8>, usize)> {
        let layout = Layout::from_size_align(bytes, PAGE).ok()?;
        // SAFETY: a mapping has at least one byte.
        let start = unsafe { alloc::alloc_zeroed(layout) };
        Some((NonNull::new(start)?, bytes))
    }

    pub(super) fn of_file(_file: &File, _length: usize, _: Writes) -> io::Result<NonNull<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn flush(_start: NonNull<u8>, _length: usize) -> io::Result<()> {
        Ok(())
    }

    #[expect(unsafe_code, reason = "the allocator has no safe form")]
    pub(super) fn release(start: NonNull<u8>, bytes: usize) {
        let layout = Layout::from_size_align(bytes, PAGE).expect("so many bytes were allocated");
        // SAFETY: it was allocated with this layout by `anonymous`, the only way to create a mapping here.
        unsafe { alloc::dealloc(start.as_ptr(), layout) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::thread;

    use super::*;

    const HUGE: usize = 2 << 20;

    fn words(mapping: &Arc<Mapping>) -> MappedPart<AtomicU64> {
        mapping.part(0, mapping.length / 8)
    }

    fn address(mapping: &Mapping) -> usize {
        mapping.start.as_ptr().addr()
    }

    #[test]
    fn memory_is_zero_and_keeps_what_is_written() {
        for bytes in [1, 8, 64, 4096, 4097, 20_000] {
            let mapping = Arc::new(Mapping::anonymous(bytes));
            assert_eq!(address(&mapping) % PAGE, 0);
            let words = words(&mapping);
            assert_eq!(words.len(), bytes / 8);
            assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
            for (word, number) in words.iter().zip(1..) {
                word.store(number, Ordering::Relaxed);
            }
            assert!(words.iter().zip(1..).all(|(word, number)| word.load(Ordering::Relaxed) == number));
        }
    }

    #[test]
    #[cfg_attr(
        any(miri, tidegate_models, not(target_os = "linux")),
        ignore = "the allocator has no huge pages"
    )]
    fn much_memory_is_aligned_for_huge_pages() {
        for bytes in [HUGE, HUGE + 1, HUGE + 4096, 5 * HUGE - 1, 64 << 20] {
            let mapping = Arc::new(Mapping::anonymous(bytes));
            assert_eq!((address(&mapping) % HUGE, mapping.length), (0, bytes));
            let words = words(&mapping);
            assert_eq!(words[0].swap(1, Ordering::Relaxed), 0);
            assert_eq!(words[bytes / 8 - 1].swap(2, Ordering::Relaxed), 0);
        }
    }

    /// Returns true if huge pages were requested at this address, as the kernel reports.
    fn asks_for_huge_pages(address: usize) -> bool {
        let memory = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let hexadecimal = |text: &str| usize::from_str_radix(text, 16).ok();
        let holds_address = |line: &&str| {
            let range = line.split_whitespace().next().and_then(|range| range.split_once('-'));
            let range = range.and_then(|(start, end)| Some(hexadecimal(start)?..hexadecimal(end)?));
            range.is_some_and(|range| range.contains(&address))
        };
        let mut about = memory.lines().skip_while(|line| !holds_address(line));
        let flags = about.find(|line| line.starts_with("VmFlags:")).expect("it is mapped");
        flags.split_whitespace().any(|flag| flag == "hg")
    }

    #[test]
    #[cfg_attr(any(miri, tidegate_models, not(target_os = "linux")), ignore = "it needs the kernel")]
    fn huge_pages_are_asked_for_where_they_fit() {
        if std::fs::exists("/sys/kernel/mm/transparent_hugepage/enabled").unwrap() {
            let (small, large) = (Mapping::anonymous(HUGE - 1), Mapping::anonymous(HUGE));
            assert!(!asks_for_huge_pages(address(&small)));
            assert!(asks_for_huge_pages(address(&large)));
        }
    }

    #[test]
    #[cfg(all(target_os = "linux", not(any(miri, tidegate_models))))]
    fn what_is_too_much_at_both_ends_is_a_huge_page_together() {
        use super::linux::surplus;
        assert_eq!(surplus(3 * HUGE), (0, HUGE));
        assert_eq!(surplus(3 * HUGE + 4096), (HUGE - 4096, 4096));
        assert_eq!(surplus(3 * HUGE - 4096), (4096, HUGE - 4096));
    }

    #[test]
    #[cfg_attr(any(miri, tidegate_models, not(target_os = "linux")), ignore = "it needs the kernel")]
    fn memory_is_given_back() {
        let mapped_kilobytes = || -> u64 {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find(|line| line.starts_with("VmSize:")).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        let before = mapped_kilobytes();
        for _ in 0..4000 {
            drop(Mapping::anonymous(8 * HUGE));
        }
        // All of it would be 64 GiB, and the surplus at the ends 8 GiB; other tests use some as well.
        assert!(mapped_kilobytes() < before + (4 << 20));
    }

    #[test]
    fn a_part_keeps_its_mapping_and_is_seen_by_all_threads() {
        let part: MappedPart<AtomicU64> = Arc::new(Mapping::anonymous(256)).part(128, 16);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| part.iter().for_each(|word| _ = word.fetch_add(1, Ordering::Relaxed)));
            }
        });
        assert!(part.iter().all(|word| word.load(Ordering::Relaxed) == 4));
    }

    #[test]
    fn parts_see_each_other() {
        let mapping = Arc::new(Mapping::anonymous(256));
        let part: MappedPart<AtomicU64> = mapping.part(64, 2);
        part[1].store(7, Ordering::Relaxed);
        assert_eq!(words(&mapping)[9].load(Ordering::Relaxed), 7);
    }

    #[test]
    #[should_panic(expected = "within its mapping")]
    fn a_part_does_not_reach_beyond_the_end() {
        Arc::new(Mapping::anonymous(256)).part::<AtomicU64>(128, 17);
    }

    #[test]
    #[should_panic(expected = "within its mapping")]
    fn a_part_is_not_more_than_can_be_counted() {
        Arc::new(Mapping::anonymous(256)).part::<AtomicU64>(128, usize::MAX / 4);
    }

    #[test]
    #[should_panic(expected = "aligned")]
    fn a_part_is_aligned() {
        Arc::new(Mapping::anonymous(256)).part::<AtomicU64>(4, 1);
    }

    #[test]
    #[should_panic(expected = "at least one byte")]
    fn there_is_no_empty_mapping() {
        Mapping::anonymous(0);
    }
}

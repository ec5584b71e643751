//! Atomic loads and compare-and-swap of sixteen bytes.
//!
//! On an x86-64 processor that supports them, two instructions are enough. One is a load of sixteen aligned bytes,
//! which processors with AVX guarantee to be atomic; the other is the compare-and-swap. `portable-atomic` uses the same
//! instructions, but checks at each access whether they exist; a zone checks once. On all other processors
//! `portable-atomic` is used.
//!
//! | processor | load | compare-and-swap |
//! |---|---|---|
//! | x86-64 with AVX and cmpxchg16b | `vmovdqa` | `lock cmpxchg16b` |
//! | `AArch64` | by `portable-atomic` | by `portable-atomic` |
//! | without such instructions | a lock of this process | a lock of this process |
//!
//! With locks a zone works in one process, and cannot be in a file. All accesses are sequentially consistent, because
//! the protocol of `core.rs` relies on one order of writes and later reads of different cells.

use super::cell::Content;

/// The number of cells in a cache line; in a model, as few as possible. Four cells of sixteen bytes are 64 bytes.
pub(super) const LINE: usize = if cfg!(tidegate_models) { 2 } else { 4 };

#[cfg(not(tidegate_models))]
pub(super) use real::{Cell, Wide};

/// Models take a lock for each access, because only the order of the accesses matters there.
#[cfg(tidegate_models)]
pub(super) use model::{Cell, Wide};

/// Returns the first cell of a line whose content matches. Cells after it are not read. Most searches end at the first
/// or second cell, so later cells are not loaded.
#[inline(always)]
fn first(
    line: &[Cell; LINE],
    load: impl Fn(&Cell) -> Content,
    is_it: impl Fn(Content) -> bool,
) -> Option<(&Cell, Content)> {
    for cell in line {
        let content = load(cell);
        if is_it(content) {
            return Some((cell, content));
        }
    }
    None
}

/// Prefetches the cache line of this value. On other processors, and under Miri, it does nothing.
#[inline(always)]
pub(in crate::store::zone) fn prefetch<T>(value: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri), not(tidegate_models)))]
    x86_64::prefetch(std::ptr::from_ref(value));
    let _ = value;
}

#[cfg(not(tidegate_models))]
mod real {
    use super::{Content, LINE};
    use portable_atomic::{AtomicU128, Ordering};

    /// An atomic cell for a [`Content`], in memory that may be shared with other processes.
    #[derive(Debug)]
    #[repr(transparent)]
    pub(in crate::store::zone) struct Cell(AtomicU128);

    impl Cell {
        /// Returns true if the processor itself changes a cell in one step. Without such an instruction, locks of this
        /// process are used, which other processes do not see.
        pub(in crate::store::zone) fn is_lock_free() -> bool {
            AtomicU128::is_lock_free()
        }

        /// Prefetches a cache line.
        #[inline(always)]
        pub(in crate::store::zone) fn prefetch(line: &[Cell; LINE]) {
            super::prefetch(line);
        }
    }

    /// A flag that the processor has both instructions.
    #[derive(Clone, Copy, Debug)]
    pub(in crate::store::zone) struct Wide(bool);

    impl Wide {
        /// Asks the processor once, when a zone is created.
        pub(in crate::store::zone) fn detect() -> Wide {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            return Wide(super::x86_64::is_able());
            #[cfg(not(all(target_arch = "x86_64", not(miri))))]
            Wide(false)
        }

        /// Returns the contents of the cells of a line.
        #[inline(always)]
        pub(in crate::store::zone) fn load_line(self, line: &[Cell; LINE]) -> [Content; LINE] {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            if self.0 {
                return line.each_ref().map(|cell| super::x86_64::load(&cell.0));
            }
            line.each_ref().map(|cell| from_bits(cell.0.load(Ordering::SeqCst)))
        }

        /// Returns the first cell of a line whose content matches.
        #[inline(always)]
        pub(in crate::store::zone) fn find_in_line(
            self,
            line: &[Cell; LINE],
            is_it: impl Fn(Content) -> bool,
        ) -> Option<(&Cell, Content)> {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            if self.0 {
                return super::first(line, |cell| super::x86_64::load(&cell.0), is_it);
            }
            super::first(line, |cell| from_bits(cell.0.load(Ordering::SeqCst)), is_it)
        }

        /// Replaces `old` by `new`. Returns false if the cell holds another content.
        #[inline(always)]
        pub(in crate::store::zone) fn replace(self, cell: &Cell, old: Content, new: Content) -> bool {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            if self.0 {
                return super::x86_64::replace(&cell.0, old, new);
            }
            let (old, new) = (to_bits(old), to_bits(new));
            cell.0.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        }
    }

    /// Returns the content of sixteen bytes: the tag is in the lower half.
    fn from_bits(bits: u128) -> Content {
        Content { tag: bits as u64, word: (bits >> 64) as u64 }
    }

    /// Returns the sixteen bytes of a content.
    fn to_bits(content: Content) -> u128 {
        u128::from(content.tag) | (u128::from(content.word) << 64)
    }
}

#[cfg(tidegate_models)]
mod model {
    use super::{Content, LINE};
    use crate::sync::Mutex;

    /// A cell of a model, which explores the order of accesses and not their width.
    #[derive(Debug)]
    pub(in crate::store::zone) struct Cell(Mutex<Content>);

    impl Cell {
        pub(in crate::store::zone) fn new() -> Cell {
            Cell(Mutex::new(Content::NOTHING))
        }

        pub(in crate::store::zone) fn is_lock_free() -> bool {
            false
        }

        pub(in crate::store::zone) fn prefetch(_: &[Cell; LINE]) {}
    }

    #[derive(Clone, Copy, Debug)]
    pub(in crate::store::zone) struct Wide;

    impl Wide {
        pub(in crate::store::zone) fn detect() -> Wide {
            Wide
        }

        pub(in crate::store::zone) fn load_line(self, line: &[Cell; LINE]) -> [Content; LINE] {
            line.each_ref().map(|cell| *cell.0.lock())
        }

        pub(in crate::store::zone) fn find_in_line(
            self,
            line: &[Cell; LINE],
            is_it: impl Fn(Content) -> bool,
        ) -> Option<(&Cell, Content)> {
            super::first(line, |cell| *cell.0.lock(), is_it)
        }

        pub(in crate::store::zone) fn replace(self, cell: &Cell, old: Content, new: Content) -> bool {
            let mut content = cell.0.lock();
            let is_old = *content == old;
            if is_old {
                *content = new;
            }
            is_old
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri), not(tidegate_models)))]
mod x86_64 {
    use core::arch::asm;
    use core::arch::x86_64::{__m128i, _MM_HINT_T0, _mm_cvtsi128_si64, _mm_prefetch, _mm_unpackhi_epi64};

    use portable_atomic::AtomicU128;

    use super::Content;

    /// Returns true if the processor has both instructions; AVX is what makes the load atomic.
    pub(super) fn is_able() -> bool {
        std::arch::is_x86_feature_detected!("avx") && std::arch::is_x86_feature_detected!("cmpxchg16b")
    }

    /// Loads sixteen bytes in one access.
    #[inline(always)]
    #[expect(unsafe_code, reason = "the instruction has no safe name")]
    pub(super) fn load(cell: &AtomicU128) -> Content {
        let both: __m128i;
        // SAFETY: the caller has checked that there is AVX. The address is valid and aligned to sixteen bytes, as the
        // type requires. Processors with AVX read sixteen aligned bytes at once, and on this architecture every read is
        // at least as strict as an acquire. After a compare-and-swap, which waits for all accesses before it, reads
        // keep the one order that all threads see. The block is not marked as `pure` or `nomem`, so the compiler moves
        // no access across it.
        unsafe {
            asm!("vmovdqa {both}, xmmword ptr [{address}]", both = out(xmm_reg) both, address = in(reg) cell.as_ptr(),
                options(nostack, preserves_flags));
            Content {
                tag: _mm_cvtsi128_si64(both) as u64,
                word: _mm_cvtsi128_si64(_mm_unpackhi_epi64(both, both)) as u64,
            }
        }
    }

    /// Replaces `old` by `new` in one step. Returns false if the cell holds another content.
    #[inline(always)]
    #[expect(unsafe_code, reason = "the instruction has no safe name")]
    pub(super) fn replace(cell: &AtomicU128, old: Content, new: Content) -> bool {
        let done: u8;
        // SAFETY: the caller has checked that there is `cmpxchg16b`. The address is valid, writable and aligned to
        // sixteen bytes, as the type requires. The compiler reserves `rbx`, so it is restored. With the lock prefix
        // this is one step in the order that all threads see. `done` may be allocated to `bl`: `rbx` is restored first,
        // by a `mov`, which changes no flags, and nothing is written after `done`. `low` may be `rbx` itself; then both
        // moves change nothing. No output shares a register with an input, because none of them is a `lateout`.
        unsafe {
            asm!(
                "xchg {low}, rbx",
                "lock cmpxchg16b xmmword ptr [rdi]",
                "mov rbx, {low}",
                "sete {done}",
                low = inout(reg) new.tag => _,
                done = out(reg_byte) done,
                in("rdi") cell.as_ptr(),
                in("rcx") new.word,
                inout("rax") old.tag => _,
                inout("rdx") old.word => _,
                options(nostack),
            );
        }
        done != 0
    }

    /// Requests the cache line for all cache levels.
    #[inline(always)]
    #[expect(unsafe_code, reason = "the instruction has no safe name")]
    pub(super) fn prefetch<T>(line: *const T) {
        // SAFETY: a prefetch reads nothing and fails on no address; every x86-64 processor has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) }
    }
}

#[cfg(all(test, target_arch = "x86_64", not(miri), not(tidegate_models)))]
mod register_tests {
    use core::arch::asm;
    use std::hint::black_box;

    use portable_atomic::{AtomicU128, Ordering};

    use super::Content;
    use super::x86_64::{is_able, replace};

    /// Defines a function that runs the compare-and-swap while these registers hold values, and also returns the sum of
    /// the values. The more registers are in use, the more likely the result is in `bl`. `bl` cannot be requested by
    /// name, as the compiler reserves `rbx`.
    macro_rules! replace_beside {
        ($name:ident, $($value:ident in $register:tt),*) => {
            #[inline(never)]
            #[expect(unsafe_code, reason = "only inline assembly pins values to registers")]
            fn $name(cell: &AtomicU128, old: Content, new: Content) -> (bool, u64) {
                let mut tag = new.tag;
                $(let mut $value = black_box(1_u64);)*
                // SAFETY: there is no instruction; the values stay as they are.
                unsafe {
                    asm!("", inout("r8") tag, $(inout($register) $value,)*
                        options(nostack, nomem, preserves_flags));
                }
                let done = replace(cell, old, Content { tag, word: new.word });
                // SAFETY: as above.
                unsafe {
                    asm!("", $(inout($register) $value,)* options(nostack, nomem, preserves_flags));
                }
                (done, 0 $(+ $value)*)
            }
        };
    }

    replace_beside!(beside_four, a in "rsi", b in "r9", c in "r10", d in "r11");
    replace_beside!(beside_six, a in "rsi", b in "r9", c in "r10", d in "r11", e in "r14", f in "r15");
    replace_beside!(beside_eight, a in "rsi", b in "r9", c in "r10", d in "r11", e in "r12", f in "r13",
        g in "r14", h in "r15");

    fn report_what_happened(replace: fn(&AtomicU128, Content, Content) -> (bool, u64), values: u64) {
        for number in 0..1000 {
            let is_old = number % 2 == 0;
            let seen = Content { tag: number, word: 7 };
            let old = if is_old { seen } else { Content { tag: number + 1, word: 7 } };
            let new = Content { tag: number + 5, word: 9 };
            let bits = |content: Content| u128::from(content.tag) | (u128::from(content.word) << 64);
            let cell = AtomicU128::new(bits(seen));
            assert_eq!(replace(&cell, old, new), (is_old, values));
            assert_eq!(cell.load(Ordering::SeqCst), bits(if is_old { new } else { seen }));
        }
    }

    #[test]
    fn an_exchange_reports_what_happened_whatever_register_the_result_is_in() {
        if is_able() {
            report_what_happened(beside_four, 4);
            report_what_happened(beside_six, 6);
            report_what_happened(beside_eight, 8);
        }
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    fn line() -> Box<[Cell; LINE]> {
        let cells: Vec<Cell> = (0..LINE).map(|_| cell()).collect();
        cells.try_into().expect("so many were made")
    }

    #[expect(unsafe_code, reason = "a cell is made of zeroed memory only")]
    fn cell() -> Cell {
        // SAFETY: a cell is sixteen bytes, all of whose patterns are valid.
        unsafe { std::mem::zeroed() }
    }

    #[test]
    fn a_cell_is_replaced_only_if_it_is_what_was_seen() {
        let (line, wide) = (line(), Wide::detect());
        let (a, b) = (Content { tag: 1, word: 2 }, Content { tag: u64::MAX, word: u64::MAX - 1 });
        assert!(wide.replace(&line[1], Content::NOTHING, a));
        assert!(!wide.replace(&line[1], Content::NOTHING, b));
        assert!(!wide.replace(&line[1], Content { tag: 1, word: 3 }, b));
        assert!(!wide.replace(&line[1], Content { tag: 2, word: 2 }, b));
        assert!(wide.replace(&line[1], a, b));
        assert_eq!(wide.load_line(&line), [Content::NOTHING, b, Content::NOTHING, Content::NOTHING]);
    }

    #[test]
    fn halves_of_two_contents_are_never_seen_together() {
        let (line, wide, done) = (line(), Wide::detect(), AtomicBool::new(false));
        let rounds = if cfg!(miri) { 100 } else { 200_000 };
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut old = Content::NOTHING;
                for round in 1..=rounds {
                    let new = Content { tag: round, word: !round };
                    assert!(wide.replace(&line[2], old, new));
                    old = new;
                }
                done.store(true, Ordering::Release);
            });
            while !done.load(Ordering::Acquire) {
                let seen = wide.load_line(&line)[2];
                assert!(seen == Content::NOTHING || seen.word == !seen.tag, "{seen:?}");
            }
        });
    }
}

//! Byte strings with inline storage for short ones. A million small allocations cost an allocator more than the
//! rest of a decision.

/// A byte string of up to `N` inline bytes, or more on the heap.
#[derive(Clone)]
pub(crate) enum SmallBytes<const N: usize> {
    Inline { length: u8, bytes: [u8; N] },
    Heap(Box<[u8]>),
}

impl<const N: usize> SmallBytes<N> {
    /// The overhead of one allocation in bytes.
    const ALLOCATION: usize = 16;
    /// Fails the compilation if the length of `N` inline bytes does not fit in one byte.
    const FITS: () = assert!(N <= u8::MAX as usize, "the length is one byte");

    /// Copies the bytes: inline if they fit, else into one allocation.
    #[inline]
    pub(crate) fn new(from: &[u8]) -> SmallBytes<N> {
        let () = SmallBytes::<N>::FITS;
        let mut bytes = [0; N];
        match bytes.get_mut(..from.len()) {
            Some(inline) => {
                inline.copy_from_slice(from);
                SmallBytes::Inline { length: from.len() as u8, bytes }
            }
            None => SmallBytes::Heap(from.into()),
        }
    }

    /// Returns the bytes, inline or on the heap.
    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            SmallBytes::Inline { length, bytes } => &bytes[..usize::from(*length)],
            SmallBytes::Heap(bytes) => bytes,
        }
    }

    /// Returns the size of its heap memory in bytes.
    /// Zero for inline bytes. An allocation counts with the overhead of the allocator.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            SmallBytes::Inline { .. } => 0,
            SmallBytes::Heap(bytes) => bytes.len() + SmallBytes::<N>::ALLOCATION,
        }
    }
}

/// Escapes the bytes, because a key can be any bytes.
impl<const N: usize> std::fmt::Debug for SmallBytes<N> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "\"{}\"", self.as_bytes().escape_ascii())
    }
}

/// A buffer for bytes that are written piece by piece, on the stack up to `N` bytes.
#[derive(Clone, Debug)]
pub(crate) struct ByteWriter<const N: usize> {
    short: [u8; N],
    length: usize,
    /// All bytes, once they are more than `N`.
    long: Vec<u8>,
}

impl<const N: usize> ByteWriter<N> {
    /// Creates an empty buffer; nothing is allocated up to `N` bytes.
    #[inline]
    pub(crate) fn new() -> ByteWriter<N> {
        ByteWriter { short: [0; N], length: 0, long: Vec::new() }
    }

    /// Appends a piece. The piece that exceeds `N` bytes moves all earlier bytes to the heap.
    #[inline]
    pub(crate) fn write(&mut self, piece: &[u8]) {
        let end = self.length + piece.len();
        if self.long.is_empty() && end <= N {
            self.short[self.length..end].copy_from_slice(piece);
        } else {
            self.write_long(piece);
        }
        self.length = end;
    }

    /// Appends to the heap. It is not inlined, because almost all keys are short.
    #[cold]
    fn write_long(&mut self, piece: &[u8]) {
        if self.long.is_empty() {
            self.long.extend_from_slice(&self.short[..self.length]);
        }
        self.long.extend_from_slice(piece);
    }

    /// Returns the number of bytes written so far.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Returns the bytes as a value, without copying heap bytes again.
    #[inline]
    pub(crate) fn into_small(self) -> SmallBytes<N> {
        let () = SmallBytes::<N>::FITS;
        if self.long.is_empty() {
            SmallBytes::Inline { length: self.length as u8, bytes: self.short }
        } else {
            SmallBytes::Heap(self.long.into_boxed_slice())
        }
    }

    /// Returns the bytes written so far.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.long.is_empty() { &self.short[..self.length] } else { &self.long }
    }
}

/// Accepts formatted text, so that numbers become parts of a key without an allocation. It never fails.
impl<const N: usize> std::fmt::Write for ByteWriter<N> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.write(text.as_bytes());
        Ok(())
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_same_inline_and_on_the_heap() {
        assert_eq!((size_of::<SmallBytes<30>>(), size_of::<SmallBytes<38>>()), (32, 40));
        for length in 0..100 {
            let bytes: Vec<u8> = (0..length).collect();
            let small = SmallBytes::<30>::new(&bytes);
            assert_eq!(small.as_bytes(), bytes);
            assert_eq!(small.heap_bytes(), if length <= 30 { 0 } else { usize::from(length) + 16 });
        }
    }

    #[test]
    fn any_number_of_pieces_is_concatenated() {
        for pieces in 0..40 {
            let mut writer = ByteWriter::<16>::new();
            let mut expected = Vec::new();
            for piece in 0..pieces {
                writer.write(&[piece, piece]);
                expected.extend([piece, piece]);
            }
            assert_eq!((writer.bytes(), writer.len()), (&*expected, expected.len()));
            assert_eq!(writer.into_small().as_bytes(), expected);
        }
    }
}

//! The key of one state, encoded from parts so that different parts never produce the same key.
//!
//! Each part is preceded by its length:
//!
//! ```text
//! ("a:b", "c")  ->  3 a : b 1 c        ("a", "b:c")  ->  1 a 3 b : c
//! ```
//!
//! A separator could be smuggled inside a part; a length cannot. Any bytes may be a part, even an empty string.
//! Numbers and addresses are encoded as their usual text, so that a key does not depend on the type of its parts.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::sync::Arc;

use crate::small_bytes::{ByteWriter, SmallBytes};

/// The encoded bytes of a key.
///
/// ```
/// use tidegate::Key;
///
/// assert_ne!(Key::new(("a:b", "c")), Key::new(("a", "b:c")));
/// assert_eq!(Key::new((42_u64, "login")), Key::new(("42", "login"))); // a number is its decimal digits
/// ```
///
/// Limiters take the parts directly and encode them on the fly. Build a `Key` to use it many times, to store it, or to
/// put it into a map. Up to 38 bytes are stored inline, longer keys on the heap.
#[doc(alias("composite key", "identifier", "descriptor"))]
#[derive(Clone)]
pub struct Key(SmallBytes<SHORT>);

/// The longest key in bytes that needs no allocation: a UUID as text, or an address, fits.
const SHORT: usize = 38;

impl Key {
    /// Creates a key of one part (`"ana"`) or of several (`(ip, "login")`).
    ///
    /// The empty string is a valid key: one part without bytes.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a tuple of parts is written in place, and borrowed is a part too"
    )]
    pub fn new(parts: impl IntoKey) -> Key {
        let mut bytes = ByteWriter::<SHORT>::new();
        parts.each_part(&mut |part| encode(part, |piece| bytes.write(piece)));
        Key(bytes.into_small())
    }

    /// Creates a key of a list of parts whose number is known only at run time.
    ///
    /// An empty list is a key too, different from that of one empty part.
    ///
    /// ```
    /// use tidegate::Key;
    ///
    /// assert_eq!(Key::from_parts("users/ana/orders".split('/')), Key::new(("users", "ana", "orders")));
    /// assert_ne!(Key::from_parts([""; 0]), Key::new(""));
    /// ```
    pub fn from_parts<P: KeyPart>(parts: impl IntoIterator<Item = P>) -> Key {
        let mut bytes = ByteWriter::<SHORT>::new();
        for part in parts {
            part.with_bytes(&mut |part| encode(part, |piece| bytes.write(piece)));
        }
        Key(bytes.into_small())
    }

    /// Returns the key with these encoded bytes; `None` if they are not a valid encoding, as [`Key::as_bytes`]
    /// returns it.
    ///
    /// Only the shortest encoding of each length is valid, so different bytes are always different keys.
    ///
    /// ```
    /// use tidegate::Key;
    ///
    /// let key = Key::new(("ana", 7));
    /// assert_eq!(Key::from_bytes(key.as_bytes()), Some(key));
    /// assert_eq!(Key::from_bytes(b"ana"), None);
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Option<Key> {
        let key = Key(SmallBytes::new(bytes));
        let again = Key::new(&key);
        (again == key).then_some(again)
    }

    /// Returns the parts, in order.
    ///
    /// It copies each part, for display and logs. A number comes back as its decimal digits.
    pub fn parts(&self) -> Vec<Vec<u8>> {
        let mut parts = Vec::new();
        self.each_part(&mut |part| parts.push(part.to_vec()));
        parts
    }

    /// Returns the encoded bytes: each part, preceded by its length.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl PartialEq for Key {
    #[inline]
    fn eq(&self, other: &Key) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Orders keys by their encoded bytes: a total order, but not the alphabetical one, because lengths come first.
impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.as_bytes().hash(hasher);
    }
}

/// Escapes the encoded bytes, including the lengths.
impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Key({})", self.as_bytes().escape_ascii())
    }
}

/// A value that can be one part of a key.
///
/// Text, byte strings, integers, `bool`, `char` and IP addresses are parts, as are pointers to them. Floating-point
/// numbers are not: equal numbers can have different texts (`0.0`, `-0.0`).
///
/// A type of your own delegates to one of these:
///
/// ```
/// use tidegate::{Key, KeyPart};
///
/// struct UserId(u64);
///
/// impl KeyPart for UserId {
///     fn with_bytes(&self, use_bytes: &mut dyn FnMut(&[u8])) {
///         self.0.with_bytes(use_bytes);
///     }
/// }
///
/// assert_eq!(Key::new((UserId(7), "login")), Key::new(("7", "login")));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a part of a key",
    label = "neither text, bytes, a number nor an address",
    note = "parts are text, bytes, numbers and IP addresses; of a socket address take `.ip()`"
)]
pub trait KeyPart {
    /// Calls `use_bytes` exactly once, with the bytes of this part.
    fn with_bytes(&self, use_bytes: &mut dyn FnMut(&[u8]));

    /// Returns the same bytes, if they are already in memory.
    ///
    /// An optimization for parts that need no conversion. If it returns bytes, they must be those of
    /// [`KeyPart::with_bytes`].
    #[inline]
    fn bytes(&self) -> Option<&[u8]> {
        None
    }
}

/// A value that can be a key: one part, or a tuple of parts.
///
/// Prefer a tuple over a formatted string: it allocates nothing, and no part can imitate a separator.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a subject",
    note = "a key is one part or a tuple of up to six; parts are text, bytes, numbers and IP addresses"
)]
pub trait IntoKey {
    /// Calls `use_part` with the bytes of each part, in order.
    fn each_part(&self, use_part: &mut dyn FnMut(&[u8]));

    /// Returns the bytes of the only part, if there is just one and it is already in memory.
    #[inline]
    fn only_part(&self) -> Option<&[u8]> {
        None
    }
}

impl<P: KeyPart + ?Sized> IntoKey for P {
    #[inline]
    fn each_part(&self, use_part: &mut dyn FnMut(&[u8])) {
        self.with_bytes(use_part);
    }

    #[inline]
    fn only_part(&self) -> Option<&[u8]> {
        self.bytes()
    }
}

/// A prebuilt key is the same key as its parts.
impl IntoKey for Key {
    fn each_part(&self, use_part: &mut dyn FnMut(&[u8])) {
        let mut rest = self.as_bytes();
        while !rest.is_empty() {
            let (mut length, mut shift) = (0, 0);
            while let Some((group, more)) = rest.split_first() {
                rest = more;
                length |= usize::from(group & 0x7f).checked_shl(shift).unwrap_or(0);
                shift += 7;
                if group & 0x80 == 0 {
                    break;
                }
            }
            let (part, more) = rest.split_at(length.min(rest.len()));
            use_part(part);
            rest = more;
        }
    }
}

impl IntoKey for &Key {
    fn each_part(&self, use_part: &mut dyn FnMut(&[u8])) {
        (**self).each_part(use_part);
    }
}

/// Implements keys of several parts, in order.
macro_rules! key_of_tuples {
    ($(($($part:ident)+))+) => {$(
        impl<$($part: KeyPart),+> IntoKey for ($($part,)+) {
            #[expect(non_snake_case, reason = "the type parameters name the parts")]
            #[inline]
            fn each_part(&self, use_part: &mut dyn FnMut(&[u8])) {
                let ($($part,)+) = self;
                $($part.with_bytes(use_part);)+
            }
        }
    )+};
}

key_of_tuples! { (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) }

/// Implements parts whose bytes are already in memory.
macro_rules! part_of_bytes {
    ($($type:ty: $bytes:ident)+) => {$(
        impl KeyPart for $type {
            #[inline]
    fn with_bytes(&self, use_bytes: &mut dyn FnMut(&[u8])) {
                use_bytes(self.$bytes());
            }

            #[inline]
            fn bytes(&self) -> Option<&[u8]> {
                Some(self.$bytes())
            }
        }
    )+};
}

part_of_bytes! { str: as_bytes  String: as_bytes  [u8]: as_ref  Vec<u8>: as_slice }

/// Implements parts behind pointers: the same part as the value itself.
macro_rules! part_behind {
    ($($pointer:ty),+) => {$(
        impl<P: KeyPart + ?Sized> KeyPart for $pointer {
            #[inline]
    fn with_bytes(&self, use_bytes: &mut dyn FnMut(&[u8])) {
                (**self).with_bytes(use_bytes);
            }

            #[inline]
            fn bytes(&self) -> Option<&[u8]> {
                (**self).bytes()
            }
        }
    )+};
}

part_behind! { &P, Box<P>, Rc<P>, Arc<P> }

impl<P: KeyPart + ToOwned + ?Sized> KeyPart for Cow<'_, P> {
    #[inline]
    fn with_bytes(&self, use_bytes: &mut dyn FnMut(&[u8])) {
        (**self).with_bytes(use_bytes);
    }
}

/// Encodes in UTF-8, like a string of one character.
impl KeyPart for char {
    #[inline]
    fn with_bytes(&self, use_bytes: &mut dyn FnMut(&[u8])) {
        use_bytes(self.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// Encodes as the text `true` or `false`.
impl KeyPart for bool {
    #[inline]
    fn with_bytes(&self, use_bytes: &mut dyn FnMut(&[u8])) {
        use_bytes(if *self { b"true" } else { b"false" });
    }
}

impl<const N: usize> KeyPart for [u8; N] {
    #[inline]
    fn with_bytes(&self, use_bytes: &mut dyn FnMut(&[u8])) {
        use_bytes(self);
    }
}

/// Implements numbers, encoded as decimal digits. So a number and its text are the same part.
macro_rules! part_of_numbers {
    ($($number:ty)+) => {$(
        impl KeyPart for $number {
            #[inline]
    fn with_bytes(&self, use_bytes: &mut dyn FnMut(&[u8])) {
                written(self, use_bytes);
            }
        }
    )+};
}

part_of_numbers! { u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize }

impl KeyPart for Ipv4Addr {
    /// Formats the address like `Display`, but without `fmt`, which takes ten times as long.
    #[inline]
    fn with_bytes(&self, use_bytes: &mut dyn FnMut(&[u8])) {
        let (mut text, mut length) = ([b'.'; 15], 0);
        let mut put = |byte: u8| {
            text[length] = byte;
            length += 1;
        };
        for (place, octet) in self.octets().into_iter().enumerate() {
            if place > 0 {
                put(b'.');
            }
            if octet >= 100 {
                put(b'0' + octet / 100);
            }
            if octet >= 10 {
                put(b'0' + octet / 10 % 10);
            }
            put(b'0' + octet % 10);
        }
        use_bytes(&text[..length]);
    }
}

/// The whole address is used. Where one client can choose among the addresses of a prefix, usually a /64, make the
/// prefix the part.
impl KeyPart for Ipv6Addr {
    /// Encodes an IPv4-mapped IPv6 address as its IPv4 address, so that one client has one key.
    #[inline]
    fn with_bytes(&self, use_bytes: &mut dyn FnMut(&[u8])) {
        match self.to_ipv4_mapped() {
            Some(address) => address.with_bytes(use_bytes),
            None => written(self, use_bytes),
        }
    }
}

impl KeyPart for IpAddr {
    #[inline]
    fn with_bytes(&self, use_bytes: &mut dyn FnMut(&[u8])) {
        match self {
            IpAddr::V4(address) => address.with_bytes(use_bytes),
            IpAddr::V6(address) => address.with_bytes(use_bytes),
        }
    }
}

/// Formats a number or an address as text, without allocation. An IPv6 address has at most 39 characters, a 128-bit
/// number with its sign 40.
fn written(part: &impl fmt::Display, use_bytes: &mut dyn FnMut(&[u8])) {
    let mut text = ByteWriter::<40>::new();
    match write!(text, "{part}") {
        Ok(()) => use_bytes(text.bytes()),
        Err(fmt::Error) => unreachable!("numbers and addresses write what they are given"),
    }
}

/// Writes a part, preceded by its length in groups of seven bits, lowest first (LEB128). A part of up to 127 bytes
/// costs one more byte.
#[inline]
pub(crate) fn encode(part: &[u8], mut write: impl FnMut(&[u8])) {
    if part.len() < 0x80 {
        write(&[part.len() as u8]);
    } else {
        write_length(part.len(), &mut write);
    }
    write(part);
}

/// Writes the length of a part of 128 bytes or more.
#[cold]
fn write_length(mut length: usize, write: &mut dyn FnMut(&[u8])) {
    while length >= 0x80 {
        write(&[(length & 0x7f) as u8 | 0x80]);
        length >>= 7;
    }
    write(&[length as u8]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_it_is_displayed() {
        for octet in 0..=255 {
            let address = Ipv4Addr::new(octet, 255 - octet, 0, octet / 2);
            assert_eq!(Key::new(address), Key::new(address.to_string()));
        }
    }

    #[test]
    fn the_empty_key_the_empty_part_and_two_empty_parts_are_three_keys() {
        let none = Key::from_parts::<&str>([]);
        let one = Key::new("");
        let two = Key::new(("", ""));
        assert_eq!(none.as_bytes(), b"");
        assert_ne!(none, one);
        assert_ne!(one, two);
    }

    #[test]
    fn a_part_may_contain_bytes_that_look_like_a_length() {
        assert_ne!(Key::new(("a", "b")), Key::new("a\u{1}b"));
        assert_eq!(Key::new(("a", "b")).as_bytes(), b"\x01a\x01b");
        let long = vec![7_u8; 300];
        assert_eq!(&Key::new(&long).as_bytes()[..2], &[0xac, 0x02]);
        assert_eq!(Key::new([1_u8; 127]).as_bytes().len(), 128);
        assert_eq!(Key::new([1_u8; 128]).as_bytes().len(), 130);
    }

    #[test]
    fn an_address_is_one_key_however_it_is_written() {
        let v4: IpAddr = "192.0.2.7".parse().unwrap();
        let mapped: IpAddr = "::ffff:192.0.2.7".parse().unwrap();
        let v6: IpAddr = "2001:db8::1".parse().unwrap();
        assert_eq!(Key::new(v4), Key::new(mapped));
        assert_ne!(Key::new(v4), Key::new(v6));
        assert_eq!(Key::new(v4), Key::new("192.0.2.7"));
        assert_eq!(Key::new(v6), Key::new("2001:db8::1"));
        assert_ne!(Key::new("1234"), Key::new(Ipv4Addr::new(49, 50, 51, 52)));
        let longest: Ipv6Addr = "1111:2222:3333:4444:5555:6666:7777:8888".parse().unwrap();
        assert_eq!(Key::new(longest).as_bytes().len(), 40);
        assert_eq!(Key::new(i128::MIN).as_bytes().len(), 41);
    }

    #[test]
    fn a_prebuilt_key_equals_its_parts() {
        let long = "x".repeat(20_000);
        for parts in [vec![], vec![""], vec!["", ""], vec!["a", "", "b"], vec![&long, "c", &long[..127]]] {
            let key = Key::from_parts(&parts);
            let mut found = Vec::new();
            key.each_part(&mut |part| found.push(part.to_vec()));
            assert_eq!(found, parts.iter().map(|part| part.as_bytes().to_vec()).collect::<Vec<_>>());
            assert_eq!(Key::new(&key), key);
        }
    }

    #[test]
    fn encoded_bytes_are_a_key_and_others_are_none() {
        let long = "x".repeat(300);
        for parts in [vec![], vec![""], vec!["", ""], vec!["a", "bc"], vec![&long, "c"]] {
            let key = Key::from_parts(&parts);
            assert_eq!(Key::from_bytes(key.as_bytes()), Some(key.clone()));
            assert_eq!(key.parts().len(), parts.len());
        }
        for bytes in [&b"\x02a"[..], b"\x80", b"\x80\x00", b"\x81\x00a", b"a", &[0xff; 40]] {
            assert_eq!(Key::from_bytes(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn owned_borrowed_and_listed_parts_make_the_same_key() {
        let owned = Key::new((String::from("ana"), -3_i32));
        assert_eq!(owned, Key::new(("ana", "-3")));
        assert_eq!(owned, Key::from_parts(["ana", "-3"]));
        let shared: Arc<str> = "ana".into();
        assert_eq!(owned, Key::new((shared, Box::new(-3_i8))));
        assert_eq!(Key::new((Cow::Borrowed("a"), Rc::new('é'), true)), Key::new(("a", "é", "true")));
        assert_ne!(Key::new(true), Key::new(false));
        assert_eq!(format!("{owned:?}"), "Key(\\x03ana\\x02-3)");
    }
}

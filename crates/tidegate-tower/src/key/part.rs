//! One part of a key.
//!
//! A part is text, bytes, a number or an address. Types that are keys in the library convert into the same part here,
//! so a layer and a [`Limiter`](tidegate_core::Limiter) that share a zone count under the same key.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use http::HeaderValue;
use tidegate_rules::Grouping;

/// A part of a key, as an extractor found it in a request.
///
/// ```
/// use std::net::IpAddr;
///
/// use tidegate::tower::key::Part;
///
/// assert_eq!(Part::from("ana"), Part::from(String::from("ana")));
/// assert_eq!(Part::from(None::<&str>), Part::Missing);
/// let ip: IpAddr = [192, 0, 2, 7].into();
/// assert_eq!(Part::from(ip).address(), Some(ip));
/// ```
#[doc(alias = "key")]
#[doc(alias = "identifier")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part<'r> {
    /// Text or bytes.
    Bytes(Cow<'r, [u8]>),
    /// An address, counted under the network that the grouping specifies.
    Address(IpAddr, Grouping),
    /// A number, written in decimal.
    Number(u64),
    /// Nothing: the request is counted with all others in which this part is missing.
    Missing,
    /// Several values, of which the service may read any: the request is counted with all others in which this part is
    /// repeated. For rules that count by it, `on_repeated` applies.
    Repeated(Vec<Cow<'r, [u8]>>),
    /// No server has added the peer address, which is a mistake of the program: the reply is an error with that reason.
    NoPeer,
    /// The request is not limited.
    Skip,
    /// The request is denied.
    Refuse,
}

impl<'r> Part<'r> {
    /// Returns this part, or `instead` if it is missing.
    ///
    /// A repeated part is not missing: the extractor has its own setting for that.
    pub(super) fn or(self, instead: Part<'r>) -> Part<'r> {
        match self {
            Part::Missing | Part::NoPeer => instead,
            part => part,
        }
    }

    /// Returns this part with its bytes copied.
    ///
    /// A part that has to outlive the request needs it, such as one that an asynchronous extractor returns.
    pub fn into_owned(self) -> Part<'static> {
        match self {
            Part::Bytes(bytes) => Part::Bytes(Cow::Owned(bytes.into_owned())),
            Part::Address(ip, grouping) => Part::Address(ip, grouping),
            Part::Number(number) => Part::Number(number),
            Part::Missing => Part::Missing,
            Part::Repeated(values) => {
                Part::Repeated(values.into_iter().map(|value| Cow::Owned(value.into_owned())).collect())
            }
            Part::NoPeer => Part::NoPeer,
            Part::Skip => Part::Skip,
            Part::Refuse => Part::Refuse,
        }
    }

    /// Returns the address, if the part is one.
    ///
    /// It is the whole address, before any grouping.
    pub fn address(&self) -> Option<IpAddr> {
        match self {
            Part::Address(ip, _) => Some(*ip),
            _ => None,
        }
    }
}

/// `None` is a missing part.
impl<'r, P: Into<Part<'r>>> From<Option<P>> for Part<'r> {
    fn from(part: Option<P>) -> Part<'r> {
        part.map_or(Part::Missing, Into::into)
    }
}

macro_rules! part_borrowed {
    ($($type:ty, $as_bytes:ident;)+) => {$(
        impl<'r> From<&'r $type> for Part<'r> {
            fn from(part: &'r $type) -> Part<'r> {
                Part::Bytes(Cow::Borrowed(part.$as_bytes()))
            }
        }
    )+};
}

part_borrowed! { str, as_bytes; String, as_bytes; [u8], as_ref; Vec<u8>, as_slice; HeaderValue, as_bytes; }

impl<'r, const N: usize> From<&'r [u8; N]> for Part<'r> {
    fn from(bytes: &'r [u8; N]) -> Part<'r> {
        bytes.as_slice().into()
    }
}

impl From<String> for Part<'_> {
    fn from(text: String) -> Self {
        Part::Bytes(Cow::Owned(text.into_bytes()))
    }
}

impl From<Vec<u8>> for Part<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Part::Bytes(Cow::Owned(bytes))
    }
}

impl<'r> From<Cow<'r, [u8]>> for Part<'r> {
    fn from(bytes: Cow<'r, [u8]>) -> Part<'r> {
        Part::Bytes(bytes)
    }
}

impl<'r> From<Cow<'r, str>> for Part<'r> {
    fn from(text: Cow<'r, str>) -> Part<'r> {
        match text {
            Cow::Borrowed(text) => text.into(),
            Cow::Owned(text) => text.into(),
        }
    }
}

impl<const N: usize> From<[u8; N]> for Part<'_> {
    fn from(bytes: [u8; N]) -> Self {
        bytes.to_vec().into()
    }
}

macro_rules! part_behind {
    ($($pointer:ty)+) => {$(
        impl From<$pointer> for Part<'_> {
            fn from(behind: $pointer) -> Self {
                let bytes: &[u8] = (*behind).as_ref();
                bytes.to_vec().into()
            }
        }
    )+};
}

part_behind! { Box<str> Box<[u8]> Rc<str> Rc<[u8]> Arc<str> Arc<[u8]> Arc<String> }

impl From<char> for Part<'_> {
    fn from(letter: char) -> Self {
        letter.to_string().into()
    }
}

/// The text `true` or `false`.
impl From<bool> for Part<'_> {
    fn from(is_so: bool) -> Self {
        Part::Bytes(Cow::Borrowed(if is_so { b"true" } else { b"false" }))
    }
}

impl From<IpAddr> for Part<'_> {
    fn from(ip: IpAddr) -> Self {
        Part::Address(ip, Grouping::default())
    }
}

impl From<Ipv4Addr> for Part<'_> {
    fn from(ip: Ipv4Addr) -> Self {
        IpAddr::V4(ip).into()
    }
}

impl From<Ipv6Addr> for Part<'_> {
    fn from(ip: Ipv6Addr) -> Self {
        IpAddr::V6(ip).into()
    }
}

/// The address without its port, which changes with every connection.
impl From<SocketAddr> for Part<'_> {
    fn from(address: SocketAddr) -> Self {
        address.ip().into()
    }
}

macro_rules! part_of_numbers {
    ($($number:ty)+) => {$(
        impl From<$number> for Part<'_> {
            fn from(number: $number) -> Self {
                Part::Number(number.into())
            }
        }
    )+};
}

part_of_numbers! { u8 u16 u32 u64 }

macro_rules! part_of_other_numbers {
    ($($number:ty)+) => {$(
        /// The decimal digits, also of numbers that are negative or do not fit `u64`.
        impl From<$number> for Part<'_> {
            fn from(number: $number) -> Self {
                match u64::try_from(number) {
                    Ok(number) => Part::Number(number),
                    Err(_) => number.to_string().into(),
                }
            }
        }
    )+};
}

part_of_other_numbers! { u128 usize i8 i16 i32 i64 i128 isize }

#[cfg(test)]
mod tests {
    use tidegate_core::{IntoKey, Key};

    use super::super::Parts;
    use super::*;

    fn is_the_same<P: Into<Part<'static>> + IntoKey + Clone>(part: P) {
        assert_eq!(Parts::one(part.clone()).key(), Key::new(part));
    }

    #[test]
    fn whatever_is_a_part_of_a_key_in_the_library_is_the_same_part_here() {
        for number in [i64::MIN, -1, 0, 7, i64::MAX] {
            is_the_same(number);
            is_the_same(i128::from(number) * 5);
            is_the_same(number as i8);
            is_the_same(number as i16);
            is_the_same(number as i32);
            is_the_same(number as isize);
            is_the_same(number as usize);
            is_the_same(number as u128);
        }
        is_the_same(u128::MAX);
        for letter in ['a', '\u{e4}', '\u{1f980}'] {
            is_the_same(letter);
        }
        for is_so in [true, false] {
            is_the_same(is_so);
        }
        is_the_same(Arc::<str>::from("ana"));
        is_the_same(Arc::new(String::from("ana")));
        is_the_same(Arc::<[u8]>::from(&b"ana"[..]));
        is_the_same(Rc::<str>::from("ana"));
        is_the_same(Rc::<[u8]>::from(&b"ana"[..]));
        is_the_same(Box::<str>::from("ana"));
        is_the_same(Box::<[u8]>::from(&b"ana"[..]));
        is_the_same(Cow::Borrowed("ana"));
        is_the_same(Cow::<str>::Owned(String::from("ana")));
        is_the_same(*b"sixteen bytes id");
        is_the_same(b"ana");
        let (text, bytes) = (String::from("ana"), b"ana".to_vec());
        assert_eq!((Part::from(&text), Part::from(&bytes)), ("ana".into(), "ana".into()));
    }
}

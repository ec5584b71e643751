//! A request as a caller describes it: attributes by name, cost, and max wait.
//!
//! Attributes are `ip`, `path`, `method`, `host`, `user`, `header.NAME`, `cookie.NAME`, `query.NAME`, and any other
//! name that a rule uses. A value is text, a list of texts where a request has several, or null for a request without
//! it.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use tidegate_rules::Attributes;

use super::json::{Milliseconds, Units};
use crate::attribute::{self, AddressPrefix, Wrong};
use crate::settings::{MAX_ATTRIBUTES, MAX_KEY_BYTES};

/// An example of the body of `/v1/admit` and `/v1/explain`.
pub(super) const EXAMPLE: &str = r#"{"attributes":{"ip":"192.0.2.7","path":"/api/x"}}"#;

/// The body of `/v1/admit` and `/v1/explain`.
///
/// ```text
/// {"attributes": {"ip": "192.0.2.7", "path": "/login", "header.accept": ["text/html", "*/*"]},
///  "cost": 2, "max_wait_ms": 500}
/// ```
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request<'a> {
    /// The attributes by name.
    #[serde(borrow)]
    attributes: Named<'a>,
    /// The cost of the request, which the cost of a rule multiplies.
    #[serde(default)]
    cost: Units,
    /// The longest acceptable delay; the rule's own if it is missing.
    #[serde(default)]
    max_wait_ms: Option<Milliseconds>,
}

impl<'a> Request<'a> {
    /// Returns the request in the form that rules decide about.
    pub(super) fn into_attributes(self) -> Attributes<'a> {
        let attributes = self.attributes.0.cost(self.cost.0);
        match self.max_wait_ms {
            Some(longest) => attributes.max_wait(longest.0),
            None => attributes,
        }
    }
}

/// Attributes, each name once; an array has several values of a name.
///
/// At most [`MAX_ATTRIBUTES`] names, and [`MAX_KEY_BYTES`] bytes of names and values together. A name that occurs
/// twice is an error with a remedy, since JSON parsers disagree about which one counts.
#[derive(Debug, Default)]
pub(super) struct Named<'a>(pub(super) Attributes<'a>);

/// A key of a rule by its parts. The value of `ip` may also be a group of addresses as lists show it: `2001:db8::/64`.
#[derive(Debug, Default)]
pub(super) struct NamedParts<'a> {
    /// The parts, with an address in place of a group.
    pub(super) parts: Named<'a>,
    /// The group of addresses.
    pub(super) group: Option<AddressPrefix>,
}

/// Text that is copied only if it contains escapes.
#[derive(Deserialize)]
struct JsonText<'a>(#[serde(borrow)] Cow<'a, str>);

/// The visitor of an object of attributes. It bounds their number, and the bytes of all together.
struct Names;

impl<'de> Visitor<'de> for Names {
    type Value = Named<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object of texts such as {\"ip\":\"192.0.2.7\"}")
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Named<'de>, M::Error> {
        names(map, |_| None).map(Named)
    }
}

/// The visitor of an object of the parts of a key.
struct KeyNames;

impl<'de> Visitor<'de> for KeyNames {
    type Value = NamedParts<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Names.expecting(out)
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<NamedParts<'de>, M::Error> {
        let mut group = None;
        let parts = names(map, |text| {
            group = AddressPrefix::parse(text);
            group.map(|group| group.address)
        })?;
        Ok(NamedParts { parts: Named(parts), group })
    }
}

/// Reads attributes. `address_of` returns the address to use for a value of `ip` that is none.
fn names<'de, M: MapAccess<'de>>(
    mut map: M,
    mut address_of: impl FnMut(&str) -> Option<IpAddr>,
) -> Result<Attributes<'de>, M::Error> {
    let (mut attributes, mut bytes, mut absent) = (Attributes::new(), 0, Vec::new());
    for count in 1.. {
        let Some(JsonText(name)) = map.next_key()? else { break };
        if count > MAX_ATTRIBUTES {
            return Err(M::Error::custom(format!(
                "a request has at most {MAX_ATTRIBUTES} attributes; leave out what no rule looks at"
            )));
        }
        let values: Option<Values<'_>> = map.next_value()?;
        let Some(mut values) = values else {
            // A second occurrence is an error also of an attribute that the request does not have.
            check_once(&attributes, &absent, &name).map_err(M::Error::custom)?;
            absent.push(name);
            continue;
        };
        check_absent(&absent, &name).map_err(M::Error::custom)?;
        if let ("ip", Values::One(text)) = (&*name, &values)
            && let Some(address) = address_of(text)
        {
            values = Values::One(address.to_string().into());
        }
        bytes += name.len() + values.bytes();
        if bytes > MAX_KEY_BYTES {
            return Err(M::Error::custom(format!(
                "the attributes have more than {MAX_KEY_BYTES} bytes; send a hash of what is long"
            )));
        }
        values.put(&mut attributes, &name).map_err(M::Error::custom)?;
    }
    Ok(attributes)
}

/// Returns an error if a name occurred before, with a value or with null.
fn check_once(attributes: &Attributes<'_>, absent: &[Cow<'_, str>], name: &str) -> Result<(), String> {
    if attributes.has(name) { Err(at_attribute(name, Wrong::Twice)) } else { check_absent(absent, name) }
}

/// Returns an error if a name occurred before with null.
fn check_absent(absent: &[Cow<'_, str>], name: &str) -> Result<(), String> {
    if absent.iter().any(|other| other == name) { Err(at_attribute(name, Wrong::Twice)) } else { Ok(()) }
}

/// Returns the error about an attribute. It starts with its name.
#[cold]
fn at_attribute(name: &str, wrong: Wrong) -> String {
    let shown: String = name.chars().take(MAX_SHOWN).collect();
    format!("attribute {shown:?} {wrong}")
}

/// The maximum number of characters of a name that an error repeats.
const MAX_SHOWN: usize = 128;
/// The maximum number of values of one name.
/// A longer list is an error.
const MAX_VALUES: usize = 64;

/// The value or values of a name.
enum Values<'a> {
    /// A text.
    One(Cow<'a, str>),
    /// A list of texts, which may be empty.
    Several(Vec<JsonText<'a>>),
}

impl<'a> Values<'a> {
    /// Returns the bytes of all values.
    fn bytes(&self) -> usize {
        match self {
            Values::One(value) => value.len(),
            Values::Several(values) => values.iter().map(|JsonText(value)| value.len()).sum(),
        }
    }

    /// Inserts the values under a name. The error starts with the name.
    #[expect(clippy::ptr_arg, reason = "a name that is borrowed is not copied for each of its values")]
    fn put(self, attributes: &mut Attributes<'a>, name: &Cow<'a, str>) -> Result<(), String> {
        let put = match self {
            _ if attributes.has(name) && attribute::may_repeat(name) => Err(Wrong::NoList),
            _ if attributes.has(name) => Err(Wrong::Twice),
            Values::One(value) => attribute::put(attributes, name.clone(), value),
            Values::Several(values) => values
                .into_iter()
                .try_for_each(|JsonText(value)| attribute::add(attributes, name.clone(), value)),
        };
        put.map_err(|wrong| at_attribute(name, wrong))
    }
}

/// The visitor of a value.
struct TextOrList;

impl<'de> Visitor<'de> for TextOrList {
    type Value = Values<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a text, or a list of texts where a request has several")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Values<'de>, E> {
        Ok(Values::One(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Values<'de>, E> {
        Ok(Values::One(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Values<'de>, S::Error> {
        let mut values = Vec::new();
        while let Some(text) = list.next_element()? {
            if values.len() == MAX_VALUES {
                return Err(S::Error::custom(format!("an attribute has at most {MAX_VALUES} values")));
            }
            values.push(text);
        }
        Ok(Values::Several(values))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Values<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Values<'a>, D::Error> {
        from.deserialize_any(TextOrList)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Named<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Named<'a>, D::Error> {
        from.deserialize_map(Names)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for NamedParts<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<NamedParts<'a>, D::Error> {
        from.deserialize_map(KeyNames)
    }
}

/// A JSON object. serde would also accept an array of the values.
///
/// Used for the members of a list, where [`json::read_like`](super::json::read_like) cannot check the first byte.
#[derive(Debug)]
pub(super) struct Object<T>(pub(super) T);

/// The visitor of an object.
struct Members<T>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
    type Value = Object<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object such as ")?;
        out.write_str(EXAMPLE)
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Object<T>, M::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Object<T>, D::Error> {
        from.deserialize_map(Members(std::marker::PhantomData))
    }
}

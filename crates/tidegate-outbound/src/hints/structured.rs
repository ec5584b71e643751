//! Structured fields (RFC 9651): lists, dictionaries and their members.
//!
//! The whole grammar is parsed strictly, so that a field is either valid or ignored. Only names, numbers and integer
//! parameters are stored, because limits are reported by these. The text is borrowed.

use super::base64;

/// A value without its parameters. Of values that are not used only the kind is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bare<'a> {
    Integer(i64),
    /// The text between the quotes, with its escapes: two texts are the same name if these bytes are equal.
    String(&'a [u8]),
    Token(&'a [u8]),
    Other,
}

/// A member of a list or dictionary: its value and its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member<'a> {
    /// `None` for an inner list.
    pub(super) value: Option<Bare<'a>>,
    parameters: Vec<(&'a [u8], Bare<'a>)>,
}

impl<'a> Member<'a> {
    /// Returns the parameter of this name, if it is an integer.
    pub(super) fn integer(&self, name: &str) -> Option<i64> {
        let (_, value) = self.parameters.iter().rev().find(|(key, _)| *key == name.as_bytes())?;
        value.integer()
    }

    /// Returns true if there is a parameter of this name, of any kind.
    pub(super) fn has(&self, name: &str) -> bool {
        self.parameters.iter().any(|(key, _)| *key == name.as_bytes())
    }

    /// Returns the value, if it is a name.
    pub(super) fn name(&self) -> Option<&'a [u8]> {
        match self.value? {
            Bare::String(name) | Bare::Token(name) => Some(name),
            Bare::Integer(_) | Bare::Other => None,
        }
    }
}

impl Bare<'_> {
    pub(super) fn integer(self) -> Option<i64> {
        if let Bare::Integer(number) = self { Some(number) } else { None }
    }
}

/// Returns the members of a list; `None` if the text is not a list.
pub(super) fn list(text: &[u8]) -> Option<Vec<Member<'_>>> {
    members(text, Reader::member)
}

/// Returns the members of a dictionary with their keys, in which a later member replaces an earlier one of the same
/// key; `None` if the text is not a dictionary.
pub(super) fn dictionary(text: &[u8]) -> Option<Vec<(&[u8], Member<'_>)>> {
    members(text, |reader| {
        let key = reader.key()?;
        if reader.eat(b'=') {
            return Some((key, reader.member()?));
        }
        Some((key, Member { value: Some(Bare::Other), parameters: reader.parameters()? }))
    })
}

fn members<'a, T>(text: &'a [u8], one: impl Fn(&mut Reader<'a>) -> Option<T>) -> Option<Vec<T>> {
    let mut reader = Reader { text };
    reader.skip(|byte| byte == b' ');
    let mut members = Vec::new();
    while !reader.text.is_empty() {
        members.push(one(&mut reader)?);
        reader.skip(|byte| byte == b' ' || byte == b'\t');
        if reader.text.is_empty() {
            break;
        }
        if !reader.eat(b',') {
            return None;
        }
        reader.skip(|byte| byte == b' ' || byte == b'\t');
        if reader.text.is_empty() {
            return None;
        }
    }
    Some(members)
}

/// The text that is not parsed yet.
struct Reader<'a> {
    text: &'a [u8],
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.first().copied()
    }

    fn eat(&mut self, wanted: u8) -> bool {
        let is_there = self.peek() == Some(wanted);
        if is_there {
            self.text = &self.text[1..];
        }
        is_there
    }

    fn skip(&mut self, of: impl Fn(u8) -> bool) {
        self.take_while(of);
    }

    fn take_while(&mut self, of: impl Fn(u8) -> bool) -> &'a [u8] {
        let length = self.text.iter().take_while(|byte| of(**byte)).count();
        self.take(length)
    }

    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, left) = self.text.split_at(length);
        self.text = left;
        taken
    }

    fn member(&mut self) -> Option<Member<'a>> {
        let value = if self.eat(b'(') {
            self.inner_list()?;
            None
        } else {
            Some(self.bare()?)
        };
        Some(Member { value, parameters: self.parameters()? })
    }

    /// Parses the rest of an inner list, which is validated and not stored.
    fn inner_list(&mut self) -> Option<()> {
        loop {
            self.skip(|byte| byte == b' ');
            if self.eat(b')') {
                return Some(());
            }
            self.bare()?;
            self.parameters()?;
            if !matches!(self.peek(), Some(b' ' | b')')) {
                return None;
            }
        }
    }

    fn parameters(&mut self) -> Option<Vec<(&'a [u8], Bare<'a>)>> {
        let mut parameters = Vec::new();
        while self.eat(b';') {
            self.skip(|byte| byte == b' ');
            let key = self.key()?;
            let value = if self.eat(b'=') { self.bare()? } else { Bare::Other };
            parameters.push((key, value));
        }
        Some(parameters)
    }

    fn key(&mut self) -> Option<&'a [u8]> {
        let first = self.peek()?;
        if !first.is_ascii_lowercase() && first != b'*' {
            return None;
        }
        Some(
            self.take_while(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte)
            }),
        )
    }

    fn bare(&mut self) -> Option<Bare<'a>> {
        match self.peek()? {
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.string(),
            b'*' | b'a'..=b'z' | b'A'..=b'Z' => Some(Bare::Token(self.take_while(is_token))),
            b':' => self.bytes(),
            b'?' => {
                self.take(1);
                (self.eat(b'0') || self.eat(b'1')).then_some(Bare::Other)
            }
            b'@' => {
                self.take(1);
                matches!(self.number()?, Bare::Integer(_)).then_some(Bare::Other)
            }
            b'%' => self.display_string(),
            _ => None,
        }
    }

    /// Parses an integer of up to fifteen digits, or a decimal of up to twelve and three.
    fn number(&mut self) -> Option<Bare<'a>> {
        let is_negative = self.eat(b'-');
        let whole = self.take_while(|byte| byte.is_ascii_digit());
        if whole.is_empty() || whole.len() > 15 {
            return None;
        }
        if self.eat(b'.') {
            let fraction = self.take_while(|byte| byte.is_ascii_digit());
            let fits = whole.len() <= 12 && (1..=3).contains(&fraction.len());
            return fits.then_some(Bare::Other);
        }
        let number = whole.iter().fold(0_i64, |number, digit| number * 10 + i64::from(digit - b'0'));
        Some(Bare::Integer(if is_negative { -number } else { number }))
    }

    fn string(&mut self) -> Option<Bare<'a>> {
        self.take(1);
        let whole = self.text;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => {
                    self.take(1);
                    if !matches!(self.peek()?, b'"' | b'\\') {
                        return None;
                    }
                }
                b' '..=b'~' => {}
                _ => return None,
            }
            self.take(1);
        }
        let text = &whole[..whole.len() - self.text.len()];
        self.take(1);
        Some(Bare::String(text))
    }

    fn bytes(&mut self) -> Option<Bare<'a>> {
        self.take(1);
        let text = self.take_while(|byte| byte != b':');
        base64::decode(text)?;
        self.eat(b':').then_some(Bare::Other)
    }

    /// Parses a text in which special characters are written as `%` and two lower-case hexadecimal digits.
    fn display_string(&mut self) -> Option<Bare<'a>> {
        self.take(1);
        if !self.eat(b'"') {
            return None;
        }
        let mut text = Vec::new();
        loop {
            let byte = self.peek()?;
            self.take(1);
            match byte {
                b'"' => break,
                b'%' => {
                    let high = hexadecimal(self.peek()?)?;
                    self.take(1);
                    let low = hexadecimal(self.peek()?)?;
                    self.take(1);
                    text.push(high << 4 | low);
                }
                b' '..=b'~' => text.push(byte),
                _ => return None,
            }
        }
        std::str::from_utf8(&text).ok().map(|_| Bare::Other)
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte)
}

fn hexadecimal(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

//! Validation of the conditions and the key of a rule.
//!
//! Both name attributes. A name is checked for its syntax, for the case of well-known names and for words that look
//! like operators, such as `not.path`. Frontends and callers define attributes of their own, so any other name is
//! accepted, unless the policy declares its attributes. An attribute that no frontend provides is missing in every
//! request.

use tidegate_support::nearest;

use super::super::written::{ConditionText, PatternText, RuleText, Written};
use super::choice::{MISSING, REPEATED, shortened};
use super::{MAX_LIKE, MAX_NAME_BYTES, Valid};
use crate::attributes::canonical;
use crate::condition::{Condition, Pattern, read_pattern};
use crate::key::{Grouping, KeyParts, MAX_PARTS, Part};
use crate::normalized::is_well_known;

/// The maximum number of conditions of a rule.
///
/// More conditions are certainly a mistake; each one costs time in every request that gets that far.
const MAX_CONDITIONS: usize = 16;
/// The maximum number of declared attributes.
const MAX_DECLARED: usize = 1000;
/// The attributes that frontends provide, and the prefixes of further ones.
///
/// Only the case of these is checked. `Path` would be an attribute that no frontend sets.
const WELL_KNOWN: [&str; 7] = ["ip", "path", "method", "host", "header.", "cookie.", "query."];

impl Valid<'_> {
    /// Validates the conditions of a rule. `header.X` and `header.x` are one attribute, which may occur once; several
    /// values are a list.
    ///
    /// Invalid patterns are left out, and the condition is kept, so that the attribute is known to later checks.
    pub(super) fn conditions(&mut self, of: &str, texts: &[ConditionText]) -> Box<[Condition]> {
        if let Some(ConditionText { attribute, .. }) = texts.get(MAX_CONDITIONS) {
            self.complain(
                &attribute.span,
                format!("{of}: has more than {MAX_CONDITIONS} conditions; use fewer"),
            );
        }
        let mut conditions = Vec::new();
        for ConditionText { attribute, any_of } in texts.iter().take(MAX_CONDITIONS) {
            self.attribute(of, attribute);
            let name = canonical(attribute.value.as_str().into());
            let patterns: Vec<_> = any_of.iter().filter_map(|pattern| self.pattern(&name, pattern)).collect();
            if conditions.iter().any(|known: &Condition| known.attribute() == name) {
                let what = format!("{name}: is there twice; write one list of all that will do");
                self.complain(&attribute.span, what);
            }
            let slot = self.slots.of(&name);
            conditions.push(Condition::new(&name, slot, patterns));
        }
        conditions.into()
    }

    /// Returns one pattern of a condition; `None` if it is invalid, which is reported.
    fn pattern(&mut self, attribute: &str, written: &Written<PatternText>) -> Option<Pattern> {
        let text = match &written.value {
            PatternText::Text(text) => text,
            PatternText::Present => return Some(Pattern::Present),
            PatternText::Missing => return Some(Pattern::Missing),
        };
        let pattern = read_pattern(attribute, text);
        pattern
            .map_err(|what| {
                self.complain(&written.span, format!("{attribute} {:?}: {what}", shortened(text)));
            })
            .ok()
    }

    /// Validates the key of a rule: its parts, the prefix lengths, and the behavior for missing and repeated parts.
    ///
    /// An empty key is valid: the rule then counts all of its requests together.
    pub(super) fn key(&mut self, text: &RuleText) -> Option<KeyParts> {
        let on_missing = self.choice("on_missing", text.on_missing.as_ref(), &MISSING);
        let on_repeated = self.choice("on_repeated", text.on_repeated.as_ref(), &REPEATED);
        let usual = Grouping::default();
        let ipv4_bits = self.bits("ipv4_prefix", text.ipv4_prefix.as_ref(), usual.ipv4_bits, 32);
        let ipv6_bits = self.bits("ipv6_prefix", text.ipv6_prefix.as_ref(), usual.ipv6_bits, 128);
        let written = text.key.as_deref().unwrap_or_default();
        if let Some(beyond) = written.get(MAX_PARTS) {
            self.complain(&beyond.span, format!("key: has more than {MAX_PARTS} parts; use fewer"));
        }
        let mut parts: Vec<Part> = Vec::new();
        for name in written.iter().take(MAX_PARTS) {
            self.attribute("key", name);
            let canonical = canonical(name.value.as_str().into());
            if parts.iter().any(|part| *part.name == *canonical) {
                self.complain(
                    &name.span,
                    format!("key {:?}: is there twice; leave one of them out", name.value),
                );
            }
            parts.push(Part { name: (*canonical).into(), slot: self.slots.of(&canonical) });
        }
        let grouping = Grouping { ipv4_bits: ipv4_bits?, ipv6_bits: ipv6_bits? };
        Some(KeyParts { parts: parts.into(), grouping, on_missing: on_missing?, on_repeated: on_repeated? })
    }

    /// Validates the attributes that are trusted. Only a part of the key and the attribute of a condition can be
    /// trusted. They are compared in the canonical form, so `header.X-User` is `header.x-user`.
    pub(super) fn trusted(&mut self, text: &RuleText) -> Box<[Box<str>]> {
        let Some(written) = text.trusted.as_deref() else { return Box::default() };
        let parts = text.key.iter().flatten().take(MAX_PARTS);
        let conditions = text.when.iter().chain(&text.unless).map(|condition| &condition.attribute);
        let used: Vec<_> =
            parts.chain(conditions).map(|name| canonical(name.value.as_str().into())).collect();
        let is_used = |attribute: &str| used.iter().any(|name| *name == attribute);
        let mut trusted = Vec::new();
        if let Some(beyond) = written.get(MAX_PARTS) {
            self.complain(&beyond.span, format!("trusted: has more than {MAX_PARTS} parts; use fewer"));
        }
        for name in written.iter().take(MAX_PARTS) {
            let attribute = canonical(name.value.as_str().into());
            if !is_used(&attribute) {
                let what = format!(
                    "trusted {:?}: is no part of the key and in no condition of the rule; name one that is",
                    name.value
                );
                self.complain(&name.span, what);
            }
            self.declared("trusted", name);
            trusted.push((*attribute).into());
        }
        trusted.into()
    }

    /// Validates the name of an attribute.
    ///
    /// The length is limited because names appear in replies, metrics and messages.
    pub(super) fn attribute(&mut self, of: &str, name: &Written<String>) {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        let what = match &*name.value {
            "" => "is empty; name an attribute such as \"ip\" or \"user\"".to_owned(),
            long if long.len() > MAX_NAME_BYTES => {
                format!("has {} bytes; write at most {MAX_NAME_BYTES}", long.len())
            }
            odd if !odd.bytes().all(is_plain) => {
                "is no attribute; their names have letters, digits, _ - and . only, as in \"header.user-agent\""
                    .to_owned()
            }
            "header." => "does not say which header; write something like \"header.x-api-key\"".to_owned(),
            "cookie." => "does not say which cookie; write something like \"cookie.session\"".to_owned(),
            "query." => "does not say which part of the query; write something like \"query.id\"".to_owned(),
            other => match (in_lower_case(other), operator(other).filter(|_| ["when", "unless"].contains(&of))) {
                (Some(known), _) => format!("is written in lower case; write {known:?}"),
                (None, Some(what)) => what,
                (None, None) => return self.declared(of, name),
            },
        };
        self.complain(&name.span, format!("{of} {:?}: {what}", shortened(&name.value)));
    }

    /// Reports an attribute that is neither well known nor declared, if the policy declares attributes.
    fn declared(&mut self, of: &str, name: &Written<String>) {
        let canonical = canonical(name.value.as_str().into());
        let Some(declared) = self.declared.as_ref().filter(|_| !is_well_known(&canonical)) else { return };
        if declared.iter().any(|known| **known == *canonical) {
            return;
        }
        self.suggestions += 1;
        let known = declared.iter().map(|name| &**name).chain(WELL_KNOWN);
        let near = (self.suggestions <= MAX_LIKE).then(|| nearest(&canonical, known)).flatten();
        let remedy = match near {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("write it there, as in names = [{:?}], if requests have it", name.value),
        };
        self.complain(
            &name.span,
            format!("{of} {:?}: is not declared in [attributes]; {remedy}", shortened(&name.value)),
        );
    }

    /// Validates the names that `[attributes]` declares.
    pub(super) fn declarations(&mut self, names: &[Written<String>]) {
        if let Some(beyond) = names.get(MAX_DECLARED) {
            self.complain(&beyond.span, format!("names: has more than {MAX_DECLARED} attributes; use fewer"));
        }
        let mut declared: Vec<Box<str>> = Vec::new();
        for name in names.iter().take(MAX_DECLARED) {
            self.attribute("names", name);
            let canonical = canonical(name.value.as_str().into());
            if declared.iter().any(|known| **known == *canonical) {
                self.complain(
                    &name.span,
                    format!("names {:?}: is there twice; leave one of them out", name.value),
                );
            }
            self.slots.declare(&canonical);
            declared.push((*canonical).into());
        }
        self.declared = Some(declared);
    }

    /// Validates a prefix length of 1 to `most`. Zero would count all addresses as one; leave `ip` out of the key for
    /// that.
    pub(super) fn bits(
        &mut self,
        name: &str,
        written: Option<&Written<u64>>,
        usual: u8,
        most: u8,
    ) -> Option<u8> {
        let Some(written) = written else { return Some(usual) };
        let bits = u8::try_from(written.value).ok().filter(|bits| (1..=most).contains(bits));
        if bits.is_none() {
            let what = format!(
                "{name} {}: is out of range; write 1 to {most}, or leave it out for {usual}",
                written.value
            );
            self.complain(&written.span, what);
        }
        bits
    }
}

/// Returns the error for an attribute that is meant to negate or join conditions, such as `not` or `or.path`.
///
/// Such a condition would be about an attribute that does not exist, so the rule would never apply.
fn operator(name: &str) -> Option<String> {
    let (first, rest) = name.split_once('.').map_or((name, None), |(first, rest)| (first, Some(rest)));
    let what = match (first, rest) {
        ("not", _) | ("none" | "unless" | "except", Some(_)) => {
            let attribute = rest.unwrap_or("user");
            return Some(format!(
                "conditions are negated by a field of its own beside when; write unless = {{ {attribute} = … }}"
            ));
        }
        ("or" | "any", Some(_)) => {
            "conditions cannot be joined by \"or\"; write a list of values, or two rules"
        }
        ("and" | "all", Some(_)) => {
            "a request has to meet all conditions of a rule; write them beside each other"
        }
        _ => return None,
    };
    Some(what.to_owned())
}

/// Returns the correct spelling of a well-known attribute that is written in another case.
fn in_lower_case(name: &str) -> Option<String> {
    let end = name.find('.').map_or(name.len(), |dot| dot + 1);
    let (first, rest) = name.split_at(end);
    let known = WELL_KNOWN.iter().find(|known| known.eq_ignore_ascii_case(first) && **known != first)?;
    Some(format!("{known}{rest}"))
}

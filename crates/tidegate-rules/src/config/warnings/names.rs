//! Warnings about attributes that a client controls, and about misspelled header fields.

use tidegate_support::Complaint;

use super::super::written::RuleText;
use crate::key::OnMissing;
use crate::rule::Limited;

/// The prefixes of attributes that a client can set to any value.
///
/// The address is not among them: the server takes it from the connection, or from trusted proxies.
const FORGED: [&str; 3] = ["header.", "cookie.", "query."];

/// Header fields that are often used as keys, in addition to those with the prefix `x-`.
const HEADERS: [&str; 5] = ["authorization", "user-agent", "referer", "accept-language", "cf-connecting-ip"];

/// Returns warnings about names of header fields that are written without the prefix `header.`.
pub(super) fn header_names(text: &RuleText) -> impl Iterator<Item = Complaint> {
    let in_key = text.key.iter().flatten().map(|name| ("key", name));
    let in_when = text.when.iter().map(|(name, _)| ("when", name));
    let named = in_when.chain(in_key).filter(|(_, name)| is_header_name(&name.value));
    named.map(|(of, name)| {
        let field = format!("header.{}", name.value.to_ascii_lowercase());
        let what = format!(
            "{of} {:?}: is an attribute of its own, and no header field; write {field:?} for the field",
            name.value
        );
        Complaint::at(name.span.clone(), what)
    })
}

/// Returns true if a name looks like that of a header field: `X-Api-Key`, `x-api-key`, `Api-Key`, `authorization`.
fn is_header_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_capitalized = |word: &str| word.starts_with(|letter: char| letter.is_ascii_uppercase());
    lower.starts_with("x-")
        || HEADERS.contains(&&*lower)
        || name.contains('-') && !name.contains('.') && name.split('-').all(is_capitalized)
}

/// Returns the parts of a key that a client can choose and that are not trusted.
pub(super) fn forged(limited: &Limited) -> impl Iterator<Item = &str> {
    let parts = limited.key.parts.iter().map(|part| &*part.name);
    let is_forged = |name: &&str| FORGED.iter().any(|prefix| name.starts_with(prefix));
    parts.filter(is_forged).filter(|part| !limited.trusted.iter().any(|name| **name == **part))
}

/// Returns warnings about parts of the key that a client can choose. Such a client gets a new count with each request.
pub(super) fn forged_parts(limited: &Limited) -> impl Iterator<Item = String> {
    let is_candidate = limited.candidate_for.is_some();
    forged(limited).filter(move |_| !is_candidate).map(|part| {
        let way_around = match limited.key.on_missing {
            OnMissing::Skip => {
                "another value each time is a fresh count each time, and none is no count at all"
            }
            OnMissing::Share => "another value each time is a fresh count each time",
        };
        format!(
            "counts by {part}, which anybody can choose: {way_around}; add a rule for the same by ip, \
             or write trusted = [{part:?}] if something before Tidegate checks it"
        )
    })
}

//! Attributes that a rule goes by, and who says what they are.

use tidegate_support::Complaint;

use super::super::written::RuleText;
use crate::key::OnMissing;
use crate::rule::Limited;

/// What anybody can send as they like.
const FORGED: [&str; 3] = ["header.", "cookie.", "query."];

/// Header fields that people count by, beside those that begin with `x-`.
const HEADERS: [&str; 5] = ["authorization", "user-agent", "referer", "accept-language", "cf-connecting-ip"];

/// Names of header fields that are written as if they were attributes of their own.
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

/// Whether a name looks like that of a header field: `X-Api-Key`, `x-api-key`, `Api-Key`, `authorization`.
fn is_header_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_capitalized = |word: &str| word.starts_with(|letter: char| letter.is_ascii_uppercase());
    lower.starts_with("x-")
        || HEADERS.contains(&&*lower)
        || name.contains('-') && !name.contains('.') && name.split('-').all(is_capitalized)
}

/// The parts of a key that anybody can choose.
pub(super) fn forged(limited: &Limited) -> impl Iterator<Item = &str> {
    let parts = limited.key.parts.iter().map(|part| &*part.name);
    let is_forged = |name: &&str| FORGED.iter().any(|prefix| name.starts_with(prefix));
    parts.filter(is_forged).filter(|part| !limited.trusted.iter().any(|name| **name == **part))
}

/// Whoever can choose a part of the key has a fresh count for each request.
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

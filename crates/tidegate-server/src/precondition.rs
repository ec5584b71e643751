//! Entity tags of resources that operators change, and the preconditions of a change (RFC 9110, section 13).
//!
//! If two operators read the same text and write one after the other, the second write must not undo the first. So a
//! change names the tag of the text that it is based on. If the tag has changed by then, the change is rejected.

use std::fmt;
use std::hash::{DefaultHasher, Hasher as _};

/// A strong entity tag: a 128-bit hash of the bytes. It is not collision-resistant against an adversary.
///
/// It identifies a version of a text, and does not protect it: an operator who may change the rules has no reason
/// to forge one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag([u64; 2]);

impl Tag {
    /// Returns the tag of these bytes. It is the same in every process of this build.
    pub(crate) fn of(bytes: &[u8]) -> Tag {
        Tag([0, 1].map(|half: u8| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u8(half);
            hasher.write(bytes);
            hasher.finish()
        }))
    }
}

/// Formats the tag with its quotes, as in header fields.
impl fmt::Display for Tag {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\"{:016x}{:016x}\"", self.0[0], self.0[1])
    }
}

/// The preconditions of a change: `If-Match` and `If-None-Match`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Precondition {
    /// `If-Match`: the change requires one of these tags.
    pub(crate) if_match: Option<Tags>,
    /// `If-None-Match`: the change requires that none of these tags matches.
    pub(crate) if_none_match: Option<Tags>,
}

/// The value of `If-Match` or `If-None-Match`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tags {
    /// `*`: any current text.
    Any,
    /// A list of tags as the client sent them: with their quotes, and `W/` before a weak one.
    Listed(Vec<String>),
}

/// The reason why a change is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unmet {
    /// The change would replace a text, and does not name a tag.
    NotNamed,
    /// The current text is not the one that the change is based on.
    Changed,
    /// The change requires a current text, and there is none.
    Absent,
    /// The change requires that there is no such text, and there is one.
    Present,
}

impl Precondition {
    /// Returns `If-Match: *`.
    #[cfg(test)]
    pub(crate) fn anything() -> Precondition {
        Precondition { if_match: Some(Tags::Any), if_none_match: None }
    }

    /// Returns true if the change may replace any current text, even an unseen one.
    ///
    /// `If-Match: *` is how an operator overwrites a change that was made by hand.
    pub(crate) fn is_for_anything(&self) -> bool {
        self.if_match == Some(Tags::Any)
    }

    /// Checks the preconditions against the tag of the current text, if there is one.
    ///
    /// `If-Match` is checked first, as RFC 9110 requires. `there` is `None` if the resource does not exist.
    pub(crate) fn check(&self, there: Option<Tag>) -> Result<(), Unmet> {
        match (&self.if_match, there) {
            (Some(_), None) => return Err(Unmet::Absent),
            (Some(Tags::Listed(listed)), Some(tag)) if !listed.iter().any(|one| is_strongly(one, tag)) => {
                return Err(Unmet::Changed);
            }
            _ => {}
        }
        match (&self.if_none_match, there) {
            (Some(Tags::Any), Some(_)) => Err(Unmet::Present),
            (Some(Tags::Listed(listed)), Some(tag)) if listed.iter().any(|one| is_weakly(one, tag)) => {
                Err(Unmet::Present)
            }
            _ => Ok(()),
        }
    }

    /// Checks a replacement. It has to name a tag unless nothing would be lost: there is no current text, or it is the
    /// same.
    pub(crate) fn check_replacing(&self, there: Option<Tag>, is_same: bool) -> Result<(), Unmet> {
        self.check(there)?;
        let is_named = self.if_match.is_some() || there.is_none() || is_same;
        if is_named { Ok(()) } else { Err(Unmet::NotNamed) }
    }
}

/// Compares as `If-Match` does: a weak tag never matches.
fn is_strongly(listed: &str, tag: Tag) -> bool {
    listed == tag.to_string()
}

/// Compares as `If-None-Match` does: a weak tag matches like a strong one.
fn is_weakly(listed: &str, tag: Tag) -> bool {
    is_strongly(listed.strip_prefix("W/").unwrap_or(listed), tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(tags: &[(bool, Tag)]) -> Option<Tags> {
        let each = tags.iter().map(|(is_weak, tag)| format!("{}{tag}", if *is_weak { "W/" } else { "" }));
        Some(Tags::Listed(each.collect()))
    }

    #[test]
    fn texts_have_the_same_tag_if_they_are_the_same() {
        let texts = ["", "a", "b", "ab", "a\0", "\0a", "# ours\n", "# ours"];
        for (nth, text) in texts.iter().enumerate() {
            assert_eq!(Tag::of(text.as_bytes()), Tag::of(text.as_bytes()));
            assert!(texts[..nth].iter().all(|other| Tag::of(other.as_bytes()) != Tag::of(text.as_bytes())));
        }
        let shown = Tag::of(b"a").to_string();
        assert_eq!(shown.len(), 34);
        assert!(shown.starts_with('"') && shown.ends_with('"'), "{shown}");
    }

    #[test]
    fn a_replacement_names_what_it_replaces_unless_nothing_is_lost() {
        let (ours, theirs) = (Tag::of(b"ours"), Tag::of(b"theirs"));
        let unnamed = Precondition::default();
        assert_eq!(unnamed.check_replacing(Some(ours), false), Err(Unmet::NotNamed));
        assert_eq!(unnamed.check_replacing(Some(ours), true), Ok(()));
        assert_eq!(unnamed.check_replacing(None, false), Ok(()));
        assert_eq!(unnamed.check(Some(ours)), Ok(()));
        for (if_match, there, expected) in [
            (listed(&[(false, ours)]), Some(ours), Ok(())),
            (listed(&[(false, theirs), (false, ours)]), Some(ours), Ok(())),
            (listed(&[(false, theirs)]), Some(ours), Err(Unmet::Changed)),
            (listed(&[(true, ours)]), Some(ours), Err(Unmet::Changed)),
            (listed(&[]), Some(ours), Err(Unmet::Changed)),
            (listed(&[(false, ours)]), None, Err(Unmet::Absent)),
            (Some(Tags::Any), Some(ours), Ok(())),
            (Some(Tags::Any), None, Err(Unmet::Absent)),
        ] {
            let named = Precondition { if_match, if_none_match: None };
            assert_eq!(named.check_replacing(there, false), expected, "{named:?}");
        }
    }

    #[test]
    fn if_none_match_keeps_what_is_there() {
        let (ours, theirs) = (Tag::of(b"ours"), Tag::of(b"theirs"));
        for (if_none_match, there, expected) in [
            (Some(Tags::Any), None, Ok(())),
            (Some(Tags::Any), Some(ours), Err(Unmet::Present)),
            (listed(&[(true, ours)]), Some(ours), Err(Unmet::Present)),
            (listed(&[(false, theirs)]), Some(ours), Err(Unmet::NotNamed)),
        ] {
            let named = Precondition { if_match: None, if_none_match };
            assert_eq!(named.check_replacing(there, false), expected, "{named:?}");
        }
    }
}

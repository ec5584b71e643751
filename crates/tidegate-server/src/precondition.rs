//! Entity tags of what operators change, and the conditions that they name with a change (RFC 9110, section 13).
//!
//! Two operators who read the same text and write one after the other must not lose the change of the first. So a change
//! names the tag of what it was made from, and what has another tag by now is left alone.

use std::fmt;
use std::hash::{DefaultHasher, Hasher as _};

/// A strong entity tag: equal for equal bytes, and for no others that anyone will meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag([u64; 2]);

impl Tag {
    pub(crate) fn of(bytes: &[u8]) -> Tag {
        Tag([0, 1].map(|half: u8| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u8(half);
            hasher.write(bytes);
            hasher.finish()
        }))
    }
}

/// With its quotes, as header fields have it.
impl fmt::Display for Tag {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\"{:016x}{:016x}\"", self.0[0], self.0[1])
    }
}

/// The conditions of a change: `If-Match` and `If-None-Match`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Precondition {
    pub(crate) if_match: Option<Tags>,
    pub(crate) if_none_match: Option<Tags>,
}

/// The value of one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tags {
    /// `*`: whatever is there.
    Any,
    /// One of these, as a client sends them: with their quotes, a weak one behind `W/`.
    Listed(Vec<String>),
}

/// Why a change is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unmet {
    /// It would replace something, and does not say what it was made from.
    NotNamed,
    /// What is there is not what it was made from.
    Changed,
    /// It is for something that is there, and nothing is.
    Absent,
    /// It is for something that is not there, and it is.
    Present,
}

impl Precondition {
    /// `If-Match: *`.
    #[cfg(test)]
    pub(crate) fn anything() -> Precondition {
        Precondition { if_match: Some(Tags::Any), if_none_match: None }
    }

    /// Returns true if whatever is there may be replaced, also if nobody has seen it.
    pub(crate) fn is_for_anything(&self) -> bool {
        self.if_match == Some(Tags::Any)
    }

    /// Checks the conditions that were named against the tag of what is there, if anything is.
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

    /// The same for a replacement, which has to name what it replaces unless nothing would be lost: nothing is there, or
    /// the same.
    pub(crate) fn check_replacing(&self, there: Option<Tag>, is_same: bool) -> Result<(), Unmet> {
        self.check(there)?;
        let is_named = self.if_match.is_some() || there.is_none() || is_same;
        if is_named { Ok(()) } else { Err(Unmet::NotNamed) }
    }
}

/// The comparison of `If-Match`: a weak tag is not the tag of anything.
fn is_strongly(listed: &str, tag: Tag) -> bool {
    listed == tag.to_string()
}

/// The comparison of `If-None-Match`.
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

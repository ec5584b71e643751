//! Structured fields (RFC 9651): the values of the lists and dictionaries in which limits are reported.
//!
//! The whole field is parsed strictly, so it is either valid or ignored. Of repeated keys the last value applies.

use sfv::{BareItem, Dictionary, Item, List, ListEntry, Parser};

/// Returns the members of a list; `None` if the text is not a list.
pub(super) fn list(text: &[u8]) -> Option<List> {
    Parser::new(text).parse().ok()
}

/// Returns the members of a dictionary; `None` if the text is not a dictionary.
pub(super) fn dictionary(text: &[u8]) -> Option<Dictionary> {
    Parser::new(text).parse().ok()
}

/// Returns a member that is an item, not an inner list.
pub(super) fn item(member: &ListEntry) -> Option<&Item> {
    match member {
        ListEntry::Item(item) => Some(item),
        ListEntry::InnerList(_) => None,
    }
}

/// Returns the value of an item, if it is a name: a string or a token.
pub(super) fn name(item: &Item) -> Option<&str> {
    match &item.bare_item {
        BareItem::String(name) => Some(name.as_str()),
        BareItem::Token(name) => Some(name.as_str()),
        _ => None,
    }
}

/// Returns a value that is an integer and not negative.
pub(super) fn integer(value: &BareItem) -> Option<u64> {
    match value {
        BareItem::Integer(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

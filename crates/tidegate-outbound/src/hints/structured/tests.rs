//! The parser compared with another one, on texts composed of pieces of the grammar.

use proptest::prelude::*;
use sfv::{BareItem, Dictionary, List, ListEntry, Parameters, Parser};

use super::*;

/// The data that both parsers return for a member: its value, and its integer parameters.
type Parsed = (Option<i64>, Option<Vec<u8>>, Vec<(Vec<u8>, i64)>);

fn ours(member: &Member<'_>) -> Parsed {
    let name = match member.value {
        Some(Bare::String(text)) => Some(unescaped(text)),
        Some(Bare::Token(text)) => Some(text.to_vec()),
        _ => None,
    };
    let mut integers: Vec<(Vec<u8>, i64)> = Vec::new();
    for (key, _) in &member.parameters {
        let key = std::str::from_utf8(key).unwrap();
        if let Some(number) = member.integer(key) {
            integers.push((key.as_bytes().to_vec(), number));
        }
    }
    integers.sort();
    integers.dedup();
    (member.value.and_then(Bare::integer), name, integers)
}

fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = text.iter().copied();
    let mut plain = Vec::new();
    while let Some(byte) = bytes.next() {
        plain.push(if byte == b'\\' { bytes.next().unwrap() } else { byte });
    }
    plain
}

fn theirs(entry: &ListEntry) -> Parsed {
    let integers = |parameters: &Parameters| {
        let integer = |(key, value): (&sfv::Key, &BareItem)| match value {
            BareItem::Integer(number) => Some((key.as_str().as_bytes().to_vec(), i64::from(*number))),
            _ => None,
        };
        let mut integers: Vec<_> = parameters.iter().filter_map(integer).collect();
        integers.sort();
        integers
    };
    match entry {
        ListEntry::InnerList(list) => (None, None, integers(&list.params)),
        ListEntry::Item(item) => {
            let (number, name) = match &item.bare_item {
                BareItem::Integer(number) => (Some(i64::from(*number)), None),
                BareItem::String(text) => (None, Some(text.as_str().as_bytes().to_vec())),
                BareItem::Token(text) => (None, Some(text.as_str().as_bytes().to_vec())),
                _ => (None, None),
            };
            (number, name, integers(&item.params))
        }
    }
}

fn agrees_on(text: &[u8]) {
    let shown = text.escape_ascii().to_string();
    let list = Parser::new(text).parse::<List>().ok().map(|list| list.iter().map(theirs).collect::<Vec<_>>());
    let read = super::list(text).map(|list| list.iter().map(ours).collect::<Vec<_>>());
    assert_eq!(read, list, "as a list: {shown}");

    let by_key = Parser::new(text).parse::<Dictionary>().ok().map(|members| {
        let mut members: Vec<_> =
            members.iter().map(|(key, entry)| (key.as_str().as_bytes().to_vec(), theirs(entry))).collect();
        members.sort();
        members
    });
    let read = dictionary(text).map(|members| {
        let mut last = std::collections::BTreeMap::new();
        for (key, member) in &members {
            last.insert(key.to_vec(), ours(member));
        }
        last.into_iter().collect::<Vec<_>>()
    });
    assert_eq!(read, by_key, "as a dictionary: {shown}");
}

#[test]
fn the_fields_of_this_trade_are_read() {
    let members = list(b"\"burst\";r=0;t=30, \"daily\" ;r=1").map(|_| ());
    assert_eq!(members, None, "a space before a semicolon is none of the grammar");
    let members = list(b"\"burst\";r=0;t=30, \"daily\";r=7;pk=:AAA=:").unwrap();
    assert_eq!(members[0].value, Some(Bare::String(b"burst")));
    assert_eq!((members[0].integer("r"), members[0].integer("t")), (Some(0), Some(30)));
    assert_eq!((members[1].integer("r"), members[1].integer("t")), (Some(7), None));

    let members = dictionary(b"limit=100, remaining=50;w=1, reset=5").unwrap();
    assert_eq!(
        members.iter().map(|(_, member)| member.value).collect::<Vec<_>>(),
        [100, 50, 5].map(|n| Some(Bare::Integer(n)))
    );
    assert_eq!(list(b"limit=100"), None);
}

#[test]
fn the_corners_of_the_grammar_are_read_as_others_read_them() {
    let texts = [
        "",
        " ",
        "a",
        " a ",
        "a,",
        "a ,b",
        "a,\tb",
        "a\t",
        "\ta",
        "a b",
        "(a b)",
        "(a  b );x",
        "(a",
        "(a,b)",
        "()",
        "( )",
        "1",
        "-1",
        "-",
        "1.",
        "1.5",
        "1.5555",
        "123456789012345",
        "1234567890123456",
        "1234567890123.1",
        "01",
        "?1",
        "?2",
        "?",
        "@1",
        "@1.5",
        "@",
        "%\"a%c3%bc\"",
        "%\"%C3\"",
        "%\"%ff\"",
        "%\"",
        "%a",
        ":AA==:",
        ":AA:",
        ":A:",
        ":AA",
        ":=:",
        "\"a\\\"b\"",
        "\"a\\b\"",
        "\"a",
        "\"\u{e9}\"",
        "*a/b:c",
        "a;b",
        "a; b=1;b=2",
        "a;b=1;b",
        "a;B",
        "a;",
        "a;b=",
        "a=1",
        "a=1,a=2",
        "a=(1 2);r=3",
        "a=",
        "A=1",
        "a, b=1",
        "a;r=1 , b",
    ];
    for text in texts {
        agrees_on(text.as_bytes());
    }
}

/// A piece of the grammar, or a byte that may break it.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let pieces = [
        "\"",
        "\"name\"",
        "\"a\\\"b\"",
        "token",
        "key",
        "r",
        "t",
        ";",
        "; ",
        "=",
        ",",
        ", ",
        " ",
        "\t",
        "(",
        ")",
        "0",
        "7",
        "30",
        "-",
        "-5",
        "1.5",
        ".",
        "123456789012345",
        "?1",
        "?",
        ":",
        ":AAA=:",
        "@",
        "@9",
        "%\"",
        "%",
        "%41",
        "\\",
        "*",
    ];
    let known = proptest::sample::select(pieces.to_vec()).prop_map(|piece| piece.as_bytes().to_vec());
    prop_oneof![9 => known, 1 => any::<u8>().prop_map(|byte| vec![byte])]
}

/// A member that is mostly valid, so that long texts are often valid.
fn member() -> impl Strategy<Value = Vec<u8>> {
    proptest::string::bytes_regex(
        r#"([a-z]{1,3}=)?("[a-z ]{0,4}"|[a-z]{1,3}|-?[0-9]{1,15}|[0-9]{1,12}\.[0-9]{1,3}|\?[01]|@[0-9]{1,5}|\((1|a| ){0,3}\))(;[a-z]{1,2}(=-?[0-9]{1,4}|="x")?){0,3}"#,
    )
    .expect("an expression")
}

proptest! {
    #[test]
    fn any_text_is_read_as_another_reader_reads_it(pieces in proptest::collection::vec(piece(), 0..12)) {
        agrees_on(&pieces.concat());
    }

    #[test]
    fn texts_that_are_mostly_right_are_read_as_another_reader_reads_them(
        members in proptest::collection::vec(member(), 1..5),
        between in proptest::sample::select(vec![",", ", ", " ,", "\t,\t"]),
    ) {
        agrees_on(&members.join(between.as_bytes()));
    }
}

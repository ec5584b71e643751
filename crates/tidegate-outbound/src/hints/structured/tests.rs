//! Corners of the grammar: a field with any of them is either valid or ignored.

use super::*;

#[test]
fn the_fields_of_this_trade_are_read() {
    let members = list(b"\"burst\";r=0;t=30, \"daily\" ;r=1");
    assert_eq!(members, None, "a space before a semicolon is none of the grammar");
    let members = list(b"\"burst\";r=0;t=30, \"daily\";r=7;pk=:AAA=:").unwrap();
    let items: Vec<_> = members.iter().filter_map(item).collect();
    assert_eq!(items.iter().map(|item| name(item)).collect::<Vec<_>>(), [Some("burst"), Some("daily")]);
    let number = |at: usize, key: &str| items[at].params.get(key).and_then(integer);
    assert_eq!((number(0, "r"), number(0, "t")), (Some(0), Some(30)));
    assert_eq!((number(1, "r"), number(1, "t"), number(1, "pk")), (Some(7), None, None));

    let members = dictionary(b"limit=100, remaining=50;w=1, reset=5").unwrap();
    let numbers: Vec<_> =
        members.values().map(|member| item(member).and_then(|item| integer(&item.bare_item))).collect();
    assert_eq!(numbers, [100, 50, 5].map(Some));
    assert_eq!(list(b"limit=100"), None);
}

#[test]
fn odd_lists_that_are_valid_are_read() {
    let texts = [
        "",
        " ",
        "a",
        " a ",
        "a ,b",
        "a,\tb",
        "(a b)",
        "(a  b );x",
        "()",
        "( )",
        "1",
        "-1",
        "1.5",
        "01",
        "123456789012345",
        "?1",
        "@1",
        "%\"a%c3%bc\"",
        ":AA==:",
        "\"a\\\"b\"",
        "*a/b:c",
        "a;b",
        "a; b=1;b=2",
        "a;b=1;b",
        "a\t",
    ];
    for text in texts {
        assert!(list(text.as_bytes()).is_some(), "{text}");
    }
}

#[test]
fn lists_that_are_not_valid_are_ignored_as_a_whole() {
    let texts = [
        "a,",
        "\ta",
        "a b",
        "(a",
        "(a,b)",
        "-",
        "1.",
        "1.5555",
        "1234567890123456",
        "1234567890123.1",
        "?2",
        "?",
        "@1.5",
        "@",
        "%\"%C3\"",
        "%\"%ff\"",
        "%\"",
        "%a",
        ":A:",
        ":AA",
        "\"a\\b\"",
        "\"a",
        "\"\u{e9}\"",
        "a;B",
        "a;",
        "a;b=",
        "a=1",
        "\"a\";r=0, b;",
    ];
    for text in texts {
        assert_eq!(list(text.as_bytes()), None, "{text}");
    }
    for text in ["a=", "A=1", "\"a\"=1", "a=1,", "a=1 b=2"] {
        assert_eq!(dictionary(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn of_a_repeated_key_the_last_value_applies() {
    let members = dictionary(b"a=1, b=2, a=3").unwrap();
    assert_eq!(item(&members["a"]).and_then(|item| integer(&item.bare_item)), Some(3));
    let members = list(b"a;r=1;r=2").unwrap();
    assert_eq!(item(&members[0]).and_then(|item| integer(item.params.get("r")?)), Some(2));
}

#[test]
fn a_name_is_compared_without_its_escapes() {
    let members = list(b"\"a\\\"b\", tok/en, 5").unwrap();
    let names: Vec<_> = members.iter().map(|member| name(item(member).unwrap())).collect();
    assert_eq!(names, [Some("a\"b"), Some("tok/en"), None]);
}

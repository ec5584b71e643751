//! Files that are too large or too wrong are told so in few words.

use std::fmt::Write as _;

use super::valid::MAX_RULES;
use super::*;

fn rules(many: usize, rule: impl Fn(usize) -> String) -> String {
    (0..many).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "[[rule]]\n{}", rule(number));
        text
    })
}

fn errors(text: &str) -> Vec<String> {
    read(text, OtherTables::Any).errors.into_iter().map(|error| error.what).collect()
}

fn warnings(text: &str) -> Vec<String> {
    let reading = read(text, OtherTables::Any);
    assert_eq!(reading.errors, []);
    reading.warnings.into_iter().map(|warning| warning.what).collect()
}

#[test]
fn too_many_rules_are_one_complaint_whatever_else_is_wrong() {
    let most = rules(MAX_RULES, |number| format!("name = 'r{number}'\nlimit = '1/s'"));
    assert_eq!(errors(&most), [""; 0]);
    for rule in ["", "name = 'same'", "name = 7\nlimit = '1/x'"] {
        let told = errors(&rules(MAX_RULES + 1, |_| rule.to_owned()));
        assert_eq!(told, ["rule: there are more than 10000; use fewer"], "{rule}");
    }
}

#[test]
fn of_many_complaints_the_first_are_told_and_how_many_others_there_are() {
    let same = rules(1000, |_| "name = 'same'\nlimit = '1/s'".to_owned());
    let told = errors(&same);
    assert_eq!(told.len(), MAX_COMPLAINTS + 1);
    assert!(told[99].contains("the rule in line 2 has it, too"), "{}", told[99]);
    assert_eq!(told[MAX_COMPLAINTS], "and 899 more; these come first");
    let many_values =
        format!("[[rule]]\nname = 'a'\nlimit = '1/s'\nwhen = {{ ip = [{}] }}", "'x',".repeat(5000));
    assert_eq!(errors(&many_values)[MAX_COMPLAINTS], "and 4900 more; these come first");
}

#[test]
fn what_was_meant_is_said_for_the_first_unknown_names_only() {
    let mut text = rules(1, |_| "name = 'login'\nlimit = '1/s'".to_owned());
    text += &rules(50, |number| format!("name = 'c{number}'\ncandidate_for = 'logn'\nlimit = '1/s'"));
    let told = errors(&text);
    let meant = told.iter().filter(|what| what.contains("did you mean \"login\"?")).count();
    assert_eq!((told.len(), meant), (50, 10));
}

#[test]
fn lists_that_are_too_long_are_one_complaint() {
    let list = |each: &str| format!("[{}]", format!("'{each}',").repeat(1000));
    for (field, what) in [
        (format!("key = {}", list("a")), "key: has more than 8 parts; use fewer"),
        (format!("key = ['a']\ntrusted = {}", list("a")), "trusted: has more than 8 parts; use fewer"),
    ] {
        let told = errors(&format!("[[rule]]\nname = 'a'\nlimit = '1/s'\n{field}"));
        assert_eq!(told.iter().filter(|told| *told == what).count(), 1, "{told:?}");
        assert!(told.len() <= 8, "{told:?}");
    }
}

#[test]
fn rules_that_stand_twice_are_found_among_thousands() {
    let deny = |number: usize| {
        let number = if number == 4000 { 3999 } else { number };
        let ip = format!("10.{}.{}.1", number >> 8, number & 255);
        format!("when = {{ ip = '{ip}' }}\ndecision = 'deny'")
    };
    let told = warnings(&rules(4001, |number| format!("name = 'r{number}'\n{}", deny(number))));
    assert_eq!(told, ["rule \"r4000\": counts the same as \"r3999\"; leave one of them out"]);
}

#[test]
fn long_lists_cover_others_by_what_is_in_them() {
    let list = |from: usize, to: usize| {
        let all: Vec<_> =
            (from..to).map(|number| format!("'10.{}.{}.0/24'", number >> 8, number & 255)).collect();
        all.join(",")
    };
    let deny = |name: &str, ips: &str| {
        format!("[[rule]]\nname = '{name}'\nwhen = {{ ip = [{ips}] }}\ndecision = 'deny'\n")
    };
    let wide = deny("wide", &list(0, 5000));
    for (narrow, is_told) in [
        (list(100, 4000), true),
        (list(0, 5000), true),
        (format!("'10.0.1.7',{}", list(3, 9)), true),
        (format!("'10.200.1.7',{}", list(3, 9)), false),
        (list(4000, 5001), false),
    ] {
        let told = warnings(&format!("{wide}{}", deny("narrow", &narrow)));
        assert_eq!(told.iter().any(|what| what.contains("is never reached")), is_told, "{told:?}");
    }
}

#[test]
fn a_rule_that_may_be_backed_is_not_warned_of_however_many_there_are() {
    let one = |number: usize| {
        let (key, name) = if number.is_multiple_of(2) { ("ip", "i") } else { ("header.x", "h") };
        let path = if number == 9 { number } else { number / 2 };
        format!("name = '{name}{number}'\nwhen = {{ path = '/{path}' }}\nkey = ['{key}']\nlimit = '1/s'")
    };
    let few = warnings(&rules(8, one));
    assert_eq!(few, [""; 0]);
    assert!(warnings(&rules(10, one))[0].starts_with("rule \"h9\": counts by header.x"));
    assert!(warnings(&rules(MAX_RULES, one)).len() <= 1);
}

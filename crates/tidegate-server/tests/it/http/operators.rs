//! Tests of concurrent operators: no change undoes another that its author has not seen.

use std::fs;
use std::sync::Barrier;
use std::thread;

use serde_json::json;

use super::overrides::Keeper;
use super::put_rules::{NEW, OLD, message, put, put_with, serving, tag, text_in_force};
use crate::command::call::Call;
use crate::wire::http::{Answer, Talk, by};

/// Sends rules without a precondition.
fn put_unseen(talk: &mut Talk, text: &str) -> Answer {
    talk.ask(by("sesame", &message(text)))
}

#[test]
fn the_second_of_two_operators_does_not_write_over_the_first() {
    let (call, _process, mut talk) = serving(Call::from("put_twice"));
    let file = call.folder().join("tidegate.toml");
    let seen = tag(&mut talk);
    assert_eq!(text_in_force(&mut talk).field("etag"), Some(&*seen), "it is that of the text in any form");
    assert!(seen.starts_with('"'), "a weak tag never matches: {seen}");
    let first = put_with(&mut talk, &format!("if-match: {seen}"), NEW);
    assert_eq!((first.status, first.field("etag")), (200, Some(&*tag(&mut talk))));
    assert_ne!(first.field("etag"), Some(&*seen));

    let theirs = format!("{OLD}[[rule]]\nname = \"theirs\"\nlimit = \"9/h\"\n");
    let stale = put_with(&mut talk, &format!("if-match: {seen}"), &theirs);
    assert_eq!(stale.status, 412, "{stale:?}");
    assert!(
        stale.detail().starts_with("If-Match: the text of the rules in force has another ETag"),
        "{stale:?}"
    );
    assert!(stale.detail().contains("GET /v1/rules again"), "{stale:?}");
    let unseen = put_unseen(&mut talk, &theirs);
    assert_eq!((unseen.status, &unseen.json()["title"]), (428, &json!("Precondition Required")));
    assert!(
        unseen.detail().contains("GET /v1/rules first and send its entity tag, with the quotes, as If-Match"),
        "{unseen:?}"
    );
    assert!(unseen.detail().ends_with("or send If-Match: * to replace whatever is there"), "{unseen:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), NEW);
    assert_eq!(text_in_force(&mut talk).body, NEW);

    assert_eq!(put_unseen(&mut talk, NEW).status, 200, "the same text loses nothing");
    assert_eq!(put_with(&mut talk, "if-match: *", &theirs).status, 200);
    assert_eq!(fs::read_to_string(&file).unwrap(), theirs);
}

#[test]
fn conditions_are_read_as_http_has_them() {
    let (_call, _process, mut talk) = serving(Call::from("put_conditions"));
    let seen = tag(&mut talk);
    for (field, status) in [
        ("if-match: \"abc\"".to_owned(), 412),
        (format!("if-match: W/{seen}"), 412),
        (format!("if-match: {}", seen.trim_matches('"')), 400),
        (format!("if-match: *, {seen}"), 400),
        ("if-none-match: *".to_owned(), 412),
        (format!("if-match: {seen}\r\nif-none-match: {seen}"), 412),
        ("if-none-match: \"abc\"".to_owned(), 428),
    ] {
        let answer = put_with(&mut talk, &field, NEW);
        assert_eq!(answer.status, status, "{field}: {answer:?}");
    }
    assert_eq!(text_in_force(&mut talk).body, OLD);
    // An invalid text is reported before a missing precondition.
    assert_eq!(put_unseen(&mut talk, "limits = 5").status, 422);
    let several = format!("if-match: \"a,b\", W/\"c\"\r\nif-match: {seen}");
    assert_eq!(put_with(&mut talk, &several, NEW).status, 200);
}

#[test]
fn of_concurrent_writes_by_operators_one_is_acknowledged() {
    const OPERATORS: usize = 4;
    let (_call, _process, mut talk) = serving(Call::from("put_at_once"));
    let address = talk.address();
    for round in 0..10 {
        let seen = tag(&mut talk);
        let together = &Barrier::new(OPERATORS);
        let statuses: Vec<u16> = thread::scope(|scope| {
            let operators = (0..OPERATORS).map(|nth| {
                let field = format!("if-match: {seen}");
                scope.spawn(move || {
                    let mut talk = Talk::at(address);
                    let text = format!("{OLD}# round {round}, operator {nth}\n");
                    together.wait();
                    put_with(&mut talk, &field, &text).status
                })
            });
            let operators: Vec<_> = operators.collect();
            operators.into_iter().map(|one| one.join().expect("it was answered")).collect()
        });
        let count = |status| statuses.iter().filter(|one| **one == status).count();
        assert_eq!((count(200), count(412)), (1, OPERATORS - 1), "{statuses:?}");
        let nth = statuses.iter().position(|status| *status == 200).expect("there is one");
        assert!(text_in_force(&mut talk).body.ends_with(&format!("# round {round}, operator {nth}\n")));
    }
}

#[test]
fn a_text_that_was_read_from_the_file_since_is_not_written_over() {
    let (call, process, mut talk) = serving(Call::from("put_after_reload"));
    let seen = tag(&mut talk);
    fs::write(call.folder().join("tidegate.toml"), NEW).unwrap();
    process.signal(rustix::process::Signal::HUP);
    while text_in_force(&mut talk).body != NEW {}
    assert_eq!(put_with(&mut talk, &format!("if-match: {seen}"), OLD).status, 412);
    assert_eq!(put_unseen(&mut talk, OLD).status, 428);
    assert_eq!(put(&mut talk, OLD).status, 200);
}

#[test]
fn the_second_of_two_keepers_does_not_replace_what_it_has_not_seen() {
    let mut keeper = Keeper::new();
    let ana = json!({"ip": "192.0.2.7"});
    let body = |limit: &str, span: &str| json!({"rule": "api", "key": ana, "limit": limit, "for": span});
    assert_eq!(
        keeper.put_with("if-match: *", &body("5/h", "1h")).status,
        412,
        "nothing is there to be replaced"
    );
    let first = keeper.put_with("if-none-match: *", &body("100/h", "2h"));
    assert_eq!(first.status, 200, "{first:?}");
    let seen = first.field("etag").expect("a tag").to_owned();
    assert_eq!(keeper.list()[0]["etag"], *seen);

    let unseen = keeper.put(&body("5/h", "1h"));
    assert_eq!(unseen.status, 428, "{unseen:?}");
    assert!(unseen.detail().starts_with("the override of this key would be replaced"), "{unseen:?}");
    assert!(unseen.detail().contains("GET /v1/overrides first"), "{unseen:?}");
    assert_eq!(keeper.put_with("if-none-match: *", &body("5/h", "1h")).status, 412);
    assert_eq!(keeper.put_with("if-match: \"other\"", &body("5/h", "1h")).status, 412);
    let until = first.json()["until"].clone();
    let same = json!({"rule": "api", "key": ana, "limit": "100/h", "until": until});
    assert_eq!(keeper.put(&same).field("etag"), Some(&*seen), "the same loses nothing");

    let second = keeper.put_with(&format!("if-match: {seen}"), &body("5/h", "1h"));
    assert_eq!(second.status, 200, "{second:?}");
    let named = json!({"rule": "api", "key": ana});
    assert_eq!(keeper.ask_with(&format!("if-match: {seen}"), "DELETE", &named).status, 412);
    assert_eq!(keeper.list()[0]["limit"], "5/h");
    let seen = second.field("etag").expect("a tag").to_owned();
    assert_eq!(keeper.ask_with(&format!("if-match: {seen}"), "DELETE", &named).body, r#"{"removed":true}"#);
    assert_eq!(keeper.ask_with(&format!("if-match: {seen}"), "DELETE", &named).status, 412);
    assert_eq!(keeper.delete(&named).body, r#"{"removed":false}"#);
}

#[test]
fn of_concurrent_replacements_of_an_override_one_succeeds() {
    const KEEPERS: u64 = 4;
    let mut keeper = Keeper::new();
    let body = |limit: u64| json!({"rule": "api", "key": {"ip": "192.0.2.7"}, "limit": format!("{limit}/h"), "for": "2h"});
    let mut seen = keeper.put(&body(50)).field("etag").expect("a tag").to_owned();
    for round in 1..=20 {
        let together = &Barrier::new(4);
        let field = &format!("if-match: {seen}");
        let answers: Vec<Answer> = thread::scope(|scope| {
            let keepers = (0..KEEPERS).map(|nth| {
                let mut other = keeper.another();
                scope.spawn(move || {
                    together.wait();
                    other.put_with(field, &body(100 * round + nth))
                })
            });
            let keepers: Vec<_> = keepers.collect();
            keepers.into_iter().map(|one| one.join().expect("it was answered")).collect()
        });
        let done: Vec<_> = answers.iter().filter(|answer| answer.status == 200).collect();
        let late = answers.iter().filter(|answer| answer.status == 412).count();
        assert_eq!((done.len(), late), (1, 3), "{answers:?}");
        seen = done[0].field("etag").expect("a tag").to_owned();
        assert_eq!(keeper.list()[0]["etag"], *seen);
    }
}

//! Tests of the exact wording of reports.

use super::*;

const GONE: &str = "rules: tidegate.toml does not hold; the rules before it stay in force\n\
     error: tidegate.toml: is gone; put it back, or restart without it";

#[test]
fn other_rules_are_told_with_every_difference_and_every_warning() {
    let read = Read::from(&(rule("once", "1/s") + &rule("other", "1/s")));
    read.becomes(rule("once", "2/s") + &rule("new", "1/s") + "cost = 2\n");
    let told = read.told().join("\n--\n");
    let (lines, warning) = told.split_once("\nwarning: ").expect("nothing that costs 2 passes");
    assert_eq!(
        lines,
        "rules: tidegate.toml was read again\n  \
           ~ rule \"once\": 1/s -> 2/s\n  \
           - rule \"other\": its counts are not looked at any more\n  \
           + rule \"new\": 1/s, cost 2"
    );
    assert!(warning.contains("rule \"new\": lets nothing pass"), "{warning}");
    assert!(warning.starts_with("tidegate.toml:") && warning.ends_with('^'), "{warning}");
}

#[test]
fn a_text_that_says_the_same_in_other_words_is_told() {
    let read = Read::from(&rule("once", "1/d"));
    read.becomes(rule("once", "1/d") + "# the end");
    assert_eq!(read.told(), ["rules: tidegate.toml was read again: no rule has changed"]);
}

#[test]
fn all_complaints_are_told_with_carets_and_only_once() {
    let read = Read::from(&rule("once", "1/d"));
    let wrong = rule("once", "1/min") + "mode = \"loud\"\n";
    read.becomes(&wrong);
    let told = read.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("rules: tidegate.toml does not hold; the rules before it stay in force\n"));
    assert_eq!(told[0].matches("\nerror: tidegate.toml:").count(), 2, "{}", told[0]);
    assert!(told[0].contains("\n  4 | limit = \"1/min\"\n    |            ^"), "{}", told[0]);
    assert_eq!(read.seen(), Reloaded::Same);
    read.becomes(&wrong);
    assert_eq!(read.told(), Vec::<String>::new(), "it is as wrong as before");
    read.becomes(rule("once", "1/hour"));
    assert_eq!(read.told().len(), 1, "something else is wrong");
}

#[test]
fn a_file_that_is_mended_is_told() {
    let read = Read::from(&rule("once", "1/d"));
    read.becomes("wrong");
    read.becomes(rule("once", "2/d"));
    assert_eq!(read.told()[1..], ["rules: tidegate.toml holds again\n  ~ rule \"once\": 1/d -> 2/d"]);
    read.becomes("wrong");
    read.becomes(rule("once", "2/d"));
    assert_eq!(read.told()[1..], ["rules: tidegate.toml holds again, and is as it was before"]);
    assert_eq!(read.status(), Status { replaced: 1, rejected: 2, wrong: None });
}

#[test]
fn a_file_that_is_gone_and_comes_back_is_told_twice() {
    let read = Read::from(&rule("once", "1/d"));
    fs::remove_file(read.folder.path(FILE)).unwrap();
    (0..3).for_each(|_| {
        read.seen();
    });
    assert_eq!(read.told(), [GONE]);
    read.becomes(rule("once", "1/d"));
    assert_eq!(read.told(), ["rules: tidegate.toml holds again, and is as it was before"]);
}

#[test]
fn whoever_asks_hears_that_nothing_has_changed_and_who_watches_says_nothing() {
    let read = Read::from(&rule("once", "1/d"));
    assert_eq!(read.seen(), Reloaded::Same);
    assert_eq!(read.told(), Vec::<String>::new());
    assert_eq!(read.asked(), Reloaded::Same);
    assert_eq!(read.told(), ["rules: tidegate.toml was read again: nothing has changed"]);
    assert_eq!(read.status(), Status::default());
}

#[test]
fn whoever_asks_hears_that_it_is_still_wrong() {
    let read = Read::from(&rule("once", "1/d"));
    fs::remove_file(read.folder.path(FILE)).unwrap();
    read.asked();
    read.asked();
    let again = "rules: tidegate.toml does not hold, as before; the rules before it stay in force";
    assert_eq!(read.told(), [GONE, again]);
}

#[test]
fn a_setting_that_holds_after_the_next_start_is_told_once_for_each_change() {
    let with = |idle: &str| format!("[server]\nidle_timeout = \"{idle}\"\n{}", rule("once", "1/d"));
    let read = Read::from(&with("1h"));
    let told = |text: String| {
        read.becomes(text);
        read.told().concat()
    };
    let once =
        "rules: tidegate.toml was read again\n  ~ server.idle_timeout: holds after the next start only";
    let nothing = "rules: tidegate.toml was read again: no rule has changed";
    assert_eq!(told(with("2h")), once);
    assert_eq!(told(with("2h") + "# more"), nothing, "it has been said");
    assert_eq!(told(with("3h")), once, "that is another change");
    assert_eq!(told(with("1h")), nothing, "that is what holds");
    assert_eq!(told(with("2h")), once);
}

#[test]
fn a_token_that_is_another_one_is_told_to_whoever_asks() {
    let folder = Folder::new();
    folder.put("token", "open-sesame-1");
    folder.put(FILE, "[server]\ntoken_file = \"token\"\n");
    let read = Read::within(folder);
    read.folder.put("token", "open-sesame-2");
    read.asked();
    read.asked();
    assert_eq!(
        read.told(),
        [
            "rules: tidegate.toml was read again\n  ~ server.token_file: holds after the next start only",
            "rules: tidegate.toml was read again: nothing has changed"
        ]
    );
}

#[test]
fn a_file_that_names_a_file_is_mended_with_that() {
    let folder = Folder::new();
    folder.put("token", "open-sesame");
    folder.put(FILE, "[server]\ntoken_file = \"token\"\n");
    let read = Read::within(folder);
    fs::remove_file(read.folder.path("token")).unwrap();
    read.asked();
    assert_eq!(read.status().rejected, 1);
    read.folder.put("token", "open-sesame");
    read.seen();
    assert_eq!(read.status(), Status { rejected: 1, ..Status::default() });
}

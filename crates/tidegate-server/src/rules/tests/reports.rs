//! Tests of the exact wording of reports.

use super::*;

const GONE: &str = "rules: tidegate.toml is invalid; the previous rules stay in force\n\
     error: tidegate.toml: is gone; put it back, or restart without it";

#[test]
fn other_rules_are_reported_with_every_difference_and_every_warning() {
    let read = Read::from(&(rule("once", "1/s") + &rule("other", "1/s")));
    read.becomes(rule("once", "2/s") + &rule("new", "1/s") + "cost = 2\n");
    let reports = read.reports().join("\n--\n");
    let (lines, warning) = reports.split_once("\nwarning: ").expect("nothing that costs 2 passes");
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
fn a_text_with_the_same_rules_is_reported() {
    let read = Read::from(&rule("once", "1/d"));
    read.becomes(rule("once", "1/d") + "# the end");
    assert_eq!(read.reports(), ["rules: tidegate.toml was read again: no rule has changed"]);
}

#[test]
fn all_complaints_are_reported_with_carets_and_only_once() {
    let read = Read::from(&rule("once", "1/d"));
    let wrong = rule("once", "1/min") + "mode = \"loud\"\n";
    read.becomes(&wrong);
    let reports = read.reports();
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert!(reports[0].starts_with("rules: tidegate.toml is invalid; the previous rules stay in force\n"));
    assert_eq!(reports[0].matches("\nerror: tidegate.toml:").count(), 2, "{}", reports[0]);
    assert!(reports[0].contains("\n  4 | limit = \"1/min\"\n    |            ^"), "{}", reports[0]);
    assert_eq!(read.seen(), Reloaded::Same);
    read.becomes(&wrong);
    assert_eq!(read.reports(), Vec::<String>::new(), "it is as wrong as before");
    read.becomes(rule("once", "1/hour"));
    assert_eq!(read.reports().len(), 1, "something else is wrong");
}

#[test]
fn a_file_that_is_valid_again_is_reported() {
    let read = Read::from(&rule("once", "1/d"));
    read.becomes("wrong");
    read.becomes(rule("once", "2/d"));
    assert_eq!(read.reports()[1..], ["rules: tidegate.toml is valid again\n  ~ rule \"once\": 1/d -> 2/d"]);
    read.becomes("wrong");
    read.becomes(rule("once", "2/d"));
    assert_eq!(read.reports()[1..], ["rules: tidegate.toml is valid again and unchanged"]);
    assert_eq!(read.status(), Status { replaced: 1, rejected: 2, wrong: None });
}

#[test]
fn a_file_that_is_gone_and_comes_back_is_reported_twice() {
    let read = Read::from(&rule("once", "1/d"));
    fs::remove_file(read.folder.path(FILE)).unwrap();
    (0..3).for_each(|_| {
        read.seen();
    });
    assert_eq!(read.reports(), [GONE]);
    read.becomes(rule("once", "1/d"));
    assert_eq!(read.reports(), ["rules: tidegate.toml is valid again and unchanged"]);
}

#[test]
fn a_request_reports_that_nothing_has_changed_and_the_watcher_does_not() {
    let read = Read::from(&rule("once", "1/d"));
    assert_eq!(read.seen(), Reloaded::Same);
    assert_eq!(read.reports(), Vec::<String>::new());
    assert_eq!(read.asked(), Reloaded::Same);
    assert_eq!(read.reports(), ["rules: tidegate.toml was read again: nothing has changed"]);
    assert_eq!(read.status(), Status::default());
}

#[test]
fn a_request_reports_that_the_file_is_still_invalid() {
    let read = Read::from(&rule("once", "1/d"));
    fs::remove_file(read.folder.path(FILE)).unwrap();
    read.asked();
    read.asked();
    let again = "rules: tidegate.toml is still invalid; the previous rules stay in force";
    assert_eq!(read.reports(), [GONE, again]);
}

#[test]
fn a_setting_that_needs_a_restart_is_reported_once_for_each_change() {
    let with = |idle: &str| format!("[server]\nidle_timeout = \"{idle}\"\n{}", rule("once", "1/d"));
    let read = Read::from(&with("1h"));
    let reported = |text: String| {
        read.becomes(text);
        read.reports().concat()
    };
    let once = "rules: tidegate.toml was read again\n  ~ server.idle_timeout: takes effect after a restart";
    let nothing = "rules: tidegate.toml was read again: no rule has changed";
    assert_eq!(reported(with("2h")), once);
    assert_eq!(reported(with("2h") + "# more"), nothing, "it has been said");
    assert_eq!(reported(with("3h")), once, "that is another change");
    assert_eq!(reported(with("1h")), nothing, "that is what holds");
    assert_eq!(reported(with("2h")), once);
}

#[test]
fn another_token_is_reported_on_request() {
    let folder = Folder::new();
    folder.put("token", "open-sesame-1");
    folder.put(FILE, "[server]\ntoken_file = \"token\"\n");
    let read = Read::within(folder);
    read.folder.put("token", "open-sesame-2");
    read.asked();
    read.asked();
    assert_eq!(
        read.reports(),
        [
            "rules: tidegate.toml was read again\n  ~ server.token_file: takes effect after a restart",
            "rules: tidegate.toml was read again: nothing has changed"
        ]
    );
}

#[test]
fn a_file_that_names_another_is_valid_again_with_it() {
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

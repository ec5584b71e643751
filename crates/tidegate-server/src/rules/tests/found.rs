//! Tests of reloads when the file is missing, unreadable or of another type.

use std::os::unix::fs::symlink;
use std::process::Command;
use std::{fs, thread};

use super::*;

/// Returns the complaint after the change. Asserts that the rules stay in force, and that a new file is read.
fn wrong_after(become_another: fn(&Read)) -> String {
    let read = Read::from(&rule("once", "1/d"));
    assert!(read.admits("ana"));
    become_another(&read);
    assert_eq!(read.seen(), Reloaded::Rejected);
    assert!(!read.admits("ana"), "the rules before it stay in force");
    let wrong = read.status().wrong.expect("it is known that something is wrong");
    let wrong = wrong.replace(&read.folder.path("").display().to_string(), "");
    // After any of the changes, a regular file is read again.
    let path = read.folder.path(FILE);
    let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
    let _ = fs::create_dir(read.folder.path(""));
    read.becomes(rule("once", "1/2d"));
    assert_eq!(read.status(), Status { replaced: 1, rejected: 1, wrong: None });
    assert!(!read.admits("ana"), "its counts are what they were");
    wrong
}

const GONE: &str = "is gone; put it back, or restart without it";
const NO_FILE: &str = "cannot be read: it is no regular file; put a file of settings there";
const EMPTY: &str =
    "is empty, while rules are in force; write a comment into it if there shall be none: # no rules";

/// A change of the file, and the expected complaint. An ellipsis ends a prefix.
type Change = (fn(&Read), &'static str);

const CHANGES: [Change; 12] = [
    (|read| fs::remove_file(read.folder.path(FILE)).unwrap(), GONE),
    (|read| fs::remove_dir_all(read.folder.path("")).unwrap(), GONE),
    (|read| read.folder.link(FILE, "nowhere"), GONE),
    (|read| read.folder.link(FILE, FILE), "cannot be read: Too many levels of symbolic links…"),
    (|read| replace_by("mkdir", read), "cannot be read: it is a directory; put a file of settings there"),
    // Opening a pipe without a writer does not block.
    (|read| replace_by("mkfifo", read), NO_FILE),
    (|read| read.folder.link(FILE, "/dev/zero"), NO_FILE),
    (
        |read| read.folder.put(FILE, comment(LONGEST + 1)),
        "cannot be read: it is longer than 4194304 bytes; …",
    ),
    (|read| read.folder.put(FILE, b"# \xff"), "cannot be read: it is no UTF-8 text from byte 3 on; …"),
    (|read| read.folder.put(FILE, ""), EMPTY),
    (|read| read.folder.put(FILE, "\n"), EMPTY),
    (|read| read.folder.put(FILE, " \n\t\n"), EMPTY),
];

const LONGEST: usize = 4 << 20;

/// Returns a comment of `bytes` bytes.
fn comment(bytes: usize) -> String {
    format!("#{}", " ".repeat(bytes - 1))
}

/// Removes the file, and runs a program that creates something else of that name.
fn replace_by(program: &str, read: &Read) {
    fs::remove_file(read.folder.path(FILE)).unwrap();
    assert!(Command::new(program).arg(read.folder.path(FILE)).status().unwrap().success());
}

#[test]
fn whatever_is_found_instead_of_the_file_keeps_the_rules() {
    for (nth, (change, expected)) in CHANGES.into_iter().enumerate() {
        let wrong = wrong_after(change);
        let wrong = wrong.strip_prefix("tidegate.toml: ").expect("the file comes first");
        match expected.strip_suffix('…') {
            Some(start) => assert!(wrong.starts_with(start), "{nth}: {wrong}"),
            None => assert_eq!(wrong, expected, "{nth}"),
        }
    }
}

#[test]
fn the_longest_file_is_not_too_long() {
    let read = Read::from(&rule("once", "1/d"));
    assert_eq!(read.becomes(comment(LONGEST)), Reloaded::Replaced);
}

#[test]
fn a_comment_replaces_all_rules() {
    let read = Read::from(&rule("once", "1/d"));
    read.becomes("# no rules");
    assert_eq!(
        read.reports(),
        ["rules: tidegate.toml was read again\n  \
            - rule \"once\": its counts are not looked at any more\n  \
            ! no rules are in force now: nothing is limited by them"]
    );
    read.becomes("");
    assert_eq!(
        read.status(),
        Status { replaced: 2, ..Status::default() },
        "where there are none, none is lost"
    );
}

#[test]
fn a_link_to_another_target_is_another_file() {
    let folder = Folder::new();
    folder.put("one", rule("once", "1/d"));
    folder.put("two", rule("once", "2/d"));
    folder.link(FILE, "one");
    let read = Read::within(folder);
    let before = read.look();
    read.folder.link(FILE, "two");
    assert_ne!(before, read.look());
    read.seen();
    assert_eq!(read.rules.text(), Some(rule("once", "2/d")));
}

#[test]
fn a_folder_that_is_a_link_may_change_its_target_as_with_kubernetes() {
    let folder = Folder::new();
    for (name, limit) in [("..1", "1/d"), ("..2", "2/d")] {
        fs::create_dir(folder.path(name)).unwrap();
        fs::write(folder.path(name).join(FILE), rule("once", limit)).unwrap();
    }
    folder.link("..data", "..1");
    folder.link(FILE, format!("..data/{FILE}"));
    let read = Read::within(folder);
    let before = read.look();
    read.folder.link("..data", "..2");
    fs::remove_dir_all(read.folder.path("..1")).unwrap();
    assert_ne!(before, read.look());
    read.seen();
    assert_eq!(read.rules.text(), Some(rule("once", "2/d")));
}

#[test]
fn the_same_text_in_another_file_is_nothing_new() {
    let read = Read::from(&rule("once", "1/d"));
    let before = read.look();
    assert_eq!(read.becomes(rule("once", "1/d")), Reloaded::Same);
    assert_ne!(before, read.look());
    assert_eq!((read.reports(), read.status()), (Vec::new(), Status::default()));
}

#[test]
fn a_pipe_at_the_start_is_read_once_and_never_again() {
    let folder = Folder::new();
    let path = folder.path(FILE);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let writer = thread::spawn(move || fs::write(path, rule("once", "1/d")));
    let read = Read::within(folder);
    writer.join().unwrap().unwrap();
    assert_eq!(read.rules.path(), None, "it is not watched");
    assert_eq!(read.asked(), Reloaded::Same);
    assert_eq!(
        read.reports(),
        ["rules: cannot be read again, as they come from no regular file; restart the server to change them"]
    );
    assert!(read.admits("ana") && !read.admits("ana"));
}

#[test]
fn a_file_beside_which_others_are_written_stays_the_same() {
    let read = Read::from(&rule("once", "1/d"));
    let before = read.look();
    read.folder.put("another", "text");
    symlink("another", read.folder.path("link")).unwrap();
    assert_eq!(before, read.look());
}

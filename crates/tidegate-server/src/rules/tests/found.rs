//! What may be found where the file was.

use std::os::unix::fs::symlink;
use std::process::Command;
use std::{fs, thread};

use super::*;

/// What is wrong after the file has become something else; the rules stay in force.
fn wrong_after(become_another: impl FnOnce(&Read)) -> String {
    let read = Read::from(&rule("once", "1/d"));
    assert!(read.admits("ana"));
    become_another(&read);
    assert_eq!(read.seen(), Reloaded::Rejected);
    assert!(!read.admits("ana"), "the rules before it stay in force");
    let wrong = read.status().wrong.expect("it is known that something is wrong");
    let wrong = wrong.replace(&read.folder.path("").display().to_string(), "");
    // However it went away, it comes back as a file does.
    let path = read.folder.path(FILE);
    let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
    let _ = fs::create_dir(read.folder.path(""));
    read.becomes(rule("once", "1/2d"));
    assert_eq!(read.status(), Status { replaced: 1, rejected: 1, wrong: None });
    assert!(!read.admits("ana"), "its counts are what they were");
    wrong
}

#[test]
fn a_file_that_is_gone_keeps_the_rules() {
    let gone = "tidegate.toml: is gone; put it back, or restart without it";
    assert_eq!(wrong_after(|read| fs::remove_file(read.folder.path(FILE)).unwrap()), gone);
    assert_eq!(wrong_after(|read| fs::remove_dir_all(read.folder.path("")).unwrap()), gone);
}

#[test]
fn a_link_to_nowhere_is_a_file_that_is_gone() {
    let wrong = wrong_after(|read| read.folder.link(FILE, "nowhere"));
    assert_eq!(wrong, "tidegate.toml: is gone; put it back, or restart without it");
}

#[test]
fn a_link_to_itself_keeps_the_rules() {
    let wrong = wrong_after(|read| read.folder.link(FILE, FILE));
    assert!(wrong.starts_with("tidegate.toml: cannot be read: Too many levels of symbolic links"), "{wrong}");
}

#[test]
fn a_directory_keeps_the_rules() {
    let wrong = wrong_after(|read| {
        fs::remove_file(read.folder.path(FILE)).unwrap();
        fs::create_dir(read.folder.path(FILE)).unwrap();
    });
    assert_eq!(wrong, "tidegate.toml: cannot be read: it is a directory; put a file of settings there");
}

#[test]
fn a_pipe_that_nobody_writes_to_keeps_the_rules_and_nobody_waits_for_it() {
    let wrong = wrong_after(|read| {
        fs::remove_file(read.folder.path(FILE)).unwrap();
        assert!(Command::new("mkfifo").arg(read.folder.path(FILE)).status().unwrap().success());
    });
    assert_eq!(wrong, "tidegate.toml: cannot be read: it is no regular file; put a file of settings there");
}

#[test]
fn a_device_keeps_the_rules() {
    let wrong = wrong_after(|read| read.folder.link(FILE, "/dev/zero"));
    assert_eq!(wrong, "tidegate.toml: cannot be read: it is no regular file; put a file of settings there");
}

#[test]
fn a_file_that_is_too_long_keeps_the_rules() {
    let comment = |bytes: usize| format!("#{}", " ".repeat(bytes - 1));
    let wrong = wrong_after(|read| read.folder.put(FILE, comment((4 << 20) + 1)));
    assert!(wrong.starts_with("tidegate.toml: cannot be read: it is longer than 4194304 bytes; "), "{wrong}");
    let read = Read::from(&rule("once", "1/d"));
    assert_eq!(read.becomes(comment(4 << 20)), Reloaded::Replaced, "the longest is not too long");
}

#[test]
fn what_is_no_text_keeps_the_rules() {
    let wrong = wrong_after(|read| read.folder.put(FILE, b"# \xff"));
    assert!(
        wrong.starts_with("tidegate.toml: cannot be read: it is no UTF-8 text from byte 3 on; "),
        "{wrong}"
    );
}

#[test]
fn an_empty_file_does_not_replace_rules_and_a_comment_does() {
    for empty in ["", "\n", " \n\t\n"] {
        let wrong = wrong_after(|read| read.folder.put(FILE, empty));
        assert_eq!(
            wrong,
            "tidegate.toml: is empty, while rules are in force; write a comment into it if there shall be none: # no rules"
        );
    }
    let read = Read::from(&rule("once", "1/d"));
    read.becomes("# no rules");
    assert_eq!(
        read.told(),
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
fn a_link_that_points_elsewhere_is_another_file() {
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
fn a_folder_that_is_a_link_may_point_elsewhere_as_with_kubernetes() {
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
    assert_eq!((read.told(), read.status()), (Vec::new(), Status::default()));
}

#[test]
fn a_pipe_at_the_start_is_read_once_and_never_again() {
    let folder = Folder::new();
    let path = folder.path(FILE);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let writer = thread::spawn(move || fs::write(path, rule("once", "1/d")));
    let read = Read::within(folder);
    writer.join().unwrap().unwrap();
    assert_eq!(read.rules.path(), None, "nobody watches it");
    assert_eq!(read.asked(), Reloaded::Same);
    assert_eq!(
        read.told(),
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

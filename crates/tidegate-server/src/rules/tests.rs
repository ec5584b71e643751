//! Tests of reloads from files of every kind.

mod found;
mod reports;
mod written;

use std::fs;
use std::sync::{Arc, Mutex};

use tidegate::{ManualClock, Zone};
use tidegate_rules::Attributes;

use super::{Occasion, Reloaded, Rules, Status, lock};
use crate::reload::folder::Folder;
use crate::reload::{Look, ReportListener, Watched};
use crate::settings::{Settings, Source};

/// The name of the file, or of the symbolic link.
const FILE: &str = "tidegate.toml";

/// Rules from a file, and the reports about them.
struct Read {
    folder: Folder,
    rules: Rules,
    settings: Settings,
    reports: Arc<Mutex<Vec<String>>>,
}

impl Read {
    /// Creates rules from this text.
    fn from(text: &str) -> Read {
        let folder = Folder::new();
        folder.put(FILE, text);
        Read::within(folder)
    }

    /// Creates rules from the file in this folder.
    fn within(folder: Folder) -> Read {
        let source = Source::new(Some(folder.path(FILE)), Vec::new());
        let loaded = source.load().expect("the first text is valid");
        let mut settings = loaded.settings.clone();
        let rules = Rules::new(&mut settings, Zone::with_clock(1 << 16, Arc::new(ManualClock::new())))
            .expect("there is memory");
        let reports = Arc::new(Mutex::new(Vec::new()));
        let sender = reports.clone();
        rules.come_from(
            source,
            loaded.text,
            ReportListener::new(move |lines| lock(&sender).push(lines.to_owned())),
        );
        Read { folder, rules, settings, reports }
    }

    fn asked(&self) -> Reloaded {
        self.rules.reload(&self.settings, Occasion::Asked)
    }

    /// Reloads as the watcher does when the file has not changed between two looks.
    fn seen(&self) -> Reloaded {
        self.rules.reload(&self.settings, Occasion::Seen(self.look()))
    }

    fn look(&self) -> Look {
        Look::at(&self.folder.path(FILE))
    }

    /// Replaces the file, and reloads as the watcher does.
    fn becomes(&self, text: impl AsRef<[u8]>) -> Reloaded {
        self.folder.put(FILE, text);
        self.seen()
    }

    fn admits(&self, user: &str) -> bool {
        let request = Attributes::new().set("user", user);
        self.rules.gate.admit(&request).now().expect("a store in memory cannot fail").is_allowed()
    }

    /// Returns the reports since the last call, without the folder.
    fn reports(&self) -> Vec<String> {
        let folder = self.folder.path("").display().to_string();
        lock(&self.reports).drain(..).map(|lines| lines.replace(&folder, "")).collect()
    }

    fn status(&self) -> Status {
        self.rules.status()
    }
}

/// Returns a rule of this name with `user` as its key.
fn rule(name: &str, limit: &str) -> String {
    format!("[[rule]]\nname = \"{name}\"\nkey = [\"user\"]\nlimit = \"{limit}\"\n")
}

#[test]
fn a_denied_key_stays_denied_when_numbers_change_and_rules_come_and_go() {
    let read = Read::from(&rule("once", "1/d"));
    assert!(read.admits("ana") && !read.admits("ana"));
    let texts = [
        rule("once", "1/2d"),
        rule("first", "1000/s") + &rule("once", "1/d"),
        rule("once", "1/d") + &rule("last", "1000/s"),
    ];
    for text in texts.iter().cycle().take(30) {
        assert_eq!(read.becomes(text), Reloaded::Replaced);
        assert!(!read.admits("ana"), "under\n{text}");
    }
    assert!(read.admits("ben"), "other keys are not denied");
}

#[test]
fn a_rule_that_comes_back_finds_its_counts() {
    let read = Read::from(&rule("once", "1/d"));
    assert!(read.admits("ana"));
    read.becomes("# no rules");
    assert!(read.admits("ana"), "no rule is in force");
    read.becomes(rule("once", "1/d"));
    assert!(!read.admits("ana"));
}

#[test]
fn what_is_known_can_be_asked_while_the_file_is_read() {
    let read = Read::from(&rule("once", "1/d"));
    let _turn = lock(&read.rules.turn);
    assert_eq!(read.status(), Status::default());
    assert_eq!(read.rules.text(), Some(rule("once", "1/d")));
    assert_eq!(read.rules.file(), Some(read.folder.path(FILE).display().to_string()));
}

#[test]
fn each_that_comes_into_force_and_each_that_does_not_is_counted() {
    let read = Read::from(&rule("once", "1/d"));
    read.becomes(rule("once", "2/d"));
    read.becomes(rule("once", "2/d"));
    read.becomes("wrong");
    read.becomes("wrong");
    let Status { replaced, rejected, wrong } = read.status();
    assert_eq!((replaced, rejected, wrong.is_some()), (1, 1, true));
    read.becomes(rule("once", "3/d"));
    assert_eq!(read.status(), Status { replaced: 2, rejected: 1, wrong: None });
}

#[test]
fn a_file_that_a_writer_is_still_at_is_never_in_force() {
    let read = Read::from(&rule("a", "1/d"));
    let whole = rule("a", "2/d") + &rule("b", "2/d") + &rule("c", "2/d");
    let mut watched = Watched::default();
    let look = |watched: &mut Watched| {
        if let Some(occasion) = watched.is_to_be_read(read.look())
            && read.rules.reload(&read.settings, occasion) == Reloaded::Unfinished
        {
            watched.wait_for_the_rest();
        }
    };
    (0..3).for_each(|_| look(&mut watched));
    // The file is written in place, one byte between any two looks. Many prefixes are valid policies.
    for end in 0..=whole.len() {
        fs::write(read.folder.path(FILE), &whole[..end]).unwrap();
        look(&mut watched);
        assert_eq!((read.rules.text(), read.status()), (Some(rule("a", "1/d")), Status::default()));
    }
    (0..2).for_each(|_| look(&mut watched));
    assert_eq!(read.rules.text(), Some(whole));
    assert_eq!(read.status(), Status { replaced: 1, ..Status::default() });
}

#[test]
fn a_writer_that_pauses_between_two_rules_switches_none_off() {
    let whole = rule("a", "1/d") + &rule("b", "1/d");
    let read = Read::from(&whole);
    read.folder.put(FILE, rule("a", "1/d"));
    assert_eq!(read.seen(), Reloaded::Unfinished);
    assert_eq!((read.rules.text(), read.status()), (Some(whole.clone()), Status::default()));
    read.folder.put(FILE, &whole);
    assert_eq!((read.seen(), read.reports()), (Reloaded::Same, Vec::new()));
}

#[test]
fn a_file_that_loses_its_last_rule_is_read_when_it_has_rested_or_by_a_signal() {
    let shorter = rule("a", "1/d");
    let whole = shorter.clone() + &rule("b", "1/d");
    for is_asked in [false, true] {
        let read = Read::from(&whole);
        read.folder.put(FILE, &shorter);
        let occasion = if is_asked { Occasion::Asked } else { Occasion::Rested(read.look()) };
        assert_eq!(read.rules.reload(&read.settings, occasion), Reloaded::Replaced);
        assert_eq!(read.rules.text(), Some(shorter.clone()));
    }
}

#[test]
fn a_file_that_changed_between_look_and_reading_is_left_for_the_next_look() {
    let read = Read::from(&rule("once", "1/d"));
    read.folder.put(FILE, rule("once", "2/d"));
    let look = read.look();
    read.folder.put(FILE, rule("once", "3/d"));
    assert_eq!(read.rules.reload(&read.settings, Occasion::Seen(look)), Reloaded::Same);
    assert_eq!(read.rules.text(), Some(rule("once", "1/d")));
}

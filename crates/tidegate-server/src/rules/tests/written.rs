//! Tests of writing the file for an operator.

use std::os::unix::fs::PermissionsExt as _;

use super::super::{Changes, NotWritten};
use super::*;
use crate::precondition::{Precondition, Tag, Tags, Unmet};

/// Writes as an operator does who has read the text in force.
fn write(read: &Read, text: &str) -> Result<Changes, NotWritten> {
    let tag = read.rules.tag().expect("rules of a file have a tag");
    read.rules.write(text, &read.settings, &named(tag), |_| Ok(()))
}

fn named(tag: Tag) -> Precondition {
    Precondition { if_match: Some(Tags::Listed(vec![tag.to_string()])), if_none_match: None }
}

fn on_disk(read: &Read) -> String {
    fs::read_to_string(read.folder.path(FILE)).expect("it is there")
}

#[test]
fn a_valid_text_is_written_put_in_force_and_reported() {
    let read = Read::from(&rule("once", "1/d"));
    assert!(read.admits("ana"));
    assert!(write(&read, &rule("once", "1/2d")).is_ok());
    assert_eq!((on_disk(&read), read.rules.text()), (rule("once", "1/2d"), Some(rule("once", "1/2d"))));
    assert!(!read.admits("ana"), "counts stay");
    assert_eq!(read.reports(), ["rules: tidegate.toml was written\n  ~ rule \"once\": 1/d -> 1/2d"]);
    assert_eq!(read.seen(), Reloaded::Same, "the watcher finds nothing new");
    assert_eq!((read.reports(), read.status().replaced), (Vec::new(), 1));
}

#[test]
fn an_invalid_text_is_not_written() {
    let read = Read::from(&rule("once", "1/d"));
    for text in ["wrong", ""] {
        assert!(matches!(write(&read, text), Err(NotWritten::Rejected(_))), "{text:?}");
    }
    assert_eq!(on_disk(&read), rule("once", "1/d"));
    assert_eq!((read.status(), read.reports()), (Status::default(), Vec::new()), "the file is not wrong");
    assert_eq!(read.folder.names(), [FILE]);
}

#[test]
fn a_text_that_no_machine_has_the_memory_for_is_not_written_and_not_in_force() {
    let read = Read::from(&rule("once", "1/d"));
    let text = format!("[store]\nsize = '4000000GiB'\n[zone.z]\nsize = '1GiB'\n{}", rule("once", "2/d"));
    let Err(NotWritten::Rejected(error)) = write(&read, &text) else { panic!("it is rejected") };
    let said = error.to_string();
    assert!(
        said.contains("tidegate.toml: a store of 4000000 GiB and zones of 1 GiB: this machine has"),
        "{said}"
    );
    assert_eq!((on_disk(&read), read.rules.text()), (rule("once", "1/d"), Some(rule("once", "1/d"))));
    assert_eq!(read.becomes(&text), Reloaded::Rejected);
    assert_eq!(read.status().wrong, Some(said));
}

#[test]
fn a_text_that_is_written_mends_the_file() {
    let read = Read::from(&rule("once", "1/d"));
    read.becomes("wrong");
    assert!(
        read.rules.write(&rule("once", "1/d"), &read.settings, &Precondition::anything(), |_| Ok(())).is_ok()
    );
    assert_eq!(on_disk(&read), rule("once", "1/d"));
    assert_eq!(read.status().wrong, None);
}

#[test]
fn a_link_stays_a_link_and_its_target_changes() {
    let folder = Folder::new();
    fs::create_dir(folder.path("other")).unwrap();
    fs::write(folder.path("other/target"), rule("once", "1/d")).unwrap();
    folder.link("hop", "other/target");
    folder.link(FILE, "hop");
    let read = Read::within(folder);
    assert!(write(&read, &rule("once", "2/d")).is_ok());
    assert_eq!(fs::read_link(read.folder.path(FILE)).unwrap().to_str(), Some("hop"));
    assert_eq!(fs::read_link(read.folder.path("hop")).unwrap().to_str(), Some("other/target"));
    assert_eq!(fs::read_to_string(read.folder.path("other/target")).unwrap(), rule("once", "2/d"));
    assert_eq!(fs::read_dir(read.folder.path("other")).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn permissions_stay_what_they_are() {
    let read = Read::from(&rule("once", "1/d"));
    for mode in [0o600, 0o644, 0o660] {
        fs::set_permissions(read.folder.path(FILE), fs::Permissions::from_mode(mode)).unwrap();
        assert!(write(&read, &rule("once", "2/d")).is_ok());
        let now = fs::metadata(read.folder.path(FILE)).unwrap().permissions().mode();
        assert_eq!(now & 0o7777, mode);
    }
}

#[test]
fn where_nothing_can_be_written_nothing_changes() {
    let become_another: [fn(&Folder); 3] = [
        |folder| fs::remove_file(folder.path(FILE)).unwrap(),
        |folder| fs::remove_dir_all(folder.path("")).unwrap(),
        |folder| {
            fs::remove_file(folder.path(FILE)).unwrap();
            fs::create_dir(folder.path(FILE)).unwrap();
        },
    ];
    for become_another in become_another {
        let read = Read::from(&rule("once", "1/d"));
        become_another(&read.folder);
        assert!(matches!(write(&read, &rule("once", "2/d")), Err(NotWritten::Io(_))));
        assert_eq!((read.rules.text(), read.status()), (Some(rule("once", "1/d")), Status::default()));
    }
}

#[test]
fn a_link_that_was_planted_beside_it_is_not_followed() {
    let read = Read::from(&rule("once", "1/d"));
    read.folder.put("victim", "precious");
    read.folder.link(&format!("{FILE}.{}.new", std::process::id()), read.folder.path("victim"));
    assert!(write(&read, &rule("once", "2/d")).is_ok());
    assert_eq!(on_disk(&read), rule("once", "2/d"));
    assert_eq!(fs::read_to_string(read.folder.path("victim")).unwrap(), "precious");
    assert_eq!(read.folder.names().len(), 3, "nothing is left behind");
}

#[test]
fn a_text_that_was_not_seen_is_not_replaced_unless_it_is_the_same() {
    let (first, second) = (rule("once", "1/d"), rule("once", "2/d"));
    let read = Read::from(&first);
    let unnamed = |text: &str| read.rules.write(text, &read.settings, &Precondition::default(), |_| Ok(()));
    assert!(matches!(unnamed(&second), Err(NotWritten::Unmet(Unmet::NotNamed))));
    assert!(unnamed(&first).is_ok(), "nothing is lost");

    let seen = read.rules.tag().expect("rules of a file have a tag");
    assert_eq!(read.becomes(&second), Reloaded::Replaced);
    let stale = read.rules.write(&rule("once", "3/d"), &read.settings, &named(seen), |_| Ok(()));
    assert!(matches!(stale, Err(NotWritten::Unmet(Unmet::Changed))), "the file was read again since");
    assert_eq!((on_disk(&read), read.rules.text()), (second.clone(), Some(second)));
    assert_eq!(read.becomes(&first), Reloaded::Replaced);
    assert_eq!(read.rules.tag(), Some(seen), "the tag is that of the text");
}

#[test]
fn without_a_file_nothing_is_written() {
    let mut settings = Settings::default();
    let rules = Rules::new(&mut settings, Zone::new(1 << 16)).expect("there is memory");
    assert!(matches!(
        rules.write("# none", &settings, &Precondition::anything(), |_| Ok(())),
        Err(NotWritten::NoFile)
    ));
}

#[test]
fn a_file_that_was_edited_since_is_overwritten_only_with_if_match_any() {
    let edited = rule("once", "9/d");
    for theirs in [&b"wrong"[..], edited.as_bytes(), b"", b"\xff"] {
        let read = Read::from(&rule("once", "1/d"));
        fs::write(read.folder.path(FILE), theirs).unwrap();
        assert!(matches!(write(&read, &rule("once", "2/d")), Err(NotWritten::Changed)));
        assert_eq!(fs::read(read.folder.path(FILE)).unwrap(), theirs);
        assert_eq!((read.rules.text(), read.status()), (Some(rule("once", "1/d")), Status::default()));
        assert!(
            read.rules
                .write(&rule("once", "2/d"), &read.settings, &Precondition::anything(), |_| Ok(()))
                .is_ok()
        );
        assert_eq!(on_disk(&read), rule("once", "2/d"));
    }
}

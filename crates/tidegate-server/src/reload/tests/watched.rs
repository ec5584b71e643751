//! Tests of changes without a signal. The test triggers each look of the watcher.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use super::*;
use crate::reload::look::{RESTS, RESTS_WITHOUT_TEXT};

const FILE: &str = "tidegate.toml";
const READ: &str = "rules: tidegate.toml was read again";
const WRONG: &str = "rules: tidegate.toml is invalid; the previous rules stay in force";
const MENDED: &str = "rules: tidegate.toml is valid again";

/// A server, its file, and the reports about it.
struct Watching {
    server: Server,
    folder: Folder,
    looks: Looks,
    reports: Arc<Mutex<Vec<String>>>,
}

impl Watching {
    /// Starts a server with the file in this folder, and looks until the file was read.
    fn start(folder: Folder) -> Watching {
        let source = Source::new(Some(folder.path(FILE)), Vec::new());
        let loaded = source.load().expect("the first text is valid");
        let any_port = "127.0.0.1:0".parse().ok();
        let settings =
            Settings { resp: any_port, http: any_port, threads: NonZeroUsize::MIN, ..loaded.settings };
        let server = Server::start(settings, Zone::new(1 << 16)).expect("a free port can be had");
        let (pace, looks) = by_hand();
        let reports = Arc::new(Mutex::new(Vec::new()));
        let sender = reports.clone();
        let tell = ReportListener::new(move |lines| {
            sender.lock().unwrap_or_else(PoisonError::into_inner).push(lines.to_owned());
        });
        server.read_rules_from(source, loaded.text, tell, pace);
        let watching = Watching { server, folder, looks, reports };
        watching.looks.begin();
        watching.look(RESTS);
        assert_eq!(watching.reports(), Vec::<String>::new(), "nothing has changed");
        watching
    }

    fn look(&self, times: u32) {
        (0..times).for_each(|_| self.looks.look());
    }

    /// Returns the reports since the last call, without the folder.
    fn reports(&self) -> Vec<String> {
        let folder = self.folder.path("").display().to_string();
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.drain(..).map(|lines| lines.replace(&folder, "")).collect()
    }

    /// Looks until a report comes: at the second look at the earliest, and after [`RESTS_WITHOUT_TEXT`] looks at the
    /// latest.
    fn next_report(&self) -> String {
        self.look(1);
        assert_eq!(self.reports(), Vec::<String>::new(), "a writer may be at it");
        for _ in 1..RESTS_WITHOUT_TEXT {
            self.look(1);
            if let [report] = &self.reports()[..] {
                return report.clone();
            }
        }
        panic!("{RESTS_WITHOUT_TEXT} looks, and no report");
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.folder.path(name), text).expect("a file can be written");
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.folder.path(from), self.folder.path(to)).expect("a file can be moved");
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.folder.path(name)).expect("a file can be removed");
    }

    /// Returns the verdict for this user on the path `/{name}`, over RESP and then over HTTP.
    fn admits(&self, name: &str, user: &str) -> [bool; 2] {
        let command = format!("TG.ADMIT path /{name} user {user}\r\nQUIT\r\n");
        let resp = ask(self.server.resp(), &command);
        let body = format!(r#"{{"attributes":{{"path":"/{name}","user":"{user}"}}}}"#);
        let head = "POST /v1/admit HTTP/1.1\r\nhost: localhost\r\nconnection: close";
        let of_json = format!("content-type: application/json\r\ncontent-length: {}", body.len());
        let http = ask(self.server.http(), &format!("{head}\r\n{of_json}\r\n\r\n{body}"));
        assert!(resp.contains("\r\nallowed\r\n:") && http.starts_with("HTTP/1.1 "), "{resp}{http}");
        [resp.contains("\r\nallowed\r\n:1\r\n"), http.starts_with("HTTP/1.1 200 ")]
    }
}

/// Sends a request on a new connection, and returns everything until the server closes it.
fn ask(address: Option<SocketAddr>, request: &str) -> String {
    let mut client = TcpStream::connect(address.expect("it has both fronts")).expect("it listens");
    client.set_read_timeout(Some(TIMEOUT)).expect("the timeout can be set");
    client.write_all(request.as_bytes()).expect("it reads");
    let mut reply = String::new();
    client.read_to_string(&mut reply).expect("the server closes the connection");
    reply
}

/// Returns a rule of this name for the path `/{name}`, with `user` as its key.
fn rule(name: &str, limit: &str) -> String {
    format!(
        "[[rule]]\nname = \"{name}\"\nwhen = {{ path = \"/{name}\" }}\nkey = [\"user\"]\nlimit = \"{limit}\"\n"
    )
}

/// Returns a rule that allows a user once a day, and another rule that depends on `number`. No two texts have the same
/// length: with coarse file timestamps, two changes can fall into the same step.
fn text(number: usize) -> String {
    rule("once", "1/d") + &rule("other", &format!("{}/d", number + 1)) + &"#".repeat(number + 1)
}

/// A change of the file, and the start of the report that it causes.
type Change = (fn(&Watching), &'static str);

const CHANGES: [Change; 23] = [
    (|it| it.write(FILE, text(2)), READ),
    (|it| it.folder.put(FILE, text(3)), READ),
    (|it| it.folder.link(FILE, "current/one"), READ),
    (|it| it.write("current/one", text(5)), READ),
    (|it| it.folder.put("current/one", text(6)), READ),
    (|it| it.folder.link(FILE, "current/two"), READ),
    (|it| it.folder.link("current", "folder-2"), READ),
    (|it| it.write(FILE, "no rules, no comment"), WRONG),
    (|it| it.write(FILE, text(9)), MENDED),
    (|it| it.remove("folder-2/two"), WRONG),
    (|it| it.folder.put("folder-2/two", text(10)), MENDED),
    (|it| it.rename("folder-2", "away"), WRONG),
    (|it| it.rename("away", "folder-2"), MENDED),
    (|it| replace_by("mkdir", it), WRONG),
    (|it| it.rename(FILE, "directory"), WRONG),
    (|it| it.folder.put(FILE, text(11)), MENDED),
    (|it| replace_by("mkfifo", it), WRONG),
    (|it| it.folder.put(FILE, text(12)), MENDED),
    (|it| it.write(FILE, ""), WRONG),
    (|it| it.folder.put(FILE, text(12) + &"#".repeat(5 << 20)), WRONG),
    (|it| it.write(FILE, b"\xff"), WRONG),
    (|it| it.folder.put(FILE, text(12)), MENDED),
    (|it| it.folder.put(FILE, rule("new", "1/h") + &text(13)), READ),
];

/// Removes the file, and runs a program that creates something else of that name.
fn replace_by(program: &str, watching: &Watching) {
    watching.remove(FILE);
    let made = Command::new(program).arg(watching.folder.path(FILE)).status();
    assert!(made.is_ok_and(|status| status.success()), "{program}");
}

#[test]
fn every_kind_of_change_is_seen_and_no_decision_is_wrong() {
    let folder = Folder::new();
    for name in ["folder-1", "folder-2"] {
        fs::create_dir(folder.path(name)).unwrap();
    }
    for (name, number) in [("folder-1/one", 4), ("folder-1/two", 7), ("folder-2/two", 8), (FILE, 1)] {
        fs::write(folder.path(name), text(number)).unwrap();
    }
    symlink("folder-1", folder.path("current")).unwrap();
    let watching = Watching::start(folder);
    assert_eq!(watching.admits("once", "ana"), [true, false]);
    for (number, (change, line)) in CHANGES.iter().enumerate() {
        change(&watching);
        let report = watching.next_report();
        assert!(report.starts_with(line), "change {number}: {report}");
        assert_eq!(watching.admits("once", "ana"), [false, false], "after change {number}");
        let new = format!("user-{number}");
        assert_eq!(watching.admits("once", &new), [true, false], "after change {number}");
    }
    watching.server.stop();
}

#[test]
fn a_writer_that_pauses_after_a_rule_disables_no_rule() {
    let (shorter, folder) = (rule("other", "9/d"), Folder::new());
    let whole = shorter.clone() + &rule("once", "1/d");
    folder.put(FILE, &whole);
    let watching = Watching::start(folder);
    assert_eq!(watching.admits("once", "ana"), [true, false]);
    for (text, looks) in [(&shorter, RESTS_WITHOUT_TEXT - 1), (&whole, RESTS)] {
        watching.folder.put(FILE, text);
        watching.look(looks);
        assert_eq!((watching.reports(), watching.admits("once", "ana")), (Vec::new(), [false, false]));
    }
    watching.folder.put(FILE, &shorter);
    // A file that has been at rest for [`RESTS_WITHOUT_TEXT`] looks is taken as finished.
    assert!(watching.next_report().starts_with(READ));
    assert_eq!(watching.admits("once", "ana"), [true, true], "the rule was taken away");
    watching.server.stop();
}

#[test]
fn an_attribute_that_no_rule_uses_is_named_once() {
    let folder = Folder::new();
    folder.put(FILE, "[[rule]]\nname = 'site'\nkey = ['usr']\nlimit = '9/h'\n");
    let watching = Watching::start(folder);
    for _ in 0..3 {
        let reply = ask(watching.server.resp(), "TG.ADMIT user ana tenant x path /\r\nQUIT\r\n");
        assert!(reply.contains("\r\nallowed\r\n:1\r\n"), "{reply}");
        watching.look(1);
    }
    assert_eq!(
        watching.reports(),
        [
            "rules: requests have the attribute \"tenant\", which no rule uses; if that is intended, declare it: [attributes] \
             names = [\"tenant\"]",
            "rules: requests have the attribute \"user\", which no rule uses; did you mean \"usr\"?",
        ]
    );
    watching.server.stop();
}

#[test]
fn a_rule_that_changes_too_often_for_its_counts_is_named() {
    let folder = Folder::new();
    folder.put(FILE, rule("often", "10/d"));
    let watching = Watching::start(folder);
    for amount in 11..=15 {
        assert_eq!(watching.admits("often", "ana"), [true, true]);
        watching.folder.put(FILE, rule("often", &format!("{amount}/d")));
        assert!(watching.next_report().starts_with(READ));
    }
    assert!(watching.admits("often", "ana")[0]);
    watching.look(1);
    assert_eq!(
        watching.reports(),
        ["rules: rule \"often\" has had more than 4 other limits that keys still have counts under; \
          the counts under the oldest of them are carried no more"]
    );
    watching.server.stop();
}

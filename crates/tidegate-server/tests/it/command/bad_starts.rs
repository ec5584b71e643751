//! Tests of startup errors: each ends with one clear message.
//!
//! A case is a file with the command, its input files, the exit code and the whole output.
//!
//! ```text
//! $ TIDEGATE_HTTP=off tidegate serve --config a.toml
//! > a.toml
//! [server]
//! < 2
//! error: …
//! ```
//!
//! `{taken}` is a port in use, `{next}` the port after it, and `{owner}` the process that uses it. With
//! `TIDEGATE_BLESS=1` in the environment the actual output is written to the files.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use super::call::Call;
use crate::process::Ended;

struct Case {
    path: PathBuf,
    /// The command and its input files.
    before: String,
    code: i32,
    said: String,
}

#[test]
fn messages_are_those_on_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/command/bad_starts");
    let mut wrong = Vec::new();
    let paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(paths.len() >= 10, "{paths:?}");
    for path in paths {
        let case = Case::read(path);
        let Ended { code, err: said, .. } = case.run();
        if std::env::var_os("TIDEGATE_BLESS").is_some() {
            let code = code.unwrap();
            fs::write(&case.path, format!("{}< {code}\n{said}", case.before)).unwrap();
        } else if (code, said.as_str()) != (Some(case.code), case.said.as_str()) {
            wrong.push(format!("{}: {code:?}\n{said}", case.path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

impl Case {
    fn read(path: PathBuf) -> Case {
        let text = fs::read_to_string(&path).expect("a case is text");
        let (before, after) = text.split_once("\n< ").expect("a case has an end");
        let (code, said) = after.split_once('\n').expect("something is said");
        let code = code.parse().expect("a code is a number");
        Case { before: format!("{before}\n"), code, said: said.to_owned(), path }
    }

    fn run(&self) -> Ended {
        let held = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let taken = held.local_addr().expect("it has an address").port();
        let (command, files) = self.before.split_once('\n').expect("a case begins with a line");
        let name = self.path.file_stem().expect("a case has a name");
        let mut call = Call::from(&name.display().to_string());
        for file in format!("\n{files}").split("\n> ").skip(1) {
            let (name, content) = file.split_once('\n').expect("a file has a name");
            call = call.file(name, content);
        }
        let command = command.strip_prefix("$ ").expect("a command").replace("{taken}", &taken.to_string());
        let (variables, arguments) = command.split_once("tidegate").expect("a command");
        for variable in variables.split_whitespace() {
            let (name, value) = variable.split_once('=').expect("a variable has a value");
            call = call.variable(name, value);
        }
        let ended = call.run(&arguments.split_whitespace().collect::<Vec<_>>());
        assert_eq!(ended.out, "", "talk belongs on standard error");
        Ended { err: without_what_varies(&ended.err, taken), ..ended }
    }
}

fn without_what_varies(said: &str, taken: u16) -> String {
    let own = format!("(process {})", std::process::id());
    let without_owner = |line: &str| match line.split_once("used by: ") {
        Some((before, owner)) if owner.ends_with(&own) => format!("{before}used by: {{owner}}\n"),
        _ => format!("{line}\n"),
    };
    let said: String = said.lines().map(without_owner).collect();
    said.replace(&format!(":{taken}"), ":{taken}")
        .replace(&format!(":{}", taken.checked_add(1).unwrap_or(0)), ":{next}")
}

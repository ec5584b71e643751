//! Tests of errors in rules: each is reported once, at its place, with a remedy.
//!
//! A case is a pair of files: `NAME.toml`, and in `NAME.txt` the output of `tidegate check NAME.toml`, standard error
//! first. With `TIDEGATE_BLESS=1` in the environment the actual output is written to the files.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::call::Call;

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/command/broken_configs");
    let paths =
        fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("it has entries").path());
    let mut cases: Vec<_> = paths.filter(|path| path.extension().is_some_and(|of| of == "toml")).collect();
    cases.sort();
    assert!(cases.len() >= 50, "{}", cases.len());
    cases
}

/// Returns a call from a folder with only this file, separate for each test, and the name of the file.
fn call(test: &str, case: &Path) -> (Call, String) {
    let name = case.file_name().expect("it has a name").display().to_string();
    let text = fs::read_to_string(case).expect("a case is text");
    (Call::from(&format!("{test}_{name}")).file(&name, &text), name)
}

#[test]
fn what_check_says_is_what_is_stored() {
    let mut wrong = Vec::new();
    for case in cases() {
        let (call, name) = call("stored", &case);
        let ended = call.run(&["check", &name]);
        let said = format!("{}{}exit {}\n", ended.err, ended.out, ended.code.expect("it ends"));
        let stored = case.with_extension("txt");
        if std::env::var_os("TIDEGATE_BLESS").is_some() {
            fs::write(stored, said).unwrap();
        } else if fs::read_to_string(&stored).unwrap_or_default() != said {
            wrong.push(format!("{}:\n{said}", stored.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn json_has_the_same_findings_in_order_and_none_twice() {
    for case in cases() {
        let (call, name) = call("json", &case);
        let (report, said) = (call.run(&["check", "--json", &name]), call.run(&["check", &name]));
        assert_eq!((report.err.as_str(), report.code), ("", said.code), "{name}");
        let report: Value = serde_json::from_str(&report.out).expect("it is JSON");
        assert_eq!(report["ok"], said.code == Some(0), "{name}");
        assert_eq!(report["rules"].is_u64(), said.code == Some(0), "{name}");
        let mut places = Vec::new();
        for (kind, findings) in [("error", &report["errors"]), ("warning", &report["warnings"])] {
            for finding in findings.as_array().expect("a list") {
                let message = finding["message"].as_str().expect("text");
                let line = format!("{kind}: {name}:{}:{}: {message}\n", finding["line"], finding["column"]);
                assert_eq!(said.err.matches(&line).count(), 1, "{line}{}", said.err);
                places.push((finding["line"].as_u64(), finding["column"].as_u64(), line));
            }
        }
        assert!(places.is_sorted_by_key(|(line, column, _)| (*line, *column)), "{name}: {places:?}");
        assert_eq!(places.iter().collect::<HashSet<_>>().len(), places.len(), "{name}");
        let heads =
            said.err.lines().filter(|line| line.starts_with("error: ") || line.starts_with("warning: "));
        assert_eq!(heads.count(), places.len(), "{name}");
    }
}

#[test]
fn a_server_does_not_start_with_settings_that_check_rejects() {
    for case in cases().into_iter().step_by(7) {
        let (call, name) = call("served", &case);
        let checked = call.run(&["check", &name]);
        if checked.code == Some(2) {
            let started = call.run(&["serve", "--config", &name]);
            assert_eq!((started.code, started.err), (checked.code, checked.err), "{name}");
        }
    }
}

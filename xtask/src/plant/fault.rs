//! One known fault, as written in `xtask/faults/NN-name.txt`.
//!
//! ```text
//! what: a denied request is charged all the same
//! file: crates/tidegate-core/src/algorithm/token_bucket.rs
//! test: it:a_denied_request_spends_nothing
//! test: lib:denial
//! find:
//! <<<
//!     if denied { return state; }
//! >>>
//! replace:
//! <<<
//!     if denied { return spent; }
//! >>>
//! ```
//!
//! A test is a filter for the names of a crate's own tests (`lib:`) or of its integration tests (`it:`); with several
//! `test:` lines, each must turn red. The crate is the one that the file belongs to, unless the line names another, as in
//! `test: tidegate-server/it:NAME`. The text between `<<<` and `>>>` is taken as it stands, without the last line break.

use std::fmt;
use std::str::Lines;

use crate::failure::Failure;

/// A change to one file and the tests that must notice it.
#[derive(Debug, Default)]
pub(super) struct Fault {
    pub(super) name: String,
    pub(super) what: String,
    pub(super) file: String,
    pub(super) tests: Vec<Test>,
    find: String,
    replace: Option<String>,
}

impl Fault {
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, Failure> {
        let mut fault = Self { name: name.to_owned(), ..Self::default() };
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            fault.read_line(line, &mut lines).map_err(|failure| failure.within(&fault.path()))?;
        }
        let missing = [
            ("what:", fault.what.is_empty()),
            ("file:", fault.file.is_empty()),
            ("test:", fault.tests.is_empty()),
            ("find:", fault.find.is_empty()),
            ("replace:", fault.replace.is_none()),
        ];
        if let Some((part, _)) = missing.iter().find(|(_, missing)| *missing) {
            return Err(Failure::new(format!("{}: `{part}` is missing or empty", fault.path())));
        }
        let package = package_of(&fault.file);
        for test in fault.tests.iter_mut().filter(|test| test.package.is_empty()) {
            package.clone_into(&mut test.package);
        }
        Ok(fault)
    }

    fn read_line(&mut self, line: &str, rest: &mut Lines<'_>) -> Result<(), Failure> {
        let (part, value) = line.split_once(':').unwrap_or((line, ""));
        match (part, value.trim()) {
            ("", "") => {}
            ("what", value) => value.clone_into(&mut self.what),
            ("file", value) => value.clone_into(&mut self.file),
            ("test", value) => self.tests.push(Test::parse(value)?),
            ("find", "") => self.find = block(rest)?,
            ("replace", "") => self.replace = Some(block(rest)?),
            _ => return Err(Failure::new(format!("`{line}` is not understood"))),
        }
        Ok(())
    }

    /// The fault's own file, for messages.
    pub(super) fn path(&self) -> String {
        format!("xtask/faults/{}.txt", self.name)
    }

    /// The source with the fault in it; fails unless the text to replace occurs exactly once.
    pub(super) fn plant(&self, source: &str) -> Result<String, Failure> {
        let found = source.matches(&self.find).count();
        if found != 1 {
            let (path, file) = (self.path(), &self.file);
            return Err(Failure::new(format!(
                "{path}: the `find:` text occurs {found} times in {file}, not once"
            )));
        }
        let planted = source.replacen(&self.find, self.replace.as_deref().unwrap_or_default(), 1);
        if planted == source {
            return Err(Failure::new(format!("{}: `find:` and `replace:` are the same", self.path())));
        }
        Ok(planted)
    }
}

/// The lines between `<<<` and `>>>`.
fn block(lines: &mut Lines<'_>) -> Result<String, Failure> {
    if lines.next() != Some("<<<") {
        return Err(Failure::new("a `find:` or `replace:` line is followed by a line `<<<`"));
    }
    let mut text = Vec::new();
    loop {
        match lines.next() {
            Some(">>>") => return Ok(text.join("\n")),
            Some(line) => text.push(line),
            None => return Err(Failure::new("a block that starts with `<<<` ends with a line `>>>`")),
        }
    }
}

/// The crate that a file belongs to: `crates/NAME/…`, `examples/NAME/…`, or `NAME/…`.
fn package_of(file: &str) -> &str {
    let path = ["crates/", "examples/"].iter().find_map(|folder| file.strip_prefix(folder)).unwrap_or(file);
    path.split('/').next().unwrap_or_default()
}

/// A filter for tests, and the test program it is meant for.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Test {
    pub(super) package: String,
    pub(super) target: Target,
    pub(super) filter: String,
}

impl Test {
    fn parse(text: &str) -> Result<Self, Failure> {
        let known = [("lib:", Target::Library), ("it:", Target::Integration)];
        let (package, rest) = text.split_once('/').unwrap_or(("", text));
        let split = known.iter().find_map(|(prefix, target)| Some((*target, rest.strip_prefix(prefix)?)));
        match split {
            Some((target, filter)) if !filter.is_empty() && !filter.starts_with(':') => {
                Ok(Self { package: package.to_owned(), target, filter: filter.to_owned() })
            }
            _ => Err(Failure::new(format!(
                "test `{text}`: write `lib:NAME` or `it:NAME`, or `CRATE/it:NAME` for another crate"
            ))),
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.target {
            Target::Library => "lib",
            Target::Integration => "it",
        };
        write!(formatter, "{}/{prefix}:{}", self.package, self.filter)
    }
}

/// One of the two test programs of a crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    Library,
    Integration,
}

impl Target {
    /// The arguments that make cargo build this program only.
    pub(super) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Library => &["--lib"],
            Self::Integration => &["--test", "it"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAULT: &str = concat!(
        "what: denial is charged\nfile: crates/tidegate-core/src/a.rs\ntest: it:oracle::free\ntest: lib:denial\n",
        "\nfind:\n<<<\n  if a {\n  b\n>>>\nreplace:\n<<<\n>>>\n",
    );

    #[test]
    fn a_fault_is_read_whole() {
        let fault = Fault::parse("01-denial", FAULT).unwrap();
        let tests: Vec<String> = fault.tests.iter().map(Test::to_string).collect();

        assert_eq!(fault.what, "denial is charged");
        assert_eq!(fault.file, "crates/tidegate-core/src/a.rs");
        assert_eq!(tests, ["tidegate-core/it:oracle::free", "tidegate-core/lib:denial"]);
        assert_eq!(fault.find, "  if a {\n  b");
        assert_eq!(fault.replace.as_deref(), Some(""));
    }

    #[test]
    fn a_test_belongs_to_the_crate_of_the_file_unless_its_line_names_another() {
        let text = FAULT.replace("crates/tidegate-core/src/a.rs", "crates/tidegate-rules/src/a.rs");
        let fault = Fault::parse("01", &text.replace("it:oracle", "tidegate-server/it:oracle")).unwrap();
        let packages: Vec<_> = fault.tests.iter().map(|test| &*test.package).collect();
        assert_eq!(packages, ["tidegate-server", "tidegate-rules"]);
        assert_eq!(package_of("conformance/src/law.rs"), "conformance");
    }

    #[test]
    fn what_is_missing_or_strange_is_named_with_the_file() {
        let broken = [
            (FAULT.replace("what: denial is charged\n", ""), "`what:` is missing"),
            (FAULT.replace("test:", "tset:"), "`tset: it:oracle::free` is not understood"),
            (FAULT.replace("lib:denial", "denial"), "write `lib:NAME` or `it:NAME`"),
            (FAULT.replace("<<<\n>>>", "<<<\n"), "ends with a line `>>>`"),
            (FAULT.replace("find:\n<<<", "find:"), "followed by a line `<<<`"),
        ];
        for (text, expected) in broken {
            let message = Fault::parse("01-denial", &text).unwrap_err().to_string();
            assert!(message.starts_with("xtask/faults/01-denial.txt: "), "{message}");
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn planting_replaces_the_one_place() {
        let fault = Fault::parse("01-denial", FAULT).unwrap();
        assert_eq!(fault.plant("fn c() {\n  if a {\n  b\n}\n").unwrap(), "fn c() {\n\n}\n");
    }

    #[test]
    fn planting_nowhere_or_twice_fails_with_the_count() {
        let fault = Fault::parse("01-denial", FAULT).unwrap();
        for (source, count) in [("fn c() {}", "0 times"), ("  if a {\n  b\n  if a {\n  b\n", "2 times")] {
            let message = fault.plant(source).unwrap_err().to_string();
            assert!(message.contains(count) && message.contains("01-denial.txt"), "{message}");
        }
    }
}

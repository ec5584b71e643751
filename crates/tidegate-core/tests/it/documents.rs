//! Tests that the documents show the real output and code that compiles.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use tidegate::{
    Adjusted, Ask, Clock, DirectLimiter, Limit, Limiter, SECOND, State, TimeZone, Timestamp, TrackedTake,
};

fn document(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name))
        .expect("the document is there")
}

/// Returns the fenced blocks of a document that are marked as plain text.
fn shown(document: &str) -> Vec<&str> {
    blocks(document, "text")
}

/// Returns the fenced blocks of a document with this mark.
fn blocks<'a>(document: &'a str, mark: &str) -> Vec<&'a str> {
    let fence = format!("```{mark}\n");
    document.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_readme_shows_what_the_first_example_prints() {
    // The test builds the example, which takes too long for hundreds of mutants.
    if crate::is_quick() {
        return;
    }
    let run = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "tidegate-core", "--example", "first"])
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let printed = String::from_utf8(run.stdout).unwrap();
    let readme = document("README.md");
    let block = shown(&readme).into_iter().find(|block| block.starts_with("limit 10/s burst 3")).unwrap();
    assert!(printed.starts_with(block), "the README shows\n{block}\nthe example prints\n{printed}");
}

#[test]
fn the_first_program_typed_in_as_shown_prints_what_the_page_says() {
    // The test builds the library once more, as a dependency of another package.
    if crate::is_quick() {
        return;
    }
    let page = document("docs/library.md");
    let (manifest, program) = (blocks(&page, "toml")[0], blocks(&page, "rust")[0]);
    let printed = shown(&page[page.find(program).unwrap()..])[0];
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("first-program");
    write_package(&folder, manifest, program).unwrap();

    let run = Command::new(env!("CARGO"))
        .args(["run", "--quiet"])
        .current_dir(&folder)
        .env("CARGO_NET_OFFLINE", "true")
        .env("CARGO_TARGET_DIR", folder.ancestors().nth(2).unwrap())
        .output()
        .unwrap();

    let complaints = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && !complaints.contains("src/main.rs"), "{complaints}");
    assert_eq!(String::from_utf8(run.stdout).unwrap(), printed);
}

/// Writes a package of one program that depends on this checkout in place of the version on the page.
fn write_package(folder: &Path, dependencies: &str, program: &str) -> io::Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (version, _patch) = env!("CARGO_PKG_VERSION").rsplit_once('.').expect("a version has dots");
    let facade = here.with_file_name("tidegate");
    let (published, checkout) = (format!("{version:?}"), format!("{{ path = {facade:?} }}"));
    assert_eq!(dependencies.matches(&published).count(), 1, "{dependencies}");
    let dependencies = dependencies.replace(&published, &checkout);
    // The package is as `cargo new` writes it. It has its own workspace, because its folder lies in another one.
    let package =
        "[package]\nname = \"first-program\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";
    fs::create_dir_all(folder.join("src"))?;
    fs::write(folder.join("Cargo.toml"), format!("{package}\n{dependencies}"))?;
    fs::write(folder.join("src/main.rs"), program)?;
    // The versions that are already downloaded.
    fs::copy(here.join("../../Cargo.lock"), folder.join("Cargo.lock")).map(|_| ())
}

#[test]
fn every_error_in_the_documents_is_the_one_that_is_given() {
    let mut errors = 0;
    for name in ["README.md", "docs/algorithms.md", "docs/library.md"] {
        let document = document(name);
        for block in shown(&document).into_iter().filter(|block| block.starts_with("limit \"")) {
            let text = block.split('"').nth(1).unwrap();
            let error = text.parse::<Limit>().unwrap_err();
            let printed = if block.lines().count() > 1 { format!("{error:#}") } else { error.to_string() };
            assert_eq!(block.trim_end(), printed, "{name}");
            errors += 1;
        }
    }
    assert_eq!(errors, 3);
}

#[test]
fn the_trace_in_the_documents_plays_as_it_is_written() {
    let page = document("conformance/README.md");
    let trace = conformance::trace::parse(shown(&page)[0]).unwrap();
    assert!(trace.steps.len() > 10);
    conformance::trace::play(&trace, &mut conformance::arm::Pure::default()).unwrap();
}

#[test]
fn every_limit_in_the_table_of_choices_is_one() {
    let page = document("docs/algorithms.md");
    let choices = page.split("## Which one").nth(1).unwrap().split("When in doubt").next().unwrap();
    // The zones of the page, as plain offsets: this crate has no database.
    let zone = |name: &str| Ok(TimeZone::new(name, 3600, []).unwrap());
    let limit = |text| Limit::parse_with(text, zone);
    let limits: Vec<_> = choices.split('`').skip(3).step_by(2).map(limit).collect();
    assert!(limits.len() >= 6 && limits.iter().all(Result::is_ok), "{limits:?}");
}

#[test]
fn states_are_as_small_as_the_page_says() {
    use tidegate::algorithm::{Decide, FixedWindow, PacerParams, TokenBucket};
    fn size<A: Decide>() -> usize {
        size_of::<A::State>()
    }
    assert_eq!((size::<TokenBucket>(), size::<FixedWindow>(), size::<PacerParams>()), (8, 16, 32));
    let after = |limit: Limit, asks: u64| {
        let mut state = State::default();
        for ask in 0..asks {
            assert!(limit.decide(&mut state, Timestamp::from_ticks(ask), Ask::ONE).is_allowed());
        }
        state.bytes() - size_of::<State>()
    };
    let log = after(Limit::sliding_log(1024, SECOND), 1024);
    assert!((16 * 1024..=2 * 16 * 1024).contains(&log), "{log} bytes for 1024 entries");
    assert_eq!(after(Limit::sliding_window(1024, SECOND), 1024), 8 * 17);
    assert_eq!(after(Limit::concurrency(1024, SECOND), 1024), 88 + 96 * 1024);
}

#[test]
fn calls_read_the_clock_as_often_as_the_page_says() {
    #[derive(Debug, Default)]
    struct Counted(AtomicU64);

    impl Clock for Counted {
        fn now(&self) -> Timestamp {
            self.0.fetch_add(1, Ordering::SeqCst);
            Timestamp::after_epoch(SECOND)
        }
    }

    let clock = Arc::new(Counted::default());
    let readings = |call: &dyn Fn()| {
        let before = clock.0.load(Ordering::SeqCst);
        call();
        clock.0.load(Ordering::SeqCst) - before
    };
    for limit in [Limit::per_second(9), Limit::sliding_log(9, SECOND)] {
        let single = DirectLimiter::with_clock(limit, clock.clone());
        let limiter = Limiter::with_clock(limit, clock.clone());
        let in_zone = limit.algorithm() == tidegate::Algorithm::TokenBucket;
        assert_eq!(readings(&|| assert!(single.admit().is_allowed())), 1);
        assert_eq!(readings(&|| assert!(limiter.admit("new").is_allowed())), if in_zone { 2 } else { 1 });
        assert_eq!(readings(&|| assert!(limiter.admit("new").is_allowed())), 1);
        assert!(limiter.admit("ana").is_allowed());
        assert_eq!(readings(&|| assert!(limiter.peek("ana").is_allowed())), 1);
        assert_eq!(readings(&|| assert!(limiter.acquire("ana").blocking().is_ok())), 1);
        assert_eq!(readings(&|| assert_eq!(limiter.refund("ana"), Adjusted::Whole)), 1);
        assert_eq!(readings(&|| drop(limiter.admit_tracked("ana"))), 2);
        let (_, take) = limiter.admit_tracked("ana");
        let take = std::cell::Cell::new(take);
        let refund = || assert_eq!(take.take().map(TrackedTake::refund), Some(Adjusted::Whole));
        assert_eq!(readings(&refund), 2);
        assert!(readings(&|| limiter.reset("unknown")) <= 1);
        assert!(readings(&|| limiter.reset("ana")) <= 2);
        assert!(readings(&|| limiter.set_limit(limit)) <= 1);
    }
}

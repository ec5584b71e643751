//! What the documents show is what happens.

use std::path::Path;
use std::process::Command;

use tidegate::{Ask, Limit, SECOND, State, Timestamp};

fn document(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name))
        .expect("the document is there")
}

/// The fenced blocks of a document that are marked as plain text.
fn shown(document: &str) -> Vec<&str> {
    document.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_readme_shows_what_the_first_example_prints() {
    // It builds the example; whoever tries hundreds of mutants has no time for that.
    if crate::is_quick() {
        return;
    }
    let run = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "tidegate", "--example", "first"])
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let printed = String::from_utf8(run.stdout).unwrap();
    let readme = document("README.md");
    let block = shown(&readme).into_iter().find(|block| block.starts_with("limit 10/s burst 3")).unwrap();
    assert!(printed.starts_with(block), "the README shows\n{block}\nthe example prints\n{printed}");
}

#[test]
fn every_error_in_the_documents_is_the_one_that_is_given() {
    let mut errors = 0;
    for name in ["README.md", "docs/algorithms.md"] {
        let document = document(name);
        for block in shown(&document).into_iter().filter(|block| block.starts_with("limit \"")) {
            let text = block.split('"').nth(1).unwrap();
            let error = text.parse::<Limit>().unwrap_err();
            let printed = if block.lines().count() > 1 { format!("{error:#}") } else { error.to_string() };
            assert_eq!(block.trim_end(), printed, "{name}");
            errors += 1;
        }
    }
    assert_eq!(errors, 2);
}

#[test]
fn the_trace_in_the_documents_plays_as_it_is_written() {
    let page = document("conformance/README.md");
    let trace = conformance::trace::parse(shown(&page)[0]).unwrap();
    assert!(trace.steps.len() > 10);
    conformance::trace::play(&trace, &mut conformance::arm::Pure::new()).unwrap();
}

#[test]
fn every_limit_in_the_table_of_choices_is_one() {
    let page = document("docs/algorithms.md");
    let choices = page.split("## Which one").nth(1).unwrap().split("When in doubt").next().unwrap();
    let limits: Vec<_> = choices.split('`').skip(3).step_by(2).map(|text| text.parse::<Limit>()).collect();
    assert!(limits.len() >= 6 && limits.iter().all(Result::is_ok), "{limits:?}");
}

#[test]
fn states_are_as_small_as_the_page_says() {
    use tidegate::algorithm::{Decide, FixedWindow, Pacer, TokenBucket};
    fn size<A: Decide>() -> usize {
        size_of::<A::State>()
    }
    assert_eq!((size::<TokenBucket>(), size::<FixedWindow>(), size::<Pacer>()), (8, 16, 32));
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
    assert_eq!(after(Limit::concurrency(1024, SECOND), 1024), 64 + 96 * 1024);
}

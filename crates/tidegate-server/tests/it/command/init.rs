//! Tests of the file that `tidegate init` writes: it is valid, and so are all of its examples.

use std::fs;

use super::call::Call;

/// Returns the starter file. Each test has its own folder, because tests run in parallel.
fn starter(call: &Call) -> String {
    call.run(&["init", "-"]).out
}

/// Returns true if a line is a commented-out example, not prose.
fn is_example(line: &str) -> bool {
    line.strip_prefix('#').is_some_and(|rest| !rest.is_empty() && !rest.starts_with(' '))
}

/// Asserts that `tidegate check --strict` accepts the file.
fn assert_holds(name: &str, text: &str) {
    let ended = Call::from(name).file("tidegate.toml", text).run(&["check", "--strict"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{text}");
}

#[test]
fn what_is_written_holds_and_is_what_is_printed() {
    let call = Call::from("init");
    let ended = call.run(&["init"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""));
    let said = "wrote tidegate.toml; read it, then try:\n  \
                tidegate explain ip=192.0.2.7 path=/login method=POST\n  tidegate serve\n";
    assert_eq!(ended.err, said);
    assert_eq!(fs::read_to_string(call.folder().join("tidegate.toml")).unwrap(), starter(&call));
    let checked = call.run(&["check", "--strict"]);
    assert_eq!((checked.code, checked.err.as_str()), (Some(0), ""));
    assert_eq!(checked.out, "tidegate.toml: 1 rule: ok\n");
}

#[test]
fn the_suggested_commands_work() {
    let call = Call::from("init_tried");
    for line in call.run(&["init"]).err.lines().filter_map(|line| line.strip_prefix("  tidegate explain ")) {
        let ended = call.run(&[&["explain"], &line.split(' ').collect::<Vec<_>>()[..]].concat());
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{line}");
        assert!(ended.out.starts_with("allowed: no rule that applies is enforced\n"), "{}", ended.out);
    }
    let named = call.run(&["init", "other.toml"]).err;
    assert!(named.contains("  tidegate serve --config other.toml\n"), "{named}");
}

#[test]
fn a_file_that_is_there_stays() {
    let call = Call::from("init_twice").file("tidegate.toml", "# mine\n");
    let ended = call.run(&["init"]);
    let said = "error: tidegate.toml: is there already and stays as it is; name another, as in \
                `tidegate init new.toml`, or print it with `tidegate init -`\n";
    assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (Some(1), "", said));
    assert_eq!(fs::read_to_string(call.folder().join("tidegate.toml")).unwrap(), "# mine\n");
    let nowhere = call.run(&["init", "not/there.toml"]);
    assert_eq!(nowhere.code, Some(1));
    assert!(nowhere.err.starts_with("error: not/there.toml: cannot be written: "), "{}", nowhere.err);
}

#[test]
fn every_example_holds_alone_and_all_of_them_together() {
    let text = starter(&Call::from("init_examples"));
    let lines: Vec<&str> = text.lines().collect();
    let blocks = lines.chunk_by(|one, next| is_example(one) == is_example(next));
    let (mut before, mut examples) = (0, 0);
    for block in blocks {
        if is_example(block[0]) {
            let with_block: Vec<_> = lines
                .iter()
                .enumerate()
                .map(|(at, line)| match (before..before + block.len()).contains(&at) {
                    true => &line[1..],
                    false => line,
                })
                .collect();
            assert_holds(&format!("init_example_{examples}"), &with_block.join("\n"));
            examples += 1;
        }
        before += block.len();
    }
    assert!(examples >= 8, "{examples}");
    let all: Vec<_> = lines.iter().map(|line| if is_example(line) { &line[1..] } else { line }).collect();
    assert_holds("init_all", &all.join("\n"));
}

#[test]
fn the_defaults_that_it_shows_are_the_defaults() {
    let call = Call::from("init_defaults");
    let help = call.run(&["serve", "--help"]).out;
    // The help text can wrap at any word.
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = starter(&call);
    for (name, flag) in [("resp", "--resp"), ("http", "--http"), ("size", "--store-size")] {
        let line = text.lines().find(|line| line.starts_with(&format!("#{name} = "))).expect("it is shown");
        let value = line.split('"').nth(1).expect("it is in quotes");
        let shown = help
            .split(&format!("{flag} <"))
            .nth(1)
            .and_then(|rest| rest.split("[default: ").nth(1))
            .expect("a default");
        assert!(shown.starts_with(&format!("{value}]")), "{line}: {shown}");
    }
}

//! The walk of docs/quickstart.md with the program: its file is checked, explained, served and changed as the page says.
//!
//! The commands of `redis-cli` and `curl` on the page are run by the parent module.

use std::fs;

use super::{rules_of, text_of};
use crate::command::call::Call;

const PAGE: &str = "docs/quickstart.md";

/// Returns the output that the page shows below a command.
fn shown_below(page: &str, command: &str) -> String {
    let block = format!("```sh\n{command}\n```\n\n```text\n");
    let (_, behind) = page.split_once(&block).unwrap_or_else(|| panic!("{PAGE} does not show {command}"));
    behind.split_once("```").expect("a block ends").0.to_owned()
}

#[test]
fn the_file_of_the_quickstart_is_checked_explained_served_and_reloaded_as_the_page_says() {
    let page = text_of(PAGE);
    let call = Call::from("quickstart").file("tidegate.toml", rules_of(&page));
    for command in ["tidegate check", "tidegate explain ip=192.0.2.7 path=/api/cart"] {
        let arguments: Vec<_> = command.split(' ').skip(1).collect();
        let ended = call.run(&arguments);
        assert_eq!(
            (ended.code, ended.out),
            (Some(0), shown_below(&page, command)),
            "{command}: {}",
            ended.err
        );
    }

    let (process, _) = call.serve(&[]);
    let changed = rules_of(&page).replace("1/60s", "2/60s");
    fs::write(call.folder().join("tidegate.toml"), changed).expect("a file can be written");
    process.says("rules: ./tidegate.toml was read again");
    process.says("  ~ rule \"password-reset\": 1/m -> 2/m");
    assert!(
        page.contains("rules: ./tidegate.toml was read again\n  ~ rule \"password-reset\": 1/m -> 2/m\n")
    );
}

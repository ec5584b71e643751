//! Error messages of the attribute: each case of `tests/ui` has its message beside it.
//!
//! The messages are those of one compiler; `TRYBUILD=overwrite` writes them again.

use std::process::Command;

/// The compiler whose messages are stored.
const TOOLCHAIN: &str = include_str!("../../../../rust-toolchain.toml");

#[test]
fn every_wrong_use_has_a_message_with_the_fault_and_the_remedy() {
    let running = rustc();
    let pinned = TOOLCHAIN.split('"').nth(1).expect("a channel in quotes");
    if running.split(' ').nth(1) != Some(pinned) {
        println!("skipped every_wrong_use…: messages are those of rustc {pinned}, this is {running}");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

fn rustc() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().expect("there is a compiler");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

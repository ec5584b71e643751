//! Tests that completions, the manual page and the help contain every command.

use super::call::Call;

const COMMANDS: [&str; 13] = [
    "serve",
    "take",
    "admit",
    "peek",
    "adjust",
    "reset",
    "override",
    "top",
    "init",
    "check",
    "explain",
    "completions",
    "man",
];

fn printed(arguments: &[&str]) -> String {
    let ended = Call::from(&arguments.join("_")).run(arguments);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{arguments:?}");
    ended.out
}

#[test]
fn every_shell_completes_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = printed(&["completions", shell]);
        for word in COMMANDS.into_iter().chain(["store-size", "max-connections", "limit"]) {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
}

#[test]
fn the_manual_page_has_every_command_flag_and_variable() {
    let page = printed(&["man"]).replace("\\-", "-");
    assert!(page.contains(".TH tidegate 1 "), "{page}");
    for command in COMMANDS {
        assert!(page.contains(&format!(".SH \"TIDEGATE {}\"", command.to_uppercase())), "{command}");
    }
    for word in ["--max-connections", "TIDEGATE_MAX_CONNECTIONS", "--store-file", "--max-wait", "--json"] {
        assert!(page.contains(word), "{word}");
    }
}

#[test]
fn help_of_every_command_has_examples() {
    for command in COMMANDS {
        let help = printed(&[command, "--help"]);
        assert!(help.contains("Examples:\n  tidegate "), "{help}");
    }
    assert!(printed(&["--help"]).contains("Examples:\n  tidegate serve"));
    assert_eq!(printed(&["--version"]), concat!("tidegate ", env!("CARGO_PKG_VERSION"), "\n"));
}

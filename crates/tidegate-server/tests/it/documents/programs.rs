//! Runs the commands of `tidegate` that pages show, and parses their files.
//!
//! A server that a page starts gets free ports, and the Redis of a page is a real one. The rest of a line is as shown.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use testbed::{Flavour, Redis};

use super::blocks::{Block, blocks};
use super::rules_of;
use crate::command::call::{Call, address};

/// The pages whose lines of `tidegate` are run here.
pub(super) const PAGES: [&str; 4] =
    ["docs/distributed.md", "docs/install.md", "docs/quickstart.md", "docs/settings.md"];

/// The Redis of the pages.
const REDIS: &str = "10.0.0.5:6379";

/// Returns a call from a folder with the files that the lines of a page need.
fn place(page: &str, redis: &Redis) -> Call {
    let name = format!("programs_{}", page.replace('/', "_"));
    let text = super::text_of(page);
    let settings = blocks(&text).find(|block| block.language == "toml" && block.body.contains("[store]"));
    let settings = match page {
        // The files of a system are those of the unit.
        "docs/distributed.md" => settings.map_or("", |block| block.body),
        _ => rules_of(&text),
    };
    redis.command(&["ACL", "SETUSER", "tidegate", "on", ">secret", "~*", "+@all"]);
    Call::from(&name)
        .file("tidegate.toml", &settings.replace(REDIS, &redis.address().to_string()))
        .file("redis.password", "secret\n")
        .file("backup.sh", "#!/bin/sh\necho backed up\n")
}

/// Returns the words of a line, without its comment.
fn words(line: &str) -> Vec<&str> {
    line.split(" # ").next().unwrap_or_default().split_whitespace().collect()
}

/// Starts the server of a line `VARIABLE=VALUE tidegate serve ARGUMENTS`, and waits until it is ready or has ended.
fn serve(call: &Call, line: &str, shown: Option<&str>) {
    let words = words(line);
    let (variables, arguments): (Vec<&str>, Vec<&str>) =
        words.into_iter().partition(|word| word.contains('='));
    let mut call = Call::beside(call);
    for variable in variables {
        let (name, value) = variable.split_once('=').expect("a variable has a value");
        call = call.variable(name, value);
    }
    let arguments = &arguments[2..];
    match shown {
        Some(error) if error.starts_with("error: ") => {
            let ended = call.run(&[&["serve"], arguments].concat());
            assert_eq!((ended.code, &*ended.err), (Some(2), error), "{line}");
        }
        Some(banner) if banner.starts_with("tidegate ") => {
            // The page has no file yet.
            fs::remove_file(call.folder().join("tidegate.toml")).expect("it was there");
            is_the_banner(&call, arguments, banner);
        }
        _ => drop(call.serve(arguments)),
    }
}

/// Compares the startup report with that of a page, but for ports, the origin of the settings and the time.
fn is_the_banner(call: &Call, arguments: &[&str], banner: &str) {
    let (process, ready) = call.serve(arguments);
    process.signal(Signal::TERM);
    let mut printed = process.end().err;
    for (front, shown) in [("resp", "6380"), ("http", "8380")] {
        printed = printed.replace(&address(&ready, front).port().to_string(), shown);
    }
    for line in banner.lines() {
        let is_printed = match line.split_whitespace().next() {
            Some("settings") => true,
            Some("ready") => printed.contains("\nready in "),
            _ => printed.lines().any(|printed| printed == line),
        };
        assert!(is_printed, "{line:?} is not printed in\n{printed}");
    }
}

/// Runs a line in a shell, with a home of its own. `tidegate` is the program under test.
fn shell(call: &Call, line: &str) {
    let program = Path::new(env!("CARGO_BIN_EXE_tidegate")).parent().expect("it is in a folder");
    let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", program.display());
    let output = Command::new("sh")
        .args(["-e", "-c", line])
        .current_dir(call.folder())
        .env_clear()
        .envs([("PATH", path.as_str()), ("HOME", &call.folder().display().to_string())])
        .output()
        .expect("there is a shell");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Runs each line of `tidegate` on a page, and returns their number.
fn run_lines_of(page: &str) -> usize {
    let redis = Redis::start(Flavour::Redis7);
    let call = place(page, &redis);
    let text = super::text_of(page);
    let mut count = 0;
    let mut all = blocks(&text).peekable();
    while let Some(block) = all.next() {
        if block.language != "sh" {
            continue;
        }
        let shown = all.peek().filter(|next| next.language == "text").map(|next| next.body);
        for line in block.body.lines().filter(|line| is_ours(line)) {
            let line = line.replace(REDIS, &redis.address().to_string());
            match &words(&line)[..] {
                // The settings of the page are strict, and this machine's Redis is not.
                ["tidegate", "doctor", ..] => {
                    let arguments = [&words(&line)[1..], &["--store-deadline", "2s"]].concat();
                    let ended = call.run(&arguments);
                    assert_eq!(ended.code, Some(0), "{line}: {}{}", ended.out, ended.err);
                }
                // A test of its own compares the output.
                ["tidegate", "check" | "explain", ..] => {}
                words if words.windows(2).any(|pair| pair == ["tidegate", "serve"]) => {
                    serve(&call, &line, shown);
                }
                ["tidegate", "take", ..] => {
                    let (_server, ready) = call.serve(&[]);
                    let resp = ready["resp"].as_str().expect("an address");
                    shell(
                        &call,
                        &line
                            .replace("tidegate take", &format!("tidegate take --server {resp}"))
                            .replace("./", "sh ./"),
                    );
                }
                _ => shell(&call, &line),
            }
            count += 1;
        }
    }
    count
}

/// Returns true for a line that calls `tidegate`, or prepares such a line.
fn is_ours(line: &str) -> bool {
    words(line).contains(&"tidegate") && !line.starts_with("sudo ") || line.starts_with("mkdir ")
}

#[test]
fn lines_of_tidegate_run_as_the_pages_show_them() {
    for page in PAGES {
        let count = run_lines_of(page);
        println!("{page}: {count} lines");
        assert!(count > 0, "{page}: no line was run");
    }
}

/// Returns the block of a page in this language.
fn block_of(page: &str, language: &str) -> String {
    let text = super::text_of(page);
    let found = blocks(&text).find(|block| block.language == language);
    found.unwrap_or_else(|| panic!("{page} has no block of {language}")).body.to_owned()
}

#[test]
fn the_settings_and_rules_of_every_page_are_valid() {
    let redis = Redis::start(Flavour::Redis7);
    for page in super::blocks::pages() {
        let text = super::text_of(&page);
        let rules = blocks(&text).filter(|block| block.language == "toml" && !is_manifest(block));
        // The rules of this page are one growing file.
        for (nth, block) in rules.filter(|_| page != "docs/rules.md").enumerate() {
            let file =
                block.body.replace("/var/lib/tidegate/", "").replace(REDIS, &redis.address().to_string());
            let call = Call::from(&format!("toml_{}_{nth}", page.replace('/', "_")))
                .file("tidegate.toml", &file)
                .file("redis.password", "secret\n")
                .variable("TIDEGATE_TOKEN", "sesame");
            let ended = call.run(&["check"]);
            assert_eq!(ended.code, Some(0), "{page}: {}\n{}{}", block.body, ended.out, ended.err);
        }
    }
}

/// Returns true for a part of a `Cargo.toml`.
pub(super) fn is_manifest(block: &Block<'_>) -> bool {
    block.body.contains("[dependencies]") || block.body.starts_with("tidegate = ")
}

#[test]
fn manifests_of_the_pages_name_the_facade_and_features_that_it_has() {
    let facade = super::text_of("crates/tidegate/Cargo.toml");
    let mut count = 0;
    for page in super::blocks::pages() {
        let text = super::text_of(&page);
        for block in blocks(&text).filter(|block| block.language == "toml" && is_manifest(block)) {
            let lines = block.body.lines().filter(|line| line.starts_with("tidegate"));
            for line in lines {
                assert!(
                    line.starts_with("tidegate = "),
                    "{page}: {line}: programs depend on the facade alone"
                );
                let features = line.split("features").nth(1).unwrap_or_default();
                for feature in features
                    .split(|letter: char| !letter.is_ascii_alphanumeric())
                    .filter(|word| !word.is_empty())
                {
                    let known = facade.contains(&format!("\n{feature} = "));
                    assert!(known, "{page}: {line}: the facade has no feature {feature}");
                }
                count += 1;
            }
        }
    }
    assert!(count >= 4, "{count} manifests");
}

#[test]
fn the_unit_of_the_installation_is_valid_and_its_files_are_installed_as_shown() {
    let call = Call::from("install");
    let root = call.folder().join("root");
    for folder in ["etc/systemd/system", "usr/local/bin", "home/.cargo/bin"] {
        fs::create_dir_all(root.join(folder)).expect("a folder can be made");
    }
    fs::copy(env!("CARGO_BIN_EXE_tidegate"), root.join("home/.cargo/bin/tidegate"))
        .expect("it can be copied");
    fs::write(call.folder().join("tidegate.toml"), block_of("docs/install.md", "toml"))
        .expect("it is written");

    let text = super::text_of("docs/install.md");
    let commands =
        blocks(&text).find(|block| block.body.starts_with("sudo ")).expect("the page installs").body;
    // Users and units of this machine stay as they are.
    let changes_the_machine = |line: &&str| line.contains("useradd") || line.contains("systemctl");
    for line in commands.lines().filter(|line| !changes_the_machine(line)) {
        let line = line
            .replace("sudo ", "")
            .replace(" /etc/", &format!(" {}/etc/", root.display()))
            .replace(" /usr/", &format!(" {}/usr/", root.display()))
            .replace('~', &root.join("home").display().to_string());
        shell(&call, &line);
    }
    let unit = block_of("docs/install.md", "ini");
    let installed = |name: &str| root.join(name.trim_start_matches('/'));
    for word in unit
        .split(['=', ' ', ':', '\n'])
        .filter(|word| word.starts_with("/usr/local") || word.starts_with("/etc/tidegate/"))
    {
        assert!(installed(word).is_file(), "{word} is not installed by the commands of the page");
    }
    verify(&unit, &installed("/etc/systemd/system/tidegate.service"));
}

/// Lets systemd check a unit.
fn verify(unit: &str, place: &PathBuf) {
    let unit = unit.replace("/usr/local/bin/tidegate", env!("CARGO_BIN_EXE_tidegate"));
    fs::write(place, unit).expect("a file can be written");
    match Command::new("systemd-analyze").arg("verify").arg(place).output() {
        Ok(output) => {
            let printed = String::from_utf8_lossy(&output.stderr);
            let about_it: Vec<_> = printed.lines().filter(|line| line.contains("tidegate")).collect();
            assert!(output.status.success() && about_it.is_empty(), "{printed}");
        }
        Err(_) => println!("systemd-analyze: not installed, skipped"),
    }
}

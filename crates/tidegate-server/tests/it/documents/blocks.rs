//! Every block of every page is run, compiled or compared by a test. This module knows by which.

use std::fs;
use std::path::Path;

use super::programs;

/// A block of a page.
#[derive(Debug)]
pub(crate) struct Block<'a> {
    pub(crate) language: &'a str,
    pub(crate) body: &'a str,
}

/// Returns the blocks of a page, in order.
pub(crate) fn blocks(text: &str) -> impl Iterator<Item = Block<'_>> {
    let within = text.split("```").skip(1).step_by(2);
    within.map(|block| {
        let (language, body) = block.split_once('\n').expect("a block has lines");
        Block { language, body }
    })
}

/// Returns all pages for users, decision records excepted.
pub(super) fn pages() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec!["README.md".to_owned()];
    for folder in ["docs", "docs/coming-from"] {
        for entry in fs::read_dir(root.join(folder)).expect("the folder is there") {
            let name = entry.expect("a name").file_name().into_string().expect("text");
            if name.ends_with(".md") {
                pages.push(format!("{folder}/{name}"));
            }
        }
    }
    pages.sort();
    pages
}

/// Pages whose commands of redis-cli, curl and tidegate are run by the parent module, with the least number of commands.
pub(super) const COMMANDS: [(&str, usize); 13] = [
    ("README.md", 3),
    ("docs/coming-from.md", 2),
    ("docs/coming-from/envoy.md", 1),
    ("docs/coming-from/guava.md", 2),
    ("docs/coming-from/limitador.md", 1),
    ("docs/coming-from/nginx.md", 2),
    ("docs/coming-from/redis-cell.md", 3),
    ("docs/coming-from/throttlecrab.md", 3),
    ("docs/gateways.md", 2),
    ("docs/http.md", 40),
    ("docs/quickstart.md", 13),
    ("docs/resp.md", 8),
    ("docs/support.md", 9),
];

/// Blocks that show how another program is used or configured: page, language, and a part of the block.
const OF_OTHERS: [(&str, &str, &str); 13] = [
    ("docs/clients.md", "go", "github.com/redis/go-redis/v9"),
    ("docs/clients.md", "java", "redis.clients.jedis"),
    ("docs/clients.md", "php", "new Redis("),
    ("docs/clients.md", "ruby", "Redis.new("),
    ("docs/coming-from/envoy.md", "json", "\"domain\""),
    ("docs/coming-from/envoy.md", "yaml", "descriptors:"),
    ("docs/coming-from/governor.md", "rust,ignore", "GovernorConfig"),
    ("docs/coming-from/guava.md", "java", "RateLimiter.create"),
    ("docs/coming-from/limitador.md", "yaml", "max_value:"),
    ("docs/coming-from/throttlecrab.md", "rust,ignore", "AdaptiveStore"),
    ("docs/gateways.md", "yaml", "ingress.kubernetes.io"),
    ("docs/library.md", "java", "RateLimiter.create"),
    ("docs/tower.md", "rust,ignore", "GovernorConfigBuilder"),
];

/// Returns true for a block of [`OF_OTHERS`].
pub(crate) fn is_of_others(page: &str, block: &Block<'_>) -> bool {
    OF_OTHERS
        .iter()
        .any(|&(of, language, part)| of == page && language == block.language && block.body.contains(part))
}

/// Returns the reason why a block cannot be wrong without a failing test, or `None`.
fn tested_by(page: &str, block: &Block<'_>, before: Option<&Block<'_>>) -> Option<&'static str> {
    if is_of_others(page, block) {
        return Some("another program's");
    }
    match block.language {
        "rust" | "rust,no_run" => {
            let facade = super::text_of("crates/tidegate/src/lib.rs");
            facade.contains(&format!("../../../{page}\"")).then_some("doctests of the facade")
        }
        "toml" => Some("the_settings_and_rules_of_every_page_are_valid, or manifests_of_the_pages_…"),
        "sh" => {
            let lines = block.body.lines().filter(|line| !line.trim().is_empty());
            lines.map(|line| run_by(page, line)).collect::<Option<Vec<_>>>()?.first().copied()
        }
        "nginx" | "caddyfile" | "yaml" if page == "docs/gateways.md" => Some("gateways"),
        "nginx" if page == "docs/coming-from/nginx.md" => Some("gateways: nginx_accepts_…"),
        "ini" | "yaml" if page == "docs/install.md" => Some("programs"),
        "python" | "js" | "go" | "java" if page == "docs/clients.md" => Some("client_examples"),
        // Output is compared by the test of its command.
        "text" | "json" | "http" if before.is_some_and(|before| before.language == "sh") => Some("output"),
        "text" => Some("a drawing, or output that another page shows too"),
        _ => None,
    }
}

/// Returns the test that runs a line of a shell.
fn run_by(page: &str, line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    let program = line.split_whitespace().find(|word| !word.contains('=')).unwrap_or_default();
    match program {
        "cargo" => Some("xtask: commands_of_cargo_in_the_documents_exist"),
        "tidegate" | "printf" if page == "docs/rules.md" => Some("rules"),
        "curl" if page == "docs/rules.md" => Some("rules"),
        "tidegate" | "mkdir" if programs::PAGES.contains(&page) => Some("programs"),
        "sudo" | "openssl" if page == "docs/install.md" => Some("programs"),
        _ if page == "docs/clients.md" => Some("client_examples"),
        // A command may have several lines.
        _ if COMMANDS.iter().any(|(known, _)| *known == page) => Some("all_commands_of"),
        _ => None,
    }
}

#[test]
fn every_block_of_every_page_is_run_compiled_or_compared() {
    let mut untested = Vec::new();
    let mut count = 0;
    for page in pages() {
        let text = super::text_of(&page);
        let all: Vec<_> = blocks(&text).collect();
        for (nth, block) in all.iter().enumerate() {
            let before = nth.checked_sub(1).and_then(|nth| all.get(nth));
            count += 1;
            if tested_by(&page, block, before).is_none() {
                untested.push(format!("{page}: {}\n{}", block.language, block.body));
            }
        }
    }
    assert!(untested.is_empty(), "no test runs or compiles these blocks:\n{}", untested.join("\n"));
    assert!(count > 200, "only {count} blocks were found");
}

#[test]
fn blocks_of_others_are_still_there() {
    for (page, language, part) in OF_OTHERS {
        let text = super::text_of(page);
        let found = blocks(&text).any(|block| block.language == language && block.body.contains(part));
        assert!(found, "{page} has no block of {language} with {part:?}; remove it from the list");
    }
}

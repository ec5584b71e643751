//! Inside the library, each layer knows only what is below it: time, algorithms, stores, waiting, then the handles.
//!
//! Time knows nothing of limits, and algorithms know nothing of clocks.
//!
//! Only code counts: a comment may name what the code must not use.

use super::source::{Token, is_at, tokens};
use super::{File, Finding};

/// A module of the library, the modules it must not reach for, and the names it must not use.
struct Layer {
    module: &'static str,
    without_modules: &'static [&'static str],
    without_names: &'static [&'static str],
}

const LAYERS: [Layer; 4] = [
    Layer {
        module: "time",
        without_modules: &[
            "algorithm",
            "limit",
            "store",
            "wait",
            "limiter",
            "single",
            "pacer",
            "shaper",
            "permits",
        ],
        without_names: &[],
    },
    Layer {
        module: "algorithm",
        without_modules: &["store", "wait", "limiter", "single", "pacer", "shaper", "permits"],
        without_names: &["Instant", "SystemTime"],
    },
    Layer {
        module: "store",
        without_modules: &["wait", "limiter", "single", "shaper", "permits"],
        without_names: &[],
    },
    Layer {
        module: "wait",
        without_modules: &["limiter", "single", "shaper", "permits"],
        without_names: &[],
    },
];

impl Layer {
    fn holds(&self, path: &str) -> bool {
        let inside =
            path.strip_prefix("crates/tidegate-core/src/").and_then(|path| path.strip_prefix(self.module));
        inside.is_some_and(|rest| rest == ".rs" || (rest.starts_with('/') && rest.ends_with(".rs")))
    }

    fn breaches(&self, file: &File) -> Vec<Finding> {
        let tokens = tokens(&file.text);
        let modules = modules_used(&tokens)
            .into_iter()
            .filter(|used| self.without_modules.contains(&used.text.as_str()));
        let names = tokens.iter().filter(|token| self.without_names.contains(&token.text.as_str()));
        let modules = modules.map(|used| (used.line, format!("crate::{}", used.text)));
        let found = modules.chain(names.map(|name| (name.line, name.text.clone())));
        found
            .map(|(line, name)| file.finding(line, format!("`{}` may not use `{name}`", self.module)))
            .collect()
    }
}

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for layer in &LAYERS {
        let inside = files.iter().filter(|file| layer.holds(&file.path));
        findings.extend(inside.flat_map(|file| layer.breaches(file)));
    }
    findings
}

/// The modules that follow `crate::`, also as members of a group.
fn modules_used(tokens: &[Token]) -> Vec<&Token> {
    let mut used = Vec::new();
    for at in (0..tokens.len()).filter(|at| is_at(tokens, *at, &["crate", ":", ":"])) {
        match tokens.get(at + 3) {
            Some(first) if first.text == "{" => used.extend(group_members(&tokens[at + 3..])),
            first => used.extend(first),
        }
    }
    used
}

/// The first words of a group's own members: `a` and `b` of `{a::{x, y}, b}`.
fn group_members(group: &[Token]) -> Vec<&Token> {
    let (mut members, mut depth) = (Vec::new(), 0);
    for pair in group.windows(2) {
        match pair[0].text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if depth == 1 && ["{", ","].contains(&pair[0].text.as_str()) {
            members.push(&pair[1]);
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn a_layer_may_look_down_and_talk_about_anything() {
        let files = [
            file(
                "crates/tidegate-core/src/algorithm/token.rs",
                "//! No `Instant`.\nuse crate::{limit::Limit, time};\n",
            ),
            file(
                "crates/tidegate-core/src/time/tick.rs",
                "// crate::limit asks us.\nfn a(instant: Ticks) {}\n",
            ),
            file(
                "crates/tidegate-core/src/store/map.rs",
                "use crate::algorithm::Algorithm;\nuse std::time::Instant;\n",
            ),
            file("crates/tidegate-core/src/wait/queue.rs", "use crate::{store::Store, time::Clock};\n"),
            file("crates/tidegate-core/src/limiter.rs", "use crate::{store::Store, wait::Queue};\n"),
            file("crates/tidegate-core/src/timeless.rs", "use crate::limit::Limit;\n"),
        ];
        assert_eq!(check(&files), []);
    }

    #[test]
    fn looking_up_is_found_also_in_groups() {
        let text =
            "use crate::{\n    decision::{Verdict, store},\n    store::Map,\n};\nuse crate::wait::Queue;\n";
        let findings = check(&[file("crates/tidegate-core/src/algorithm/pacer.rs", text)]);
        let found: Vec<_> = findings.iter().map(|finding| (finding.line, finding.message.as_str())).collect();
        assert_eq!(
            found,
            [(3, "`algorithm` may not use `crate::store`"), (5, "`algorithm` may not use `crate::wait`")]
        );
    }

    #[test]
    fn an_algorithm_may_share_its_name_with_a_handle() {
        let own = "use super::pacer::Pacer;\nuse crate::algorithm::pacer;\n";
        let handle = "use crate::pacer::Pacer;\n";
        let found = |text| check(&[file("crates/tidegate-core/src/algorithm/state.rs", text)]);

        assert_eq!(found(own), []);
        assert_eq!(found(handle)[0].message, "`algorithm` may not use `crate::pacer`");
    }

    #[test]
    fn every_layer_is_below_the_handles() {
        for layer in ["time", "algorithm", "store", "wait"] {
            for handle in ["limiter", "single", "shaper", "permits"] {
                let path = format!("crates/tidegate-core/src/{layer}/mod.rs");
                let findings = check(&[file(&path, &format!("use crate::{handle}::Handle;\n"))]);

                assert_eq!(findings.len(), 1, "{layer} uses {handle}");
            }
        }
    }

    #[test]
    fn time_is_below_stores_and_stores_are_below_waiting() {
        let time = file("crates/tidegate-core/src/time/clock.rs", "use crate::store::Store;\n");
        let store = file("crates/tidegate-core/src/store/map.rs", "use crate::wait::Queue;\n");

        assert_eq!(check(&[time])[0].message, "`time` may not use `crate::store`");
        assert_eq!(check(&[store])[0].message, "`store` may not use `crate::wait`");
    }

    #[test]
    fn clocks_are_found_in_algorithms_and_limits_in_time() {
        let clock = file("crates/tidegate-core/src/algorithm.rs", "fn decide(now: std::time::Instant) {}\n");
        let limit = file("crates/tidegate-core/src/time/clock.rs", "\nfn a() { crate::limit::b() }\n");
        assert_eq!(check(&[clock])[0].message, "`algorithm` may not use `Instant`");
        assert_eq!(check(&[limit])[0].line, 2);
    }
}

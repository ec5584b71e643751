//! Which crate of the workspace may depend on which, and how many others the library may need.
//!
//! Reads the manifests themselves: every `Cargo.toml` with a package and without a workspace of its own is a member.
//! Dependencies of tests only are free, and so are those of the models, which no user gets, and optional ones, which a
//! user has to ask for; those of build scripts count like normal ones.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::{File, Finding};

/// A member of the workspace, the members it may depend on, and how many dependencies it may have without any feature.
struct Member {
    name: &'static str,
    may_use: &'static [&'static str],
    at_most: usize,
}

const MEMBERS: [Member; 16] = [
    Member {
        name: "tidegate",
        may_use: &[
            "tidegate-core",
            "tidegate-macros",
            "tidegate-outbound",
            "tidegate-redis",
            "tidegate-rules",
            "tidegate-tower",
        ],
        at_most: 1,
    },
    Member { name: "tidegate-core", may_use: &[], at_most: 3 },
    Member { name: "tidegate-macros", may_use: &["tidegate-core"], at_most: 4 },
    Member { name: "tidegate-outbound", may_use: &["tidegate-core", "tidegate-tower"], at_most: 8 },
    Member { name: "tidegate-redis", may_use: &["tidegate-core", "tidegate-support"], at_most: 8 },
    Member { name: "tidegate-rules", may_use: &["tidegate-core", "tidegate-support"], at_most: 8 },
    Member {
        name: "tidegate-server",
        may_use: &["tidegate", "tidegate-redis", "tidegate-rules", "tidegate-support"],
        at_most: usize::MAX,
    },
    Member { name: "tidegate-support", may_use: &["tidegate-core"], at_most: 4 },
    Member {
        name: "tidegate-tower",
        may_use: &["tidegate-core", "tidegate-rules", "tidegate-support"],
        at_most: 12,
    },
    Member { name: "conformance", may_use: &["tidegate"], at_most: usize::MAX },
    Member {
        name: "bench",
        may_use: &["tidegate", "tidegate-redis", "tidegate-rules", "tidegate-tower", "harness", "testbed"],
        at_most: usize::MAX,
    },
    Member {
        name: "drills",
        may_use: &[
            "tidegate",
            "tidegate-redis",
            "tidegate-rules",
            "tidegate-tower",
            "conformance",
            "flash-sale",
            "harness",
            "testbed",
        ],
        at_most: usize::MAX,
    },
    Member {
        name: "flash-sale",
        may_use: &["tidegate", "tidegate-rules", "tidegate-support", "tidegate-tower", "harness"],
        at_most: usize::MAX,
    },
    Member { name: "harness", may_use: &["tidegate"], at_most: usize::MAX },
    Member { name: "testbed", may_use: &["tidegate", "harness"], at_most: usize::MAX },
    Member { name: "xtask", may_use: &[], at_most: 2 },
];

/// The part of a manifest that the rules are about.
#[derive(Debug, Default)]
struct Manifest {
    name: String,
    is_workspace: bool,
    dependencies: Vec<Dependency>,
}

/// A dependency that is not for tests only, under the name it is published as.
#[derive(Debug)]
struct Dependency {
    line: usize,
    name: String,
    is_optional: bool,
}

impl Manifest {
    /// Reads a manifest; what is none has no name.
    fn parse(text: &str) -> Manifest {
        let Ok(table) = DeTable::parse(text) else { return Manifest::default() };
        let table = table.get_ref();
        let name = table.get("package").and_then(|package| package.get_ref().get("name")?.get_ref().as_str());
        let mut dependencies = dependencies_of(table, text);
        let targets = table.get("target").and_then(|target| target.get_ref().as_table());
        for (target, table) in targets.into_iter().flatten() {
            if !target.get_ref().contains("cfg(tidegate_models)") {
                dependencies.extend(
                    table.get_ref().as_table().map(|table| dependencies_of(table, text)).unwrap_or_default(),
                );
            }
        }
        dependencies.sort_by_key(|dependency| dependency.line);
        let name = name.unwrap_or_default().to_owned();
        Manifest { name, is_workspace: table.contains_key("workspace"), dependencies }
    }
}

/// The dependencies that a manifest, or what it says about a target, names in its tables.
fn dependencies_of(table: &DeTable<'_>, text: &str) -> Vec<Dependency> {
    let tables = ["dependencies", "build-dependencies"]
        .into_iter()
        .filter_map(|name| table.get(name)?.get_ref().as_table());
    let dependency = |(name, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
        let renamed = value.get_ref().get("package").and_then(|package| package.get_ref().as_str());
        let is_optional = value.get_ref().get("optional").and_then(|optional| optional.get_ref().as_bool());
        let line = text[..name.span().start].matches('\n').count() + 1;
        let name = renamed.unwrap_or(name.get_ref()).to_owned();
        Dependency { line, name, is_optional: is_optional == Some(true) }
    };
    tables.flatten().map(dependency).collect()
}

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let manifests = files.iter().filter(|file| file.path.ends_with("/Cargo.toml"));
    let parsed = manifests.map(|file| (file, Manifest::parse(&file.text)));
    let members = parsed.filter(|(_, manifest)| !manifest.is_workspace && !manifest.name.is_empty());
    members.flat_map(|(file, manifest)| judge(file, &manifest)).collect()
}

fn judge(file: &File, manifest: &Manifest) -> Vec<Finding> {
    let Some(member) = MEMBERS.iter().find(|member| member.name == manifest.name) else {
        let advice = "add it, and the members it may depend on, to MEMBERS in xtask/src/tidy/dependencies.rs";
        return vec![file.finding(1, format!("unknown workspace member `{}`: {advice}", manifest.name))];
    };
    let mut findings = Vec::new();
    for dependency in &manifest.dependencies {
        let is_member = MEMBERS.iter().any(|other| other.name == dependency.name);
        if is_member && !member.may_use.contains(&dependency.name.as_str()) {
            let message = format!("`{}` may not depend on `{}`", member.name, dependency.name);
            findings.push(file.finding(dependency.line, message));
        }
    }
    let required = || manifest.dependencies.iter().filter(|dependency| !dependency.is_optional);
    if let Some(excess) = required().nth(member.at_most) {
        let (found, allowed) = (required().count(), member.at_most);
        let message = format!("`{}` may have at most {allowed} dependencies, found {found}", member.name);
        findings.push(file.finding(excess.line, message));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn messages(manifest: &str) -> Vec<String> {
        let findings = check(&[file("crates/a/Cargo.toml", manifest)]);
        findings.iter().map(|finding| format!("{}: {}", finding.line, finding.message)).collect()
    }

    #[test]
    fn a_manifest_is_read_in_all_its_spellings() {
        let manifest = Manifest::parse(concat!(
            "[package]\nname = \"a\"\n",
            "[dependencies]\none.workspace = true\ntwo = { package = \"real-two\", version = \"1\" }\n# no = \"1\"\n",
            "[dev-dependencies]\nunseen = \"1\"\n",
            "[dependencies.three]\npackage = \"real-three\"\n",
            "[target.'cfg(unix)'.dependencies]\n\"four\" = \"1\"\n",
            "[build-dependencies]\nfive = \"1\"\n",
        ));
        let names: Vec<_> = manifest.dependencies.iter().map(|dependency| dependency.name.as_str()).collect();

        assert_eq!(manifest.name, "a");
        assert_eq!(names, ["one", "real-two", "real-three", "four", "five"]);
    }

    #[test]
    fn allowed_directions_pass() {
        let bench =
            "[package]\nname = \"bench\"\n[dependencies]\ngovernor = \"1\"\ntidegate.workspace = true\n";
        let library =
            "[package]\nname = \"tidegate-core\"\n[dev-dependencies]\nconformance.workspace = true\n";
        assert_eq!(messages(bench), [""; 0]);
        assert_eq!(messages(library), [""; 0]);
    }

    #[test]
    fn a_forbidden_direction_is_found() {
        let library = "[package]\nname = \"tidegate-core\"\n[dependencies]\nconformance.workspace = true\n";
        assert_eq!(messages(library), ["4: `tidegate-core` may not depend on `conformance`"]);
    }

    #[test]
    fn one_dependency_too_many_is_found() {
        let three = "[package]\nname = \"tidegate-core\"\n[dependencies]\na = \"1\"\nb = \"1\"\nc = \"1\"\n";
        let commands = "[package]\nname = \"xtask\"\n[dependencies]\na = \"1\"\nb = \"1\"\nc = \"1\"\n";
        assert_eq!(messages(three), [""; 0]);
        assert_eq!(
            messages(&format!("{three}d = \"1\"\n")),
            ["7: `tidegate-core` may have at most 3 dependencies, found 4"]
        );
        assert_eq!(messages(&format!("{three}d = {{ version = \"1\", optional = true }}\n")), [""; 0]);
        assert_eq!(messages(commands), ["6: `xtask` may have at most 2 dependencies, found 3"]);
    }

    #[test]
    fn what_only_the_models_need_is_free() {
        let library = concat!(
            "[package]\nname = \"tidegate-core\"\n",
            "[dependencies]\na = \"1\"\nb = \"1\"\nc = \"1\"\n",
            "[target.'cfg(tidegate_models)'.dependencies]\nloom.workspace = true\n",
        );
        assert_eq!(messages(library), [""; 0]);
        assert_eq!(
            messages(&format!("{library}[target.'cfg(unix)'.dependencies]\nd = \"1\"\n")),
            ["10: `tidegate-core` may have at most 3 dependencies, found 4"]
        );
    }

    #[test]
    fn an_unknown_member_is_found_but_a_workspace_of_its_own_is_not() {
        let member = "[package]\nname = \"new\"\n";
        assert!(messages(member)[0].contains("add it"), "{:?}", messages(member));
        assert_eq!(messages(&format!("{member}[workspace]\n")), [""; 0]);
    }
}

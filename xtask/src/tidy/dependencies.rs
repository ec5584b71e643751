//! Which crate of the workspace may depend on which, and how many others the library may need.
//!
//! Reads the manifests themselves: every `Cargo.toml` with a package and without a workspace of its own is a member.
//! Dependencies of tests only are free, and so are those of the models, which no user gets; those of build scripts
//! count like normal ones.

use super::{File, Finding};

/// A member of the workspace, the members it may depend on, and how many dependencies it may have in all.
struct Member {
    name: &'static str,
    may_use: &'static [&'static str],
    at_most: usize,
}

const MEMBERS: [Member; 15] = [
    Member { name: "tidegate", may_use: &[], at_most: 3 },
    Member { name: "tidegate-macros", may_use: &["tidegate"], at_most: 4 },
    Member { name: "tidegate-outbound", may_use: &["tidegate", "tidegate-tower"], at_most: 7 },
    Member { name: "tidegate-plot", may_use: &[], at_most: usize::MAX },
    Member { name: "tidegate-redis", may_use: &["tidegate", "tidegate-support"], at_most: 8 },
    Member { name: "tidegate-rules", may_use: &["tidegate", "tidegate-support"], at_most: 8 },
    Member {
        name: "tidegate-server",
        may_use: &["tidegate", "tidegate-redis", "tidegate-rules", "tidegate-support"],
        at_most: usize::MAX,
    },
    Member { name: "tidegate-support", may_use: &["tidegate"], at_most: 4 },
    Member {
        name: "tidegate-tower",
        may_use: &["tidegate", "tidegate-rules", "tidegate-support"],
        at_most: 11,
    },
    Member { name: "conformance", may_use: &["tidegate"], at_most: usize::MAX },
    Member {
        name: "bench",
        may_use: &[
            "tidegate",
            "tidegate-plot",
            "tidegate-redis",
            "tidegate-rules",
            "tidegate-tower",
            "testbed",
        ],
        at_most: usize::MAX,
    },
    Member {
        name: "drills",
        may_use: &[
            "tidegate",
            "tidegate-plot",
            "tidegate-redis",
            "tidegate-rules",
            "tidegate-tower",
            "conformance",
            "flash-sale",
            "testbed",
        ],
        at_most: usize::MAX,
    },
    Member {
        name: "flash-sale",
        may_use: &["tidegate", "tidegate-plot", "tidegate-rules", "tidegate-support", "tidegate-tower"],
        at_most: usize::MAX,
    },
    Member { name: "testbed", may_use: &["tidegate"], at_most: usize::MAX },
    Member { name: "xtask", may_use: &[], at_most: 0 },
];

/// The part of a manifest that the rules are about.
#[derive(Debug, Default)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    is_workspace: bool,
    dependencies: Vec<Dependency>,
}

/// A dependency that is not for tests only, under the name it is published as.
#[derive(Debug, PartialEq)]
struct Dependency {
    line: usize,
    name: String,
}

impl Manifest {
    /// Reads the sections of a manifest line by line; what it does not know, it skips.
    pub(crate) fn parse(text: &str) -> Self {
        let mut manifest = Self::default();
        let mut section = String::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if let Some(header) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
                section = header.0.trim_start_matches('[').trim().to_owned();
                manifest.enter(&section, index + 1);
            } else if let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
                manifest.assign(&section, key.trim(), value.trim(), index + 1);
            }
        }
        manifest
    }

    fn enter(&mut self, section: &str, line: usize) {
        self.is_workspace |= section == "workspace";
        if let Some(name) = dependency_table(section) {
            self.dependencies.push(Dependency { line, name: unquoted(name) });
        }
    }

    fn assign(&mut self, section: &str, key: &str, value: &str, line: usize) {
        if section == "package" && key == "name" {
            self.name = unquoted(value);
        } else if is_dependencies(section) {
            let name = renamed(value).unwrap_or_else(|| unquoted(key.split('.').next().unwrap_or(key)));
            self.dependencies.push(Dependency { line, name });
        } else if dependency_table(section).is_some()
            && key == "package"
            && let Some(dependency) = self.dependencies.last_mut()
        {
            dependency.name = unquoted(value);
        }
    }
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
    if let Some(excess) = manifest.dependencies.get(member.at_most) {
        let (found, allowed) = (manifest.dependencies.len(), member.at_most);
        let message = format!("`{}` may have at most {allowed} dependencies, found {found}", member.name);
        findings.push(file.finding(excess.line, message));
    }
    findings
}

/// Whether the keys of a section are dependencies: `dependencies`, `build-dependencies`, `target.….dependencies`.
fn is_dependencies(section: &str) -> bool {
    let bare = matches!(section, "dependencies" | "build-dependencies");
    let for_target = section.starts_with("target.")
        && !section.contains("cfg(tidegate_models)")
        && (section.ends_with(".dependencies") || section.ends_with(".build-dependencies"));
    bare || for_target
}

/// The name in a section that is one dependency: `dependencies.NAME`.
fn dependency_table(section: &str) -> Option<&str> {
    let (table, name) = section.rsplit_once('.')?;
    is_dependencies(table).then_some(name)
}

/// The `package` of a dependency that is used under another name.
fn renamed(value: &str) -> Option<String> {
    let (_, after) = value.split_once("package")?;
    let quoted = after.trim_start().strip_prefix('=')?.trim_start().strip_prefix('"')?;
    quoted.split_once('"').map(|(name, _)| name.to_owned())
}

fn unquoted(value: &str) -> String {
    value.trim_matches(['"', '\'', ' ']).to_owned()
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
        let library = "[package]\nname = \"tidegate\"\n[dev-dependencies]\nconformance.workspace = true\n";
        assert_eq!(messages(bench), [""; 0]);
        assert_eq!(messages(library), [""; 0]);
    }

    #[test]
    fn a_forbidden_direction_is_found() {
        let library = "[package]\nname = \"tidegate\"\n[dependencies]\nconformance.workspace = true\n";
        assert_eq!(messages(library), ["4: `tidegate` may not depend on `conformance`"]);
    }

    #[test]
    fn one_dependency_too_many_is_found() {
        let three = "[package]\nname = \"tidegate\"\n[dependencies]\na = \"1\"\nb = \"1\"\nc = \"1\"\n";
        let commands = "[package]\nname = \"xtask\"\n[dependencies]\na = \"1\"\n";
        assert_eq!(messages(three), [""; 0]);
        assert_eq!(
            messages(&format!("{three}d = \"1\"\n")),
            ["7: `tidegate` may have at most 3 dependencies, found 4"]
        );
        assert_eq!(messages(commands), ["4: `xtask` may have at most 0 dependencies, found 1"]);
    }

    #[test]
    fn what_only_the_models_need_is_free() {
        let library = concat!(
            "[package]\nname = \"tidegate\"\n",
            "[dependencies]\na = \"1\"\nb = \"1\"\nc = \"1\"\n",
            "[target.'cfg(tidegate_models)'.dependencies]\nloom.workspace = true\n",
        );
        assert_eq!(messages(library), [""; 0]);
        assert_eq!(
            messages(&format!("{library}[target.'cfg(unix)'.dependencies]\nd = \"1\"\n")),
            ["10: `tidegate` may have at most 3 dependencies, found 4"]
        );
    }

    #[test]
    fn an_unknown_member_is_found_but_a_workspace_of_its_own_is_not() {
        let member = "[package]\nname = \"new\"\n";
        assert!(messages(member)[0].contains("add it"), "{:?}", messages(member));
        assert_eq!(messages(&format!("{member}[workspace]\n")), [""; 0]);
    }
}

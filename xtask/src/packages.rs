//! The crates as other programs get them: from their packages, and through the facade from outside the workspace.
//!
//! Inside the workspace, features of all members are joined, and paths lead everywhere. A crate that compiles here can
//! still fail for a program that depends on it with one feature, or from a registry.

use std::fs;
use std::path::Path;

use toml::Table;

use crate::failure::Failure;
use crate::run::{succeed, succeed_quietly};
use crate::workspace::{cargo, files, root, target_folder};

/// The facade, whose features are checked one by one.
const FACADE: &str = "crates/tidegate";

/// What a program does with each feature of the facade. A feature without an entry is a failure.
const USES: [(&str, &str); 8] = [
    (
        "axum",
        "pub fn handler(denied: tidegate::Denied) -> impl axum_core::response::IntoResponse {
    tidegate::tower::DeniedResponse::from(denied)
}",
    ),
    (
        "macros",
        "#[tidegate::rate_limit(\"2/h\", key = user)]
pub fn reset_password(user: &str) -> Result<String, tidegate::Denied> {
    Ok(user.to_owned())
}",
    ),
    (
        "outbound",
        "pub fn client() -> tidegate::outbound::OutboundLimitLayer {
    tidegate::outbound::OutboundLimitLayer::new()
}",
    ),
    (
        "redis",
        "pub fn store(url: &str) -> Result<tidegate::redis::RedisStore, Box<dyn std::error::Error>> {
    Ok(tidegate::redis::RedisStore::open(tidegate::redis::Options::new(url.parse()?))?)
}",
    ),
    (
        "rules",
        "pub fn policy(text: &str) -> Result<tidegate::rules::Gate, Box<dyn std::error::Error>> {
    Ok(tidegate::rules::Gate::new(tidegate::rules::Policy::from_toml(text)?, tidegate::Zone::new(1 << 20))?)
}",
    ),
    (
        "serde",
        "pub fn is_written(limit: tidegate::Limit) -> impl serde::Serialize {
    limit
}",
    ),
    (
        "tower",
        "pub fn layer() -> impl Clone {
    tidegate::tower::RateLimitLayer::new(LIMIT, tidegate::tower::key::header(\"x-api-key\"))
}",
    ),
    // Its events need no call.
    ("tracing", ""),
];

/// What every program does.
const ALWAYS: &str = "pub const LIMIT: tidegate::Limit = tidegate::Limit::per_second(10).burst(20);

pub fn admits(user: &str) -> bool {
    tidegate::Limiter::new(LIMIT).admit(user).is_allowed()
}";

/// Packages every published crate and compiles it from its package, as a registry would. Then compiles a crate outside
/// the workspace with each feature of the facade alone, with none and with all.
pub(crate) fn packages() -> Result<(), Failure> {
    let mut command = cargo(&["package", "--workspace", "--locked", "--allow-dirty"])?;
    for manifest in files()?.iter().filter(|path| path.ends_with("/Cargo.toml")) {
        let place = root().join(manifest);
        let text = fs::read_to_string(&place).map_err(Failure::at(&place))?;
        if let Some(name) = unpublished(&text) {
            command.args(["--exclude", name]);
        }
    }
    succeed(&mut command)?;
    facade()
}

/// Compiles the scratch crate with each set of features.
fn facade() -> Result<(), Failure> {
    let features = features_of_the_facade()?;
    let scratch = target_folder()?.join("outside");
    let source = scratch.join("src");
    fs::create_dir_all(&source).map_err(Failure::at(&source))?;
    let alone = features.iter().map(|feature| vec![feature.as_str()]);
    let all = vec![features.iter().map(String::as_str).collect::<Vec<_>>()];
    for features in std::iter::once(Vec::new()).chain(alone).chain(all) {
        println!("outside the workspace, features: {}", features.join(" "));
        write(&scratch.join("Cargo.toml"), &manifest(&features)?)?;
        write(&source.join("lib.rs"), &program(&features)?)?;
        // The versions are those of the workspace, and nothing is downloaded that it has not downloaded already.
        let lock = root().join("Cargo.lock");
        fs::copy(&lock, scratch.join("Cargo.lock")).map_err(Failure::at(&lock))?;
        let mut command = cargo(&["check", "--quiet", "--offline"])?;
        succeed_quietly(command.current_dir(&scratch).env("RUSTFLAGS", "-D warnings"))?;
    }
    Ok(())
}

fn features_of_the_facade() -> Result<Vec<String>, Failure> {
    let place = root().join(FACADE).join("Cargo.toml");
    let text = fs::read_to_string(&place).map_err(Failure::at(&place))?;
    let manifest: Table =
        text.parse().map_err(|error| Failure::new(format!("{}: {error}", place.display())))?;
    let features = manifest.get("features").and_then(toml::Value::as_table);
    Ok(features.into_iter().flat_map(Table::keys).filter(|name| *name != "default").cloned().collect())
}

fn manifest(features: &[&str]) -> Result<String, Failure> {
    let path = root().join(FACADE);
    let path = path.to_str().ok_or_else(|| Failure::new("the path of the repository is not UTF-8"))?;
    let mut text = format!(
        "[package]\nname = \"outside\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n[workspace]\n\n\
         [dependencies]\ntidegate = {{ path = {path:?}, features = {features:?} }}\n"
    );
    // A handler names the trait of axum, and a caller that of serde.
    if features.contains(&"axum") {
        text.push_str("axum-core = \"0.5\"\n");
    }
    if features.contains(&"serde") {
        text.push_str("serde = \"1\"\n");
    }
    Ok(text)
}

fn program(features: &[&str]) -> Result<String, Failure> {
    let mut text = format!("//! A program outside the workspace.\n\n{ALWAYS}\n");
    for feature in features {
        let known = USES.iter().find(|(name, _)| name == feature);
        let (_, part) = known.ok_or_else(|| {
            Failure::new(format!("xtask/src/packages.rs: add what a program does with feature {feature:?}"))
        })?;
        text.push_str(&format!("\n{part}\n"));
    }
    Ok(text)
}

fn write(place: &Path, text: &str) -> Result<(), Failure> {
    fs::write(place, text).map_err(Failure::at(place))
}

/// Returns the name of a package of the workspace that is not published.
fn unpublished(manifest: &str) -> Option<&str> {
    let is_published = !manifest.lines().any(|line| line == "publish = false");
    let is_member = !manifest.lines().any(|line| line == "[workspace]");
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    name.filter(|_| is_member && !is_published)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_leave_out_what_is_not_published() {
        assert_eq!(unpublished("[package]\nname = \"bench\"\npublish = false\n"), Some("bench"));
        assert_eq!(unpublished("[package]\nname = \"tidegate\"\n"), None);
        let apart = "[package]\nname = \"tidegate-fuzz\"\npublish = false\n[workspace]\n";
        assert_eq!(unpublished(apart), None, "it is no member of the workspace");
    }

    #[test]
    fn every_feature_of_the_facade_is_used() {
        let features = features_of_the_facade().unwrap();
        let all: Vec<_> = features.iter().map(String::as_str).collect();
        assert_eq!(all.len(), USES.len(), "{all:?}");
        assert!(program(&all).unwrap().contains("rate_limit"));
        assert!(program(&["unheard-of"]).is_err());
    }
}

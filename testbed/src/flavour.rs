//! Which server: the Redis of Debian, an older one, Valkey.

use std::path::{Path, PathBuf};
use std::{env, fmt};

/// A program that speaks the language of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// Redis 7 as Debian has it, the only one here that can do TLS.
    Redis7,
    /// Redis 6.2, the oldest that is supported.
    Redis6,
    /// Valkey 9.
    Valkey,
}

/// A program that is not there.
#[derive(Debug, PartialEq, Eq)]
pub struct Missing {
    name: &'static str,
    looked_in: String,
}

impl Flavour {
    /// All of them.
    pub const ALL: [Flavour; 3] = [Flavour::Redis7, Flavour::Redis6, Flavour::Valkey];

    /// Those that are on this machine; who is left out is said on standard error.
    pub fn available() -> Vec<Flavour> {
        let is_there = |flavour: &Flavour| match flavour.program() {
            Ok(_) => true,
            Err(missing) => {
                eprintln!("skipped: {missing}");
                false
            }
        };
        Flavour::ALL.into_iter().filter(is_there).collect()
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Flavour::Redis7 => "Redis 7",
            Flavour::Redis6 => "Redis 6.2",
            Flavour::Valkey => "Valkey 9",
        }
    }

    /// Where its server is.
    pub fn program(self) -> Result<PathBuf, Missing> {
        let looked_in = match self {
            Flavour::Redis7 => folders_of_the_system("redis-server"),
            Flavour::Redis6 => clients().map(|folder| folder.join("redis-server-6.2")).into_iter().collect(),
            Flavour::Valkey => clients().map(|folder| folder.join("valkey-server")).into_iter().collect(),
        };
        first_of(self.name(), &looked_in)
    }

    /// Whether an option exists only from Redis 7 on.
    pub(crate) fn is_older_than_seven(self) -> bool {
        self == Flavour::Redis6
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Missing { name, looked_in } = self;
        write!(formatter, "{name} is not in {looked_in}; `cargo xtask clients` gets it")
    }
}

impl std::error::Error for Missing {}

/// A program of the system.
pub(crate) fn system(name: &'static str) -> Result<PathBuf, Missing> {
    first_of(name, &folders_of_the_system(name))
}

/// The first of these places where there is a program.
pub(crate) fn first_of(name: &'static str, places: &[PathBuf]) -> Result<PathBuf, Missing> {
    let found = places.iter().find(|place| place.is_file());
    let looked_in = || places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", ");
    found.cloned().ok_or_else(|| Missing { name, looked_in: looked_in() })
}

/// The places where the system may have a program.
pub(crate) fn folders_of_the_system(name: &str) -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain([Path::new("/usr/bin").to_owned()]);
    folders.map(|folder| folder.join(name)).collect()
}

/// Returns a program that `cargo xtask clients` gets, by its path in their folder.
pub fn client_program(path: &'static str) -> Result<PathBuf, Missing> {
    let found: Vec<PathBuf> = clients().map(|folder| folder.join(path)).into_iter().collect();
    first_of(path, &found)
}

/// Where `cargo xtask clients` leaves what it gets.
fn clients() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    variable("TIDEGATE_CLIENTS").or_else(|| Some(cache()?.join("tidegate/clients")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_the_remedy() {
        let missing = first_of("Valkey 9", &[PathBuf::from("/nowhere/valkey-server")]).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "Valkey 9 is not in /nowhere/valkey-server; `cargo xtask clients` gets it"
        );
    }

    #[test]
    fn programs_of_the_system_are_found() {
        assert!(system("sh").unwrap().is_file());
        assert!(system("no-such-program").is_err());
    }
}

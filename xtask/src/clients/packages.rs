//! What has to come from the system: it is installed if we may, and named if not.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use crate::failure::Failure;
use crate::run::{describe, output};

/// A package of Debian, and whether what we need of it is there.
#[derive(Clone, Copy)]
pub(super) struct Package {
    name: &'static str,
    is_there: fn() -> bool,
}

pub(super) const REDIS_TOOLS: Package =
    Package { name: "redis-tools", is_there: || has_program("redis-cli") && has_program("redis-benchmark") };

/// Nonsense is sent to a real Redis as well, to compare.
pub(super) const REDIS_SERVER: Package =
    Package { name: "redis-server", is_there: || has_program("redis-server") };

/// Documents show its calls.
pub(super) const CURL: Package = Package { name: "curl", is_there: || has_program("curl") };

/// Makes the certificates of servers that are tested with TLS.
pub(super) const OPENSSL: Package = Package { name: "openssl", is_there: || has_program("openssl") };

/// The shop of the examples sells from it; Debian has its programs in a folder per version.
pub(super) const POSTGRESQL: Package = Package {
    name: "postgresql",
    is_there: || has_program("initdb") || has_version("/usr/lib/postgresql", "initdb"),
};

/// Asks it.
pub(super) const POSTGRESQL_CLIENT: Package =
    Package { name: "postgresql-client", is_there: || has_program("psql") };

/// The shop sells from it as well.
pub(super) const MARIADB_SERVER: Package = Package {
    name: "mariadb-server",
    is_there: || has_system_program("mariadbd") && has_program("mariadb-install-db"),
};

/// Asks it.
pub(super) const MARIADB_CLIENT: Package =
    Package { name: "mariadb-client", is_there: || has_program("mariadb") };

/// Sees the pages of the shop as buyers do.
pub(super) const CHROMIUM: Package = Package { name: "chromium", is_there: || has_program("chromium") };

/// Tells it what to click.
pub(super) const CHROMIUM_DRIVER: Package =
    Package { name: "chromium-driver", is_there: || has_program("chromedriver") };

/// Stands in front of the server as a gateway.
pub(super) const NGINX: Package = Package { name: "nginx-light", is_there: || has_system_program("nginx") };

/// Compiles the examples of clients in Go.
pub(super) const GO: Package = Package { name: "golang-go", is_there: || has_program("go") };

/// A client of Redis for one of them.
pub(super) const GO_REDIS: Package = Package {
    name: "golang-gopkg-redis.v5-dev",
    is_there: || Path::new("/usr/share/gocode/src/gopkg.in/redis.v5").is_dir(),
};

/// Compiles and runs the examples of clients in Java.
pub(super) const JDK: Package =
    Package { name: "default-jdk-headless", is_there: || has_program("javac") && has_program("java") };

/// The server of one of them, with the API of servlets.
pub(super) const JETTY: Package = Package {
    name: "libjetty9-java",
    is_there: || {
        let jars = ["jetty9-server.jar", "jetty9-servlet.jar", "servlet-api.jar"];
        jars.iter().all(|jar| Path::new("/usr/share/java").join(jar).is_file())
    },
};

/// Python alone is often there, but cannot make an environment that has pip.
pub(super) const PYTHON: Package = Package {
    name: "python3-venv",
    is_there: || answers(Command::new("python3").args(["-c", "import ensurepip, venv"])),
};

/// Installs those that are not there.
pub(super) fn require(packages: &[Package]) -> Result<(), Failure> {
    let missing: Vec<_> =
        packages.iter().filter(|package| !(package.is_there)()).map(|package| package.name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !is_root() || !has_program("apt-get") {
        return Err(cannot_install(&missing));
    }
    download(apt_get().arg("update"))?;
    download(apt_get().args(["install", "-y", "--no-install-recommends"]).args(missing))
}

fn cannot_install(missing: &[&str]) -> Failure {
    let missing = missing.join(" ");
    Failure::new(format!("missing, and only root can install it: apt-get install {missing}"))
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.arg("-q").env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

fn has_program(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// Servers are where the path of ordinary users does not lead.
fn has_system_program(name: &str) -> bool {
    has_program(name) || Path::new("/usr/sbin").join(name).is_file()
}

/// Whether one of the versions in this folder has a program.
fn has_version(folder: &str, name: &str) -> bool {
    let versions = fs::read_dir(folder).into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin").join(name)).any(|place| place.is_file())
}

fn answers(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// What pip, npm and apt say when they reach nobody.
const UNREACHABLE: [&str; 9] = [
    "Temporary failure",
    "Could not resolve",
    "Failed to establish a new connection",
    "Name or service not known",
    "Network is unreachable",
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ETIMEDOUT",
];

/// Runs a child that needs the network; its output is only of interest when it fails.
pub(super) fn download(command: &mut Command) -> Result<(), Failure> {
    let described = describe(command);
    println!("{described}");
    let output = output(command)?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    eprint!("{said}");
    Err(Failure::new(match is_unreachable(&said) {
        true => format!("there is no network to download from; {described}"),
        false => format!("{described} ended with {}", output.status),
    }))
}

fn is_unreachable(said: &str) -> bool {
    UNREACHABLE.iter().any(|words| said.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_installed() {
        let shell = Package { name: "no-such-package", is_there: || has_program("sh") };
        assert!(require(&[shell]).is_ok());
    }

    #[test]
    fn whoever_may_not_install_is_told_what_to() {
        let told = cannot_install(&["redis-tools", "python3-venv"]).to_string();
        assert!(told.ends_with("apt-get install redis-tools python3-venv"), "{told}");
    }

    #[test]
    fn programs_are_looked_for_in_the_path() {
        assert!(has_program("sh"));
        assert!(!has_program("no-such-program"));
        assert!(!has_system_program("no-such-program"));
    }

    #[test]
    fn a_program_is_found_in_any_of_its_versions() {
        let folder = env::temp_dir().join(format!("tidegate-xtask-packages-{}", std::process::id()));
        fs::create_dir_all(folder.join("15/bin")).unwrap();
        fs::create_dir_all(folder.join("9.6/bin")).unwrap();
        let versions = folder.to_str().unwrap();
        assert!(!has_version(versions, "initdb"));
        fs::write(folder.join("15/bin/initdb"), "").unwrap();
        assert!(has_version(versions, "initdb"));
        fs::remove_dir_all(&folder).unwrap();
        assert!(!has_version(versions, "initdb"));
    }

    fn shell(script: &str) -> Result<(), String> {
        download(Command::new("sh").args(["-c", script])).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_network_that_is_not_there_is_named() {
        assert_eq!(shell("true"), Ok(()));
        assert!(shell("echo npm error code EAI_AGAIN >&2; exit 1").unwrap_err().contains("no network"));
        let wrong = shell("echo npm error code EINTEGRITY >&2; exit 1").unwrap_err();
        assert!(wrong.contains("exit status: 1") && !wrong.contains("network"), "{wrong}");
    }
}

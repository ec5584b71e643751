//! The examples, and the commands of the page that start them.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, iter};

use crate::clients::tools;
use crate::documents::blocks::blocks;
use crate::process::Process;

/// The page with the commands.
pub(super) const PAGE: &str = include_str!("../../../../../docs/clients.md");

/// An example of the page.
#[derive(Debug)]
pub(super) struct Example {
    pub(super) name: &'static str,
    /// The line of the page that runs it. The lines before it in the block compile it.
    pub(super) line: &'static str,
    /// The name of its limit, and the parameters of that in `RateLimit-Policy`.
    pub(super) policy: (&'static str, &'static str),
    /// The protocol in which it asks.
    pub(super) front: Front,
}

/// A protocol of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Front {
    Resp,
    Http,
}

/// The limit that came with the request, as an example names it.
const OWN: (&str, &str) = ("default", "q=5;w=60");
/// The same, as the server names it.
const ADHOC: (&str, &str) = ("adhoc", "q=5;w=60");
/// The rule of the page. Replies over RESP have no window.
const RULE_OVER_RESP: (&str, &str) = ("per-client", "q=5");
const RULE: (&str, &str) = ("per-client", "q=5;w=60");

const fn of(
    name: &'static str,
    line: &'static str,
    policy: (&'static str, &'static str),
    front: Front,
) -> Example {
    Example { name, line, policy, front }
}

pub(super) const EXAMPLES: [Example; 10] = [
    of("python_wsgi", "python3 examples/clients/python/wsgi_middleware.py", OWN, Front::Resp),
    of(
        "python_fastapi",
        "python3 examples/clients/python/fastapi_middleware.py",
        RULE_OVER_RESP,
        Front::Resp,
    ),
    of("node_http", "node examples/clients/node/http_server.js", OWN, Front::Resp),
    of("node_express", "node examples/clients/node/express_middleware.js", RULE_OVER_RESP, Front::Resp),
    of("go_goredis", "./goredis-service", OWN, Front::Resp),
    of("go_nethttp", "./nethttp-service", RULE, Front::Http),
    of("java_http_server", "java -cp classes HttpServerFilter", ADHOC, Front::Http),
    of("java_servlet", "java -cp 'classes:/usr/share/java/*' JettyService", RULE, Front::Http),
    of("shell_redis_cli", "sh examples/clients/shell/throttle.sh ana 5 60", OWN, Front::Resp),
    of("shell_curl", "sh examples/clients/shell/take.sh ana 5/60s", ADHOC, Front::Http),
];

impl Example {
    /// Returns true for a script that decides once. The others are services.
    pub(super) fn is_script(&self) -> bool {
        self.line.starts_with("sh ")
    }

    /// Returns true if the server has its limit.
    pub(super) fn asks_by_rules(&self) -> bool {
        self.policy.0 == RULE.0
    }

    /// Returns the command for a key; services find keys by themselves.
    pub(super) fn command(&self, folder: &Path, key: &str) -> Command {
        shell(folder, &format!("exec {}", self.line.replace(" ana ", &format!(" {key} "))))
    }

    /// Runs the lines of the page before that of the example.
    ///
    /// # Panics
    ///
    /// Panics if the page does not have the line, or a line before it fails.
    pub(super) fn build(&self, folder: &Path) {
        let block =
            blocks(PAGE).find(|block| block.language == "sh" && block.body.lines().last() == Some(self.line));
        let block = block.unwrap_or_else(|| {
            panic!("docs/clients.md does not show how to run {}: {}", self.name, self.line)
        });
        let before = block.body.trim_end().strip_suffix(self.line).unwrap_or_default();
        let ended = Process::run(&mut shell(folder, before), b"");
        assert_eq!(ended.code, Some(0), "{before}: {}{}", ended.out, ended.err);
    }
}

/// Creates a new folder with a copy of the examples, in which their lines run.
pub(super) fn folder(name: &str) -> PathBuf {
    let folder = scratch().join(name);
    // It does not exist on the first run.
    let _ = fs::remove_dir_all(&folder);
    copy(&sources(), &folder.join("examples/clients"));
    folder
}

/// Returns the folder of the examples.
pub(super) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/clients")
}

fn scratch() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("client_examples")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("the folder is there") {
        let entry = entry.expect("a name");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(from, to).expect("a file can be copied");
        }
    }
}

/// Returns a shell that runs lines in a folder, with the installed runtimes and without other variables.
pub(super) fn shell(folder: &Path, lines: &str) -> Command {
    let path = env::var_os("PATH").unwrap_or_default();
    let path = iter::once(runtimes(folder)).chain(env::split_paths(&path));
    let path = env::join_paths(path).expect("no folder has a colon");
    let mut command = Command::new("sh");
    command.args(["-e", "-c", lines]).current_dir(folder).env_clear();
    command.env("PATH", path).env("HOME", folder).env("NODE_PATH", tools::node_modules());
    // What Go has compiled is used again by the next run.
    command.env("GOCACHE", scratch().join("go")).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Creates a folder with the installed Python and Node.js. The folders that they are in have other programs, too.
fn runtimes(folder: &Path) -> PathBuf {
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).expect("a folder can be made");
    for (name, program) in [("python3", tools::python()), ("node", tools::node())] {
        let place = bin.join(name);
        if !place.exists() {
            fs::write(&place, format!("#!/bin/sh\nexec '{}' \"$@\"\n", program.display()))
                .and_then(|()| fs::set_permissions(&place, Permissions::from_mode(0o755)))
                .expect("a file can be written");
        }
    }
    bin
}

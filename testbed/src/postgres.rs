//! PostgreSQL, with the durability that it has by itself.
//!
//! It consists of processes in groups of their own, and refuses to be root.
//! What it would keep outside its folder is kept inside or removed: sockets and shared memory.

use std::fs;
use std::io::Write;
use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use harness::{Signal, send};

use crate::database::{CONFIGURATION, CONNECTIONS, DATA, Database, Place, Program, Programs};
use crate::flavour::{Missing, first_of, folders_of_the_system};
use crate::template::{Account, Template, owned_folder, run};
use harness::Folder;
use harness::Port;

/// Where Debian has a folder per version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// How to get it.
const REMEDY: &str = "apt-get install postgresql postgresql-client";

/// A real PostgreSQL, whose user `shop` may do everything.
#[derive(Debug)]
pub struct Postgres(Database);

impl Postgres {
    /// Starts one, and waits until it answers.
    pub fn start() -> Postgres {
        static TEMPLATE: Template = Template::new();
        let account = Account::unless_ordinary("postgres");
        let place = Place { folder: owned_folder("postgres", account), port: Port::free() };
        TEMPLATE.copy(&place.folder, || make_data(account));
        let data = place.folder.file(DATA);
        let file = place.folder.write(CONFIGURATION, &configuration(&place));
        let url = format!("postgres://shop@{}/shop", place.port.address());
        let server = [data.into_os_string(), "-c".into(), format!("config_file={}", file.display()).into()];
        let server =
            Program::new(program("postgres"), ["-D".into()].into_iter().chain(server)).account(account);
        let answer = ["-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d"];
        let patient = format!("{url}?connect_timeout=2");
        let client = answer.into_iter().chain([patient.as_str(), "-c"]);
        let client = Program::new(program("psql"), client);
        Postgres(Database::start("PostgreSQL", url, Programs { server, client }, place))
    }

    /// Ends the process of one client as `kill -9` does, and says whether there was one.
    ///
    /// The server then ends all others by itself and recovers: everybody loses their connection.
    pub fn kill_backend(&self) -> bool {
        let statement = "SELECT pid FROM pg_stat_activity \
                         WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() LIMIT 1";
        self.query(statement).parse().is_ok_and(|pid| send(pid, Signal::KILL))
    }
}

impl Deref for Postgres {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.0
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
        // A killed one leaves a few bytes of shared memory to the system, which has room for some thousand such.
        // Their number is the second of the line that is about them.
        let lock = fs::read_to_string(self.folder().file(DATA).join("postmaster.pid")).unwrap_or_default();
        if let Some(number) = lock.lines().nth(6).and_then(|line| line.split_whitespace().nth(1)) {
            let _ = Command::new("ipcrm").args(["-m", number]).stderr(Stdio::null()).status();
        }
    }
}

fn configuration(place: &Place) -> String {
    let data = place.folder.file(DATA);
    let port = place.port.number();
    format!(
        "include '{}/postgresql.conf'\n\
         listen_addresses = '127.0.0.1'\n\
         port = {port}\n\
         unix_socket_directories = ''\n\
         dynamic_shared_memory_type = mmap\n\
         max_connections = {CONNECTIONS}\n",
        data.display()
    )
}

/// Data with a user and a database of the name `shop`.
fn make_data(account: Option<Account>) -> Folder {
    let folder = owned_folder("postgres-data", account);
    let data = folder.file(DATA).into_os_string();
    let words = ["-U", "shop", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"];
    let words = words.into_iter().map(Into::into).chain([data.clone()]);
    run(&mut Program::new(program("initdb"), words).account(account).command(folder.path()));
    let words = ["--single".into(), "-D".into(), data, "postgres".into()];
    let mut single = Program::new(program("postgres"), words).account(account).command(folder.path());
    single.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = single.spawn().unwrap_or_else(|error| panic!("{single:?}: {error}"));
    let written = child.stdin.take().map(|mut input| input.write_all(b"CREATE DATABASE shop\n"));
    let status = child.wait();
    let is_made =
        written.is_some_and(|written| written.is_ok()) && status.is_ok_and(|status| status.success());
    assert!(is_made, "{single:?}: it made no database shop");
    folder
}

fn program(name: &'static str) -> PathBuf {
    find(name).unwrap_or_else(|missing| panic!("{missing}, or: {REMEDY}"))
}

fn find(name: &'static str) -> Result<PathBuf, Missing> {
    let entries = fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let mut versions: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    versions.sort_unstable_by(|one, other| other.cmp(one));
    let places = versions.iter().map(|version| PathBuf::from(format!("{VERSIONS}/{version}/bin/{name}")));
    first_of(name, &places.chain(folders_of_the_system(name)).collect::<Vec<_>>())
}

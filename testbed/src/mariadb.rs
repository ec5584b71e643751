//! MariaDB, with every commit on disk before it is acknowledged.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::database::{CONFIGURATION, CONNECTIONS, DATA, Database, Place, Program, Programs};
use crate::flavour::{first_of, folders_of_the_system};
use crate::template::{Account, Template, make_folder, owned_folder, run};
use harness::Folder;
use harness::Port;

/// How to get it.
const REMEDY: &str = "apt-get install mariadb-server mariadb-client";

/// Small enough to be copied for each server.
const LOG: &str = "innodb_log_file_size = 16M";

/// The user and the address of clients. Privileges are not looked at before they are read.
const SHOP: &str = "FLUSH PRIVILEGES;\n\
                    CREATE DATABASE shop CHARACTER SET utf8mb4;\n\
                    CREATE USER shop@'127.0.0.1' IDENTIFIED VIA mysql_native_password USING '';\n\
                    GRANT ALL PRIVILEGES ON *.* TO shop@'127.0.0.1' WITH GRANT OPTION;\n";

/// A real MariaDB, whose user `shop` may do everything.
#[derive(Debug)]
pub struct MariaDb(Database);

impl MariaDb {
    /// Starts one, and waits until it answers.
    pub fn start() -> MariaDb {
        static TEMPLATE: Template = Template::new();
        let account = Account::unless_ordinary("mysql");
        let place = Place { folder: owned_folder("mariadb", account), port: Port::free() };
        TEMPLATE.copy(&place.folder, || make_data(account));
        let temporary = make_temporary(&place.folder, account);
        let file = place.folder.write(CONFIGURATION, &configuration(&place, &temporary));
        let url = format!("mysql://shop@{}/shop", place.port.address());
        let server = Program::new(program("mariadbd"), [only(&file)]).account(account);
        let client = ["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--user=shop", "--batch"];
        let answer = ["--skip-column-names", "--connect-timeout=2", "--database=shop", "--execute"];
        let port = format!("--port={}", place.port.number());
        let client = client.into_iter().chain([port.as_str()]).chain(answer);
        let client = Program::new(program("mariadb"), client);
        MariaDb(Database::start("MariaDB", url, Programs { server, client }, place))
    }
}

impl Deref for MariaDb {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.0
    }
}

fn configuration(place: &Place, temporary: &str) -> String {
    let folder = place.folder.path().display();
    let port = place.port.number();
    format!(
        "[mariadbd]\n\
         datadir = {folder}/{DATA}\n\
         {temporary}\n\
         socket = {folder}/socket\n\
         pid_file = {folder}/pid\n\
         bind_address = 127.0.0.1\n\
         port = {port}\n\
         skip_name_resolve\n\
         innodb_flush_log_at_trx_commit = 1\n\
         {LOG}\n\
         max_connections = {CONNECTIONS}\n"
    )
}

/// Data with a user and a database of the name `shop`.
fn make_data(account: Option<Account>) -> Folder {
    let folder = owned_folder("mariadb-data", account);
    let data = folder.file(DATA);
    make_folder(&data, account);
    let temporary = make_temporary(&folder, account);
    let file = folder.write(CONFIGURATION, &format!("[mariadbd]\n{temporary}\n{LOG}\n"));
    let statements = folder.write("shop.sql", SHOP);
    let words = [
        only(&file),
        format!("--datadir={}", data.display()),
        format!("--extra-file={}", statements.display()),
        "--skip-test-db".to_owned(),
        "--skip-name-resolve".to_owned(),
    ];
    run(&mut Program::new(program("mariadb-install-db"), words).account(account).command(folder.path()));
    folder
}

/// A place for temporary files, as a line of the configuration: a server removes those of
/// others in the same place when it starts.
fn make_temporary(folder: &Folder, account: Option<Account>) -> String {
    let place = folder.file("temporary");
    make_folder(&place, account);
    format!("tmpdir = {}", place.display())
}

/// Says that no other configuration is to be read.
fn only(file: &Path) -> String {
    format!("--defaults-file={}", file.display())
}

/// Servers are where only root looks.
fn program(name: &'static str) -> PathBuf {
    let places = folders_of_the_system(name).into_iter().chain([PathBuf::from("/usr/sbin").join(name)]);
    let found = first_of(name, &places.collect::<Vec<_>>());
    found.unwrap_or_else(|missing| panic!("{missing}, or: {REMEDY}"))
}

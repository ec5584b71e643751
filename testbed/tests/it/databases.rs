//! PostgreSQL and MariaDB: they start, die and remember.

use std::process::{Child, Stdio};
use std::time::Duration;

use testbed::{Database, MariaDb, Postgres, until};

use crate::process::{is_there, server_of_a_killed_process};

/// How long something may take that has to come.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A statement that keeps its connection for as long as any test takes.
const POSTGRES_SLEEP: &str = "SELECT pg_sleep(600)";
const MARIADB_SLEEP: &str = "SELECT sleep(600)";

#[test]
fn postgres_starts_and_answers_as_its_address_says() {
    let postgres = Postgres::start();
    assert_eq!(postgres.url(), format!("postgres://shop@{}/shop", postgres.address()));
    let answer = postgres.query("SELECT current_user, current_database(), inet_server_port()");
    assert_eq!(answer, format!("shop\tshop\t{}", postgres.address().port()));
    let durability = "SELECT current_setting('fsync'), current_setting('synchronous_commit')";
    assert_eq!(postgres.query(durability), "on\ton");
    assert_eq!(postgres.query("SHOW max_connections"), "200");
}

#[test]
fn mariadb_starts_and_answers_as_its_address_says() {
    let mariadb = MariaDb::start();
    assert_eq!(mariadb.url(), format!("mysql://shop@{}/shop", mariadb.address()));
    let answer = mariadb.query("SELECT current_user(), database(), @@port");
    assert_eq!(answer, format!("shop@127.0.0.1\tshop\t{}", mariadb.address().port()));
    assert_eq!(mariadb.query("SELECT @@innodb_flush_log_at_trx_commit, @@max_connections"), "1\t200");
}

#[test]
fn a_refused_statement_says_why() {
    let refusal = Postgres::start().try_query("SELECT * FROM nothing").unwrap_err();
    assert!(refusal.contains("\"nothing\" does not exist"), "{refusal}");
    let refusal = MariaDb::start().try_query("SELECT * FROM nothing").unwrap_err();
    assert!(refusal.contains("'shop.nothing' doesn't exist"), "{refusal}");
}

#[test]
fn two_databases_of_one_process_share_nothing() {
    let (one, other) = (Postgres::start(), Postgres::start());
    one.query("CREATE TABLE seen (number BIGINT)");
    assert_ne!(one.address(), other.address());
    assert!(other.try_query("SELECT * FROM seen").is_err());

    let (one, other) = (MariaDb::start(), MariaDb::start());
    one.query("CREATE TABLE seen (number BIGINT)");
    assert_ne!(one.address(), other.address());
    assert!(other.try_query("SELECT * FROM seen").is_err());
}

#[test]
fn postgres_remembers_what_was_committed_over_five_kills() {
    let postgres = Postgres::start();
    committed_rows_survive(&postgres, "BEGIN; INSERT INTO seen VALUES (-1); SELECT pg_sleep(600)");
    assert!(postgres.log().contains("automatic recovery in progress"), "{}", postgres.log());
}

#[test]
fn mariadb_remembers_what_was_committed_over_five_kills() {
    let mariadb = MariaDb::start();
    let open = "START TRANSACTION; INSERT INTO seen VALUES (-1); SELECT sleep(600)";
    committed_rows_survive(&mariadb, open);
    assert!(mariadb.log().contains("crash recovery"), "{}", mariadb.log());
}

/// Kills and starts at once, each time with a row more that was committed, and one that was not.
fn committed_rows_survive(database: &Database, open: &str) {
    let engine = if database.url().starts_with("mysql") { " ENGINE = InnoDB" } else { "" };
    database.query(&format!("CREATE TABLE seen (number BIGINT){engine}"));
    let address = database.address();
    for round in 1..=5 {
        database.query(&format!("INSERT INTO seen VALUES ({round})"));
        let asker = Asker::start(database, open);
        let pid = database.pid();
        database.kill();
        assert!(!database.is_alive() && database.pid().is_none());
        assert!(database.try_query("SELECT 1").is_err());
        database.restart();
        drop(asker);
        assert_eq!(database.address(), address);
        assert_ne!(database.pid(), pid);
        assert_eq!(
            database.query("SELECT count(*), min(number), max(number) FROM seen"),
            format!("{round}\t1\t{round}")
        );
    }
}

#[test]
fn a_living_database_can_be_started_again() {
    let postgres = Postgres::start();
    postgres.restart();
    assert_eq!(postgres.query("SELECT 1"), "1");
    let mariadb = MariaDb::start();
    mariadb.restart();
    assert_eq!(mariadb.query("SELECT 1"), "1");
}

#[test]
fn a_stopped_postgres_sends_no_replies_until_it_goes_on() {
    no_reply_is_sent_while_it_is_stopped(&Postgres::start(), POSTGRES_SLEEP);
}

#[test]
fn a_stopped_mariadb_sends_no_replies_until_it_goes_on() {
    no_reply_is_sent_while_it_is_stopped(&MariaDb::start(), MARIADB_SLEEP);
}

fn no_reply_is_sent_while_it_is_stopped(database: &Database, sleep: &str) {
    let mut asker = Asker::start(database, sleep);
    database.stop();
    assert!(database.is_alive());
    assert!(database.try_query("SELECT 1").is_err());
    for pid in family(database) {
        until("everybody to be stopped", TIMEOUT, || is_idle(pid).then_some(()));
    }
    database.resume();
    database.wait_until_ready();
    assert!(asker.is_waiting(), "who had asked before has lost their connection");
}

#[test]
fn a_stopped_database_can_be_killed() {
    let postgres = Postgres::start();
    postgres.stop();
    postgres.restart();
    assert_eq!(postgres.query("SELECT 1"), "1");
    let mariadb = MariaDb::start();
    mariadb.stop();
    mariadb.restart();
    assert_eq!(mariadb.query("SELECT 1"), "1");
}

#[test]
fn postgres_recovers_by_itself_from_the_end_of_one_client() {
    let postgres = Postgres::start();
    assert!(!postgres.kill_backend(), "there is no client yet");
    let mut asker = Asker::start(&postgres, POSTGRES_SLEEP);
    let pid = postgres.pid();
    assert!(postgres.kill_backend());
    assert!(!asker.0.wait().unwrap().success());
    postgres.wait_until_ready();
    assert_eq!(postgres.pid(), pid);
}

#[test]
fn all_processes_of_a_database_are_gone_with_its_value() {
    let postgres = Postgres::start();
    let _asker = Asker::start(&postgres, POSTGRES_SLEEP);
    let family = family(&postgres);
    assert!(family.len() > 2, "{family:?}");
    drop(postgres);
    assert!(!family.iter().any(|pid| is_there(*pid)));
}

/// A busy process of PostgreSQL does not see by itself that the first one is gone.
#[test]
fn postgres_is_gone_with_a_process_that_was_killed() {
    let name = "databases::postgres_is_gone_with_a_process_that_was_killed";
    server_of_a_killed_process(name, "postgres", || {
        let postgres = Postgres::start();
        let busy = Asker::spawn(&postgres, "DO 'BEGIN LOOP END LOOP; END'");
        let list = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'DO%'";
        until("the busy client", TIMEOUT, || (postgres.query(list) == "1").then_some(()));
        (family(&postgres), Box::new((busy, postgres)))
    });
}

#[test]
fn mariadb_is_gone_with_a_process_that_was_killed() {
    let name = "databases::mariadb_is_gone_with_a_process_that_was_killed";
    server_of_a_killed_process(name, "mariadb", || {
        let mariadb = MariaDb::start();
        (family(&mariadb), Box::new(mariadb))
    });
}

/// A client of the database's own that waits for its answer.
struct Asker(Child);

impl Asker {
    /// Asks, and waits until the database is at its sleep.
    fn start(database: &Database, statement: &str) -> Asker {
        let asker = Asker::spawn(database, statement);
        let (list, sleep) = match database.url().starts_with("mysql") {
            true => {
                ("SELECT info FROM information_schema.processlist WHERE id <> connection_id()", "sleep(600)")
            }
            false => ("SELECT query FROM pg_stat_activity WHERE wait_event = 'PgSleep'", "pg_sleep(600)"),
        };
        until("the client's statement", TIMEOUT, || database.query(list).contains(sleep).then_some(()));
        asker
    }

    fn spawn(database: &Database, statement: &str) -> Asker {
        let mut client = database.client(statement);
        client.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Asker(client.spawn().expect("its client can be run"))
    }

    fn is_waiting(&mut self) -> bool {
        self.0.try_wait().is_ok_and(|status| status.is_none())
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The number of its first process, then those of the processes that it has started.
fn family(database: &Database) -> Vec<u32> {
    let first = database.pid().expect("it is alive");
    let entries = std::fs::read_dir("/proc").expect("there are processes");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let children = pids.filter(|pid| word(*pid, 1) == Some(first.to_string()));
    [first].into_iter().chain(children).collect()
}

/// Whether it is stopped, or has ended without anybody's having looked.
fn is_idle(pid: u32) -> bool {
    word(pid, 0).is_none_or(|state| state == "T" || state == "Z")
}

/// A word after the name of a process in what `/proc` says of it.
fn word(pid: u32, which: usize) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit_once(") ")?.1.split_whitespace().nth(which)?.to_owned())
}

//! A database of one of three kinds: what is proved on one is proved on all of them.

use std::thread;

use harness::Folder;

use crate::{MariaDb, Postgres};

/// A database that ends with its value.
#[derive(Debug)]
pub enum AnyDatabase {
    /// SQLite, in a file in this folder.
    Sqlite(Folder),
    /// A PostgreSQL of our own.
    Postgres(Postgres),
    /// A MariaDB of our own.
    MariaDb(MariaDb),
}

impl AnyDatabase {
    /// Makes a folder for SQLite.
    pub fn sqlite() -> AnyDatabase {
        AnyDatabase::Sqlite(Folder::new("sqlite"))
    }

    /// Starts a PostgreSQL.
    pub fn postgres() -> AnyDatabase {
        AnyDatabase::Postgres(Postgres::start())
    }

    /// Starts a MariaDB.
    pub fn mariadb() -> AnyDatabase {
        AnyDatabase::MariaDb(MariaDb::start())
    }

    /// Starts one of each kind.
    ///
    /// # Panics
    /// If one of them does not start.
    pub fn all() -> [AnyDatabase; 3] {
        thread::scope(|scope| {
            let servers = [scope.spawn(AnyDatabase::postgres), scope.spawn(AnyDatabase::mariadb)];
            let [postgres, mariadb] = servers.map(|server| server.join().expect("it starts"));
            [AnyDatabase::sqlite(), postgres, mariadb]
        })
    }

    /// Returns its address as clients write it.
    pub fn url(&self) -> String {
        match self {
            AnyDatabase::Sqlite(folder) => format!("sqlite:{}", folder.file("shop.db").display()),
            AnyDatabase::Postgres(server) => server.url(),
            AnyDatabase::MariaDb(server) => server.url(),
        }
    }

    /// Kills its server, and starts it again on the data on its disk. Returns whether it has one.
    pub fn restart(&self) -> bool {
        match self {
            AnyDatabase::Sqlite(_) => return false,
            AnyDatabase::Postgres(server) => server.restart(),
            AnyDatabase::MariaDb(server) => server.restart(),
        }
        true
    }

    /// Kills one process of a PostgreSQL; the others then end by themselves, and it recovers. Returns whether there was one.
    pub fn kill_backend(&self) -> bool {
        let AnyDatabase::Postgres(server) = self else { return false };
        let is_killed = server.kill_backend();
        server.wait_until_ready();
        is_killed
    }
}

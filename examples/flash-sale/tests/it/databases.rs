//! The databases that everything is tested on, each with tables of its own.

use std::thread;

use flash_sale::database::Database;
use flash_sale::shop::Shop;
use testbed::{Folder, MariaDb, Postgres};

/// A database that ends with its value.
pub(crate) struct Running {
    url: String,
    _server: Server,
}

#[expect(dead_code, reason = "each is kept alive, and ends when it is dropped")]
enum Server {
    Sqlite(Folder),
    Postgres(Postgres),
    MariaDb(MariaDb),
}

impl Running {
    /// SQLite in a file.
    pub(crate) fn sqlite() -> Running {
        let folder = Folder::new("flash-sale");
        let url = format!("sqlite:{}", folder.file("shop.db").display());
        Running { url, _server: Server::Sqlite(folder) }
    }

    /// A PostgreSQL of our own.
    pub(crate) fn postgres() -> Running {
        let server = Postgres::start();
        Running { url: server.url(), _server: Server::Postgres(server) }
    }

    /// A MariaDB of our own.
    pub(crate) fn mariadb() -> Running {
        let server = MariaDb::start();
        Running { url: server.url(), _server: Server::MariaDb(server) }
    }

    /// All three of them.
    pub(crate) fn all() -> [Running; 3] {
        thread::scope(|scope| {
            let servers = [scope.spawn(Running::postgres), scope.spawn(Running::mariadb)];
            let [postgres, mariadb] = servers.map(|server| server.join().unwrap());
            [Running::sqlite(), postgres, mariadb]
        })
    }

    /// Where it is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A shop on it.
    pub(crate) async fn shop(&self) -> Shop {
        Shop::new(Database::open(&self.url, 20).await.unwrap())
    }
}

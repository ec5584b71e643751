//! The databases that it is proved on.

use std::sync::Arc;

use flash_sale::database::Dialect;
use testbed::{Folder, MariaDb, Postgres};

/// All of them.
pub(super) const ALL: [Dialect; 3] = [Dialect::Sqlite, Dialect::Postgres, Dialect::MariaDb];

/// A database that ends with its last clone.
#[derive(Clone, Debug)]
pub(super) struct Running {
    url: String,
    server: Arc<Server>,
}

#[derive(Debug)]
enum Server {
    Sqlite(#[expect(dead_code, reason = "the folder is there as long as this")] Folder),
    Postgres(Postgres),
    MariaDb(MariaDb),
}

impl Running {
    pub(super) fn start(dialect: Dialect) -> Running {
        let (url, server) = match dialect {
            Dialect::Sqlite => {
                let folder = Folder::new("flash-sale-drill");
                (format!("sqlite:{}", folder.file("shop.db").display()), Server::Sqlite(folder))
            }
            Dialect::Postgres => {
                let server = Postgres::start();
                (server.url(), Server::Postgres(server))
            }
            Dialect::MariaDb => {
                let server = MariaDb::start();
                (server.url(), Server::MariaDb(server))
            }
        };
        Running { url, server: Arc::new(server) }
    }

    /// Where it is.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Whether there is a server that can be killed.
    pub(super) fn has_server(&self) -> bool {
        !matches!(*self.server, Server::Sqlite(_))
    }

    /// Kills the server, and starts it again on what is on its disk.
    pub(super) async fn kill(&self) -> Result<(), String> {
        self.blocking(|server| match server {
            Server::Sqlite(_) => {}
            Server::Postgres(server) => server.restart(),
            Server::MariaDb(server) => server.restart(),
        })
        .await
    }

    /// Kills one of its processes, if it has such; the others then end by themselves, and it recovers.
    pub(super) async fn kill_backend(&self) -> Result<bool, String> {
        self.blocking(|server| match server {
            Server::Postgres(server) => {
                let is_killed = server.kill_backend();
                server.wait_until_ready();
                is_killed
            }
            Server::Sqlite(_) | Server::MariaDb(_) => false,
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Server) -> T + Send + 'static,
    ) -> Result<T, String> {
        let server = Arc::clone(&self.server);
        let done = tokio::task::spawn_blocking(move || work(&server)).await;
        done.map_err(|error| format!("{}: {error}", self.url))
    }
}

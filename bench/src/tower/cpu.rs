//! CPU of a whole server per request, with each layer, over connections that stay open.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use harness::Goal;
use harness::load::Requests;
use tokio::net::TcpListener;
use tokio::runtime;

use super::sides::{BARE, GOVERNOR, SIDES, Side, TIDEGATE, side};
use crate::server::candidate::{Candidate, Table, Turn};
use crate::server::host::Server;

const CONNECTIONS: usize = 50;
const TURN: Duration = Duration::from_millis(1000);

/// Prints a table.
pub(super) fn run() -> Result<Vec<Goal>, String> {
    let mut servers = Vec::new();
    for side in SIDES.iter().filter(|side| !side.denies) {
        servers.push((side.name, Server::ourselves(&["tower", "serve", side.name])?));
    }
    let mut candidates = Vec::new();
    for (name, server) in &servers {
        let requests = Requests::about_one(|_| b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec());
        candidates.push(Candidate::with_requests(name, server, requests, CONNECTIONS, true)?);
    }
    let table = Table::measure(&mut candidates, Turn::Closed(1, TURN))?;
    table.print(&format!("HTTP, {CONNECTIONS} connections that stay open; base: {BARE}"), BARE);
    let ratio = table.ratio(TIDEGATE, GOVERNOR, |sample| sample.cpu);
    println!("CPU with fields, ours \u{f7} tower_governor's: {ratio:.3}\n");
    Ok(Vec::new())
}

/// Serves until it is killed, on one thread; the first line says where.
pub(super) fn serve(name: &str) -> ExitCode {
    let Some(side) = side(name) else {
        eprintln!("usage: tower serve SIDE");
        return ExitCode::from(2);
    };
    match runtime::Builder::new_current_thread().enable_io().build() {
        Ok(runtime) => match runtime.block_on(listen(side)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(&error.to_string()),
        },
        Err(error) => complain(&error.to_string()),
    }
}

async fn listen(side: &Side) -> std::io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("{}", listener.local_addr()?);
    let service = (side.router)().into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await
}

fn complain(problem: &str) -> ExitCode {
    eprintln!("{problem}");
    ExitCode::FAILURE
}

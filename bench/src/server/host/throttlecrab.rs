//! throttlecrab-server as it comes; it does not set `TCP_NODELAY`.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{Process, Server, free_address};

/// Starts it with RESP and HTTP.
pub(super) fn start(program: &Path) -> Result<Server, String> {
    let (resp, http) = (free_address()?, free_address()?);
    let mut command = Command::new(program);
    command.args(["--redis", "--redis-host", "127.0.0.1", "--redis-port", &resp.port().to_string()]);
    command.args(["--http", "--http-host", "127.0.0.1", "--http-port", &http.port().to_string()]);
    let mut process = Process::start(&mut command, Stdio::null())?;
    process.listens(resp)?;
    process.listens(http)?;
    process.served(resp, Some(http))
}

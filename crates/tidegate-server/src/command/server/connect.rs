//! Connects to a server. Its errors name a remedy.

use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use crate::command::failure::Failure;

/// Timeout of every connect, read and write.
///
/// The commands are interactive: a longer wait is more likely a wrong address than a slow server.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Connects to a server. `port` is its default port, for the error about an invalid address.
pub(in crate::command) fn connect(server: &str, port: u16) -> Result<TcpStream, Failure> {
    first(server).map_err(|error| no_server(server, port, &error))
}

/// Connects to the first address of the name that accepts the connection.
fn first(server: &str) -> io::Result<TcpStream> {
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in server.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => {
                stream.set_read_timeout(Some(TIMEOUT))?;
                stream.set_write_timeout(Some(TIMEOUT))?;
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Returns the error about a server that cannot be reached.
///
/// An address that cannot be parsed is an invalid call, exit code 2.
fn no_server(server: &str, port: u16, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::InvalidInput => Failure::misused(format!(
            "--server {server:?}: not an address; write something like \"127.0.0.1:{port}\""
        )),
        _ => Failure::failed(format!(
            "no server at {server}: {error}; start one with `tidegate serve`, or name another with --server"
        )),
    }
}

/// Returns the error about a connection that ended or timed out before the reply. `front` is the protocol of the port.
pub(in crate::command) fn no_answer(server: &str, front: &str, error: &io::Error) -> Failure {
    let what = match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("it did not answer within {} s", TIMEOUT.as_secs())
        }
        io::ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
        _ => error.to_string(),
    };
    Failure::failed(format!(
        "no answer from {server}: {what}; name the {front} port of a tidegate server with --server"
    ))
}

/// Returns the error about a server that has another token than the given one.
pub(in crate::command) fn wrong_token(server: &str, origin: &str) -> Failure {
    Failure::failed(format!(
        "the token from {origin} is wrong: {server} has another one; correct TIDEGATE_TOKEN or --token-file"
    ))
}

/// Returns the error about a server that requires a token, where none was given.
pub(in crate::command) fn wants_token(server: &str) -> Failure {
    Failure::failed(format!("{server} wants a token; set TIDEGATE_TOKEN or --token-file"))
}

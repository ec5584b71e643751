//! Sends one command to a server, and reads its reply.
//!
//! One connection per command, which is closed afterwards. The request is not retried: after a timeout it may have
//! been executed.

use std::io::{self, BufReader, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use super::Failure;
use super::RespReply;

/// Timeout of every connect, read and write.
///
/// The command is interactive: a longer wait is more likely a wrong address than a slow server.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Sends a command, after `AUTH` if there is a token.
///
/// A wrong token, an error reply and a missing reply are a [`Failure`] with a remedy.
pub(super) fn ask(server: &str, token: Option<&str>, question: &[Vec<u8>]) -> Result<RespReply, Failure> {
    let mut stream = connect(server).map_err(|error| no_server(server, &error))?;
    let mut said = Vec::new();
    if let Some(token) = token {
        write_words(&mut said, &[b"AUTH".to_vec(), token.into()]);
    }
    write_words(&mut said, question);
    let no_answer = |error| no_answer(server, &error);
    stream.write_all(&said).map_err(no_answer)?;
    let mut stream = BufReader::new(stream);
    let greeting = token.map(|_| RespReply::read(&mut stream)).transpose().map_err(no_answer)?;
    match (RespReply::read(&mut stream).map_err(no_answer)?, greeting) {
        (RespReply::Error(error), _) if error.starts_with("NOAUTH") && token.is_none() => {
            Err(Failure::failed(format!("{server} wants a token; set TIDEGATE_TOKEN or --token-file")))
        }
        (RespReply::Error(_), Some(RespReply::Error(error))) | (RespReply::Error(error), _) => {
            Err(Failure::failed(format!("{server} says: {error}")))
        }
        (reply, _) => Ok(reply),
    }
}

/// Connects to the first address of the name that accepts the connection.
fn connect(server: &str) -> io::Result<TcpStream> {
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

/// Appends a command as an array of bulk strings.
fn write_words(said: &mut Vec<u8>, words: &[Vec<u8>]) {
    said.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        said.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        said.extend_from_slice(word);
        said.extend_from_slice(b"\r\n");
    }
}

/// Returns the error about a server that cannot be reached.
///
/// An address that cannot be parsed is an invalid call, exit code 2.
fn no_server(server: &str, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::InvalidInput => Failure::misused(format!(
            "--server {server:?}: not an address; write something like \"127.0.0.1:6380\""
        )),
        _ => Failure::failed(format!(
            "no server at {server}: {error}; start one with `tidegate serve`, or name another with --server"
        )),
    }
}

/// Returns the error about a connection that ended or timed out before the reply.
fn no_answer(server: &str, error: &io::Error) -> Failure {
    let what = match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("it did not answer within {} s", TIMEOUT.as_secs())
        }
        io::ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
        _ => error.to_string(),
    };
    Failure::failed(format!(
        "no answer from {server}: {what}; name the RESP port of a tidegate server with --server"
    ))
}

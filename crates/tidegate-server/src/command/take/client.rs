//! Sends one command to a server, and reads its reply.
//!
//! One connection per command, which is closed afterwards. The request is not retried: after a timeout it may have
//! been executed.

use std::io::{BufReader, Write as _};

use super::Failure;
use super::RespReply;
use crate::command::server::connect::{connect, no_answer, wants_token};

/// Sends a command, after `AUTH` if there is a token.
///
/// A wrong token, an error reply and a missing reply are a [`Failure`] with a remedy.
pub(super) fn ask(server: &str, token: Option<&str>, question: &[Vec<u8>]) -> Result<RespReply, Failure> {
    let mut stream = connect(server, 6380)?;
    let mut said = Vec::new();
    if let Some(token) = token {
        write_words(&mut said, &[b"AUTH".to_vec(), token.into()]);
    }
    write_words(&mut said, question);
    let no_answer = |error| no_answer(server, "RESP", &error);
    stream.write_all(&said).map_err(no_answer)?;
    let mut stream = BufReader::new(stream);
    let greeting = token.map(|_| RespReply::read(&mut stream)).transpose().map_err(no_answer)?;
    match (RespReply::read(&mut stream).map_err(no_answer)?, greeting) {
        (RespReply::Error(error), _) if error.starts_with("NOAUTH") && token.is_none() => {
            Err(wants_token(server))
        }
        (RespReply::Error(_), Some(RespReply::Error(error))) | (RespReply::Error(error), _) => {
            Err(Failure::failed(format!("{server} says: {error}")))
        }
        (reply, _) => Ok(reply),
    }
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

//! The commands that stock clients send when they connect and disconnect: `HELLO`, `AUTH`, `CLIENT`, `QUIT` and others.
//!
//! The errors are those of Redis, word for word: clients compare them. The server has no users, so user names are
//! accepted and ignored.

use super::parse::{Caller, Words};
use super::reply::{Protocol, Replies, echo as shown};
use super::session::{Call, CommandResult};

/// The longest name of a connection, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// The error of `AUTH` on a server without a token, as in Redis.
const NO_TOKEN: &str = "ERR AUTH <password> called without any password configured for the default user. \
    Are you sure your configuration is correct?";
/// The error of a wrong token, as in Redis.
const WRONG_TOKEN: &str = "WRONGPASS invalid username-password pair or user is disabled.";

/// `PING [message]`: replies the message, or `PONG`.
pub(super) fn ping(call: &mut Call<'_, '_>) -> CommandResult {
    match (call.words.get(1), call.words.len()) {
        (None, _) => call.replies.simple("PONG"),
        (Some(message), 2) => call.replies.bulk(message),
        _ => return Err("ERR wrong number of arguments for 'ping' command".to_owned()),
    }
    Ok(())
}

/// `ECHO message`: replies the message.
pub(super) fn echo(call: &mut Call<'_, '_>) -> CommandResult {
    call.replies.bulk(call.words.get(1).unwrap_or_default());
    Ok(())
}

/// `AUTH [username] token`: authenticates the client. The username is ignored.
///
/// After several wrong tokens the connection is cut off.
pub(super) fn auth(call: &mut Call<'_, '_>) -> CommandResult {
    let secret = match call.words.len() {
        2 => call.words.get(1),
        3 => call.words.get(2),
        _ => return Err("ERR syntax error".to_owned()),
    };
    show_token(call, secret.unwrap_or_default())?;
    call.replies.ok();
    Ok(())
}

/// Authenticates the client, or returns the error.
fn show_token(call: &mut Call<'_, '_>, secret: &[u8]) -> CommandResult {
    if call.worker.engine.token().is_none() {
        return Err(NO_TOKEN.to_owned());
    }
    if call.session.knows(call.worker, secret) { Ok(()) } else { Err(WRONG_TOKEN.to_owned()) }
}

/// `HELLO [version [AUTH username token] [SETNAME name]]`: selects the protocol version, and describes the server.
///
/// Name and version change only if all options are valid; a right token takes effect at once. The reply is a map in
/// the new version of the protocol.
///
/// ```text
/// HELLO 3 AUTH default open-sesame SETNAME worker-1
/// %7  server tidegate  version 0.1.0  proto 3  id 17  mode standalone  role master  modules *0
/// ```
pub(super) fn hello(call: &mut Call<'_, '_>) -> CommandResult {
    let protocol = match call.words.get(1) {
        None => call.session.protocol,
        Some(b"2") => Protocol::Resp2,
        Some(b"3") => Protocol::Resp3,
        Some(other) if other.iter().all(u8::is_ascii_digit) => {
            return Err("NOPROTO unsupported protocol version".to_owned());
        }
        Some(_) => return Err("ERR Protocol version is not an integer or out of range".to_owned()),
    };
    let mut rest = call.words.from(2);
    let mut name = None;
    while let Some(option) = rest.get(0) {
        if let (true, Some(secret)) = (option.eq_ignore_ascii_case(b"AUTH"), rest.get(2)) {
            show_token(call, secret)?;
            rest = rest.from(3);
        } else if let (true, Some(given)) = (option.eq_ignore_ascii_case(b"SETNAME"), rest.get(1)) {
            name = Some(valid_name(given)?);
            rest = rest.from(2);
        } else {
            return Err(format!("ERR Syntax error in HELLO option '{}'", shown(option)));
        }
    }
    if call.session.caller == Caller::Unauthenticated {
        return Err(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
            <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP \
            protocol version at the same time"
                .to_owned(),
        );
    }
    if let Some(name) = name {
        call.session.name = name.to_vec();
    }
    call.session.protocol = protocol;
    call.replies.protocol = protocol;
    introduce(call);
    Ok(())
}

/// Writes the description of the server, with the fields of Redis.
fn introduce(call: &mut Call<'_, '_>) {
    let (id, replies) = (call.session.id, &mut call.replies);
    let protocol = if call.session.protocol == Protocol::Resp3 { 3 } else { 2 };
    replies.map(7);
    replies.bulk(b"server");
    replies.bulk(b"tidegate");
    replies.bulk(b"version");
    replies.bulk(env!("CARGO_PKG_VERSION").as_bytes());
    replies.bulk(b"proto");
    replies.integer(protocol);
    replies.bulk(b"id");
    replies.integer(id as i64);
    replies.bulk(b"mode");
    replies.bulk(b"standalone");
    replies.bulk(b"role");
    replies.bulk(b"master");
    replies.bulk(b"modules");
    replies.array(0);
}

/// `SELECT index`: accepts database 0 only.
///
/// Clients with a database in their URL send it on connect.
pub(super) fn select(call: &mut Call<'_, '_>) -> CommandResult {
    match call.words.get(1) {
        Some(b"0") => call.replies.ok(),
        _ => return Err("ERR DB index is out of range".to_owned()),
    }
    Ok(())
}

/// `CLIENT SETNAME|GETNAME|SETINFO|ID|INFO|LIST|NO-EVICT|NO-TOUCH|TRACKING|REPLY …`: the subcommands that stock clients
/// send.
///
/// Subcommands without an effect here, such as `NO-EVICT`, are accepted because clients treat their errors as a
/// failed connection. `TRACKING ON` and `REPLY OFF` would change the protocol, and are errors.
pub(super) fn client(call: &mut Call<'_, '_>) -> CommandResult {
    let words = call.words;
    let subcommand = words.get(1).unwrap_or_default().to_ascii_uppercase();
    match (&*subcommand, words.len()) {
        (b"SETNAME", 3) => {
            call.session.name = valid_name(words.get(2).unwrap_or_default())?.to_vec();
            call.replies.ok();
        }
        (b"GETNAME", 2) if call.session.name.is_empty() => call.replies.null(),
        (b"GETNAME", 2) => call.replies.bulk(&call.session.name),
        (b"SETINFO", 4) => set_info(words, &mut call.replies)?,
        (b"ID", 2) => call.replies.integer(call.session.id as i64),
        (b"INFO" | b"LIST", 2) => call.replies.bulk(&about(call)),
        (b"NO-EVICT" | b"NO-TOUCH", 3) => on_or_off(words, &mut call.replies)?,
        (b"TRACKING", 3) if is(words.get(2), "OFF") => call.replies.ok(),
        (b"REPLY", 3) if is(words.get(2), "ON") => call.replies.ok(),
        _ => {
            let subcommand = shown(words.get(1).unwrap_or_default());
            return Err(format!("ERR unknown subcommand or wrong number of arguments for '{subcommand}'."));
        }
    }
    Ok(())
}

/// `CLIENT SETINFO`: checks the library's name or version, and does not store it.
fn set_info(words: Words<'_>, replies: &mut Replies<'_>) -> CommandResult {
    if !is(words.get(2), "LIB-NAME") && !is(words.get(2), "LIB-VER") {
        return Err(format!("ERR Unrecognized option '{}'", shown(words.get(2).unwrap_or_default())));
    }
    valid_name(words.get(3).unwrap_or_default())?;
    replies.ok();
    Ok(())
}

/// Accepts a switch that has no effect here.
fn on_or_off(words: Words<'_>, replies: &mut Replies<'_>) -> CommandResult {
    if !is(words.get(2), "ON") && !is(words.get(2), "OFF") {
        return Err("ERR syntax error".to_owned());
    }
    replies.ok();
    Ok(())
}

/// Returns one line about this connection.
///
/// `CLIENT LIST` has this line as well: a client sees no other connections.
fn about(call: &Call<'_, '_>) -> Vec<u8> {
    let resp = if call.session.protocol == Protocol::Resp3 { 3 } else { 2 };
    let mut line = format!("id={} name=", call.session.id).into_bytes();
    line.extend_from_slice(&call.session.name);
    line.extend_from_slice(format!(" db=0 resp={resp}\n").as_bytes());
    line
}

/// `QUIT`: closes the connection after the reply.
///
/// Requests that were sent after it are not executed.
pub(super) fn quit(call: &mut Call<'_, '_>) -> CommandResult {
    call.session.ends = true;
    call.replies.ok();
    Ok(())
}

/// `RESET`: resets the session; a client of a server with a token has to authenticate again.
///
/// A transaction is dropped. Wrong tokens stay counted.
pub(super) fn reset(call: &mut Call<'_, '_>) -> CommandResult {
    call.session.reset(call.worker);
    call.replies.simple("RESET");
    Ok(())
}

/// Compares a word in any case.
fn is(word: Option<&[u8]>, expected: &str) -> bool {
    word.is_some_and(|word| word.eq_ignore_ascii_case(expected.as_bytes()))
}

/// Checks a name: it is printed in lists, so spaces and control characters are rejected.
fn valid_name(name: &[u8]) -> Result<&[u8], String> {
    if name.len() > MAX_NAME_BYTES {
        return Err(format!("ERR names have at most {MAX_NAME_BYTES} bytes"));
    }
    if name.iter().all(u8::is_ascii_graphic) {
        Ok(name)
    } else {
        Err("ERR Client names cannot contain spaces, newlines or special characters.".to_owned())
    }
}

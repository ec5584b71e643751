//! `COMMAND`: the list of commands, for clients that look up key positions and for shells with completion.
//!
//! Cluster clients look up key positions with `COMMAND INFO`, and redis-cli its completion with `COMMAND DOCS`. Key
//! positions are those of [`Keys`]; the list is the table of [`COMMANDS`].

use std::sync::LazyLock;

use super::command::{COMMANDS, Keys, Spec};
use super::pending::written;
use super::reply::{Protocol, Replies, echo};
use super::session::{Call, CommandResult};

/// The maximum number of command names in one request.
const MAX_NAMES: usize = 64;

/// The replies about all commands, cached since they are long and never change.
static ALL_INFO: LazyLock<Vec<u8>> = LazyLock::new(|| {
    written(Protocol::Resp2, |replies| {
        replies.array(COMMANDS.len());
        COMMANDS.iter().for_each(|spec| info(replies, spec));
    })
});
/// `COMMAND DOCS` in version 2 of the protocol.
static ALL_DOCS_2: LazyLock<Vec<u8>> = LazyLock::new(|| all_docs(Protocol::Resp2));
/// `COMMAND DOCS` in version 3 of the protocol.
static ALL_DOCS_3: LazyLock<Vec<u8>> = LazyLock::new(|| all_docs(Protocol::Resp3));

/// Encodes the documentation of all commands.
fn all_docs(protocol: Protocol) -> Vec<u8> {
    written(protocol, |replies| docs(replies, &COMMANDS.iter().collect::<Vec<_>>()))
}

/// `COMMAND [COUNT|LIST|INFO name…|DOCS name…]`: an unknown name is null in `INFO`, and left out in `DOCS`.
///
/// Not allowed in a transaction, since the full reply is long.
pub(super) fn command(call: &mut Call<'_, '_>) -> CommandResult {
    let subcommand = call.words.get(1).unwrap_or_default().to_ascii_uppercase();
    if call.words.len() > 2 + MAX_NAMES {
        return Err(format!("ERR ask for at most {MAX_NAMES} commands at once"));
    }
    let named = || call.words.from(2).iter().map(Spec::named);
    let replies = &mut call.replies;
    match (&*subcommand, call.words.len()) {
        // The reply is the same in both protocol versions.
        (b"", 1) | (b"INFO", 2) => replies.append(&ALL_INFO),
        (b"COUNT", 2) => replies.integer(COMMANDS.len() as i64),
        (b"LIST", 2) => {
            replies.array(COMMANDS.len());
            COMMANDS.iter().for_each(|spec| replies.bulk(spec.name.as_bytes()));
        }
        (b"INFO", _) => {
            replies.array(call.words.len() - 2);
            named().for_each(|spec| match spec {
                Some(spec) => info(replies, spec),
                None => replies.null(),
            });
        }
        (b"DOCS", 2) => replies.append(match call.session.protocol {
            Protocol::Resp2 => &ALL_DOCS_2,
            Protocol::Resp3 => &ALL_DOCS_3,
        }),
        (b"DOCS", _) => docs(replies, &named().flatten().collect::<Vec<_>>()),
        _ => {
            let subcommand = echo(call.words.get(1).unwrap_or_default());
            return Err(format!(
                "ERR unknown subcommand '{subcommand}'. Try COMMAND COUNT, LIST, INFO or DOCS."
            ));
        }
    }
    Ok(())
}

/// Writes the ten fields of one command, as Redis 7 has them.
fn info(replies: &mut Replies<'_>, spec: &Spec) {
    let (first, last, step) = match spec.keys {
        Keys::None => (0, 0, 0),
        Keys::First => (1, 1, 1),
        Keys::All => (1, -1, 1),
    };
    replies.array(10);
    replies.bulk(spec.name.as_bytes());
    replies.integer(spec.arity);
    let flag = if spec.keys == Keys::None { "fast" } else { "write" };
    replies.array(1);
    replies.simple(flag);
    [first, last, step].into_iter().for_each(|number| replies.integer(number));
    // Categories, tips, key specifications and subcommands.
    (0..4).for_each(|_| replies.array(0));
}

/// Writes the summary and the group of these commands.
fn docs(replies: &mut Replies<'_>, specs: &[&Spec]) {
    replies.map(specs.len());
    for spec in specs {
        replies.bulk(spec.name.as_bytes());
        replies.map(2);
        replies.bulk(b"summary");
        replies.bulk(spec.summary.as_bytes());
        replies.bulk(b"group");
        replies.bulk(if spec.keys == Keys::None { b"connection" } else { b"generic" });
    }
}

//! Words that are repeated within a reply. None of them may look like a reply itself.

use super::cases::Case;
use super::class::Class;
use crate::wire::resp::request;

/// Requests in which `@` is repeated in the reply, mostly within an error.
const REQUESTS: [&[&str]; 34] = [
    &["@"],
    &["@", "@", "@"],
    &["NOTHING", "@"],
    &["CLIENT", "@"],
    &["CLIENT", "SETINFO", "@", "x"],
    &["CLIENT", "SETINFO", "LIB-NAME", "@"],
    &["CLIENT", "SETNAME", "@"],
    &["CLIENT", "NO-EVICT", "@"],
    &["COMMAND", "@"],
    &["COMMAND", "INFO", "@"],
    &["COMMAND", "DOCS", "@"],
    &["CONFIG", "@"],
    &["CONFIG", "GET", "@"],
    &["HELLO", "@"],
    &["HELLO", "3", "@"],
    &["HELLO", "3", "SETNAME", "@"],
    &["HELLO", "3", "AUTH", "@", "@"],
    &["AUTH", "@"],
    &["SELECT", "@"],
    &["INFO", "@"],
    &["ECHO", "@"],
    &["PING", "@"],
    &["CL.THROTTLE", "k", "@", "1", "60"],
    &["CL.THROTTLE", "@", "1", "1", "60"],
    &["TG.TAKE", "k", "@", "1/s"],
    &["TG.TAKE", "k", "LIMIT", "@"],
    &["TG.TAKE", "@", "LIMIT", "9/s concurrency"],
    &["TG.TAKE", "k", "LIMIT", "1/s", "COST", "@"],
    &["TG.TAKE", "k", "LIMIT", "1/s", "@"],
    &["TG.TAKEALL", "1", "k", "LIMIT", "1/s", "@", "1"],
    &["TG.ADMIT", "COST", "@"],
    &["TG.ADMIT", "ip", "@"],
    &["TG.ADMIT", "user", "ana", "@"],
    &["TG.RELEASE", "@"],
];

/// The words in place of `@`.
const WORDS: [&[u8]; 20] = [
    b"\r\n+OK\r\n",
    b"\n+OK\n",
    b"\r",
    b"\n",
    b"\0",
    b"a\0b",
    b"\xff\xfe",
    b"\xc3",
    b"\xe2\x80\xa8",
    b"\xc2\x85",
    b"\x1b[2J",
    b"'",
    b"\"",
    b"\\",
    b"\\r\\n",
    b"%s%n{}",
    b"$5\r\nhello\r\n",
    b"*1\r\n:1\r\n",
    &[b'x'; 1000],
    &[b'\r'; 1000],
];

/// Returns each of these requests with each of these words. Each has one reply, and the connection stays open.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for words in REQUESTS {
        for word in WORDS {
            let filled: Vec<_> =
                words.iter().map(|part| if *part == "@" { word } else { part.as_bytes() }).collect();
            let case = Case::of(request(&filled));
            cases.push(Case { replies: Some(1), class: class(words), ..case });
        }
    }
    cases
}

/// Returns the class, if it is the same for all words.
fn class(words: &[&str]) -> Option<Class> {
    match words {
        ["ECHO" | "PING" | "INFO", ..] | ["CONFIG", "GET", ..] | ["COMMAND", "INFO" | "DOCS", ..] => {
            Some(Class::Open)
        }
        ["@" | "NOTHING" | "AUTH" | "SELECT" | "HELLO" | "TG.RELEASE", ..] if words.len() != 4 => {
            Some(Class::Refused)
        }
        ["CL.THROTTLE", "@", ..] | ["TG.TAKE", "@", ..] => Some(Class::Open),
        ["CL.THROTTLE" | "TG.TAKE" | "TG.TAKEALL" | "TG.ADMIT", ..] => Some(Class::Refused),
        _ => None,
    }
}

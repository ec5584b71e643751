//! Fuzz targets of the RESP front: arbitrary bytes as requests.
//!
//! `resp_parse` checks the parser alone. `resp_session` checks the promises of a session, and `resp_split` that
//! segmentation does not matter. The clock stands still, and all runs of the same bytes are equal, so a failure can
//! be replayed.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Waker};

use tidegate::{ManualClock, Zone};
use tokio::sync::watch;

use super::parse::{Arguments, Caller, Step};
use super::session::{Next, Scratch, Session};
use crate::engine::Engine;
use crate::settings::{Settings, Token};
use crate::worker::WorkerContext;

/// The number of cuts of a session.
const PIECES: usize = 8;
/// The length up to which a session is also cut at every byte.
const SHORT_BYTES: usize = 64;
/// The separator of two parts of a session, between which another request is sent.
const BETWEEN: u8 = 0xfe;
/// The burst of the key that must not be exceeded.
const BURST: u64 = 5;
/// The size of a zone in which keys soon share cells.
const CROWDED_BYTES: usize = 1 << 12;
/// The size of a zone in which keys never share cells: which ones share differs from run to run.
const ROOMY_BYTES: usize = 1 << 20;

/// Checks the parser: a request ends within the bytes, or more bytes are needed than there are.
pub fn resp_parse(bytes: &[u8]) {
    for caller in [Caller::Known, Caller::Unauthenticated] {
        let (mut arguments, mut rest) = (Arguments::default(), bytes);
        while let Ok(step) = arguments.parse(rest, caller) {
            match step {
                Step::More { bytes } => {
                    assert!(bytes > rest.len());
                    break;
                }
                Step::Request { bytes } => {
                    assert!((1..=rest.len()).contains(&bytes));
                    let words = arguments.of(rest);
                    assert_eq!(words.iter().count(), words.len());
                    rest = &rest[bytes..];
                }
            }
        }
    }
}

/// Checks a session: every request has exactly one reply, no limit is exceeded, and an unauthenticated client gets no
/// decision.
pub fn resp_session(bytes: &[u8]) {
    every_request_has_one_reply(bytes);
    no_burst_is_exceeded(bytes);
    an_unauthenticated_client_gets_no_decision(bytes);
}

/// Checks that the number of complete replies equals the number of commands. A cut-off adds one error reply.
fn every_request_has_one_reply(bytes: &[u8]) {
    let worker = worker(CROWDED_BYTES, None);
    let (out, end) = session(&worker, &[bytes]);
    let mut rest = &out[..];
    let mut frames = 0;
    if let (Next::CutOff, Some(at)) = (&end, position(&out, b"HTTP/1.1 400 ")) {
        rest = &out[..at];
    }
    while !rest.is_empty() {
        rest = frame(rest).expect("what is answered is a whole frame");
        frames += 1;
    }
    let commands = worker.engine.meters().sum(|meter| &meter.resp_commands);
    assert!(frames == commands || (end == Next::CutOff && frames == commands + 1), "{frames} for {commands}");
}

/// Checks that takes of one key stay within its burst while arbitrary requests run between them. The clock stands
/// still.
fn no_burst_is_exceeded(bytes: &[u8]) {
    let (worker, key) = (worker(CROWDED_BYTES, None), unguessable(bytes));
    let mut allowed = 0;
    for said in bytes.split(|byte| *byte == BETWEEN) {
        session(&worker, &[said]);
        let cost = said.first().map_or(1, |byte| 1 + u64::from(byte % 4));
        let ask = match said.len() % 3 {
            0 => format!("CL.THROTTLE {key} {} 5 60 {cost}\r\n", BURST - 1),
            1 => format!("TG.TAKE {key} LIMIT \"5/60s burst {BURST}\" COST {cost}\r\n"),
            _ => format!("TG.TAKEALL 1 {key} LIMIT \"5/60s burst {BURST}\" COST {cost}\r\n"),
        };
        let reply = session(&worker, &[ask.as_bytes()]).0;
        let is_allowed =
            reply.starts_with(b"*5\r\n:0\r\n") || position(&reply, b"allowed\r\n:1\r\n").is_some();
        allowed += if is_allowed { cost } else { 0 };
    }
    assert!(allowed <= BURST, "{allowed}");
}

/// Checks that without the token nothing is decided, no state is created, and only errors are replied.
fn an_unauthenticated_client_gets_no_decision(bytes: &[u8]) {
    let worker = worker(CROWDED_BYTES, Token::new(&unguessable(bytes)));
    let (out, _) = session(&worker, &[bytes]);
    let decided = worker.engine.meters().sum(|meter| &meter.allowed)
        + worker.engine.meters().sum(|meter| &meter.denied);
    assert_eq!((decided, worker.engine.zone().counts().live), (0, 0));
    let out = &out[..position(&out, b"HTTP/1.1 400 ").unwrap_or(out.len())];
    let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    for line in lines {
        let is_harmless = line.starts_with(b"-") || line == b"+OK\r" || line == b"+RESET\r";
        assert!(is_harmless, "{}", line.escape_ascii());
    }
}

/// Returns a key that the same bytes cannot contain.
fn unguessable(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("k{:016x}", hasher.finish())
}

/// Checks that the replies do not depend on the pieces in which a session arrives.
pub fn resp_split(bytes: &[u8]) {
    let Some((cuts, bytes)) = bytes.split_at_checked(PIECES) else { return };
    let whole = session(&worker(ROOMY_BYTES, None), &[bytes]).0;
    // The reply to `INFO` depends on the time of the request.
    if position(&whole, b"redis_version").is_some() {
        return;
    }
    assert_eq!(session(&worker(ROOMY_BYTES, None), &pieces(cuts, bytes)).0, whole);
    for at in 0..if bytes.len() <= SHORT_BYTES { bytes.len() } else { 0 } {
        let (first, second) = bytes.split_at(at);
        assert_eq!(session(&worker(ROOMY_BYTES, None), &[first, second]).0, whole, "cut at {at}");
    }
}

/// Splits a session at places that its first bytes determine.
fn pieces<'b>(cuts: &[u8], bytes: &'b [u8]) -> Vec<&'b [u8]> {
    let mut places: Vec<_> = cuts.iter().map(|cut| usize::from(*cut) * bytes.len() / 256).collect();
    places.sort_unstable();
    let mut pieces = Vec::new();
    let mut from = 0;
    for place in places.into_iter().chain([bytes.len()]) {
        pieces.push(&bytes[from..place]);
        from = place;
    }
    pieces
}

/// Returns a worker context with a fresh engine.
fn worker(zone_bytes: usize, token: Option<Token>) -> Arc<WorkerContext> {
    // The default settings inspect the machine, which takes longer than a session.
    static SETTINGS: LazyLock<Settings> = LazyLock::new(Settings::default);
    let zone = Zone::with_clock(zone_bytes, Arc::new(ManualClock::new()));
    let settings = Settings { token, threads: NonZeroUsize::MIN, ..SETTINGS.clone() };
    let engine = Engine::new(settings, zone, None).expect("there is memory");
    Arc::new(WorkerContext::new(engine, 0, watch::channel(false).1))
}

/// Returns the replies to these pieces, and the last step.
fn session(worker: &Arc<WorkerContext>, pieces: &[&[u8]]) -> (Vec<u8>, Next) {
    let (mut session, mut scratch) = (Session::new(worker), Scratch::default());
    session.id = 1;
    let (mut kept, mut out, mut needed) = (Vec::new(), Vec::new(), 0);
    for piece in pieces {
        kept.extend_from_slice(piece);
        while kept.len() >= needed {
            needed = 0;
            let mut answered = Vec::new();
            let progress = session.run(&kept, worker, &mut scratch, &mut answered);
            out.append(&mut answered);
            session.unsent.sent();
            kept.drain(..progress.bytes);
            match progress.next {
                Next::Read { bytes } => {
                    assert!(bytes > kept.len());
                    needed = bytes;
                }
                Next::Send => {}
                Next::Wait => {
                    while session.later.poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
                    session.later.tell(&mut out).sent();
                }
                end @ (Next::End | Next::CutOff) => return (out, end),
            }
        }
    }
    (out, Next::Read { bytes: 0 })
}

/// Returns the index of the first occurrence of a part.
fn position(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

/// Returns the bytes after the first frame; `None` if it is incomplete or invalid.
fn frame(bytes: &[u8]) -> Option<&[u8]> {
    let end = position(bytes, b"\r\n")?;
    let (line, mut rest) = (&bytes[1..end], &bytes[end + 2..]);
    let number = || std::str::from_utf8(line).ok()?.parse::<i64>().ok();
    match bytes[0] {
        b'+' | b'-' => line.iter().all(|byte| !byte.is_ascii_control()).then_some(rest),
        b':' => number().map(|_| rest),
        b'_' => line.is_empty().then_some(rest),
        b'$' if line == b"-1" => Some(rest),
        b'$' => {
            let length = usize::try_from(number()?).ok()?;
            rest.get(length..)?.strip_prefix(b"\r\n")
        }
        kind @ (b'*' | b'%') => {
            for _ in 0..if kind == b'%' { 2 * number()? } else { number()? } {
                rest = frame(rest)?;
            }
            Some(rest)
        }
        _ => None,
    }
}

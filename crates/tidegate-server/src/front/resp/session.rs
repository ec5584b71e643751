//! One client's session: its state, and the execution of its commands.
//!
//! A session has no I/O: it gets bytes and appends replies, so that tests and fuzz targets drive it directly.
//! [`Session::run`] executes requests until the input ends, the replies are long enough, the turn is over, or a
//! remote store has to reply first.

use std::mem;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate::Ask;
use tidegate_rules::Attributes;

use super::command::{Run, Spec};
use super::parse::{Arguments, Caller, MAX_UNAUTHENTICATED_REQUEST_BYTES, ProtocolError, Step, Words};
use super::pending::PendingReplies;
use super::reply::{Protocol, Replies, echo};
use super::stretch::{Executed, Stretch};
use super::takes::{Style, Takes};
use super::transaction::Queue;
use super::unsent::UnsentPermits;
use super::{ask, throttle};
use crate::unfinished::UNCOUNTED_BYTES;
use crate::worker::WorkerContext;

/// The bytes of replies after which they are sent before another request is executed.
pub(super) const ENOUGH_OUTPUT: usize = 256 << 10;
/// The same bound for an unauthenticated client.
const ENOUGH_UNAUTHENTICATED_OUTPUT: usize = 1 << 10;
/// The longest reply to an unauthenticated client, in bytes; it is an error.
const MAX_UNAUTHENTICATED_REPLY_BYTES: usize = 1 << 10;

/// The maximum number of bytes that the buffers of an unauthenticated client hold: an unfinished request, and replies.
pub(super) const MAX_UNAUTHENTICATED_BYTES: usize =
    MAX_UNAUTHENTICATED_REQUEST_BYTES + ENOUGH_UNAUTHENTICATED_OUTPUT + MAX_UNAUTHENTICATED_REPLY_BYTES;

const _: () =
    assert!(MAX_UNAUTHENTICATED_BYTES <= UNCOUNTED_BYTES, "who has no token could leave no room for others");

/// The number of wrong tokens after which the connection is cut off.
const MAX_WRONG_TOKENS: u32 = 8;

/// The state of one client.
///
/// It lives as long as its connection. Everything that it can hold is bounded: the queue of a transaction, pending
/// replies, and the rest of a long request.
#[derive(Debug)]
pub(super) struct Session {
    /// The number of the connection, unique in the process; `CLIENT ID` returns it.
    pub(super) id: u64,
    /// The protocol version that `HELLO` selected.
    pub(super) protocol: Protocol,
    /// The authentication state.
    pub(super) caller: Caller,
    /// The name that `CLIENT SETNAME` set.
    pub(super) name: Vec<u8>,
    /// The address of the client, for the audit log; `None` if there is no log.
    pub(super) address: Option<SocketAddr>,
    /// Requests between `MULTI` and `EXEC`.
    pub(super) queue: Option<Queue>,
    /// Pending replies of a remote store.
    pub(super) later: PendingReplies,
    /// Permits of replies that are not written yet.
    pub(super) unsent: UnsentPermits,
    /// The rest of a request that is executed a stretch at a time.
    pub(super) stretch: Stretch,
    /// The number of wrong tokens so far. A right one does not reset it.
    wrong_tokens: u32,
    /// True if other connections run before the next request, since this one took as long as thousands of takes.
    pub(super) pauses: bool,
    /// True after `QUIT`.
    pub(super) ends: bool,
}

/// The reusable memory of a thread while it serves one client.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// The words of the current request.
    arguments: Arguments,
    /// The batched takes, of which none is left after a turn, and the caches of limits.
    pub(super) takes: Takes,
    /// Always empty: keeps the allocation of the last request that the rules decided.
    attributes: Attributes<'static>,
}

/// The result of executing some of a client's bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// The number of bytes whose requests were executed.
    pub(super) bytes: usize,
    /// The next step.
    pub(super) next: Next,
}

/// The next step of the connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Read until the rest has at least `bytes` bytes: it is an incomplete request.
    Read { bytes: usize },
    /// Send the replies, then go on; there may be more requests.
    Send,
    /// Wait for replies of a remote store before anything is sent; there may be more requests.
    Wait,
    /// Send the replies and close, as the client asked for.
    End,
    /// Send the replies and cut the connection off: a protocol error, or too many wrong tokens.
    CutOff,
}

/// A command, with everything that it may change.
///
/// Commands get it instead of a list of parameters. They append exactly one reply, or return an error, from which
/// the reply is made.
pub(super) struct Call<'a, 'o> {
    /// The session of the client.
    pub(super) session: &'a mut Session,
    /// The worker that serves the connection.
    pub(super) worker: &'a Arc<WorkerContext>,
    /// The batched takes.
    pub(super) takes: &'a mut Takes,
    /// The reusable memory of `TG.ADMIT`.
    pub(super) attributes: &'a mut Attributes<'static>,
    /// All bytes that were read.
    pub(super) input: &'a [u8],
    /// The index in `input` at which this request begins.
    pub(super) begin: usize,
    /// The words of the request.
    pub(super) words: Words<'a>,
    /// The writer of replies.
    pub(super) replies: Replies<'o>,
}

/// The result of a command; an error is the text of the error reply.
pub(super) type CommandResult = Result<(), String>;

impl Session {
    /// Creates the session of a new connection.
    pub(super) fn new(worker: &WorkerContext) -> Session {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Session {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            protocol: Protocol::default(),
            caller: caller(worker),
            name: Vec::new(),
            address: None,
            queue: None,
            later: PendingReplies::default(),
            unsent: UnsentPermits::default(),
            stretch: Stretch::default(),
            wrong_tokens: 0,
            pauses: false,
            ends: false,
        }
    }

    /// Answers all complete requests in these bytes.
    ///
    /// Replies are appended to `out` in the order of the requests. The caller removes the executed bytes from its
    /// input.
    pub(super) fn run(
        &mut self,
        input: &[u8],
        worker: &Arc<WorkerContext>,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Progress {
        let (mut bytes, mut commands) = (0, 0);
        let Scratch { arguments, takes, attributes } = scratch;
        self.stretch.begin();
        let next = loop {
            if self.stretch.is_open() {
                match self.execute_stretch(worker, takes, out) {
                    Executed::Whole => {}
                    Executed::Stretch => break Next::Send,
                    Executed::Waiting => break Next::Wait,
                }
            }
            if self.ends {
                break Next::End;
            }
            if self.wrong_tokens >= MAX_WRONG_TOKENS {
                break Next::CutOff;
            }
            if out.len() >= self.enough_output() || self.stretch.is_over() || mem::take(&mut self.pauses) {
                break Next::Send;
            }
            let rest = &input[bytes..];
            match arguments.parse(rest, self.caller) {
                Ok(Step::More { bytes }) => break Next::Read { bytes },
                Ok(Step::Request { bytes: read }) => {
                    let (words, replies) = (arguments.of(rest), Replies::new(out, self.protocol));
                    if self.holds_up(words) {
                        break Next::Wait;
                    }
                    if words.len() > 0 {
                        commands += 1;
                        Call {
                            session: self,
                            worker,
                            takes,
                            attributes,
                            input,
                            begin: bytes,
                            words,
                            replies,
                        }
                        .answer();
                    }
                    bytes += read;
                }
                Err(_) if self.is_waiting() => break Next::Wait,
                Err(error) => {
                    takes.settle(input, worker, &mut Replies::new(out, self.protocol), self);
                    protocol_error(error, out);
                    break Next::CutOff;
                }
            }
        };
        takes.settle(input, worker, &mut Replies::new(out, self.protocol), self);
        worker.meter().resp_commands.add(commands);
        if self.is_waiting() {
            self.later.keep(out);
            return Progress { bytes, next: Next::Wait };
        }
        Progress { bytes, next }
    }

    /// Authenticates the client if `secret` is the token, and counts a wrong token otherwise. Returns true if it is.
    ///
    /// The comparison takes constant time for a given token.
    pub(super) fn knows(&mut self, worker: &WorkerContext, secret: &[u8]) -> bool {
        let knows = worker.engine.token().is_some_and(|token| token.is(secret));
        if knows {
            self.caller = Caller::Known;
        } else {
            self.wrong_tokens += 1;
        }
        knows
    }

    /// Returns the bytes of replies that end a turn.
    #[inline]
    fn enough_output(&self) -> usize {
        match self.caller {
            Caller::Known => ENOUGH_OUTPUT,
            Caller::Unauthenticated => ENOUGH_UNAUTHENTICATED_OUTPUT,
        }
    }

    /// Returns the bytes of memory of requests that were received and not executed.
    #[inline]
    pub(super) fn held_bytes(&self) -> usize {
        let queue = self.queue.as_ref().map_or(0, Queue::held_bytes);
        queue + self.stretch.held_bytes() + self.later.held_bytes()
    }

    /// Resets protocol, authentication, name and transaction to those of a new connection.
    pub(super) fn reset(&mut self, worker: &WorkerContext) {
        self.protocol = Protocol::default();
        self.caller = caller(worker);
        self.name.clear();
        self.queue = None;
    }
}

/// Returns the initial caller: unauthenticated if the server has a token.
fn caller(worker: &WorkerContext) -> Caller {
    if worker.engine.token().is_some() { Caller::Unauthenticated } else { Caller::Known }
}

impl Call<'_, '_> {
    /// Executes the command. An error becomes an error reply, and breaks a transaction.
    #[inline]
    pub(super) fn answer(mut self) {
        if let Err(text) = self.execute() {
            self.settle();
            if let Some(queue) = &mut self.session.queue {
                *queue = Queue::broken();
            }
            self.worker.meter().bad_requests.add(1);
            self.replies.error(&text);
        }
    }

    /// Checks the command and runs it.
    ///
    /// Checked in this order: the name, authentication, an open transaction, the number of words.
    #[inline]
    fn execute(&mut self) -> CommandResult {
        let name = self.words.get(0).unwrap_or_default();
        let Some(spec) = Spec::named(name) else { return Err(unknown(name, self.words)) };
        if self.session.caller == Caller::Unauthenticated && !spec.is_unauthenticated {
            return Err("NOAUTH Authentication required.".to_owned());
        }
        if self.session.queue.is_some() && !matches!(spec.run, Run::EndsQueue(_)) {
            return self.put_into_queue(spec);
        }
        if let Run::Throttle(dialect) = spec.run {
            return throttle::throttle(self, dialect);
        }
        if !spec.fits(self.words.len()) {
            return Err(spec.wrong_number());
        }
        match spec.run {
            Run::Throttle(_) | Run::Take => ask::take(self),
            Run::Together(execute)
            | Run::Alone(execute)
            | Run::Here(execute)
            | Run::Connection(execute)
            | Run::EndsQueue(execute) => {
                self.settle();
                execute(self)
            }
        }
    }

    /// Queues a request for `EXEC`.
    ///
    /// A queued request gets the reply `QUEUED`. Its arguments are checked when it is executed.
    #[cold]
    fn put_into_queue(&mut self, spec: &Spec) -> CommandResult {
        if !spec.fits(self.words.len()) {
            return Err(spec.wrong_number());
        }
        if let Some(queue) = self.session.queue.as_mut().filter(|queue| !queue.is_broken) {
            queue.put(spec, self.words)?;
        }
        self.replies.simple("QUEUED");
        Ok(())
    }

    /// Answers all batched takes, so that the next reply follows theirs.
    pub(super) fn settle(&mut self) {
        self.takes.settle(self.input, self.worker, &mut self.replies, self.session);
    }

    /// Batches a take of the key in this word, to be decided together with later ones. The take is decided at once if
    /// the key is not in `input`, if the batch is full, or if the store does not answer at once, since batching gains
    /// nothing then.
    #[inline]
    pub(super) fn take(&mut self, key: usize, ask: Ask, style: Style) {
        match self.words.place(key) {
            Some(place) => {
                self.takes.put(self.begin + place.start..self.begin + place.end, ask, style);
                if self.takes.are_many() || !self.worker.engine.answers_at_once() {
                    self.settle();
                }
            }
            None => {
                self.settle();
                let key = self.words.get(key).unwrap_or_default();
                self.takes.put(0..key.len(), ask, style);
                self.takes.settle(key, self.worker, &mut self.replies, self.session);
            }
        }
    }
}

/// The maximum number of bytes of words that an error about an unknown command repeats, as in Redis.
const MAX_SHOWN_BYTES: usize = 128;

/// Returns the error of Redis for an unknown command, with the most similar name.
///
/// The wording is that of Redis, which some clients parse. The hint in parentheses is an addition.
#[cold]
fn unknown(name: &[u8], words: Words<'_>) -> String {
    let mut shown = String::new();
    for word in words.from(1).iter() {
        if shown.len() >= MAX_SHOWN_BYTES {
            break;
        }
        shown += &format!("'{}' ", echo(word));
    }
    let hint = match Spec::nearest(name) {
        Some(meant) => format!("did you mean {meant}?"),
        None => "COMMAND LIST shows all".to_owned(),
    };
    format!("ERR unknown command '{}', with args beginning with: {shown}({hint})", echo(name))
}

/// Writes the error reply to a protocol error, after which the connection is cut off.
///
/// A TLS client gets no bytes at all: any bytes would look like a broken TLS record.
fn protocol_error(error: ProtocolError, out: &mut Vec<u8>) {
    let what = match error {
        ProtocolError::ArrayLength => "invalid multibulk length",
        ProtocolError::UnauthenticatedArrayLength => "unauthenticated multibulk length",
        ProtocolError::BulkLength => "invalid bulk length",
        ProtocolError::NoBulk(byte) => {
            let text = format!("ERR Protocol error: expected '$', got '{}'", byte.escape_ascii());
            return Replies::new(out, Protocol::Resp2).error(&text);
        }
        ProtocolError::NoLineEnd => "expected CRLF after a bulk string",
        ProtocolError::InlineTooLong => "too big inline request",
        ProtocolError::RequestTooLong => "too big request",
        ProtocolError::UnauthenticatedRequestTooLong => {
            let text = format!(
                "ERR Protocol error: unauthenticated request of more than {MAX_UNAUTHENTICATED_REQUEST_BYTES} bytes; \
                 send AUTH first"
            );
            return Replies::new(out, Protocol::Resp2).error(&text);
        }
        ProtocolError::Quotes => "unbalanced quotes in request",
        // A client of another protocol could not parse a RESP error.
        ProtocolError::Http => return out.extend_from_slice(WRONG_PORT),
        ProtocolError::Tls => return,
    };
    Replies::new(out, Protocol::Resp2).error(&format!("ERR Protocol error: {what}"));
}

/// The reply to an HTTP client, such as a browser or curl.
const WRONG_PORT: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 60\r\n\
    connection: close\r\n\r\nThis port speaks RESP. HTTP is on another one, 8380 mostly.\n";

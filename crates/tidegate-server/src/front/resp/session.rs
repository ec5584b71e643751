//! What one client says, command by command.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate::Ask;
use tidegate_rules::Attributes;

use super::command::{Run, Spec};
use super::later::Later;
use super::parse::{Arguments, Caller, MAX_UNAUTHENTICATED_REQUEST_BYTES, ProtocolError, Step, Words};
use super::reply::{Protocol, Replies, echo};
use super::stretch::{Executed, Stretch};
use super::takes::{Style, Takes};
use super::transaction::Queue;
use super::untold::Untold;
use super::{ask, throttle};
use crate::unfinished::UNCOUNTED_BYTES;
use crate::worker::Post;

/// Bytes of replies after which they are sent before anything else is read.
pub(super) const ENOUGH_OUTPUT: usize = 256 << 10;
/// The same for a client that has not shown the token.
const ENOUGH_UNAUTHENTICATED_OUTPUT: usize = 1 << 10;
/// The longest reply to a client that has not shown the token, in bytes; it is an error.
const MAX_UNAUTHENTICATED_REPLY_BYTES: usize = 1 << 10;

/// Bytes that the buffers of a client hold that has not shown the token: an unfinished request, and replies.
pub(super) const MAX_UNAUTHENTICATED_BYTES: usize =
    MAX_UNAUTHENTICATED_REQUEST_BYTES + ENOUGH_UNAUTHENTICATED_OUTPUT + MAX_UNAUTHENTICATED_REPLY_BYTES;

const _: () =
    assert!(MAX_UNAUTHENTICATED_BYTES <= UNCOUNTED_BYTES, "who has no token could leave no room for others");

/// Wrong tokens after which somebody is cut off.
const MAX_WRONG_TOKENS: u32 = 8;

/// What is known about one client.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: u64,
    pub(super) protocol: Protocol,
    pub(super) caller: Caller,
    pub(super) name: Vec<u8>,
    /// What waits for `EXEC`, after `MULTI`.
    pub(super) queue: Option<Queue>,
    /// Replies of a remote store that are pending.
    pub(super) later: Later,
    /// Places of which replies tell that are not written yet.
    pub(super) untold: Untold,
    /// What is left of a request that is executed a stretch at a time.
    pub(super) stretch: Stretch,
    wrong_tokens: u32,
    /// Whether others have their turn before the next request, as this one took as long as thousands do.
    pub(super) pauses: bool,
    pub(super) ends: bool,
}

/// What a thread needs while it serves a client, and nobody in between.
#[derive(Debug, Default)]
pub(super) struct Desk {
    arguments: Arguments,
    pub(super) takes: Takes,
    /// Empty: the memory of the last request that rules were asked about.
    attributes: Attributes<'static>,
}

/// How far the bytes of a client were understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// So many were read, and answered.
    pub(super) bytes: usize,
    pub(super) next: Next,
}

/// What has to happen next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The rest is not a whole request before there are so many bytes of it.
    Read { bytes: usize },
    /// There are enough replies to be sent; more requests may be there.
    Send,
    /// Answers of a remote store have to come before there is anything to be sent; more requests may be there.
    Wait,
    /// The connection ends when the replies are sent: the client asked for that.
    End,
    /// The connection ends when the replies are sent: nothing good will come from there.
    CutOff,
}

/// A command, with all that it may touch.
pub(super) struct Call<'a, 'o> {
    pub(super) session: &'a mut Session,
    pub(super) post: &'a Arc<Post>,
    pub(super) takes: &'a mut Takes,
    pub(super) attributes: &'a mut Attributes<'static>,
    /// All bytes that were read.
    pub(super) input: &'a [u8],
    /// Where this request begins in them.
    pub(super) begin: usize,
    pub(super) words: Words<'a>,
    pub(super) replies: Replies<'o>,
}

/// Why a command was not understood.
pub(super) type Refused = Result<(), String>;

impl Session {
    pub(super) fn new(post: &Post) -> Session {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Session {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            protocol: Protocol::default(),
            caller: caller(post),
            name: Vec::new(),
            queue: None,
            later: Later::default(),
            untold: Untold::default(),
            stretch: Stretch::default(),
            wrong_tokens: 0,
            pauses: false,
            ends: false,
        }
    }

    /// Answers all whole requests in these bytes.
    pub(super) fn run(
        &mut self,
        input: &[u8],
        post: &Arc<Post>,
        desk: &mut Desk,
        out: &mut Vec<u8>,
    ) -> Progress {
        let (mut bytes, mut commands) = (0, 0);
        let Desk { arguments, takes, attributes } = desk;
        self.stretch.begin();
        let next = loop {
            if self.stretch.is_open() {
                match self.execute_stretch(post, takes, out) {
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
                        Call { session: self, post, takes, attributes, input, begin: bytes, words, replies }
                            .answer();
                    }
                    bytes += read;
                }
                Err(_) if self.is_waiting() => break Next::Wait,
                Err(error) => {
                    takes.settle(input, post, &mut Replies::new(out, self.protocol), self);
                    protocol_error(error, out);
                    break Next::CutOff;
                }
            }
        };
        takes.settle(input, post, &mut Replies::new(out, self.protocol), self);
        post.meter().resp_commands.add(commands);
        if self.is_waiting() {
            self.later.keep(out);
            return Progress { bytes, next: Next::Wait };
        }
        Progress { bytes, next }
    }

    /// Whether this is the token; who guesses too often is cut off.
    pub(super) fn knows(&mut self, post: &Post, secret: &[u8]) -> bool {
        let knows = post.engine.token().is_some_and(|token| token.is(secret));
        if knows {
            self.caller = Caller::Known;
        } else {
            self.wrong_tokens += 1;
        }
        knows
    }

    #[inline]
    fn enough_output(&self) -> usize {
        match self.caller {
            Caller::Known => ENOUGH_OUTPUT,
            Caller::Stranger => ENOUGH_UNAUTHENTICATED_OUTPUT,
        }
    }

    /// Returns the bytes of requests that were received and not executed.
    #[inline]
    pub(super) fn held_bytes(&self) -> usize {
        let queue = self.queue.as_ref().map_or(0, Queue::held_bytes);
        queue + self.stretch.held_bytes() + self.later.held_bytes()
    }

    /// Makes it like that of a new connection.
    pub(super) fn reset(&mut self, post: &Post) {
        self.protocol = Protocol::default();
        self.caller = caller(post);
        self.name.clear();
        self.queue = None;
    }
}

/// Nobody is a stranger where there is no token.
fn caller(post: &Post) -> Caller {
    if post.engine.token().is_some() { Caller::Stranger } else { Caller::Known }
}

impl Call<'_, '_> {
    #[inline]
    pub(super) fn answer(mut self) {
        if let Err(text) = self.execute() {
            self.settle();
            if let Some(queue) = &mut self.session.queue {
                *queue = Queue::broken();
            }
            self.post.meter().bad_requests.add(1);
            self.replies.error(&text);
        }
    }

    #[inline]
    fn execute(&mut self) -> Refused {
        let name = self.words.get(0).unwrap_or_default();
        let Some(spec) = Spec::named(name) else { return Err(unknown(name, self.words)) };
        if self.session.caller == Caller::Stranger && !spec.is_unauthenticated {
            return Err("NOAUTH Authentication required.".to_owned());
        }
        if self.session.queue.is_some() && !matches!(spec.run, Run::EndsQueue(_)) {
            return self.put_into_queue(spec);
        }
        if matches!(spec.run, Run::Throttle) {
            return throttle::throttle(self);
        }
        if !spec.fits(self.words.len()) {
            return Err(spec.wrong_number());
        }
        match spec.run {
            Run::Throttle | Run::Take => ask::take(self),
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

    /// Has a request wait for `EXEC`.
    #[cold]
    fn put_into_queue(&mut self, spec: &Spec) -> Refused {
        if !spec.fits(self.words.len()) {
            return Err(spec.wrong_number());
        }
        if let Some(queue) = self.session.queue.as_mut().filter(|queue| !queue.is_broken) {
            queue.put(spec, self.words)?;
        }
        self.replies.simple("QUEUED");
        Ok(())
    }

    /// Answers everything that was put aside, so that what follows comes behind it.
    pub(super) fn settle(&mut self) {
        self.takes.settle(self.input, self.post, &mut self.replies, self.session);
    }

    /// Puts a take of the key in this word aside, to be decided together with those behind it. It is decided at once if the
    /// key would be gone by then, or if the store does not answer at once and has nothing to gain.
    #[inline]
    pub(super) fn take(&mut self, key: usize, ask: Ask, style: Style) {
        match self.words.place(key) {
            Some(place) => {
                self.takes.put(self.begin + place.start..self.begin + place.end, ask, style);
                if self.takes.are_many() || !self.post.engine.answers_at_once() {
                    self.settle();
                }
            }
            None => {
                self.settle();
                let key = self.words.get(key).unwrap_or_default();
                self.takes.put(0..key.len(), ask, style);
                self.takes.settle(key, self.post, &mut self.replies, self.session);
            }
        }
    }
}

/// The most bytes of words that an error about an unknown command repeats, as in Redis.
const MAX_SHOWN_BYTES: usize = 128;

/// The error of Redis for a command that there is not, and which one was probably meant.
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

/// What somebody is told before the connection ends.
fn protocol_error(error: ProtocolError, out: &mut Vec<u8>) {
    let told = match error {
        ProtocolError::ArrayLength => "invalid multibulk length",
        ProtocolError::StrangersArrayLength => "unauthenticated multibulk length",
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
        // Whoever speaks another language would not understand an answer in this one.
        ProtocolError::Http => return out.extend_from_slice(WRONG_PORT),
        ProtocolError::Tls => return,
    };
    Replies::new(out, Protocol::Resp2).error(&format!("ERR Protocol error: {told}"));
}

/// For somebody with a browser or curl.
const WRONG_PORT: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 60\r\n\
    connection: close\r\n\r\nThis port speaks RESP. HTTP is on another one, 8380 mostly.\n";

//! `MULTI … EXEC`, which some clients send around every pipeline.
//!
//! The queued requests are executed at `EXEC`, or not at all if one of them was invalid. Each take is decided by
//! itself, and requests of other connections may run in between: `TG.TAKEALL` is the atomic command. A long `EXEC` is
//! executed a [`stretch`](super::stretch) at a time.

use super::command::{Run, Spec};
use super::parse::{MAX_ARGUMENTS, MAX_REQUEST_BYTES, Words};
use super::session::{Call, CommandResult};

/// The maximum number of requests between `MULTI` and `EXEC`, since their replies are one array.
pub(super) const MAX_QUEUED: usize = 4096;

/// The requests that are queued for `EXEC`.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The requests one after another, each as an array of bulk strings.
    bytes: Vec<u8>,
    /// The number of queued requests.
    count: usize,
    /// True if a request was rejected: `EXEC` then executes none.
    pub(super) is_broken: bool,
}

impl Queue {
    /// Queues a request.
    ///
    /// Fails for a command of the connection itself, and above a bound; the transaction is broken then.
    pub(super) fn put(&mut self, spec: &Spec, words: Words<'_>) -> CommandResult {
        if matches!(spec.run, Run::Connection(_)) {
            return Err(format!("ERR '{}' is not allowed between MULTI and EXEC", spec.name));
        }
        // An inline request may have more words, but the queue stores arrays.
        if words.len() > MAX_ARGUMENTS {
            return Err(format!("ERR a request has at most {MAX_ARGUMENTS} words between MULTI and EXEC"));
        }
        self.bytes.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        for word in words.iter() {
            self.bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            self.bytes.extend_from_slice(word);
            self.bytes.extend_from_slice(b"\r\n");
        }
        self.count += 1;
        if self.count > MAX_QUEUED || self.bytes.len() > MAX_REQUEST_BYTES {
            return Err(format!(
                "ERR more than {MAX_QUEUED} requests or {MAX_REQUEST_BYTES} bytes between MULTI and EXEC; \
                 a pipeline without MULTI may be as long as you like"
            ));
        }
        Ok(())
    }

    /// Returns a queue whose `EXEC` fails; it stores no requests.
    pub(super) fn broken() -> Queue {
        Queue { is_broken: true, ..Queue::default() }
    }

    /// Returns the bytes of memory that the requests hold.
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

/// `MULTI`: queues the requests up to `EXEC`. Cannot be nested.
///
/// An error in one of them does not end the queueing: the client still gets a reply per request, and `EXECABORT` at
/// `EXEC`.
pub(super) fn multi(call: &mut Call<'_, '_>) -> CommandResult {
    if call.session.queue.is_some() {
        return Err("ERR MULTI calls can not be nested".to_owned());
    }
    call.session.queue = Some(Queue::default());
    call.replies.ok();
    Ok(())
}

/// `DISCARD`: drops the queued requests.
pub(super) fn discard(call: &mut Call<'_, '_>) -> CommandResult {
    call.session.queue.take().ok_or("ERR DISCARD without MULTI")?;
    call.replies.ok();
    Ok(())
}

/// `EXEC`: executes the queued requests. Replies `EXECABORT` and executes none if one of them was rejected.
///
/// The array header is written here; the replies follow as the requests are executed.
pub(super) fn exec(call: &mut Call<'_, '_>) -> CommandResult {
    let queue = call.session.queue.take().ok_or("ERR EXEC without MULTI")?;
    if queue.is_broken {
        return Err("EXECABORT Transaction discarded because of previous errors.".to_owned());
    }
    call.replies.array(queue.count);
    call.session.stretch.queue(queue.bytes);
    Ok(())
}

//! `MULTI … EXEC`, which some clients put around every pipeline.
//!
//! What is between them is done when `EXEC` comes, or not at all. Each take is decided by itself and others may come in
//! between: for all or none there is `TG.TAKEALL`. A long `EXEC` is executed a [`stretch`](super::stretch) at a time.

use super::command::{Run, Spec};
use super::parse::{MAX_ARGUMENTS, MAX_REQUEST_BYTES, Words};
use super::session::{Call, Refused};

/// Requests between `MULTI` and `EXEC`; their answers are one.
pub(super) const MAX_QUEUED: usize = 4096;

/// Requests that wait for `EXEC`.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// One behind the other, each as an array of bulk strings.
    bytes: Vec<u8>,
    count: usize,
    /// Whether one was refused: then none will be done.
    pub(super) is_broken: bool,
}

impl Queue {
    /// Puts a request behind the others.
    pub(super) fn put(&mut self, spec: &Spec, words: Words<'_>) -> Refused {
        if matches!(spec.run, Run::Connection(_)) {
            return Err(format!("ERR '{}' is not allowed between MULTI and EXEC", spec.name));
        }
        // A line may have more, but what waits is an array.
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

    /// One of which none will be done, and nothing more is remembered.
    pub(super) fn broken() -> Queue {
        Queue { is_broken: true, ..Queue::default() }
    }

    /// Returns the bytes of memory that the requests take.
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

/// `MULTI`
pub(super) fn multi(call: &mut Call<'_, '_>) -> Refused {
    if call.session.queue.is_some() {
        return Err("ERR MULTI calls can not be nested".to_owned());
    }
    call.session.queue = Some(Queue::default());
    call.replies.ok();
    Ok(())
}

/// `DISCARD`
pub(super) fn discard(call: &mut Call<'_, '_>) -> Refused {
    call.session.queue.take().ok_or("ERR DISCARD without MULTI")?;
    call.replies.ok();
    Ok(())
}

/// `EXEC`
pub(super) fn exec(call: &mut Call<'_, '_>) -> Refused {
    let queue = call.session.queue.take().ok_or("ERR EXEC without MULTI")?;
    if queue.is_broken {
        return Err("EXECABORT Transaction discarded because of previous errors.".to_owned());
    }
    call.replies.array(queue.count);
    call.session.stretch.queue(queue.bytes);
    Ok(())
}

//! A session whose states are elsewhere: what it waits for, and what goes on meanwhile.

use tidegate::{Ask, Key};

use super::command::Command;
use super::later::{Reply, written};
use super::parse::Words;
use super::session::{Call, Session};
use super::takes::Style;
use crate::dynamic::DynamicLimit;
use crate::elsewhere::Asked;
use crate::engine::at_once;

impl Session {
    /// Whether answers from elsewhere are waited for.
    pub(super) fn is_waiting(&self) -> bool {
        self.later.as_ref().is_some_and(|later| later.is_waiting())
    }

    /// Whether a request has to wait for the answers to those before it.
    #[inline]
    pub(super) fn holds_up(&self, words: Words<'_>) -> bool {
        // What is put into a queue asks nobody.
        self.queue.is_none()
            && self.later.as_ref().is_some_and(|later| later.holds_up(words.get(0).unwrap_or_default()))
    }
}

impl Call<'_, '_> {
    /// Has this command answered: at once where states are in memory, else when the answer has come.
    pub(super) fn answer_when_known<R: Into<Reply>>(
        &mut self,
        command: Command,
        answer: impl Future<Output = R> + Send + 'static,
    ) {
        let answer = async move { answer.await.into() };
        match &mut self.session.later {
            None => {
                let (bytes, untold) = at_once::<Reply>(answer).into_parts();
                self.replies.append(&bytes);
                self.session.untold.append(untold);
            }
            Some(later) => later.put(self.replies.len(), command, Box::pin(answer)),
        }
    }

    /// Has a take under this limit decided by the remote store.
    #[cold]
    pub(super) fn take_elsewhere(&mut self, key: usize, ask: Ask, (limit, style): (DynamicLimit, Style)) {
        let key = self.words.get(key).unwrap_or_default().to_vec();
        let (post, protocol) = (self.post.clone(), self.session.protocol);
        self.answer_when_known(Command::Take, async move {
            let asked = [Asked { key: Key::new(&key), limit, ask }];
            let decided = post.engine.take_all(&asked, post.meter()).await;
            decided.each.first().inspect(|decision| post.meter().decided(decision));
            let limit = asked[0].limit.limit();
            let mut permits = None;
            let bytes = written(protocol, |replies| permits = style.tell(replies, &decided, (limit, &key)));
            Reply::telling(bytes, permits, &post.engine)
        });
    }
}

//! One call to the server and its reply, within the deadlines of its callers.
//!
//! A call is repeated only if the server rejected it: an unknown script, or a slot that another node has. A call that
//! was sent and not answered may have been executed, and is never sent again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::Cmd;
use tidegate_support::join_all;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::callers::{Caller, Callers, InFlightPermit, ReplySender};
use crate::counts::Counts;
use crate::fault::{Fault, Remedy};
use crate::link::{Answered, Link};
use crate::request_queue::TakeBatch;
use crate::script::{self, Call, Script, StateName, TableFields};
use crate::topology::Topology;

/// The maximum number of redirections of a request.
const MOST_STEPS: u32 = 8;
/// The pause before a retry while keys migrate to another node.
const BEFORE_ASKING_AGAIN: Duration = Duration::from_millis(2);

/// A request to a server. Each question has a single slot, so that one node can answer it.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    /// Runs a script.
    Run(Arc<Call>),
    /// Deletes these keys, which share a slot.
    Forget(Arc<[StateName]>),
    /// Reads fields of a table.
    ReadFields(Arc<TableFields>),
}

impl Question {
    /// Returns the script that it runs, if any. Only scripts have to be known to the server.
    fn script(&self) -> Option<&'static Script> {
        match self {
            Question::Run(call) => Some(call.script),
            Question::Forget(_) | Question::ReadFields(_) => None,
        }
    }

    /// Returns the slot of its keys. It is used on clusters only.
    fn slot(&self) -> u16 {
        let key = match self {
            Question::Run(call) => call.keys.first(),
            Question::Forget(keys) => keys.first(),
            Question::ReadFields(fields) => Some(&fields.table),
        };
        key.map_or(0, |key| script::slot(key))
    }

    /// Builds the command. A script is sent as `EVALSHA` with its hash, or as `EVAL` with its text if `with_text`.
    ///
    /// Keys and arguments are borrowed from the call and copied once, into the command.
    pub(crate) fn command(&self, with_text: bool) -> Cmd {
        match self {
            Question::Forget(keys) => {
                let mut command = redis::cmd("DEL");
                keys.iter().for_each(|key| {
                    command.arg(&**key);
                });
                command
            }
            Question::ReadFields(fields) => {
                let mut command = redis::cmd("HMGET");
                command.arg(&*fields.table).arg(&fields.names);
                command
            }
            Question::Run(call) => {
                let mut command = if with_text {
                    let mut command = redis::cmd("EVAL");
                    command.arg(call.script.text.as_bytes());
                    command
                } else {
                    let mut command = redis::cmd("EVALSHA");
                    command.arg(call.script.sha.as_bytes());
                    command
                };
                // The number of keys separates keys from arguments, which a cluster node needs for routing.
                command.arg(call.keys.len());
                call.keys.iter().for_each(|key| {
                    command.arg(&**key);
                });
                call.arguments.iter().for_each(|argument| {
                    command.arg(argument.as_slice());
                });
                command
            }
        }
    }
}

/// The sender of calls to the server, which passes the replies to their callers. It runs on the connection thread.
/// Callers on other threads reach it through the request queue.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// The servers, and the choice between them.
    pub(crate) topology: Topology,
    /// The counters of the store.
    pub(crate) counts: Arc<Counts>,
    /// The time that a request has, from its beginning.
    deadline: Duration,
    /// The maximum number of requests with a waiting caller.
    max_in_flight: usize,
    /// The number of requests with a waiting caller.
    in_flight: Arc<AtomicUsize>,
    /// The FIFO order in which requests wait for an unknown topology.
    turns: tokio::sync::Mutex<()>,
}

impl Exchange {
    /// Creates an exchange without requests.
    pub(crate) fn new(
        topology: Topology,
        counts: Arc<Counts>,
        deadline: Duration,
        max_in_flight: usize,
    ) -> Exchange {
        let (in_flight, turns) = (Arc::default(), tokio::sync::Mutex::default());
        Exchange { topology, counts, deadline, max_in_flight, in_flight, turns }
    }

    /// Returns the number of requests with a waiting caller. A request whose caller has timed out is not included.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Returns the deadline of a request that begins now. All calls of one decision share it.
    pub(crate) fn due(&self) -> Instant {
        Instant::now() + self.deadline
    }

    /// Registers a caller for a call. After its deadline, or with too many requests in flight, the caller gets a fault
    /// immediately. Both faults are retryable, because nothing was sent.
    pub(crate) fn admit<T>(&self, due: Instant, reply: ReplySender<T>, now: Instant) -> Option<Caller<T>> {
        // A decision that needs several calls has one deadline. A call that would certainly time out is not sent.
        let is_late = due <= now;
        let permit = InFlightPermit::take(&self.in_flight, self.max_in_flight).filter(|_| !is_late);
        if permit.is_none() {
            // The request was not sent, so its outcome is known.
            let late = || Fault::Down("no time is left within the deadline".to_owned());
            let fault = if is_late { late() } else { Fault::Busy };
            self.counts.outcome(Some(&fault)).add();
            let _ = reply.send(Err(fault));
            return None;
        }
        Some(Caller { due, reply, permit })
    }

    /// Sends one request, and replies to its caller.
    pub(crate) async fn ask(&self, question: &Question, caller: Caller<Answered>) {
        let mut callers = Callers::new(self.counts.clone());
        callers.push(caller);
        let answer = self.call(question, &mut callers).await;
        callers.answer(0, answer.map(|(answered, _)| answered));
    }

    /// Sends a request outside the decisions: it is neither counted nor limited by `max_in_flight`. It has the same
    /// deadline as a decision that begins now. Its callers are background tasks, which retry by themselves.
    pub(crate) async fn ask_beside(&self, question: &Question) -> Result<Answered, Fault> {
        self.ask_beside_until(question, self.due()).await
    }

    /// Sends a request outside the decisions, with a deadline of its own.
    pub(crate) async fn ask_beside_until(
        &self,
        question: &Question,
        due: Instant,
    ) -> Result<Answered, Fault> {
        let mut callers = Callers::new(Arc::default());
        // No caller waits on this channel; the result is returned instead.
        let (reply, _) = oneshot::channel::<Result<Answered, Fault>>();
        callers.push(Caller { due, reply, permit: None });
        Ok(self.call(question, &mut callers).await?.0)
    }

    /// Takes several asks in one call, and replies to the caller of each. Asks that have to be repeated alone are sent
    /// concurrently.
    pub(crate) async fn take(&self, batch: TakeBatch) {
        let alone = self.take_batch(batch).await;
        if !alone.is_empty() {
            join_all(alone.into_iter().map(|batch| Box::pin(self.take_batch(batch)))).await;
        }
    }

    /// Takes one batch. Returns the asks that have to be sent on their own. The reply is split by asks, and an error in
    /// the place of one ask is the fault of that ask only. An unreadable reply is the fault of all.
    async fn take_batch(&self, batch: TakeBatch) -> Vec<TakeBatch> {
        let TakeBatch { asks, mut callers, kind, .. } = batch;
        let question = Question::Run(Arc::new(script::take(&asks, kind.time)));
        let fault = match self.call(&question, &mut callers).await {
            Ok((answered, link)) => {
                // The reply has no names: states are matched to asks by number.
                let sizes = asks.iter().map(|ask| ask.bids.len());
                match script::read_takes(answered.value, sizes) {
                    Ok(replies) => {
                        for (place, reply) in replies.into_iter().enumerate() {
                            callers.answer(place, reply.map_err(|error| link.refused(&error, answered.seat)));
                        }
                        return Vec::new();
                    }
                    Err(unreadable) => Fault::Unreadable(unreadable.to_string()),
                }
            }
            Err(fault) => fault,
        };
        // A call that is rejected as a whole has done nothing. A single ask may be the reason; then the others must not
        // fail with it.
        if asks.len() == 1 || !fault.may_be_of_one_ask() {
            callers.fail(&fault);
            return Vec::new();
        }
        // Callers that have timed out meanwhile are dropped.
        let each = asks.into_iter().zip(callers.split());
        each.filter_map(|(ask, caller)| Some(TakeBatch::alone(kind, ask, caller?))).collect()
    }

    /// Calls the server that has the keys, and follows redirections. At most eight steps are made, and each needs time
    /// within the deadline of some caller. Only a rejected call is repeated, so no call is executed twice:
    ///
    /// - `NOSCRIPT`: the same call with the text of the script;
    /// - `MOVED` and `ASK`: the same call to the other node, after `ASKING` in the second case;
    /// - `TRYAGAIN`: the same call after a pause, while the keys of the slot are split between two nodes.
    async fn call<T>(
        &self,
        question: &Question,
        callers: &mut Callers<T>,
    ) -> Result<(Answered, Arc<Link>), Fault> {
        let slot = question.slot();
        let not_known = || Fault::Down("the server was not found in time".to_owned());
        let mut link = callers.within(self.link(slot), not_known).await??;
        let mut asking = false;
        let mut last = Fault::Down("redirected too often".to_owned());
        for _ in 0..MOST_STEPS {
            // Replies, timeouts and lost connections end the call here.
            let refusal = match self.call_link(&link, question, asking, callers).await {
                Err(Fault::Refused(refusal)) => refusal,
                answer => return answer.map(|answered| (answered, link)),
            };
            match refusal.remedy() {
                Remedy::SendScript => link.unlearn(),
                Remedy::Moved(to) => {
                    self.counts.redirected.add();
                    // Outside a cluster there is no other node to follow to.
                    let Some(next) = self.topology.moved(slot, &to) else {
                        return Err(Fault::Refused(refusal));
                    };
                    (link, asking) = (next, false);
                }
                Remedy::AskThere(to) => {
                    self.counts.redirected.add();
                    let Some(next) = self.topology.node(&to) else { return Err(Fault::Refused(refusal)) };
                    (link, asking) = (next, true);
                }
                Remedy::AskAgain => {
                    let refused = || Fault::Refused(refusal.clone());
                    callers.within(sleep(BEFORE_ASKING_AGAIN), refused).await?;
                }
                Remedy::LookAround | Remedy::None => return Err(Fault::Refused(refusal)),
            }
            last = Fault::Refused(refusal);
        }
        Err(last)
    }

    /// Returns the link to the server of a slot. Waiters continue in FIFO order. The first requests of a store queue
    /// here until the topology is known. The lock keeps them in order; a `watch` channel alone would wake them in any
    /// order.
    async fn link(&self, slot: u16) -> Result<Arc<Link>, Fault> {
        let _turn = self.turns.lock().await;
        self.topology.link(slot).await
    }

    /// Calls one server. A script that the server is not known to have is sent as text. Otherwise a `NOSCRIPT` error
    /// would force a second call, behind requests that came later. The text is sent once per connection. A server
    /// restart or `SCRIPT FLUSH` on the same connection is noticed by the `NOSCRIPT` error.
    async fn call_link<T>(
        &self,
        link: &Arc<Link>,
        question: &Question,
        asking: bool,
        callers: &mut Callers<T>,
    ) -> Result<Answered, Fault> {
        let unknown = question.script().filter(|script| !link.knows(script));
        if unknown.is_some() {
            self.counts.scripts_sent.add();
        }
        let command = question.command(unknown.is_some());
        let answer =
            async { if asking { link.call_asking(&command).await } else { link.call(&command).await } };
        let answer = callers.within(answer, || link.timed_out()).await?;
        if let (Ok(_), Some(script)) = (&answer, unknown) {
            link.learn(script);
        }
        answer
    }
}

#[cfg(test)]
mod tests;

//! One question and its answer, within the deadline.
//!
//! Asked again is only what the server has refused to do: a script that it does not know, a slot that is elsewhere. What
//! was sent and not answered may have been done, and is never sent again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::Cmd;
use tokio::time::{Instant, sleep, timeout_at};

use crate::counts::Counts;
use crate::fault::{Fault, Remedy};
use crate::link::{Answered, Link};
use crate::script::{Call, Script, TableFields};
use crate::topology::Topology;

/// How often a question follows redirections.
const MOST_STEPS: u32 = 8;
/// How long a question waits whose keys are on their way to another node.
const BEFORE_ASKING_AGAIN: Duration = Duration::from_millis(2);

/// What is asked of a server.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    /// Run a script.
    Run(Arc<Call>),
    /// Forget these keys, which share a slot.
    Forget(Arc<[Vec<u8>]>),
    /// Read fields of a table.
    ReadFields(Arc<TableFields>),
}

impl Question {
    /// The script that it runs.
    fn script(&self) -> Option<&'static Script> {
        match self {
            Question::Run(call) => Some(call.script),
            Question::Forget(_) | Question::ReadFields(_) => None,
        }
    }

    /// The slot of its keys.
    fn slot(&self) -> u16 {
        let key = match self {
            Question::Run(call) => call.keys.first(),
            Question::Forget(keys) => keys.first(),
            Question::ReadFields(fields) => Some(&fields.table),
        };
        key.map_or(0, |key| crate::script::slot(key))
    }

    pub(crate) fn command(&self, with_text: bool) -> Cmd {
        match self {
            Question::Forget(keys) => {
                let mut command = redis::cmd("DEL");
                keys.iter().for_each(|key| {
                    command.arg(key.as_slice());
                });
                command
            }
            Question::ReadFields(fields) => {
                let mut command = redis::cmd("HMGET");
                command.arg(fields.table.as_slice()).arg(&fields.names);
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
                command.arg(call.keys.len());
                for part in call.keys.iter().chain(&call.arguments) {
                    command.arg(part.as_slice());
                }
                command
            }
        }
    }
}

/// Asks questions.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) topology: Topology,
    pub(crate) counts: Arc<Counts>,
    deadline: Duration,
    max_in_flight: usize,
    in_flight: AtomicUsize,
    /// The order in which questions find their server while it is not known yet.
    turns: tokio::sync::Mutex<()>,
}

impl Exchange {
    pub(crate) fn new(
        topology: Topology,
        counts: Arc<Counts>,
        (deadline, max_in_flight): (Duration, usize),
    ) -> Exchange {
        let (in_flight, turns) = (AtomicUsize::new(0), tokio::sync::Mutex::default());
        Exchange { topology, counts, deadline, max_in_flight, in_flight, turns }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// When a question that is asked now has to be answered.
    pub(crate) fn due(&self) -> Instant {
        Instant::now() + self.deadline
    }

    /// Asks, and waits for the answer until it is due.
    pub(crate) async fn ask(&self, question: &Question, due: Instant) -> Result<Answered, Fault> {
        // A decision that needs more than one call has one deadline. Nothing is sent that could only be given up.
        if due <= Instant::now() {
            self.counts.unreachable.add();
            return Err(Fault::Down("no time is left within the deadline".to_owned()));
        }
        let Some(_place) = Place::take(self) else {
            self.counts.overloaded.add();
            return Err(Fault::Busy);
        };
        let answer = self.ask_around(question, due).await;
        let count = match &answer {
            Ok(_) => &self.counts.answered,
            Err(Fault::TimedOut(_)) => &self.counts.timed_out,
            Err(Fault::Lost(_)) => &self.counts.lost,
            Err(Fault::Refused(_)) => &self.counts.refused,
            Err(Fault::Down(_)) => &self.counts.unreachable,
            Err(Fault::Busy) => &self.counts.overloaded,
            Err(Fault::Unreadable(_)) => &self.counts.unreadable,
        };
        count.add();
        answer
    }

    /// The same, beside the decisions: it is not counted, and takes the place of none of them.
    pub(crate) async fn ask_beside(&self, question: &Question) -> Result<Answered, Fault> {
        self.ask_around(question, self.due()).await
    }

    async fn ask_around(&self, question: &Question, due: Instant) -> Result<Answered, Fault> {
        let slot = question.slot();
        let not_known = || Fault::Down("the server was not found in time".to_owned());
        let mut link = timeout_at(due, self.link(slot)).await.map_err(|_| not_known())??;
        let mut asking = false;
        let mut last = Fault::Down("redirected too often".to_owned());
        for _ in 0..MOST_STEPS {
            let refusal = match self.call(&link, question, asking, due).await {
                Err(Fault::Refused(refusal)) => refusal,
                answer => return answer,
            };
            match refusal.remedy() {
                Remedy::SendScript => link.unlearn(),
                Remedy::Moved(to) => {
                    self.counts.redirected.add();
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
                    if timeout_at(due, sleep(BEFORE_ASKING_AGAIN)).await.is_err() {
                        return Err(Fault::Refused(refusal));
                    }
                }
                Remedy::LookAround => {
                    link.doubt();
                    return Err(Fault::Refused(refusal));
                }
                Remedy::None => return Err(Fault::Refused(refusal)),
            }
            last = Fault::Refused(refusal);
        }
        Err(last)
    }

    /// Who has a slot; those who wait for that go on in their order.
    async fn link(&self, slot: u16) -> Result<Arc<Link>, Fault> {
        let _turn = self.turns.lock().await;
        self.topology.link(slot).await
    }

    /// Asks one server. A script that it is not known to have goes along as text: one that it denied would have to be
    /// asked again, behind questions that came later.
    async fn call(
        &self,
        link: &Arc<Link>,
        question: &Question,
        asking: bool,
        due: Instant,
    ) -> Result<Answered, Fault> {
        let unknown = question.script().filter(|script| !link.knows(script));
        if unknown.is_some() {
            self.counts.scripts_sent.add();
        }
        let command = question.command(unknown.is_some());
        let answer =
            async { if asking { link.call_asking(&command).await } else { link.call(&command).await } };
        let answer = timeout_at(due, answer).await.map_err(|_| link.timed_out())?;
        if let (Ok(_), Some(script)) = (&answer, unknown) {
            link.learn(script);
        }
        answer
    }
}

/// A place among those in flight, given back when it is dropped.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(exchange: &'a Exchange) -> Option<Place<'a>> {
        let place = Place(&exchange.in_flight);
        (place.0.fetch_add(1, Ordering::Relaxed) < exchange.max_in_flight).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

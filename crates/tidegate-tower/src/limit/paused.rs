//! A request that waits before the service is asked.
//!
//! ```text
//!   identify -> line or delay -> ready -> the service
//!          `--------`-------`-> refused
//! ```

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use tidegate::{Acquire, Key};
use tower_service::Service;

use super::fixed::Fixed;
use super::noted::Noted;
use super::rules::{Asked, Billed};
use super::service::Beginning;
use super::settings::{Settings, Way};
use crate::answer::{Reason, Refused};
use crate::delay::Delay;
use crate::head::Head;
use crate::key::{LaterEach, LaterParts, Part, Parts};

/// What is waited for.
pub(super) enum Step {
    /// The key, of a request that weighs so much.
    Identify(LaterParts, u64),
    /// What rules look at, of a request that weighs so much.
    Gather(LaterEach, u64),
    /// What rules say that are elsewhere.
    Gate(Asked, u64),
    /// Its turn.
    Line { acquire: Acquire, by: Fixed, key: Key, units: u64 },
    /// A time that is reserved for it.
    Delay { delay: Delay, noted: Noted },
    /// The service, until it is ready.
    Ready(Noted),
}

/// A request that waits, with a clone of the service of which nothing was asked yet.
pub(super) struct Paused<S, B> {
    pub(super) step: Step,
    pub(super) request: Request<B>,
    pub(super) service: S,
    pub(super) settings: Arc<Settings>,
}

/// How a wait has ended.
pub(super) enum Ended<E> {
    /// The service is ready.
    Ready,
    /// This is the answer.
    Refused(Response<Bytes>),
    /// The service has failed before it was asked.
    Failed(E),
}

impl<S, B> Paused<S, B>
where
    S: Service<Request<B>>,
{
    /// Goes on as far as possible.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Ended<S::Error>> {
        loop {
            let next = match &mut self.step {
                Step::Ready(_) => {
                    return self.service.poll_ready(context).map(|ready| match ready {
                        Ok(()) => Ended::Ready,
                        Err(error) => Ended::Failed(error),
                    });
                }
                Step::Identify(parts, units) => {
                    let (parts, units) = (ready!(Pin::new(parts).poll(context)), *units);
                    self.ask(&parts, units)
                }
                Step::Gather(parts, units) => {
                    let (parts, units) = (ready!(Pin::new(parts).poll(context)), *units);
                    self.ask_rules(&parts, units)
                }
                Step::Gate(asked, units) => {
                    let (answer, units) = (ready!(asked.as_mut().poll(context)), *units);
                    self.answered(answer, units)
                }
                Step::Line { .. } | Step::Delay { .. } => ready!(self.wait(context)),
            };
            match next {
                Beginning::Pass(noted) => self.step = Step::Ready(noted),
                Beginning::Pause(step) => self.step = *step,
                Beginning::Refuse(response) => return Poll::Ready(Ended::Refused(response)),
            }
        }
    }

    fn ask(&self, parts: &Parts<'_>, units: u64) -> Beginning {
        let (settings, head) = (&self.settings, Head::of(&self.request));
        match &settings.way {
            Way::Fixed(fixed) => fixed.ask(settings, head, parts, units),
            Way::Each(each) => each.ask(settings, head, parts, units),
            Way::Rules(_) => Beginning::Pass(Noted::Nothing),
        }
    }

    fn ask_rules(&self, parts: &[Part<'_>], units: u64) -> Beginning {
        match &self.settings.way {
            Way::Rules(rules) => rules.ask(&self.settings, Head::of(&self.request), parts, units),
            Way::Fixed(_) | Way::Each(_) => Beginning::Pass(Noted::Nothing),
        }
    }

    fn answered(&self, answer: Billed, units: u64) -> Beginning {
        let (settings, head) = (&self.settings, Head::of(&self.request));
        match &settings.way {
            Way::Rules(rules) => rules.answered(settings, head, answer, units),
            Way::Fixed(_) | Way::Each(_) => Beginning::Pass(Noted::Nothing),
        }
    }

    /// Waits in line, or for a time that is reserved.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<Beginning> {
        let head = Head::of(&self.request);
        Poll::Ready(match &mut self.step {
            Step::Line { acquire, by, key, units } => {
                let over = ready!(Pin::new(acquire).poll(context));
                by.waited(&self.settings, head, over, (*units, || key.clone()))
            }
            Step::Delay { delay, noted } => match ready!(Pin::new(delay).poll(context)) {
                Ok(()) => Beginning::Pass(std::mem::replace(noted, Noted::Nothing)),
                // Nobody could be woken.
                Err(_) => Beginning::Refuse(self.settings.refuse(&Refused::because(head, Reason::Undecided))),
            },
            _ => Beginning::Pass(Noted::Nothing),
        })
    }
}

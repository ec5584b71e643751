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
use tidegate::{Acquire, AcquireTracked, Key, Refusal, TrackedTake, Waited};
use tower_service::Service;

use super::fixed::Fixed;
use super::noted::Noted;
use super::rules::{Asking, Billed};
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
    /// What rules say that are elsewhere, of a request that weighs so much.
    Gate(Asking, u64),
    /// Its turn.
    Line { turn: Turn, by: Fixed, key: Key },
    /// A time that is reserved for it.
    Delay { delay: Delay, noted: Noted },
    /// The service, until it is ready.
    Ready(Noted),
}

/// A place in line, with a receipt of the take if the response may give it back.
pub(super) enum Turn {
    Plain(Acquire),
    Tracked(AcquireTracked),
}

impl Future for Turn {
    type Output = Result<(Waited, Option<TrackedTake>), Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Turn::Plain(acquire) => Pin::new(acquire).poll(context).map_ok(|waited| (waited, None)),
            Turn::Tracked(acquire) => {
                Pin::new(acquire).poll(context).map_ok(|(waited, take)| (waited, Some(take)))
            }
        }
    }
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
    /// The service is ready, and this is done with its response.
    Ready(Noted),
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
            let (settings, head) = (&self.settings, Head::of(&self.request));
            let next = match &mut self.step {
                Step::Ready(noted) => {
                    return Poll::Ready(match ready!(self.service.poll_ready(context)) {
                        Ok(()) => Ended::Ready(std::mem::replace(noted, Noted::Nothing)),
                        Err(error) => Ended::Failed(error),
                    });
                }
                Step::Identify(parts, units) => {
                    let parts = ready!(Pin::new(parts).poll(context));
                    ask(settings, head, &parts, *units)
                }
                Step::Gather(parts, units) => {
                    let parts = ready!(Pin::new(parts).poll(context));
                    ask_rules(settings, head, &parts, *units)
                }
                Step::Gate(asked, units) => {
                    let answer = ready!(Pin::new(asked).poll(context));
                    answered(settings, head, answer, *units)
                }
                Step::Line { turn, by, key } => {
                    let over = ready!(Pin::new(turn).poll(context));
                    by.waited(settings, head, over, || key.clone())
                }
                Step::Delay { delay, noted } => match ready!(Pin::new(delay).poll(context)) {
                    Ok(()) => Beginning::Pass(std::mem::replace(noted, Noted::Nothing)),
                    // Nobody could be woken.
                    Err(_) => undecided(settings, head),
                },
            };
            match next {
                Beginning::Pass(noted) => self.step = Step::Ready(noted),
                Beginning::Pause(step) => self.step = *step,
                Beginning::Refuse(response) => return Poll::Ready(Ended::Refused(response)),
            }
        }
    }
}

/// Asks the limit about a request whose key is known now.
fn ask(settings: &Arc<Settings>, head: Head<'_>, parts: &Parts<'_>, units: u64) -> Beginning {
    match &settings.way {
        Way::Fixed(fixed) => fixed.ask(settings, head, parts, units),
        Way::Each(each) => each.ask(settings, head, parts, units),
        // Rules have attributes and no key. What no limit has seen does not pass.
        Way::Rules(_) => undecided(settings, head),
    }
}

/// Asks the rules about a request whose attributes are known now.
fn ask_rules(settings: &Arc<Settings>, head: Head<'_>, parts: &[Part<'_>], units: u64) -> Beginning {
    match &settings.way {
        Way::Rules(rules) => rules.ask(settings, head, parts, units),
        // Only rules have attributes. What no limit has seen does not pass.
        Way::Fixed(_) | Way::Each(_) => undecided(settings, head),
    }
}

/// Goes on as the gate of the rules says.
fn answered(settings: &Arc<Settings>, head: Head<'_>, answer: Billed, units: u64) -> Beginning {
    match &settings.way {
        Way::Rules(rules) => rules.answered(settings, head, answer, units),
        // Only rules have a gate. What no limit has seen does not pass.
        Way::Fixed(_) | Way::Each(_) => undecided(settings, head),
    }
}

/// Denies a request about which there is no decision.
fn undecided(settings: &Settings, head: Head<'_>) -> Beginning {
    Beginning::Refuse(settings.refuse(&Refused::because(head, Reason::Undecided)))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{self, Ready};
    use std::task::Waker;

    use http::StatusCode;
    use tidegate::{Limit, Zone};
    use tidegate_rules::{Attributes, Gate, Policy};

    use super::*;
    use crate::key::{self, Extract as _, Identified, Identify as _};
    use crate::limit::{RateLimit, Settle};

    /// A service that must not be asked.
    #[derive(Clone)]
    struct Never;

    impl Service<Request<()>> for Never {
        type Response = Response<()>;
        type Error = Infallible;
        type Future = Ready<Result<Response<()>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            panic!("a request that no limit has seen went on to the service")
        }

        fn call(&mut self, _: Request<()>) -> Self::Future {
            panic!("a request that no limit has seen went on to the service")
        }
    }

    fn gate() -> Gate {
        Gate::new(Policy::from_toml("[[rule]]\nname = 'a'\nlimit = '5/s'").unwrap(), Zone::new(1 << 16))
    }

    fn status_after(step: Step, layer: &RateLimit) -> StatusCode {
        let (request, settings) = (Request::new(()), Arc::clone(&layer.settings));
        let mut paused = Paused { step, request, service: Never, settings };
        match paused.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ended::Refused(response)) => response.status(),
            _ => panic!("it was not denied"),
        }
    }

    #[test]
    fn a_request_that_waits_for_what_its_layer_does_not_have_is_denied() {
        let later = || key::later(|_| future::ready("ana"));
        let request = Request::new(());
        let head = Head::of(&request);
        let limit = "5/s".parse::<Limit>().unwrap();
        let without_rules =
            [RateLimit::new(limit, key::everyone()), RateLimit::each(key::everyone(), move |_| limit)];
        for layer in without_rules {
            let parts = LaterEach::of([later().extract(head)]);
            assert_eq!(status_after(Step::Gather(parts, 1), &layer), StatusCode::SERVICE_UNAVAILABLE);
            let answer = gate().admit_billed_now(&Attributes::new());
            let asking = Asking::new(gate(), (Settle::Keep, 1), Box::pin(future::ready(answer)));
            assert_eq!(status_after(Step::Gate(asking, 1), &layer), StatusCode::SERVICE_UNAVAILABLE);
        }
        let Identified::Later(parts) = later().identify(head) else { panic!("it comes later") };
        let rules = RateLimit::rules(gate());
        assert_eq!(status_after(Step::Identify(parts, 1), &rules), StatusCode::SERVICE_UNAVAILABLE);
    }
}

//! Traces: recorded behaviour as text, one step a line, and a player for any [`Arm`](crate::arm::Arm).
//!
//! ```text
//! # A comment stands above the steps that it describes.
//! needs steps-back
//! limit 10/s burst 3
//! at 0ms   take 2             -> allow remaining=1 reset_after=200ms
//! at 0ms   take 2             -> deny retry_after=100ms
//! at 0ms   take 2 max_wait 1s -> allow delay=100ms
//! at 0ms   take 4             -> impossible
//! at 10ms  peek 1 key bob     -> allow remaining=3
//! at 10ms  charge 5           -> capped
//! at 10ms  refund 1           -> whole
//! at 10ms  limit 5/s burst 20
//! at 20ms  take 1 as first    -> allow
//! at 20ms  give-back first    -> whole
//! at 20ms  release first      -> no
//! at 20ms  reset
//! ```
//!
//! - `limit TEXT` alone begins anew: time 0, no key seen. `at T limit TEXT` changes the limit in force.
//! - `needs WORD`: from here on the arm must know `steps-back` (a clock that can), `give-back` (receipts),
//!   `permits` (release and renew), `rules` (a limit that changes and keeps its counts) or `ticks` (spans finer than a
//!   microsecond); one that does not stops here.
//! - Times are whole numbers with units (`t` for a tick, `ns us ms s m h d w`), one after the other.
//! - `take` and `peek` have a cost, then `max_wait T`, `key WORD` and, for `take`, `as NAME`. All but
//!   `limit` may have a `key`; without one it is `k`.
//! - Behind the arrow: `allow`, `deny` or `impossible` with any of `delay retry_after remaining limit
//!   reset_after`, each checked exactly (spans rounded up to the arm's resolution); after `charge`, `refund`
//!   and `give-back` `whole`, `capped` or `needs-permit`; after `release` and `renew` `yes` or `no`.

mod play;
mod recorded;

pub use play::{Batches, play, play_in_batches};
pub use recorded::{play_recorded, play_recorded_in_batches, recorded};

use std::fmt;

use tidegate::{Adjustment, Ask, Cost, Limit, Ticks, Verdict};

use crate::arm::Answer;
use crate::calendar::Place;
use crate::ticks;

/// A file of steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The steps, in order.
    pub steps: Vec<Step>,
}

impl Trace {
    /// Returns the part that an arm without these verbs can play: from each beginning on, the steps before the first of
    /// them. A `peek` changes nothing, so it is only left out.
    #[must_use]
    pub fn without(&self, verbs: &[&str]) -> Trace {
        let (mut steps, mut is_over) = (Vec::new(), false);
        for step in &self.steps {
            is_over &= !matches!(step.action, Action::Begin(_));
            let is_unknown = step.action.verb().is_some_and(|verb| verbs.contains(&verb));
            is_over |= is_unknown && !matches!(step.action, Action::Peek { .. });
            if !is_over && !is_unknown {
                steps.push(step.clone());
            }
        }
        Trace { steps }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The line in the file, from 1.
    pub line: usize,
    /// The time in ticks.
    pub at: u64,
    /// The subject.
    pub key: String,
    /// The action.
    pub action: Action,
    /// The expected reply.
    pub expected: Option<Expected>,
}

impl Step {
    /// A step outside of time, about no key in particular.
    pub fn plain(line: usize, action: Action) -> Step {
        Step { line, at: 0, key: "k".into(), action, expected: None }
    }
}

/// The action of a step.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are the words of the format")]
pub enum Action {
    Needs(String),
    Begin(Limit),
    Change(Limit),
    Take { ask: Ask, name: Option<String> },
    Peek { ask: Ask },
    Adjust(Adjustment),
    GiveBack(String),
    Release(String),
    Renew(String),
    Reset,
}

impl Action {
    /// The verb of a step; none for a line without a time.
    fn verb(&self) -> Option<&'static str> {
        match self {
            Action::Needs(_) | Action::Begin(_) => None,
            Action::Change(_) => Some("limit"),
            Action::Take { .. } => Some("take"),
            Action::Peek { .. } => Some("peek"),
            Action::Adjust(Adjustment::Charge(_)) => Some("charge"),
            Action::Adjust(Adjustment::Refund(_)) => Some("refund"),
            Action::GiveBack(_) => Some("give-back"),
            Action::Release(_) => Some("release"),
            Action::Renew(_) => Some("renew"),
            Action::Reset => Some("reset"),
        }
    }
}

/// The expected reply to a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    word: String,
    figures: Vec<(String, u64)>,
}

impl Expected {
    /// Returns all fields of a reply.
    pub fn of(answer: &Answer) -> Expected {
        let (word, span) = words_of(answer.verdict);
        let mut figures: Vec<_> =
            span.map(|(name, ticks)| (name.to_owned(), ticks.get())).into_iter().collect();
        figures.push(("remaining".into(), answer.remaining));
        figures.push(("limit".into(), answer.limit));
        figures.push(("reset_after".into(), answer.reset_after.get()));
        Expected { word: word.into(), figures }
    }

    /// The reply to `release` and `renew`.
    pub fn yes_or_no(yes: bool) -> Expected {
        Expected::word(if yes { "yes" } else { "no" })
    }

    fn word(word: &str) -> Expected {
        Expected { word: word.to_owned(), figures: Vec::new() }
    }

    /// Returns true if a reply equals this, with spans rounded up to the resolution and shorter by the slack at most.
    fn is_met_by(&self, got: &Expected, resolution: Ticks, slack: Ticks) -> bool {
        let steps = |span: u64| span.div_ceil(resolution.get());
        let said = |name: &str| got.figures.iter().find(|(said, _)| said == name).map(|(_, value)| *value);
        let is_met = |(name, value): &(String, u64)| match said(name) {
            Some(said) if is_span(name) => {
                (steps(value.saturating_sub(slack.get()))..=steps(*value)).contains(&steps(said))
            }
            said => said == Some(*value),
        };
        self.word == got.word && self.figures.iter().all(is_met)
    }
}

fn words_of(verdict: Verdict<Ticks>) -> (&'static str, Option<(&'static str, Ticks)>) {
    match verdict {
        Verdict::Allowed { delay } => ("allow", Some(("delay", delay))),
        Verdict::Denied { retry_after } => ("deny", Some(("retry_after", retry_after))),
        Verdict::Impossible => ("impossible", None),
    }
}

fn is_span(name: &str) -> bool {
    matches!(name, "delay" | "retry_after" | "reset_after")
}

/// Reads a trace; an error names the line.
pub fn parse(text: &str) -> Result<Trace, String> {
    let mut trace = Trace::default();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let step = Line { words: line.split_whitespace().collect(), at: 0 };
        parse_line(step, index + 1, &mut trace)
            .map_err(|what| format!("line {}: {what}: {line}", index + 1))?;
    }
    Ok(trace)
}

fn parse_line(mut line: Line<'_>, number: usize, trace: &mut Trace) -> Result<(), String> {
    match line.word()? {
        "needs" => trace.steps.push(Step::plain(number, Action::Needs(line.word()?.to_owned()))),
        "limit" => {
            let limit = limit_of(&line.rest())?;
            trace.steps.push(Step::plain(number, Action::Begin(limit)));
        }
        "at" => trace.steps.push(parse_step(line, number)?),
        other => return Err(format!("unknown word {other:?}; a line begins with at, limit or needs")),
    }
    Ok(())
}

/// Parses a limit, with the time zones of the [places](crate::calendar::Place) of the kit.
fn limit_of(text: &str) -> Result<Limit, String> {
    let zone = |name: &str| Place::of_name(name).map(Place::zone);
    Limit::parse_with(text, zone).map_err(|error| error.to_string())
}

fn parse_step(mut line: Line<'_>, number: usize) -> Result<Step, String> {
    let at = parse_span(line.word()?)?;
    let verb = line.word()?;
    if verb == "limit" {
        let action = Action::Change(limit_of(&line.rest())?);
        return Ok(Step { line: number, at, key: "k".into(), action, expected: None });
    }
    let argument = if verb == "reset" { "" } else { line.word()? };
    let (mut key, mut max_wait, mut name, mut expected) = ("k", ticks(0), None, None);
    while let Some(word) = line.next() {
        match word {
            "key" => key = line.word()?,
            "max_wait" => max_wait = ticks(parse_span(line.word()?)?),
            "as" => name = Some(line.word()?.to_owned()),
            "->" => expected = Some(parse_expected(&mut line)?),
            other => return Err(format!("unknown word {other:?}")),
        }
    }
    let cost = || {
        let units = argument.parse().map_err(|_| format!("{argument:?} is not a cost"))?;
        Cost::new(units).map_err(|error| error.to_string())
    };
    let ask = || Ok::<_, String>(Ask::new(cost()?).max_wait_in_ticks(max_wait));
    let action = match verb {
        "take" => Action::Take { ask: ask()?, name },
        "peek" => Action::Peek { ask: ask()? },
        "charge" => Action::Adjust(Adjustment::Charge(cost()?)),
        "refund" => Action::Adjust(Adjustment::Refund(cost()?)),
        "give-back" => Action::GiveBack(argument.to_owned()),
        "release" => Action::Release(argument.to_owned()),
        "renew" => Action::Renew(argument.to_owned()),
        "reset" => Action::Reset,
        other => return Err(format!("unknown verb {other:?}")),
    };
    Ok(Step { line: number, at, key: key.to_owned(), action, expected })
}

fn parse_expected(line: &mut Line<'_>) -> Result<Expected, String> {
    let word = line.word()?.to_owned();
    let mut figures = Vec::new();
    while let Some(figure) = line.next() {
        let (name, value) = figure.split_once('=').ok_or(format!("{figure:?} is not name=value"))?;
        let value = if is_span(name) {
            parse_span(value)?
        } else {
            value.parse().map_err(|_| format!("{value:?} is not a number"))?
        };
        figures.push((name.to_owned(), value));
    }
    Ok(Expected { word, figures })
}

struct Line<'a> {
    words: Vec<&'a str>,
    at: usize,
}

impl<'a> Line<'a> {
    fn next(&mut self) -> Option<&'a str> {
        self.at += 1;
        self.words.get(self.at - 1).copied()
    }

    fn word(&mut self) -> Result<&'a str, String> {
        self.next().ok_or("the line ends too early".to_owned())
    }

    fn rest(&mut self) -> String {
        self.words[self.at..].join(" ")
    }
}

const UNITS: [(&str, u64); 9] = [
    ("w", 604_800 * 16_000_000_000),
    ("d", 86_400 * 16_000_000_000),
    ("h", 3600 * 16_000_000_000),
    ("m", 60 * 16_000_000_000),
    ("s", 16_000_000_000),
    ("ms", 16_000_000),
    ("us", 16_000),
    ("ns", 16),
    ("t", 1),
];

fn parse_span(text: &str) -> Result<u64, String> {
    let mut rest = text;
    let mut ticks = 0_u64;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let unit = rest[digits..].bytes().take_while(|byte| !byte.is_ascii_digit()).count();
        let number: u64 = rest[..digits].parse().map_err(|_| format!("{text:?} is not a time"))?;
        let unit_name = &rest[digits..digits + unit];
        let (_, scale) =
            UNITS.iter().find(|(name, _)| *name == unit_name).ok_or(format!("{text:?} has no known unit"))?;
        ticks =
            number.checked_mul(*scale).and_then(|more| ticks.checked_add(more)).ok_or("too long a time")?;
        rest = &rest[digits + unit..];
    }
    Ok(ticks)
}

/// A span in the largest unit that divides it.
struct Span(u64);

impl fmt::Display for Span {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return out.write_str("0ms");
        }
        let divides = |unit: &&(&str, u64)| self.0 % unit.1 == 0;
        let (name, scale) = UNITS.iter().find(divides).unwrap_or(&("t", 1));
        write!(out, "{}{name}", self.0 / scale)
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.word)?;
        for (name, value) in &self.figures {
            if is_span(name) {
                write!(out, " {name}={}", Span(*value))?;
            } else {
                write!(out, " {name}={value}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.action {
            Action::Begin(limit) => return write!(out, "limit {limit}"),
            Action::Needs(need) => return write!(out, "needs {need}"),
            _ => {}
        }
        write!(out, "at {} ", Span(self.at))?;
        let max_wait = |ask: &Ask| match ask.max_wait.get() {
            0 => String::new(),
            ticks => format!(" max_wait {}", Span(ticks)),
        };
        match &self.action {
            Action::Needs(_) | Action::Begin(_) => {}
            Action::Change(limit) => return write!(out, "limit {limit}"),
            Action::Take { ask, .. } => write!(out, "take {}{}", ask.cost.get(), max_wait(ask))?,
            Action::Peek { ask } => write!(out, "peek {}{}", ask.cost.get(), max_wait(ask))?,
            Action::Adjust(Adjustment::Charge(cost)) => write!(out, "charge {}", cost.get())?,
            Action::Adjust(Adjustment::Refund(cost)) => write!(out, "refund {}", cost.get())?,
            Action::GiveBack(name) => write!(out, "give-back {name}")?,
            Action::Release(name) => write!(out, "release {name}")?,
            Action::Renew(name) => write!(out, "renew {name}")?,
            Action::Reset => out.write_str("reset")?,
        }
        if self.key != "k" {
            write!(out, " key {}", self.key)?;
        }
        if let Action::Take { name: Some(name), .. } = &self.action {
            write!(out, " as {name}")?;
        }
        match &self.expected {
            Some(expected) => write!(out, " -> {expected}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(out, "{step}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arm::Pure;

    #[test]
    fn a_trace_reads_as_it_was_written() {
        let text = "needs ticks\nlimit 10/s burst 3\nat 5ms take 2 max_wait 1s key bob as first -> allow delay=3t remaining=1\n\
                    at 1s give-back first\nat 1s charge 3 -> capped\nat 1s limit 5/s\nat 1s reset key bob\n";
        assert_eq!(parse(text).unwrap().to_string(), text);
    }

    #[test]
    fn an_unknown_line_is_an_error_with_its_line_number() {
        for (text, wrong) in [
            ("limit 10/s\n\nat 0ms tkae 1", "line 3: unknown verb \"tkae\""),
            ("at 0 take 1", "has no known unit"),
            ("limit 10/min", "unknown unit \"min\""),
            ("at 0ms take 0 -> allow", "a cost is at least 1"),
            ("at 0ms take 1 -> allow remaining", "is not name=value"),
            ("hello", "a line begins with at, limit or needs"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn a_wrong_expectation_is_reported_with_the_reply() {
        let trace = parse("limit 10/s burst 3\nat 0ms take 2 -> allow remaining=2").unwrap();
        let error = play(&trace, &mut Pure::default()).unwrap_err();
        assert!(
            error.starts_with(
                "line 2: at 0ms take 2 -> allow remaining=2\n  pure answered allow delay=0ms remaining=1"
            ),
            "{error}"
        );
        let trace = parse("limit 10/s\nat 0ms release unknown -> yes").unwrap();
        assert_eq!(
            play(&trace, &mut Pure::default()).unwrap_err(),
            "line 2: no take named unknown got a permit"
        );
    }

    #[test]
    fn an_unsupported_verb_skips_the_rest_of_the_trace_up_to_the_next_limit() {
        let text = "limit 1/s\nat 0ms take 1\nat 0ms peek 1\nat 0ms take 2\nat 0ms reset\nat 1s take 3\n\
                    limit 2/s\nat 0ms take 4\n";
        let left = parse(text).unwrap().without(&["peek", "reset"]).to_string();
        assert_eq!(left, "limit 1/s\nat 0ms take 1\nat 0ms take 2\nlimit 2/s\nat 0ms take 4\n");
        assert_eq!(parse(text).unwrap().without(&[]), parse(text).unwrap());
    }

    #[test]
    fn a_coarse_arm_is_compared_after_rounding_up() {
        let exact = Expected { word: "deny".into(), figures: vec![("retry_after".into(), 16_001)] };
        let coarse = Expected { word: "deny".into(), figures: vec![("retry_after".into(), 32_000)] };
        assert!(exact.is_met_by(&coarse, ticks(16_000), Ticks::ZERO));
        assert!(!exact.is_met_by(&coarse, ticks(1), Ticks::ZERO));
    }

    #[test]
    fn a_span_may_be_shorter_by_the_slack_and_never_longer() {
        let expected = |ticks| Expected { word: "deny".into(), figures: vec![("retry_after".into(), ticks)] };
        let is_met = |said: u64| expected(100).is_met_by(&expected(said), ticks(1), ticks(3));
        assert_eq!([96, 97, 100, 101].map(is_met), [false, true, true, false]);
    }
}

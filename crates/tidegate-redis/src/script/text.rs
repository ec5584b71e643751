//! The scripts, assembled from sections of the files in `lua/`, one for each combination of algorithms. A script
//! contains only what its limits need.
//!
//! The text of a script is sent to servers and hashed, so each byte counts: comments and indentation of the files are
//! removed. A script is assembled once per process, when it is first needed.

use std::sync::OnceLock;

use tidegate_core::Algorithm;

/// A script, and the hash by which a server identifies it.
#[derive(Debug)]
pub(crate) struct Script {
    /// The text.
    pub(crate) text: String,
    /// Its SHA-1, in hexadecimal digits.
    pub(crate) sha: String,
}

/// The purpose of a script. Each job with its kinds has one script, whatever the number of limits and their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// Take from one bucket.
    TakeDebt,
    /// Take from several distinct buckets.
    TakeDebts,
    /// Take from buckets for several asks.
    TakeDebtsEach,
    /// Take from limits of these kinds.
    Take(Kinds),
    /// Peek at limits of these kinds.
    Peek(Kinds),
    /// Charge or refund units of a state of this kind.
    Adjust(Kind),
    /// Give one take back under a limit of this kind.
    GiveBack(Kind),
    /// Refund a part of a debt.
    RefundDebt,
    /// Release a permit.
    Release,
    /// Renew the lease of a permit.
    Renew,
    /// Remove states.
    Reset,
    /// Read complete states.
    ReadStates,
    /// List a limit in the table of its namespace.
    NoteLimit,
    /// Put the limit of a rule in force.
    AnnounceLimit,
    /// Read the listed limits.
    ListLimits,
    /// Read the table of overrides.
    ReadOverrides,
    /// Change the table of overrides.
    ChangeOverrides,
    /// Reply without access to any state.
    Nothing,
}

/// Algorithms with the same kind of state. The number of a kind is its bit in [`Kinds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A time at which a debt is repaid: token bucket and leaky bucket.
    Debt,
    /// A count with the end of its window: fixed window and calendar.
    Window,
    /// A sorted set of running totals by time.
    Log,
    /// Counts of consecutive slots.
    Slots,
    /// A debt and savings: pacer.
    Pace,
    /// A sorted set of leases: concurrency limit.
    Holders,
    /// No state of its own: bans and strikes, which are logs.
    Penalty,
}

#[cfg(test)]
const KINDS: [Kind; 6] = [Kind::Debt, Kind::Window, Kind::Log, Kind::Slots, Kind::Pace, Kind::Holders];

impl Kind {
    /// Returns the kind of state that an algorithm uses.
    pub(super) const fn of(algorithm: Algorithm) -> Kind {
        match algorithm {
            Algorithm::TokenBucket | Algorithm::LeakyBucket => Kind::Debt,
            Algorithm::FixedWindow | Algorithm::Calendar => Kind::Window,
            Algorithm::SlidingLog => Kind::Log,
            Algorithm::SlidingWindow => Kind::Slots,
            Algorithm::Pacer => Kind::Pace,
            _ => Kind::Holders,
        }
    }
}

/// A set of kinds, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    /// Returns the set of one kind.
    const fn only(kind: Kind) -> Kinds {
        Kinds(1 << kind as u8)
    }

    /// Returns every set.
    #[cfg(test)]
    pub(super) fn every() -> impl Iterator<Item = Kinds> {
        (1..1 << KINDS.len()).map(Kinds)
    }

    /// Returns true if the set contains a kind.
    fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

impl FromIterator<Kind> for Kinds {
    fn from_iter<I: IntoIterator<Item = Kind>>(kinds: I) -> Kinds {
        Kinds(kinds.into_iter().fold(0, |all, kind| all | 1 << kind as u8))
    }
}

/// The number of cached scripts; see [`Job::place`].
const PLACES: usize = 1 << 9;
static SCRIPTS: [OnceLock<Script>; PLACES] = [const { OnceLock::new() }; PLACES];

#[cfg(test)]
/// Returns every script that is likely to be run. Scripts for other mixes of algorithms are assembled on demand.
pub(crate) fn all() -> impl Iterator<Item = &'static Script> {
    let takes = [Job::TakeDebt, Job::TakeDebts, Job::TakeDebtsEach];
    let jobs = [Job::RefundDebt, Job::Release, Job::Renew, Job::Nothing];
    let others = [Job::Reset, Job::ReadStates, Job::NoteLimit, Job::AnnounceLimit, Job::ListLimits];
    let others = others.into_iter().chain([Job::ReadOverrides, Job::ChangeOverrides]);
    let of_kind = |kind| {
        let only = Kinds::only(kind);
        [Job::Take(only), Job::Peek(only), Job::Adjust(kind), Job::GiveBack(kind)]
    };
    takes.into_iter().chain(jobs).chain(others).chain(KINDS.into_iter().flat_map(of_kind)).map(Job::script)
}

impl Job {
    /// Returns the script, and assembles it on first use. Its hash is that by which servers cache it.
    pub(super) fn script(self) -> &'static Script {
        SCRIPTS[self.place()].get_or_init(|| {
            let text = self.text();
            let sha = sha1_smol::Sha1::from(&text).digest().to_string();
            Script { text, sha }
        })
    }

    /// Returns the index of the script in the cache.
    fn place(self) -> usize {
        match self {
            Job::Take(kinds) => kinds.0.into(),
            Job::Peek(kinds) => 128 + usize::from(kinds.0),
            Job::Adjust(kind) => 256 + kind as usize,
            Job::GiveBack(kind) => 264 + kind as usize,
            // The numbers of takes and peeks are sets of kinds, of seven bits each.
            Job::TakeDebt => 272,
            Job::TakeDebts => 273,
            Job::Release => 274,
            Job::Renew => 275,
            Job::Nothing => 276,
            Job::RefundDebt => 277,
            Job::ReadStates => 278,
            Job::NoteLimit => 279,
            Job::AnnounceLimit => 280,
            Job::ListLimits => 281,
            Job::Reset => 282,
            Job::TakeDebtsEach => 283,
            Job::ReadOverrides => 284,
            Job::ChangeOverrides => 285,
        }
    }

    /// Assembles the text. Sections that define functions come before those that call them.
    fn text(self) -> String {
        let sections = match self {
            Job::TakeDebt => vec!["debt.take one"],
            Job::TakeDebts => vec!["debt.take"],
            Job::TakeDebtsEach => vec!["debt.take each"],
            Job::Take(kinds) => with_kinds(kinds, &["take.take"]),
            Job::Peek(kinds) => with_kinds(kinds, &["take.peek"]),
            Job::Adjust(kind) => with_kinds(Kinds::only(kind), adjust_sections(kind)),
            Job::GiveBack(kind) => with_kinds(Kinds::only(kind), give_back_sections(kind)),
            Job::RefundDebt => with_kinds(Kinds::only(Kind::Debt), &["mark.check", "debt.refund"]),
            Job::Release => with_kinds(Kinds::only(Kind::Holders), &["holders.release"]),
            Job::Renew => with_kinds(Kinds::only(Kind::Holders), &["holders.renew"]),
            Job::Reset => vec!["time.time", "mark.write", "states.reset"],
            Job::ReadStates => vec!["time.time", "states.read"],
            Job::NoteLimit => vec!["time.time", "limits.table", "limits.note"],
            Job::AnnounceLimit => vec!["time.time", "limits.table", "limits.announce"],
            Job::ListLimits => vec!["time.time", "limits.table", "limits.list"],
            Job::ReadOverrides => vec!["overrides.read"],
            Job::ChangeOverrides => vec!["overrides.change"],
            Job::Nothing => vec!["take.nothing"],
        };
        let mut text = String::new();
        for name in sections {
            append(&mut text, name);
        }
        text
    }
}

/// Returns the sections that limits of these kinds need, followed by `then`. A mixed request gets the union of the
/// sections of its algorithms.
fn with_kinds(kinds: Kinds, then: &[&'static str]) -> Vec<&'static str> {
    let has = |kind| kinds.has(kind);
    let needed = [
        ("time.time", true),
        ("time.asks", true),
        ("numbers.pairs", has(Kind::Debt) || has(Kind::Pace)),
        ("numbers.big", has(Kind::Slots) || has(Kind::Pace)),
        ("debt.look", has(Kind::Debt)),
        ("window.look", has(Kind::Window)),
        ("log.look", has(Kind::Log)),
        ("slots.look", has(Kind::Slots)),
        ("pacer.look", has(Kind::Pace)),
        ("holders.look", has(Kind::Holders)),
        ("take.penalty", has(Kind::Penalty)),
    ];
    let needed = needed.into_iter().filter(|(_, is_needed)| *is_needed).map(|(name, _)| name);
    needed.chain(then.iter().copied()).collect()
}

/// Returns the sections of a charge or a refund. A refund leaves a mark, so that receipts cannot refund the same units
/// again.
fn adjust_sections(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Debt => &["mark.write", "mark.refund", "debt.adjust"],
        Kind::Window => &["mark.write", "mark.refund", "window.change", "window.adjust"],
        Kind::Log => &["mark.write", "mark.refund", "log.adjust"],
        Kind::Slots => &["mark.write", "mark.refund", "slots.change", "slots.adjust"],
        Kind::Pace => &["mark.write", "mark.refund", "pacer.change", "pacer.adjust"],
        Kind::Holders | Kind::Penalty => &["take.nothing"],
    }
}

/// Returns the sections that give a take back. They check the mark first.
fn give_back_sections(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Debt => &["mark.check", "debt.give back"],
        Kind::Window => &["mark.check", "window.change", "window.give back"],
        Kind::Log => &["mark.check", "log.give back"],
        Kind::Slots => &["mark.check", "slots.change", "slots.give back"],
        Kind::Pace => &["mark.check", "pacer.change", "pacer.give back"],
        Kind::Holders => &["holders.release"],
        Kind::Penalty => &["take.nothing"],
    }
}

macro_rules! files {
    ($($name:literal)+) => {
        /// Returns the text of a file.
        fn file(name: &str) -> &'static str {
            match name {
                $($name => include_str!(concat!("lua/", $name, ".lua")),)+
                _ => unreachable!("no file {name}.lua"),
            }
        }
    };
}

files! { "debt" "holders" "limits" "log" "mark" "numbers" "overrides" "pacer" "slots" "states" "take" "time" "window" }

/// Appends the section `file.name` without its comments. A section begins with the line `--== name`. The line `---
/// name` includes another section of the same file, and `--- file.name` one of another file.
fn append(text: &mut String, section: &str) {
    let (of, name) = section.split_once('.').unwrap_or_else(|| unreachable!("no file in {section}"));
    let mut lines = file(of).lines().skip_while(|line| line.strip_prefix("--== ") != Some(name));
    assert!(lines.next().is_some(), "no section {section}");
    for line in lines.take_while(|line| !line.starts_with("--== ")).map(str::trim) {
        match line.strip_prefix("--- ") {
            Some(other) if other.contains('.') => append(text, other),
            Some(own) => append(text, &format!("{of}.{own}")),
            None if line.starts_with("--") || line.is_empty() => {}
            None => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_has_those_that_it_names_and_no_comments() {
        let mut text = String::new();
        append(&mut text, "debt.take one");
        assert!(text.starts_with("local call, unpacked, format = redis.call"), "{text}");
        assert!(text.contains("local price, block") && text.contains("'KEEPTTL'"), "{text}");
        assert!(!text.contains("--"), "{text}");
    }

    #[test]
    #[should_panic(expected = "no section debt.takes")]
    fn a_section_that_is_not_there_is_a_mistake() {
        append(&mut String::new(), "debt.takes");
    }
}

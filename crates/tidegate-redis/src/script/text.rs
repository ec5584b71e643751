//! The scripts, put together from pieces: a call carries nothing that its limits do not need.

use std::sync::OnceLock;

use tidegate::Algorithm;

/// A script and the name under which a server knows it.
#[derive(Debug)]
pub(crate) struct Script {
    /// The text.
    pub(crate) text: String,
    /// Its SHA-1, in hexadecimal digits.
    pub(crate) sha: String,
}

/// What a script is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// Take from one bucket.
    TakeDebt,
    /// Take from several buckets, all of them different.
    TakeDebts,
    /// Take from limits of these kinds.
    Take(Kinds),
    /// Look at limits of these kinds.
    Peek(Kinds),
    Adjust(Kind),
    GiveBack(Kind),
    /// Refund a part of a debt.
    RefundDebt,
    Release,
    Renew,
    /// Forget states.
    Reset,
    /// Read whole states.
    ReadStates,
    /// List a limit in the table of its namespace.
    NoteLimit,
    /// Put the limit of a rule in force.
    AnnounceLimit,
    /// Read the limits that are listed.
    ListLimits,
    /// Answer without looking.
    Nothing,
}

/// Algorithms whose states are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Debt,
    Window,
    Log,
    Slots,
    Pace,
    Holders,
}

#[cfg(test)]
const KINDS: [Kind; 6] = [Kind::Debt, Kind::Window, Kind::Log, Kind::Slots, Kind::Pace, Kind::Holders];

impl Kind {
    pub(super) const fn of(algorithm: Algorithm) -> Kind {
        match algorithm {
            Algorithm::TokenBucket | Algorithm::LeakyBucket => Kind::Debt,
            Algorithm::FixedWindow => Kind::Window,
            Algorithm::SlidingLog => Kind::Log,
            Algorithm::SlidingWindow => Kind::Slots,
            Algorithm::Pacer => Kind::Pace,
            _ => Kind::Holders,
        }
    }
}

/// A set of kinds, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const DEBTS: Kinds = Kinds(1 << Kind::Debt as u8);

    const fn only(kind: Kind) -> Kinds {
        Kinds(1 << kind as u8)
    }

    /// Every set.
    #[cfg(test)]
    pub(super) fn every() -> impl Iterator<Item = Kinds> {
        (1..1 << KINDS.len()).map(Kinds)
    }

    fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

impl FromIterator<Kind> for Kinds {
    fn from_iter<I: IntoIterator<Item = Kind>>(kinds: I) -> Kinds {
        Kinds(kinds.into_iter().fold(0, |all, kind| all | 1 << kind as u8))
    }
}

/// How many places there are for scripts; see [`Job::place`].
const PLACES: usize = 1 << 8;
static SCRIPTS: [OnceLock<Script>; PLACES] = [const { OnceLock::new() }; PLACES];

#[cfg(test)]
/// Every script that is likely to be run: those for any mix of algorithms are put together when they are needed.
pub(crate) fn all() -> impl Iterator<Item = &'static Script> {
    let jobs = [Job::TakeDebt, Job::TakeDebts, Job::RefundDebt, Job::Release, Job::Renew, Job::Nothing];
    let others = [Job::Reset, Job::ReadStates, Job::NoteLimit, Job::AnnounceLimit, Job::ListLimits];
    let of_kind = |kind| {
        let only = Kinds::only(kind);
        [Job::Take(only), Job::Peek(only), Job::Adjust(kind), Job::GiveBack(kind)]
    };
    jobs.into_iter().chain(others).chain(KINDS.into_iter().flat_map(of_kind)).map(Job::script)
}

impl Job {
    pub(super) fn script(self) -> &'static Script {
        SCRIPTS[self.place()].get_or_init(|| {
            let text = self.text();
            let sha = sha1_smol::Sha1::from(&text).digest().to_string();
            Script { text, sha }
        })
    }

    fn place(self) -> usize {
        match self {
            Job::Take(kinds) => kinds.0.into(),
            Job::Peek(kinds) => 64 + usize::from(kinds.0),
            Job::Adjust(kind) => 128 + kind as usize,
            Job::GiveBack(kind) => 136 + kind as usize,
            Job::TakeDebt => 144,
            Job::TakeDebts => 145,
            Job::Release => 146,
            Job::Renew => 147,
            Job::Nothing => 148,
            Job::RefundDebt => 149,
            Job::ReadStates => 150,
            Job::NoteLimit => 151,
            Job::AnnounceLimit => 152,
            Job::ListLimits => 153,
            Job::Reset => 154,
        }
    }

    fn text(self) -> String {
        let pieces = match self {
            Job::TakeDebt => vec!["debt_one"],
            Job::TakeDebts => vec!["time", "debt_many"],
            Job::Take(kinds) => with_kinds(kinds, &["take"]),
            Job::Peek(kinds) => with_kinds(kinds, &["peek"]),
            Job::Adjust(kind) => with_kinds(Kinds::only(kind), adjust_pieces(kind)),
            Job::GiveBack(kind) => with_kinds(Kinds::only(kind), give_back_pieces(kind)),
            Job::RefundDebt => with_kinds(Kinds::only(Kind::Debt), &["mark_check", "debt_refund"]),
            Job::Release => with_kinds(Kinds::only(Kind::Holders), &["release"]),
            Job::Renew => with_kinds(Kinds::only(Kind::Holders), &["renew"]),
            Job::Reset => vec!["time", "mark", "reset"],
            Job::ReadStates => vec!["time", "states"],
            Job::NoteLimit => vec!["time", "limits", "limits_note"],
            Job::AnnounceLimit => vec!["time", "limits", "limits_announce"],
            Job::ListLimits => vec!["time", "limits", "limits_list"],
            Job::Nothing => vec!["nothing"],
        };
        let mut text = String::new();
        for name in pieces {
            append(&mut text, name);
        }
        text
    }
}

/// What limits of these kinds need, and then this.
fn with_kinds(kinds: Kinds, then: &[&'static str]) -> Vec<&'static str> {
    let mut pieces = vec!["time", "head"];
    if kinds.has(Kind::Debt) || kinds.has(Kind::Pace) {
        pieces.push("pairs");
    }
    if kinds.has(Kind::Slots) || kinds.has(Kind::Pace) {
        pieces.push("big");
    }
    let own = [("debt", Kind::Debt), ("window", Kind::Window), ("log", Kind::Log)];
    let own =
        own.into_iter().chain([("slots", Kind::Slots), ("pacer", Kind::Pace), ("holders", Kind::Holders)]);
    pieces.extend(own.filter(|(_, kind)| kinds.has(*kind)).map(|(name, _)| name));
    pieces.extend(then);
    pieces
}

fn adjust_pieces(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Debt => &["mark", "mark_refund", "debt_adjust"],
        Kind::Window => &["mark", "mark_refund", "window_adjust", "window_adjust_end"],
        Kind::Log => &["mark", "mark_refund", "log_adjust"],
        Kind::Slots => &["mark", "mark_refund", "slots_adjust", "slots_adjust_end"],
        Kind::Pace => &["mark", "mark_refund", "pacer_adjust", "pacer_adjust_end"],
        Kind::Holders => &["nothing"],
    }
}

fn give_back_pieces(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Debt => &["mark_check", "debt_give_back"],
        Kind::Window => &["mark_check", "window_adjust", "window_give_back_end"],
        Kind::Log => &["mark_check", "log_give_back"],
        Kind::Slots => &["mark_check", "slots_adjust", "slots_give_back_end"],
        Kind::Pace => &["mark_check", "pacer_adjust", "pacer_give_back_end"],
        Kind::Holders => &["release"],
    }
}

macro_rules! pieces {
    ($($name:literal)+) => {
        /// The text of a piece.
        fn piece(name: &str) -> &'static str {
            match name {
                $($name => include_str!(concat!("lua/", $name, ".lua")),)+
                _ => unreachable!("no piece {name}"),
            }
        }
    };
}

pieces! {
    "big" "debt" "debt_adjust" "debt_give_back" "debt_judge" "debt_many" "debt_one" "debt_read" "debt_refund"
    "debt_write" "head" "holders" "limits" "limits_announce" "limits_list" "limits_note" "log" "log_adjust"
    "log_give_back" "mark" "mark_check" "mark_refund" "nothing" "pacer" "pacer_adjust" "pacer_adjust_end" "pacer_give_back_end" "pairs" "peek" "release"
    "renew" "reset" "slots" "slots_adjust" "slots_adjust_end" "slots_give_back_end" "states" "take" "time" "window"
    "window_adjust" "window_adjust_end" "window_give_back_end"
}

/// Writes a piece without its comments; `--- name` stands for another piece.
fn append(text: &mut String, name: &str) {
    for line in piece(name).lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("--- ") {
            append(text, name);
        } else if !line.starts_with("--") && !line.is_empty() {
            text.push_str(line);
            text.push('\n');
        }
    }
}

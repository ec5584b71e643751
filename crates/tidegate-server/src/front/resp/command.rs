//! All commands: their names, how many words they have, and what they are for.

use tidegate_support::nearest;

use super::later::Way;
use super::session::{Call, Refused};
use super::{about, admit, ask, catalogue, greet, several, transaction};
use crate::permit::Lease;

/// The longest name for which a similar command is looked for, in bytes: longer than any command's.
const MAX_NEAREST_BYTES: usize = 16;

/// How a command is executed, and how it gets on with others of its connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Run {
    /// `CL.THROTTLE`: put aside, to be decided together with those behind it.
    Throttle,
    /// `TG.TAKE`: the same.
    Take,
    /// It asks the store together with others that are waited for.
    Together(Execute),
    /// It asks the store when those before it are answered, and has those behind it wait.
    Alone(Execute),
    /// It asks no store.
    Here(Execute),
    /// It is about the connection itself, or is answered at length: not between `MULTI` and `EXEC`.
    Connection(Execute),
    /// It is done at once also between `MULTI` and `EXEC`.
    EndsQueue(Execute),
}

type Execute = fn(&mut Call<'_, '_>) -> Refused;

/// What there is to know about a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec {
    pub(super) run: Run,
    pub(super) name: &'static str,
    /// How many words it has with its name; if negative, at least so many.
    pub(super) arity: i64,
    /// Whether its first word is a key, and its last, too.
    pub(super) keys: Keys,
    pub(super) summary: &'static str,
    /// What stands behind the name, for commands that only this server has; empty where Redis has the command, too.
    usage: &'static str,
    /// Whether a client that has not shown the token may ask it.
    pub(super) is_unauthenticated: bool,
}

/// Which words are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    None,
    First,
    All,
}

/// Those that are asked most come first.
pub(super) const COMMANDS: [Spec; 24] = [
    spec(Run::Throttle, "cl.throttle", -5, Keys::First, "Takes from a token bucket, as redis-cell does"),
    spec(Run::Take, "tg.take", -4, Keys::First, "Decides under a limit, and spends if allowed")
        .usage("key LIMIT text [COST n] [PATIENCE ms]"),
    spec(
        Run::Together(admit::admit),
        "tg.admit",
        -1,
        Keys::None,
        "Decides by the rules, and spends if allowed",
    )
    .usage("[COST n] [PATIENCE ms] attribute value ..."),
    spec(Run::Here(greet::ping), "ping", -1, Keys::None, "Answers PONG"),
    spec(Run::Alone(ask::peek), "tg.peek", -4, Keys::First, "Decides like TG.TAKE without spending")
        .usage("key LIMIT text [COST n] [PATIENCE ms]"),
    spec(
        Run::Alone(ask::adjust),
        "tg.adjust",
        5,
        Keys::First,
        "Charges what was more, gives back what was less",
    )
    .usage("key LIMIT text n"),
    spec(
        Run::Together(several::take_all),
        "tg.takeall",
        -5,
        Keys::None,
        "Takes under several limits, all or none",
    )
    .usage("n key LIMIT text [COST c] ..."),
    spec(
        Run::Alone(|call| ask::lease(call, Lease::Release)),
        "tg.release",
        2,
        Keys::None,
        "Gives a permit back",
    )
    .usage("permit"),
    spec(
        Run::Alone(|call| ask::lease(call, Lease::Renew)),
        "tg.renew",
        2,
        Keys::None,
        "Starts the lease of a permit anew",
    )
    .usage("permit"),
    spec(Run::Alone(ask::reset), "tg.reset", -2, Keys::First, "Forgets a key under one limit, or under all")
        .usage("key [LIMIT text]"),
    spec(Run::Alone(ask::delete), "del", -2, Keys::All, "Forgets keys under all limits"),
    spec(Run::Here(greet::echo), "echo", 2, Keys::None, "Answers what it is told"),
    spec(Run::Connection(greet::hello), "hello", -1, Keys::None, "Chooses the protocol, and shows the token")
        .unauthenticated(),
    spec(Run::Connection(greet::auth), "auth", -2, Keys::None, "Shows the token").unauthenticated(),
    spec(Run::Here(greet::select), "select", 2, Keys::None, "Chooses the database; there is number 0"),
    spec(Run::Connection(greet::client), "client", -2, Keys::None, "Names a connection, and tells about it"),
    spec(Run::Connection(catalogue::command), "command", -1, Keys::None, "Lists all commands"),
    spec(Run::Connection(about::info), "info", -1, Keys::None, "Tells how the server is"),
    spec(Run::Connection(about::config), "config", -2, Keys::None, "Tells settings that clients ask for"),
    spec(Run::EndsQueue(transaction::multi), "multi", 1, Keys::None, "Has what follows wait for EXEC"),
    spec(
        Run::EndsQueue(transaction::exec),
        "exec",
        1,
        Keys::None,
        "Does everything since MULTI, each by itself",
    ),
    spec(
        Run::EndsQueue(transaction::discard),
        "discard",
        1,
        Keys::None,
        "Does nothing of what came since MULTI",
    ),
    spec(Run::EndsQueue(greet::quit), "quit", -1, Keys::None, "Ends the connection").unauthenticated(),
    spec(Run::EndsQueue(greet::reset), "reset", 1, Keys::None, "Makes the connection like a new one")
        .unauthenticated(),
];

const fn spec(run: Run, name: &'static str, arity: i64, keys: Keys, summary: &'static str) -> Spec {
    Spec { run, name, arity, keys, summary, usage: "", is_unauthenticated: false }
}

impl Run {
    /// How it asks the store, if it does.
    pub(super) fn way(self) -> Option<Way> {
        match self {
            Run::Throttle | Run::Take | Run::Together(_) => Some(Way::Together),
            Run::Alone(_) => Some(Way::Alone),
            Run::Here(_) | Run::Connection(_) | Run::EndsQueue(_) => None,
        }
    }
}

impl Spec {
    const fn usage(self, usage: &'static str) -> Spec {
        Spec { usage, ..self }
    }

    const fn unauthenticated(self) -> Spec {
        Spec { is_unauthenticated: true, ..self }
    }

    /// The command with this name, in any case.
    #[inline]
    pub(super) fn named(name: &[u8]) -> Option<&'static Spec> {
        if name == b"CL.THROTTLE" {
            return Some(&COMMANDS[0]);
        }
        COMMANDS.iter().find(|spec| spec.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Whether a request of so many words can be meant.
    #[inline]
    pub(super) fn fits(&self, words: usize) -> bool {
        let words = words as i64;
        if self.arity < 0 { words >= -self.arity } else { words == self.arity }
    }

    /// Returns the error of Redis about a request of too few or too many words, with the usage where Redis has none.
    #[cold]
    pub(super) fn wrong_number(&self) -> String {
        let Spec { name, usage, .. } = self;
        let error = format!("ERR wrong number of arguments for '{name}' command");
        if usage.is_empty() { error } else { format!("{error}; usage: {} {usage}", name.to_uppercase()) }
    }

    /// Returns the name of the command that was probably meant by a name that no command has.
    pub(super) fn nearest(name: &[u8]) -> Option<String> {
        let name = std::str::from_utf8(name).ok().filter(|name| name.len() <= MAX_NEAREST_BYTES)?;
        let names = || COMMANDS.iter().map(|spec| spec.name);
        let bare =
            |known: &&str| known.split_once('.').is_some_and(|(_, bare)| bare.eq_ignore_ascii_case(name));
        names().find(bare).or_else(|| nearest(name, names())).map(str::to_uppercase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_in_any_case_and_have_one_name_each() {
        for spec in &COMMANDS {
            let found = |name: &str| Spec::named(name.as_bytes()).map(|spec| spec.name);
            assert_eq!(found(spec.name), Some(spec.name));
            assert_eq!(found(&spec.name.to_uppercase()), Some(spec.name));
            assert_eq!(COMMANDS.iter().filter(|other| other.name == spec.name).count(), 1);
        }
        assert!(Spec::named(b"get").is_none() && Spec::named(b"").is_none());
    }

    #[test]
    fn a_slip_is_recognised_as_the_command_that_was_meant() {
        for (name, meant) in [
            ("TG.TAKEN", Some("TG.TAKE")),
            ("tgtake", Some("TG.TAKE")),
            ("take", Some("TG.TAKE")),
            ("THROTTLE", Some("CL.THROTTLE")),
            ("pnig", Some("PING")),
            ("GET", None),
            ("", None),
            ("tg.takeallofthemx", None),
        ] {
            assert_eq!(Spec::nearest(name.as_bytes()).as_deref(), meant, "{name}");
        }
        assert_eq!(Spec::nearest(b"\xffping"), None);
        assert!(COMMANDS.iter().all(|spec| spec.name.len() < MAX_NEAREST_BYTES));
    }

    #[test]
    fn every_command_of_ours_has_a_usage_and_no_other_has() {
        for spec in &COMMANDS {
            assert_eq!(!spec.usage.is_empty(), spec.name.starts_with("tg."), "{}", spec.name);
        }
    }

    #[test]
    fn arity_is_exact_or_the_least() {
        let select = Spec::named(b"select").unwrap();
        assert!(select.fits(2) && !select.fits(1) && !select.fits(3));
        let delete = Spec::named(b"del").unwrap();
        assert!(!delete.fits(1) && delete.fits(2) && delete.fits(100));
    }
}

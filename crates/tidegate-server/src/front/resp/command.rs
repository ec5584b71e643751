//! The table of commands: names, arity, keys and summaries.
//!
//! Commands of Redis have the names, arities and errors of Redis, so that stock clients work unchanged. Commands of
//! this server begin with `TG.`, and their errors show the usage. `CL.THROTTLE` is that of redis-cell, `THROTTLE` that
//! of throttlecrab.

use tidegate_support::nearest;

use super::pending::CommandOrder;
use super::session::{Call, CommandResult};
use super::throttle::ThrottleDialect;
use super::{about, admit, ask, catalogue, greet, lists, several, throttle, transaction};
use crate::permit::Lease;

/// The longest name for which a similar command is searched, in bytes. It is longer than any command's name.
const MAX_NEAREST_BYTES: usize = 16;

/// The function of a command, and its order relative to other commands of the connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Run {
    /// `CL.THROTTLE` and `THROTTLE`: batched with the takes after it.
    Throttle(ThrottleDialect),
    /// `TG.TAKE`: batched as well.
    Take,
    /// Asks the store together with other pending commands.
    Together(Execute),
    /// Asks the store when no reply is pending; later store commands wait for it.
    Alone(Execute),
    /// Does not ask the store.
    Here(Execute),
    /// Concerns the connection itself, or has a long reply. Not allowed between `MULTI` and `EXEC`.
    Connection(Execute),
    /// Is executed at once also between `MULTI` and `EXEC`.
    EndsQueue(Execute),
}

/// The function of a command. Its error is the text of the error reply.
type Execute = fn(&mut Call<'_, '_>) -> CommandResult;

/// The description of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec {
    /// The function, and its order among other commands.
    pub(super) run: Run,
    /// The name in lower case.
    pub(super) name: &'static str,
    /// The number of words including the name; if negative, the minimum.
    pub(super) arity: i64,
    /// The positions of its keys.
    pub(super) keys: Keys,
    /// The summary in `COMMAND DOCS`: a verb in the third person, without a full stop.
    pub(super) summary: &'static str,
    /// The arguments, for commands that no Redis has; empty for those of Redis and redis-cell.
    usage: &'static str,
    /// True if an unauthenticated client may execute it.
    pub(super) is_unauthenticated: bool,
}

/// The words of a command that are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// No word is a key.
    None,
    /// The first argument is a key.
    First,
    /// All arguments are keys.
    All,
}

/// All commands, the most frequent first.
pub(super) const COMMANDS: [Spec; 28] = [
    spec(
        Run::Throttle(ThrottleDialect::RedisCell),
        "cl.throttle",
        -5,
        Keys::First,
        "Takes from a token bucket, as redis-cell does",
    ),
    spec(Run::Take, "tg.take", -4, Keys::First, "Decides under a limit, and spends if allowed")
        .usage("key LIMIT text [COST n] [MAXWAIT ms]"),
    spec(
        Run::Together(admit::admit),
        "tg.admit",
        -1,
        Keys::None,
        "Decides by the rules, and spends if allowed",
    )
    .usage("[ALL] [COST n] [MAXWAIT ms] attribute value ..."),
    spec(
        Run::Throttle(ThrottleDialect::Throttlecrab),
        "throttle",
        -5,
        Keys::First,
        "Takes from a token bucket, as throttlecrab does",
    )
    .usage(throttle::USAGE),
    spec(Run::Here(greet::ping), "ping", -1, Keys::None, "Replies PONG"),
    spec(Run::Alone(ask::peek), "tg.peek", -3, Keys::First, "Decides like TG.TAKE without spending").usage(
        "key LIMIT text [COST n] [MAXWAIT ms], or RULE name [COST n] [MAXWAIT ms] attribute value ...",
    ),
    spec(Run::Alone(ask::adjust), "tg.adjust", -4, Keys::First, "Charges or refunds units afterwards")
        .usage("key LIMIT text n, or RULE name attribute value ... n"),
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
        "Releases a permit",
    )
    .usage("permit"),
    spec(
        Run::Alone(|call| ask::lease(call, Lease::Renew)),
        "tg.renew",
        2,
        Keys::None,
        "Renews the lease of a permit",
    )
    .usage("permit"),
    spec(Run::Alone(ask::reset), "tg.reset", -2, Keys::First, "Resets a key under one limit, or under all")
        .usage("key [LIMIT text], or RULE name attribute value ..."),
    spec(Run::Connection(lists::top), "tg.top", -1, Keys::None, "Lists the heaviest keys")
        .usage("[RULE name] [COUNT n] [BY denied|asked]"),
    spec(Run::Alone(lists::bans), "tg.bans", -1, Keys::None, "Lists the banned keys")
        .usage("[RULE name] [COUNT n]"),
    spec(Run::Connection(lists::overrides), "tg.overrides", -1, Keys::None, "Lists the overrides in force")
        .usage("[RULE name]"),
    spec(Run::Alone(ask::delete), "del", -2, Keys::All, "Resets keys under all limits"),
    spec(Run::Here(greet::echo), "echo", 2, Keys::None, "Replies the message"),
    spec(Run::Connection(greet::hello), "hello", -1, Keys::None, "Selects the protocol, and authenticates")
        .unauthenticated(),
    spec(Run::Connection(greet::auth), "auth", -2, Keys::None, "Authenticates the connection")
        .unauthenticated(),
    spec(Run::Here(greet::select), "select", 2, Keys::None, "Selects the database; only 0 exists"),
    spec(Run::Connection(greet::client), "client", -2, Keys::None, "Names the connection, and describes it"),
    spec(Run::Connection(catalogue::command), "command", -1, Keys::None, "Lists all commands"),
    spec(Run::Connection(about::info), "info", -1, Keys::None, "Reports the state of the server"),
    spec(Run::Connection(about::config), "config", -2, Keys::None, "Reports settings that clients request"),
    spec(
        Run::EndsQueue(transaction::multi),
        "multi",
        1,
        Keys::None,
        "Queues the following requests for EXEC",
    ),
    spec(
        Run::EndsQueue(transaction::exec),
        "exec",
        1,
        Keys::None,
        "Executes the queued requests, each by itself",
    ),
    spec(Run::EndsQueue(transaction::discard), "discard", 1, Keys::None, "Drops the queued requests"),
    spec(Run::EndsQueue(greet::quit), "quit", -1, Keys::None, "Closes the connection").unauthenticated(),
    spec(Run::EndsQueue(greet::reset), "reset", 1, Keys::None, "Resets the connection").unauthenticated(),
];

/// Creates a command of Redis that needs authentication.
const fn spec(run: Run, name: &'static str, arity: i64, keys: Keys, summary: &'static str) -> Spec {
    Spec { run, name, arity, keys, summary, usage: "", is_unauthenticated: false }
}

impl Run {
    /// Returns its order among pending store commands; `None` if it does not ask the store.
    pub(super) fn way(self) -> Option<CommandOrder> {
        match self {
            Run::Throttle(_) | Run::Take | Run::Together(_) => Some(CommandOrder::Together),
            Run::Alone(_) => Some(CommandOrder::Alone),
            Run::Here(_) | Run::Connection(_) | Run::EndsQueue(_) => None,
        }
    }
}

impl Spec {
    /// Sets the arguments, for a command that no Redis has.
    const fn usage(self, usage: &'static str) -> Spec {
        Spec { usage, ..self }
    }

    /// Allows the command to unauthenticated clients.
    const fn unauthenticated(self) -> Spec {
        Spec { is_unauthenticated: true, ..self }
    }

    /// Returns the command with this name, in any case.
    ///
    /// A linear search: the most frequent commands come first, and the very first is compared without a search.
    #[inline]
    pub(super) fn named(name: &[u8]) -> Option<&'static Spec> {
        if name == b"CL.THROTTLE" {
            return Some(&COMMANDS[0]);
        }
        COMMANDS.iter().find(|spec| spec.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Returns true if the arity allows this number of words.
    #[inline]
    pub(super) fn fits(&self, words: usize) -> bool {
        let words = words as i64;
        if self.arity < 0 { words >= -self.arity } else { words == self.arity }
    }

    /// Returns the error of Redis about a wrong number of words. Commands that no Redis has add their usage.
    #[cold]
    pub(super) fn wrong_number(&self) -> String {
        let Spec { name, usage, .. } = self;
        let error = format!("ERR wrong number of arguments for '{name}' command");
        if usage.is_empty() { error } else { format!("{error}; usage: {} {usage}", name.to_uppercase()) }
    }

    /// Returns the command that was probably meant by an unknown name.
    ///
    /// A name without its prefix is recognised as well: `TAKE` for `TG.TAKE`.
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
            ("cl.throtle", Some("CL.THROTTLE")),
            ("throtle", Some("THROTTLE")),
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
    fn commands_that_redis_and_redis_cell_lack_have_a_usage_and_no_other_has() {
        for spec in &COMMANDS {
            let is_other = spec.name.starts_with("tg.") || spec.name == "throttle";
            assert_eq!(!spec.usage.is_empty(), is_other, "{}", spec.name);
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

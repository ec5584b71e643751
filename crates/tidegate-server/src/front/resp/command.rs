//! All commands: their names, how many words they have, and what they are for.

use tidegate_support::nearest;

/// The longest name for which a similar command is looked for, in bytes: longer than any command's.
const MAX_NEAREST_BYTES: usize = 16;

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Throttle,
    Take,
    Peek,
    Adjust,
    Admit,
    TakeAll,
    Release,
    Renew,
    Reset,
    Delete,
    Ping,
    Echo,
    Hello,
    Auth,
    Select,
    Client,
    Commands,
    Info,
    Config,
    Multi,
    Exec,
    Discard,
    Quit,
    ResetConnection,
}

/// What there is to know about a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec {
    pub(super) command: Command,
    pub(super) name: &'static str,
    /// How many words it has with its name; if negative, at least so many.
    pub(super) arity: i64,
    /// Whether its first word is a key, and its last, too.
    pub(super) keys: Keys,
    pub(super) summary: &'static str,
    /// What stands behind the name, for commands that only this server has; empty where Redis has the command, too.
    usage: &'static str,
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
    spec(Command::Throttle, "cl.throttle", -5, Keys::First, "Takes from a token bucket, as redis-cell does"),
    spec(Command::Take, "tg.take", -4, Keys::First, "Decides under a limit, and spends if allowed")
        .usage("key LIMIT text [COST n] [PATIENCE ms]"),
    spec(Command::Admit, "tg.admit", -1, Keys::None, "Decides by the rules, and spends if allowed")
        .usage("[COST n] [PATIENCE ms] attribute value ..."),
    spec(Command::Ping, "ping", -1, Keys::None, "Answers PONG"),
    spec(Command::Peek, "tg.peek", -4, Keys::First, "Decides like TG.TAKE without spending")
        .usage("key LIMIT text [COST n] [PATIENCE ms]"),
    spec(Command::Adjust, "tg.adjust", 5, Keys::First, "Charges what was more, gives back what was less")
        .usage("key LIMIT text n"),
    spec(Command::TakeAll, "tg.takeall", -5, Keys::None, "Takes under several limits, all or none")
        .usage("n key LIMIT text [COST c] ..."),
    spec(Command::Release, "tg.release", 2, Keys::None, "Gives a permit back").usage("permit"),
    spec(Command::Renew, "tg.renew", 2, Keys::None, "Starts the lease of a permit anew").usage("permit"),
    spec(Command::Reset, "tg.reset", -2, Keys::First, "Forgets a key under one limit, or under all")
        .usage("key [LIMIT text]"),
    spec(Command::Delete, "del", -2, Keys::All, "Forgets keys under all limits"),
    spec(Command::Echo, "echo", 2, Keys::None, "Answers what it is told"),
    spec(Command::Hello, "hello", -1, Keys::None, "Chooses the protocol, and shows the token"),
    spec(Command::Auth, "auth", -2, Keys::None, "Shows the token"),
    spec(Command::Select, "select", 2, Keys::None, "Chooses the database; there is number 0"),
    spec(Command::Client, "client", -2, Keys::None, "Names a connection, and tells about it"),
    spec(Command::Commands, "command", -1, Keys::None, "Lists all commands"),
    spec(Command::Info, "info", -1, Keys::None, "Tells how the server is"),
    spec(Command::Config, "config", -2, Keys::None, "Tells settings that clients ask for"),
    spec(Command::Multi, "multi", 1, Keys::None, "Has what follows wait for EXEC"),
    spec(Command::Exec, "exec", 1, Keys::None, "Does everything since MULTI, each by itself"),
    spec(Command::Discard, "discard", 1, Keys::None, "Does nothing of what came since MULTI"),
    spec(Command::Quit, "quit", -1, Keys::None, "Ends the connection"),
    spec(Command::ResetConnection, "reset", 1, Keys::None, "Makes the connection like a new one"),
];

const fn spec(command: Command, name: &'static str, arity: i64, keys: Keys, summary: &'static str) -> Spec {
    Spec { command, name, arity, keys, summary, usage: "" }
}

impl Spec {
    const fn usage(self, usage: &'static str) -> Spec {
        Spec { usage, ..self }
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

    /// Whether it is done at once also between `MULTI` and `EXEC`.
    pub(super) fn ends_queue(&self) -> bool {
        matches!(
            self.command,
            Command::Multi | Command::Exec | Command::Discard | Command::Quit | Command::ResetConnection
        )
    }

    /// Whether somebody who has not shown the token may ask it.
    pub(super) fn is_for_strangers(&self) -> bool {
        matches!(self.command, Command::Auth | Command::Hello | Command::Quit | Command::ResetConnection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_in_any_case_and_have_one_name_each() {
        for spec in &COMMANDS {
            let found = |name: &str| Spec::named(name.as_bytes()).map(|spec| spec.command);
            assert_eq!(found(spec.name), Some(spec.command));
            assert_eq!(found(&spec.name.to_uppercase()), Some(spec.command));
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

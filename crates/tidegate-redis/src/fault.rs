//! What went wrong, whether anything can have been spent, and what would do.

use std::fmt;

use redis::{ErrorKind, RedisError, ServerError};
use tidegate::StoreError;

use crate::url::Address;

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// There is no connection, so it was not asked.
    Down(String),
    /// Too many are asking already.
    Busy,
    /// The server refused to do it; nothing was done.
    Refused(Refusal),
    /// It was asked, and no answer came in time.
    TimedOut(Address),
    /// It was asked, and the connection is gone.
    Lost(String),
    /// The answer makes no sense.
    Unreadable(String),
}

/// What a server said instead of doing what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) from: Address,
    pub(crate) code: String,
    pub(crate) detail: String,
}

/// What can be done about a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Send the script itself.
    SendScript,
    /// Ask there, from now on.
    Moved(Address),
    /// Ask there, this once.
    AskThere(Address),
    /// Ask again in a moment.
    AskAgain,
    /// Find out who is to be asked.
    LookAround,
    /// Nothing.
    None,
}

impl Refusal {
    pub(crate) fn new(from: &Address, error: &ServerError) -> Refusal {
        Refusal {
            from: from.clone(),
            code: error.code().to_owned(),
            detail: without_arguments(error.details().unwrap_or_default()).to_owned(),
        }
    }

    /// Whether it is about the server as a whole, not about one question.
    pub(crate) fn is_of_server(&self) -> bool {
        const CODES: [&str; 10] = [
            "READONLY",
            "MASTERDOWN",
            "CLUSTERDOWN",
            "LOADING",
            "OOM",
            "MISCONF",
            "NOREPLICAS",
            "NOAUTH",
            "NOPERM",
            "BUSY",
        ];
        CODES.contains(&self.code.as_str())
    }

    /// Whether only another connection can do better: this one leads to somebody who does not know us, or does not count.
    pub(crate) fn is_of_connection(&self) -> bool {
        matches!(self.code.as_str(), "NOAUTH" | "READONLY" | "MASTERDOWN")
    }

    pub(crate) fn remedy(&self) -> Remedy {
        let there = || Address::of_redirection(self.detail.split_ascii_whitespace().nth(1)?);
        match self.code.as_str() {
            "NOSCRIPT" => Remedy::SendScript,
            // A node that does not know the name of another one sends none: then it is on the same machine.
            "MOVED" => there().map_or(Remedy::LookAround, |there| Remedy::Moved(self.complete(there))),
            "ASK" => there().map_or(Remedy::LookAround, |there| Remedy::AskThere(self.complete(there))),
            "TRYAGAIN" => Remedy::AskAgain,
            "READONLY" | "MASTERDOWN" | "CLUSTERDOWN" | "LOADING" | "UNBLOCKED" => Remedy::LookAround,
            _ => Remedy::None,
        }
    }

    fn complete(&self, there: Address) -> Address {
        let host = if there.host.is_empty() { self.from.host.clone() } else { there.host };
        Address { host, ..there }
    }

    /// What would do, if we know.
    fn advice(&self) -> &'static str {
        let is_forbidden = self.code == "NOPERM" || self.detail.contains("user executing the script can't");
        match self.code.as_str() {
            _ if is_forbidden => {
                "; grant the store's user what docs/distributed.md lists, and see: tidegate doctor"
            }
            "NOAUTH" => {
                "; the server wants a password: write it into the URL, redis://user:password@host, or give it by itself"
            }
            "WRONGPASS" => "; correct the user or the password in the URL",
            "READONLY" => "; this server is a replica: name its primary, or the Sentinels, in the URL",
            "OOM" => "; give the server more memory (maxmemory), or shorter limits",
            "MISCONF" => "; the server cannot write to its disk: free some space, or look into its log",
            "NOREPLICAS" => "; the server wants more replicas than it has (min-replicas-to-write)",
            "MOVED" | "ASK" => "; this server is a node of a cluster: write redis+cluster:// in the URL",
            "CROSSSLOT" => "; this server is a node of a cluster: write redis+cluster:// in the URL",
            "CLUSTERDOWN" => "; the cluster lacks some of its primaries",
            "LOADING" => "; the server is reading its data",
            "MASTERDOWN" => "; this replica has lost its primary",
            "BUSY" => "; another script has been running for long: SCRIPT KILL ends it",
            _ => "",
        }
    }
}

impl Fault {
    pub(crate) fn of_lost(address: &Address, error: &RedisError) -> Fault {
        Fault::Lost(describe(address, error))
    }

    /// Returns true if one ask of a call may be the reason why the server has refused all of it.
    pub(crate) fn may_be_of_one_ask(&self) -> bool {
        matches!(self, Fault::Refused(refusal)
            if refusal.code == "NOPERM" || !refusal.is_of_server() && refusal.remedy() == Remedy::None)
    }

    /// Whether it may have been done all the same.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Fault::TimedOut(_) | Fault::Lost(_) | Fault::Unreadable(_))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Down(why) | Fault::Lost(why) => out.write_str(why),
            Fault::Busy => out.write_str(
                "more decisions are under way than allowed; raise the store's max_in_flight, or ask less at once",
            ),
            Fault::Refused(refusal) => {
                let Refusal { from, code, detail } = refusal;
                write!(out, "{from}: {code} {detail}{}", refusal.advice())
            }
            Fault::TimedOut(address) => write!(out, "{address}: no answer within the deadline"),
            Fault::Unreadable(what) => write!(out, "the answer makes no sense: {what}"),
        }
    }
}

impl std::error::Error for Fault {}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> StoreError {
        if fault.is_unknown() { StoreError::outcome_unknown(fault) } else { StoreError::unavailable(fault) }
    }
}

fn too_old(address: &Address) -> String {
    format!("{address}: this server is too old, or does not know HELLO; run Redis 6.2 or later, or Valkey")
}

/// A server repeats what it does not understand, and that may be a password.
fn without_arguments(detail: &str) -> &str {
    detail.split_once(", with args").map_or(detail, |(before, _)| before)
}

/// Why a server was not reached or lost, and what would do. What was sent to it is not repeated.
pub(crate) fn describe(address: &Address, error: &RedisError) -> String {
    let text = error.to_string();
    if let Some(code) = error.code() {
        let detail = without_arguments(error.detail().unwrap_or_default()).to_owned();
        if detail.contains("unknown command") && detail.contains("HELLO") {
            return too_old(address);
        }
        return Fault::Refused(Refusal { from: address.clone(), code: code.to_owned(), detail }).to_string();
    }
    match error.kind() {
        ErrorKind::RESP3NotSupported => too_old(address),
        ErrorKind::AuthenticationFailed => {
            format!(
                "{address}: the user or the password is wrong; correct it in the URL, redis://user:password@host"
            )
        }
        _ if error.is_connection_refusal() => {
            format!("{address}: connection refused; start the server there, or correct the URL")
        }
        _ if error.is_timeout() => {
            format!(
                "{address}: no answer; see whether the address is right, nothing is in between, and the URL says rediss:// only where the server speaks TLS"
            )
        }
        _ if text.contains("failed to lookup") => {
            format!("{address}: this name is not known; correct the host in the URL")
        }
        _ if text.contains("certificate") || text.contains("InvalidContentType") => {
            format!(
                "{address}: no encrypted connection: {text}; use rediss:// only where the server speaks TLS, with the certificate of who signed its own"
            )
        }
        _ => format!("{address}: {}", without_arguments(&text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(code: &str, detail: &str) -> Refusal {
        let from = Address { host: "10.0.0.1".into(), port: 7000 };
        Refusal { from, code: code.into(), detail: detail.into() }
    }

    #[test]
    fn redirections_lead_to_a_node() {
        let there = |host: &str| Address { host: host.into(), port: 7001 };
        assert_eq!(refusal("MOVED", "42 10.0.0.2:7001").remedy(), Remedy::Moved(there("10.0.0.2")));
        assert_eq!(refusal("ASK", "42 ::1:7001").remedy(), Remedy::AskThere(there("::1")));
        assert_eq!(refusal("MOVED", "42 :7001").remedy(), Remedy::Moved(there("10.0.0.1")));
        assert_eq!(refusal("MOVED", "nonsense").remedy(), Remedy::LookAround);
    }

    #[test]
    fn only_what_was_sent_and_not_answered_may_have_been_done() {
        let address = || refusal("", "").from;
        assert!(Fault::TimedOut(address()).is_unknown());
        assert!(Fault::Lost("cut".into()).is_unknown());
        assert!(!Fault::Down("gone".into()).is_unknown());
        assert!(!Fault::Refused(refusal("OOM", "")).is_unknown());
        assert!(!Fault::Busy.is_unknown());
        assert!(!StoreError::from(Fault::Lost("cut".into())).is_retryable());
        assert!(StoreError::from(Fault::Refused(refusal("READONLY", ""))).is_retryable());
    }

    #[test]
    fn what_a_server_repeats_is_not_told() {
        let detail = "unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'default' 'hunter2' ";
        assert_eq!(without_arguments(detail), "unknown command 'HELLO'");
        assert_eq!(without_arguments("plain"), "plain");
    }

    #[test]
    fn a_refusal_is_told_with_what_would_do() {
        let told = Fault::Refused(refusal("NOPERM", "this user has no permissions")).to_string();
        assert!(
            told.starts_with("10.0.0.1:7000: NOPERM this user") && told.contains("tidegate doctor"),
            "{told}"
        );
    }
}

//! Faults of a request to the server: the cause, whether units may have been spent, and the remedy.
//!
//! A fault becomes a [`StoreError`]: with an unknown outcome if the request may have been executed, otherwise
//! unavailable. Messages name the server and the remedy, where they are known.

use std::fmt;

use redis::{ErrorKind, RedisError, ServerError};
use tidegate_core::StoreError;

use crate::url::Address;

/// The reason why a request has no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// There is no connection; the request was not sent.
    Down(String),
    /// Too many requests are in flight.
    Busy,
    /// The server replied with an error; nothing was done.
    Refused(ErrorReply),
    /// The request was sent, and no reply came before the deadline.
    TimedOut(Address),
    /// The request was sent, and the connection was lost.
    Lost(String),
    /// The reply could not be parsed.
    Unreadable(String),
}

/// An error reply of a server.
///
/// The first word of the reply is the code, the rest is the detail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ErrorReply {
    /// The server that sent it.
    pub(crate) from: Address,
    /// The code, such as `MOVED` or `NOPERM`.
    pub(crate) code: String,
    /// The detail, without the arguments of the rejected command.
    pub(crate) detail: String,
}

/// The remedy for an error reply. It is derived from the code, and the address of a redirection. The store
/// applies it by itself; the remedy for people is part of the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Send the script as text.
    SendScript,
    /// Use the other node from now on.
    Moved(Address),
    /// Use the other node once.
    AskThere(Address),
    /// Retry after a moment.
    AskAgain,
    /// Discover the topology again.
    LookAround,
    /// There is no remedy.
    None,
}

impl ErrorReply {
    /// Copies an error reply, without arguments that may be secret.
    pub(crate) fn new(from: &Address, error: &ServerError) -> ErrorReply {
        ErrorReply {
            from: from.clone(),
            code: error.code().to_owned(),
            detail: without_arguments(error.details().unwrap_or_default()).to_owned(),
        }
    }

    /// Returns true if the error concerns the whole server, not one request. Such an error is shown by the status of
    /// the store until the server answers a request. `NOPERM` may concern one key pattern only, but usually concerns
    /// all.
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

    /// Returns true if only another connection can succeed: this one is not authenticated, or leads to a replica. The
    /// link is then given up, and reconnects.
    pub(crate) fn is_of_connection(&self) -> bool {
        matches!(self.code.as_str(), "NOAUTH" | "READONLY" | "MASTERDOWN")
    }

    /// Returns the remedy that the store applies. A redirection without a readable address is treated as a changed
    /// topology.
    pub(crate) fn remedy(&self) -> Remedy {
        let there = || Address::of_redirection(self.detail.split_ascii_whitespace().nth(1)?);
        match self.code.as_str() {
            "NOSCRIPT" => Remedy::SendScript,
            // A node that does not know the host name of another one sends none. The other node is then on the same
            // machine.
            "MOVED" => there().map_or(Remedy::LookAround, |there| Remedy::Moved(self.complete(there))),
            "ASK" => there().map_or(Remedy::LookAround, |there| Remedy::AskThere(self.complete(there))),
            "TRYAGAIN" => Remedy::AskAgain,
            "READONLY" | "MASTERDOWN" | "CLUSTERDOWN" | "LOADING" | "UNBLOCKED" => Remedy::LookAround,
            _ => Remedy::None,
        }
    }

    /// Returns the address of a redirection. Without a host, it is on the host of the server that sent it.
    fn complete(&self, there: Address) -> Address {
        let host = if there.host.is_empty() { self.from.host.clone() } else { there.host };
        Address { host, ..there }
    }

    /// Returns the remedy as text, if known. The text starts with a semicolon, and is empty for unknown codes.
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
    /// Creates the fault of a connection that was lost before the reply.
    pub(crate) fn of_lost(address: &Address, error: &RedisError) -> Fault {
        Fault::Lost(describe(address, error))
    }

    /// Returns true if a single ask may be the reason why the server rejected the whole call. The asks of the call are
    /// then repeated one by one. `NOPERM` may be caused by the key of one ask.
    pub(crate) fn may_be_of_one_ask(&self) -> bool {
        matches!(self, Fault::Refused(refusal)
            if refusal.code == "NOPERM" || !refusal.is_of_server() && refusal.remedy() == Remedy::None)
    }

    /// Returns true if the request may have been executed regardless. A charge with an unknown outcome is never
    /// repeated.
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
                let ErrorReply { from, code, detail } = refusal;
                write!(out, "{from}: {code} {detail}{}", refusal.advice())
            }
            Fault::TimedOut(address) => write!(out, "{address}: no answer within the deadline"),
            Fault::Unreadable(what) => write!(out, "the answer makes no sense: {what}"),
        }
    }
}

impl std::error::Error for Fault {}

/// Keeps the fault as the source of the error, with the server and the remedy in its message.
impl From<Fault> for StoreError {
    fn from(fault: Fault) -> StoreError {
        if fault.is_unknown() { StoreError::outcome_unknown(fault) } else { StoreError::unavailable(fault) }
    }
}

/// Describes a server without RESP3.
fn too_old(address: &Address) -> String {
    format!("{address}: this server is too old, or does not know HELLO; run Redis 6.2 or later, or Valkey")
}

/// Removes the arguments from an error: a server repeats a command that it does not know, which may contain a password.
fn without_arguments(detail: &str) -> &str {
    detail.split_once(", with args").map_or(detail, |(before, _)| before)
}

/// Describes why a server was not reached or was lost, with a remedy. The text does not repeat what was sent. Kinds of
/// errors are recognized by the driver's classification where there is one, otherwise by the text of the system.
pub(crate) fn describe(address: &Address, error: &RedisError) -> String {
    let text = error.to_string();
    if let Some(code) = error.code() {
        let detail = without_arguments(error.detail().unwrap_or_default()).to_owned();
        if detail.contains("unknown command") && detail.contains("HELLO") {
            return too_old(address);
        }
        return Fault::Refused(ErrorReply { from: address.clone(), code: code.to_owned(), detail })
            .to_string();
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

    fn refusal(code: &str, detail: &str) -> ErrorReply {
        let from = Address { host: "10.0.0.1".into(), port: 7000 };
        ErrorReply { from, code: code.into(), detail: detail.into() }
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
    fn arguments_that_a_server_repeats_are_removed() {
        let detail = "unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'default' 'hunter2' ";
        assert_eq!(without_arguments(detail), "unknown command 'HELLO'");
        assert_eq!(without_arguments("plain"), "plain");
    }

    #[test]
    fn an_error_reply_is_reported_with_its_remedy() {
        let message = Fault::Refused(refusal("NOPERM", "this user has no permissions")).to_string();
        assert!(
            message.starts_with("10.0.0.1:7000: NOPERM this user") && message.contains("tidegate doctor"),
            "{message}"
        );
    }
}

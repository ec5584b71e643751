//! What a server is asked, byte by byte, and how its replies are counted.

use super::load::{Requests, Scanner, shuffled};

/// How many keys are asked about at random.
pub(super) const MILLION: u32 = 1_000_000;
/// Maximum burst, count and period in seconds over RESP: more than is asked about one of a million keys, far less
/// than about a hot one, and whoever was met stays live through all rounds.
const TERMS: [&str; 3] = ["100", "30", "3600"];

/// A request but for its key.
#[derive(Clone, Debug)]
pub(super) enum Call {
    /// Redis's empty answer.
    Ping,
    /// As redis-cell has it, and we.
    ClThrottle,
    /// The same of throttlecrab, which says 1 where others say 0.
    Throttle,
    /// The script with this name.
    Script(String),
    /// `TG.TAKE`, with the numbers of `CL.THROTTLE`.
    TgTake,
    /// `TG.ADMIT`, of a user and a path.
    Admit,
    /// `POST /v1/take`.
    Take,
    /// `POST /throttle`, throttlecrab's.
    HttpThrottle,
}

/// Which keys are asked about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Keys {
    /// Each of a million once, in random order, again and again.
    Million,
    /// The same one.
    Hot,
    /// The call has no key.
    None,
}

impl Call {
    /// All requests, made beforehand.
    pub(super) fn requests(&self, keys: Keys) -> Requests {
        match keys {
            Keys::Million => self.requests_about(shuffled(MILLION)),
            Keys::Hot | Keys::None => Requests::about_one(|key| self.write(key)),
        }
    }

    /// The requests about these keys, in this order.
    pub(super) fn requests_about(&self, keys: impl IntoIterator<Item = u32>) -> Requests {
        Requests::about(keys, |key| self.write(key))
    }

    /// What counts its replies.
    pub(super) fn scanner(&self) -> Scanner {
        match self {
            Call::Ping => Scanner::word(),
            Call::ClThrottle | Call::Script(_) => Scanner::five_integers(b'0'),
            Call::Throttle => Scanner::five_integers(b'1'),
            // Eight names, six integers, the rule and what decided.
            Call::TgTake => Scanner::fields(26),
            Call::Admit => Scanner::fields(27),
            Call::Take | Call::HttpThrottle => Scanner::http(),
        }
    }

    fn write(&self, key: &str) -> Vec<u8> {
        let [burst, count, period] = TERMS;
        match self {
            Call::Ping => command(&["PING"]),
            Call::ClThrottle => command(&["CL.THROTTLE", key, burst, count, period]),
            Call::Throttle => command(&["THROTTLE", key, burst, count, period]),
            Call::Script(name) => command(&["EVALSHA", name, "1", key, burst, count, period]),
            Call::TgTake => command(&["TG.TAKE", key, "LIMIT", "30/h burst 101"]),
            Call::Admit => command(&["TG.ADMIT", "user", key, "path", "/api/orders"]),
            Call::Take => post("/v1/take", &format!(r#"{{"key":"{key}","limit":"30/60s burst 15"}}"#)),
            Call::HttpThrottle => {
                let terms = r#""max_burst":15,"count_per_period":30,"period":60"#;
                post("/throttle", &format!(r#"{{"key":"{key}",{terms}}}"#))
            }
        }
    }
}

/// A command as an array of bulk strings.
fn command(words: &[&str]) -> Vec<u8> {
    let words: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    let count = words.matches('$').count();
    format!("*{count}\r\n{words}").into_bytes()
}

fn post(path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}"
    );
    format!("{head}\r\n\r\n{body}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(call: &Call) -> String {
        String::from_utf8(call.write("user:000000001")).unwrap()
    }

    #[test]
    fn commands_are_arrays_of_bulk_strings() {
        assert_eq!(text(&Call::Ping), "*1\r\n$4\r\nPING\r\n");
        let throttle = "$8\r\nTHROTTLE\r\n$14\r\nuser:000000001\r\n$3\r\n100\r\n$2\r\n30\r\n$4\r\n3600\r\n";
        assert_eq!(text(&Call::Throttle), format!("*5\r\n{throttle}"));
        assert!(
            text(&Call::Script("ab".to_owned()))
                .starts_with("*7\r\n$7\r\nEVALSHA\r\n$2\r\nab\r\n$1\r\n1\r\n")
        );
    }

    #[test]
    fn a_take_says_how_long_it_is() {
        let take = text(&Call::Take);
        let (head, body) = take.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, r#"{"key":"user:000000001","limit":"30/60s burst 15"}"#);
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
    }
}

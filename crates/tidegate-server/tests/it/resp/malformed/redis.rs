//! Compares the server with a real Redis: the same input has to be invalid in the same way.

use testbed::{Flavour, Redis};

use super::cases::{self, Case};
use super::class::{Class, Heard, Hearing};
use super::{echoed, heavy};
use crate::wire::Running;
use crate::wire::resp::Value;

/// A deliberate difference from Redis.
struct Difference {
    why: &'static str,
    /// A predicate: true if an input, with this reply of ours, falls under this difference.
    is_of_it: fn(&[u8], &str) -> bool,
    ours: Class,
    theirs: &'static [Class],
}

const DIFFERENCES: [Difference; 9] = [
    Difference {
        why: "a NUL is a byte like any other here, and there the end of what is looked at: they wait, and we say",
        is_of_it: |input, _| input.contains(&0),
        ours: Class::CutOff,
        theirs: &[Class::Waiting],
    },
    Difference {
        why: "a NUL in a line is a space here, and they wait for the end of the line behind it",
        is_of_it: |input, _| input.contains(&0) && !input.contains(&b'*'),
        ours: Class::Refused,
        theirs: &[Class::Waiting],
    },
    Difference {
        why: "the same, if it is a command then",
        is_of_it: |input, _| input.contains(&0) && !input.contains(&b'*'),
        ours: Class::Open,
        theirs: &[Class::Waiting],
    },
    Difference {
        why: "that a line feed is behind the carriage return of a length is checked",
        is_of_it: |input, _| input.windows(2).any(|pair| pair[0] == b'\r' && pair[1] != b'\n'),
        ours: Class::CutOff,
        theirs: &[Class::Open, Class::Refused, Class::Waiting],
    },
    Difference {
        why: "that both are behind a word is checked",
        is_of_it: |_, reply| reply.ends_with("expected CRLF after a bulk string"),
        ours: Class::CutOff,
        theirs: &[Class::Open, Class::Refused],
    },
    Difference {
        why: "what is no limit's key has fewer words, shorter ones, and shorter lines",
        is_of_it: |input, reply| {
            let bounds = [
                "invalid multibulk length",
                "invalid bulk length",
                "too big request",
                "too big inline request",
            ];
            (input.len() > 64 << 10 || announced(input) > 16_384)
                && bounds.iter().any(|bound| reply.ends_with(bound))
        },
        ours: Class::CutOff,
        theirs: &[Class::Open, Class::Refused, Class::Waiting],
    },
    Difference {
        why: "a client that starts a TLS handshake cannot read a RESP reply",
        is_of_it: |input, _| input.first() == Some(&0x16),
        ours: Class::Silent,
        theirs: &[Class::Refused],
    },
    Difference {
        why: "clients say what they are to newer versions of Redis",
        is_of_it: |input, _| input.windows(7).any(|part| part == b"SETINFO"),
        ours: Class::Open,
        theirs: &[Class::Refused],
    },
    Difference {
        why: "names of connections are not as long as one likes",
        is_of_it: |_, reply| reply == "ERR names have at most 256 bytes",
        ours: Class::Refused,
        theirs: &[Class::Open],
    },
];

/// Returns the number of words that an input announces.
fn announced(input: &[u8]) -> u64 {
    let digits = input.strip_prefix(b"*").unwrap_or_default().split(|byte| *byte == b'\r').next();
    digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok()).unwrap_or(0)
}

/// Sends every case to both servers.
pub(super) fn compare() {
    let running = Running::start();
    let ours = Hearing::of(running.server.resp().expect("it speaks RESP"));
    let redis = Redis::start(Flavour::Redis7);
    let theirs = Hearing::of_bytes(redis.address());
    let (mut same, mut differ, mut unlisted) = (0, [0; DIFFERENCES.len()], Vec::new());
    for case in common() {
        let (we, they) = (ours.hear(&case.input), theirs.hear(&case.input));
        if we.class == they.class {
            same += 1;
            continue;
        }
        match DIFFERENCES.iter().position(|difference| difference.is(&case, &we, &they)) {
            Some(listed) => differ[listed] += 1,
            None => unlisted.push(format!("{:?}, not {:?} as Redis: {case}", we.class, they.class)),
        }
    }
    assert!(unlisted.is_empty(), "{}", unlisted.join("\n"));
    println!("malformed: {same} inputs are taken as by Redis; {differ:?} are not, as listed");
    for (difference, count) in DIFFERENCES.iter().zip(differ) {
        assert!(count > 0, "not any more: {}", difference.why);
    }
}

impl Difference {
    fn is(&self, case: &Case, we: &Heard, they: &Heard) -> bool {
        let reply = match we.replies.last() {
            Some(Value::Error(reply)) => reply,
            _ => "",
        };
        self.ours == we.class && self.theirs.contains(&they.class) && (self.is_of_it)(&case.input, reply)
    }
}

/// Returns all cases without our own commands.
fn common() -> impl Iterator<Item = Case> {
    let groups = [cases::lengths(), cases::beginnings(), cases::truncated(), cases::shapes(), cases::lines()];
    let all = groups.concat().into_iter().chain(echoed::cases()).chain(heavy::cases());
    all.filter(|case| {
        ![&b"\nTG."[..], b"\nCL."].iter().any(|own| case.input.windows(4).any(|part| part == *own))
    })
}

//! Inputs with one fault each, and inputs that combine two.

use std::fmt;

use super::class::Class;
use crate::wire::resp::request;

/// An input, and the expected number and class of replies, if known.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) input: Vec<u8>,
    pub(super) replies: Option<usize>,
    pub(super) class: Option<Class>,
}

impl Case {
    pub(super) fn of(input: impl Into<Vec<u8>>) -> Case {
        Case { input: input.into(), replies: None, class: None }
    }

    /// Sets the expected number of replies and their class.
    pub(super) fn expecting(self, replies: usize, class: Class) -> Case {
        Case { replies: Some(replies), class: Some(class), ..self }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.input[..self.input.len().min(200)];
        write!(out, "{} ({} bytes)", shown.escape_ascii(), self.input.len())
    }
}

/// Unusual spellings of numbers, with their value. `None` is invalid.
const NUMBERS: [(&str, Option<i128>); 44] = [
    ("", None),
    ("-", None),
    ("+", None),
    ("--1", None),
    ("+1", None),
    ("+0", None),
    ("-0", None),
    ("00", None),
    ("01", None),
    ("-01", None),
    ("0001", None),
    (" 1", None),
    ("1 ", None),
    ("\t1", None),
    ("1\t", None),
    ("1\0", None),
    ("\0", None),
    ("\x001", None),
    ("1.0", None),
    ("1e1", None),
    ("0x1", None),
    ("1a", None),
    ("a", None),
    ("1,0", None),
    ("\u{ff11}", None),
    ("\u{661}", None),
    ("9223372036854775808", None),
    ("-9223372036854775809", None),
    ("18446744073709551615", None),
    ("18446744073709551616", None),
    ("99999999999999999999", None),
    ("999999999999999999999", None),
    ("-1", Some(-1)),
    ("-2", Some(-2)),
    ("-10", Some(-10)),
    ("-2147483649", Some(-2_147_483_649)),
    ("-9223372036854775808", Some(-9_223_372_036_854_775_808)),
    ("0", Some(0)),
    ("1", Some(1)),
    ("4", Some(4)),
    ("2147483647", Some(2_147_483_647)),
    ("2147483648", Some(2_147_483_648)),
    ("4294967296", Some(4_294_967_296)),
    ("9223372036854775807", Some(9_223_372_036_854_775_807)),
];

/// Line ends, valid and invalid.
const ENDS: [&str; 8] = ["\r\n", "\n", "\r", "\rx", "\r\r\n", "\n\r", "\0\r\n", ""];

/// Returns every number as the length of an array and of a word, with every line end.
pub(super) fn lengths() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, value) in NUMBERS {
        for end in ENDS {
            let array = Case::of(format!("*{number}{end}$4\r\nPING\r\n"));
            let word = Case::of(format!("*1\r\n${number}{end}PING\r\n"));
            cases.extend(match (end, value) {
                ("\r\n", None) => [array.expecting(1, Class::CutOff), word.expecting(1, Class::CutOff)],
                ("\r\n", Some(value)) => [of_array(array, value), of_word(word, value)],
                ("\rx" | "\r\r\n" | "\0\r\n", _) => {
                    [array.expecting(1, Class::CutOff), word.expecting(1, Class::CutOff)]
                }
                _ => [array, word],
            });
        }
    }
    cases
}

/// Sets the expectation for an array of this length of which one word was sent.
fn of_array(case: Case, words: i128) -> Case {
    match words {
        // The bytes of the word are then two lines: an unknown command and a valid one.
        ..=0 => case.expecting(2, Class::Open),
        1 => case.expecting(1, Class::Open),
        2..=16_384 => case.expecting(0, Class::Waiting),
        _ => case.expecting(1, Class::CutOff),
    }
}

/// Sets the expectation for a word of this length of which four bytes were sent.
fn of_word(case: Case, bytes: i128) -> Case {
    match bytes {
        4 => case.expecting(1, Class::Open),
        _ => case.expecting(1, Class::CutOff),
    }
}

/// Returns every byte as the first of a request, and of a word.
pub(super) fn beginnings() -> Vec<Case> {
    let mut cases = Vec::new();
    for byte in 0..=u8::MAX {
        let request = Case::of([&[byte], &b"1\r\n"[..]].concat());
        cases.push(match byte {
            b'*' => request.expecting(0, Class::Waiting),
            0x16 => request.expecting(0, Class::Silent),
            b'"' | b'\'' => request.expecting(1, Class::CutOff),
            _ => request.expecting(1, Class::Refused),
        });
        let word = Case::of([&b"*1\r\n"[..], &[byte], b"1\r\nx\r\n"].concat());
        let is_word = byte == b'$';
        cases.push(word.expecting(1, if is_word { Class::Refused } else { Class::CutOff }));
    }
    cases
}

/// Returns every proper prefix of whole requests.
pub(super) fn truncated() -> Vec<Case> {
    let requests = [
        request(&["ECHO", "hello"]),
        request(&["CL.THROTTLE", "user123", "15", "30", "60"]),
        request(&["TG.TAKE", "ana", "LIMIT", "30/60s burst 15", "COST", "2"]),
        b"PING hello\r\n".to_vec(),
        b"ECHO \"a b\\x00\"\r\n".to_vec(),
    ];
    let starts = requests.iter().flat_map(|whole| (1..whole.len()).map(|end| &whole[..end]));
    let alone = starts.clone().map(|start| Case::of(start).expecting(0, Class::Waiting));
    let behind = starts.map(|start| Case::of([b"PING\r\n", start].concat()).expecting(1, Class::Waiting));
    // The bytes after a prefix of a line complete that line.
    let is_line = |case: &Case| !case.input.ends_with(b"\r") && case.input.contains(&b'*');
    alone.chain(behind).map(|case| if is_line(&case) { case } else { Case { class: None, ..case } }).collect()
}

/// Returns arrays and words in the wrong place.
pub(super) fn shapes() -> Vec<Case> {
    let mut cases: Vec<_> =
        ["\r", "\n", "x", "\rx", "x\n", "\n\r", "xx", "\r\r", "\n\n", "\0\0", "\r\0", "\n\n\r\n"]
            .map(|end| Case::of(format!("*2\r\n$4\r\nECHO{end}$1\r\na\r\n")).expecting(1, Class::CutOff))
            .into();
    let cut_off = [
        "*1\r\n*1\r\n$4\r\nPING\r\n",
        "*1\r\n*0\r\n",
        "*1\r\n*-1\r\n",
        "*1\r\n$-1\r\n",
        "*2\r\n$4\r\nECHO\r\n:1\r\n",
        "*2\r\n$4\r\nECHO\r\n+OK\r\n",
        "*2\r\n$4\r\nECHO\r\n_\r\n",
        "*2\r\n$4\r\nECHO\r\n#t\r\n",
        "*2\r\n$4\r\nECHO\r\n%1\r\n+a\r\n+b\r\n",
        "*2\r\n$4\r\nECHO\r\n*1\r\n$1\r\na\r\n",
        "*2\r\n$4\r\nECHO\r\n\r\n$1\r\na\r\n",
        "*2\r\n\r\n$4\r\nECHO\r\n$1\r\na\r\n",
        "*2\r\n $4\r\nECHO\r\n$1\r\na\r\n",
        "*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n",
        "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$-10\r\n",
        "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$2000000000\r\n",
        "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$blabla\r\n",
        "*3000000000\r\n",
        "*1\r\nfoo\r\n",
        "*1\r\n$3\r\nfoobar\r\n",
        "*1\r\n$5\r\nPING\r\n*1\r\n$4\r\nPING\r\n",
    ];
    cases.extend(cut_off.map(|input| Case::of(input).expecting(1, Class::CutOff)));
    let lines_of_three =
        ["+OK", "-ERR no", ":1", "_", "#t", ",1.5", "(1", "!5", "=5", "~1", "%1", ">1", "|1", "$1"];
    cases.extend(lines_of_three.map(|line| Case::of(format!("{line}\r\n")).expecting(1, Class::Refused)));
    cases.extend(
        ["\r\n", "\n", "\r\n\r\n\n\n", "*0\r\n", "*-1\r\n", "*-10\r\n*0\r\n", "  \t \r\n"]
            .map(|input| Case::of(input).expecting(0, Class::Ignored)),
    );
    cases.push(Case::of("*1\r\n$0\r\n\r\n").expecting(1, Class::Refused));
    cases.push(Case::of("\r\n*1\r\n$4\r\nping\r\n").expecting(1, Class::Open));
    cases.push(Case::of("*-10\r\n*1\r\n$4\r\nping\r\n*0\r\nPING\r\n").expecting(2, Class::Open));
    cases.push(Case::of("PING\r\n*1\r\n$x\r\nPING\r\nPING\r\n").expecting(2, Class::CutOff));
    cases
}

/// Returns lines that cannot be split into words, and some that only look invalid.
pub(super) fn lines() -> Vec<Case> {
    let cut_off = [
        "ECHO \"a\r\n",
        "ECHO 'a\r\n",
        "ECHO \"a\"b\r\n",
        "ECHO 'a'b\r\n",
        "ECHO \"a\\\"\r\n",
        "ECHO 'a\\'\r\n",
        "ECHO '\\\\'\r\n",
        "\"\r\n",
        "'\r\n",
        "\"PING\"\"\r\n",
        "set foo 'b'a'r\r\nping\r\n",
        "set foo \"b\"a\"r\r\nping\r\n",
        "PING \"\"\"\r\n",
    ];
    let answered = [
        "ECHO \"\\x\"\r\n",
        "ECHO \"\\xg1\"\r\n",
        "ECHO \"\\x4\"\r\n",
        "ECHO \"\\\\\"\r\n",
        "ECHO \"\\r\\n+OK\\r\\n\"\r\n",
        "ECHO \"\"\r\n",
        "ECHO ''\r\n",
        "\"PING\"\r\n",
        "'PING'\n",
        " PING\r\n",
        "PING \r\n",
        "ECHO \u{1f980}\r\n",
        "ECHO a\u{b}\r\n",
    ];
    let mut cases: Vec<_> = cut_off.map(|line| Case::of(line).expecting(1, Class::CutOff)).into();
    cases.extend(answered.map(|line| Case::of(line).expecting(1, Class::Open)));
    cases.push(Case::of(&b"ECHO \xff\xfe\r\n"[..]).expecting(1, Class::Open));
    cases.push(Case::of(&b"\xff\xfe\0\x01 \x02\r\n"[..]).expecting(1, Class::Refused));
    cases.push(Case::of("PING\rPING\r\n").expecting(1, Class::Open));
    cases.push(Case::of("\0\0PING\0\0\r\n").expecting(1, Class::Open));
    cases
}

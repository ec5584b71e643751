//! Inputs that would be expensive for a server without limits.

use super::cases::Case;
use super::class::Class;
use crate::wire::resp::request;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![
        // An array of a million words: announced only, and sent.
        Case::of("*1000000\r\n").expecting(1, Class::CutOff),
        Case::of(format!("*1000000\r\n{}", "$1\r\na\r\n".repeat(1_000_000))).expecting(1, Class::CutOff),
        Case::of(request(&vec!["a"; 16_384])).expecting(1, Class::Refused),
        Case::of(request(&vec!["a"; 16_385])).expecting(1, Class::CutOff),
        Case::of(request(&vec![""; 16_384])).expecting(1, Class::Refused),
        // Deep nesting.
        Case::of("*1\r\n".repeat(100_000)).expecting(1, Class::CutOff),
        Case::of("*16384\r\n".repeat(10_000)).expecting(1, Class::CutOff),
        Case::of("*".repeat(100_000)).expecting(1, Class::CutOff),
        Case::of("[".repeat(70_000)).expecting(1, Class::CutOff),
        // Many empty requests.
        Case::of("*0\r\n".repeat(100_000)).expecting(0, Class::Ignored),
        Case::of("\r\n".repeat(300_000)).expecting(0, Class::Ignored),
        Case::of("*-1\r\n".repeat(100_000)).expecting(0, Class::Ignored),
        // Long words and long requests.
        Case::of(request(&["ECHO", &"x".repeat(256 << 10)])).expecting(1, Class::Open),
        Case::of(request(&["ECHO", &"x".repeat((256 << 10) + 1)])).expecting(1, Class::CutOff),
        Case::of(request(&vec!["x".repeat(250 << 10); 4])).expecting(1, Class::Refused),
        Case::of(request(&vec!["x".repeat(250 << 10); 5])).expecting(1, Class::CutOff),
        Case::of("*1\r\n$1000000000\r\nabc").expecting(1, Class::CutOff),
        Case::of(request(&vec!["\r\n+OK"; 1000])).expecting(1, Class::Refused),
        // Long lines, also without an end.
        Case::of("x".repeat((64 << 10) - 2) + "\r\n").expecting(1, Class::Refused),
        Case::of("x".repeat((64 << 10) - 1) + "\r\n").expecting(1, Class::CutOff),
        Case::of("PING ".repeat(20_000)).expecting(1, Class::CutOff),
        Case::of(" ".repeat((64 << 10) + 1)).expecting(1, Class::CutOff),
        Case::of("\"".repeat(65_000) + "\n").expecting(1, Class::CutOff),
        Case::of("a ".repeat(30_000) + "\r\n").expecting(1, Class::Refused),
    ];
    // A start that a parser might skip, followed by bytes without an end.
    for start in ["\0", "*\0", "$\0", "*1\r\n$\0", "*1\r\n", "*1\r\n$", "*"] {
        cases.push(Case::of(format!("{start}{}", "A".repeat(70_000))).expecting(1, Class::CutOff));
    }
    let mut bytes: Vec<u8> = (0..=255).collect();
    bytes.retain(|byte| *byte != b'\n');
    cases.push(Case::of(bytes.repeat(300)).expecting(1, Class::CutOff));
    cases
}

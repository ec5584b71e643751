//! Tests of command errors. The connection stays open after each.

use super::integers;
use crate::resp::raw::Talk;
use crate::wire::Running;
use crate::wire::resp::Value;

const LONGEST_KEY: usize = 64 << 10;
const USAGE: &str =
    "Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]";

/// Sends each line, and asserts that its error starts with this text. Nothing is spent, and the connection stays open.
fn assert_errors(cases: &[(&str, &str)]) {
    let (_running, mut talk) = Running::start().with_raw();
    for (line, error) in cases {
        let heard = talk.say(line);
        assert!(heard.starts_with(&format!("-{error}")), "{line}: {heard}");
        assert_eq!(heard.find("\r\n"), Some(heard.len() - 2), "{line}: one line, not {heard}");
    }
    assert_eq!(talk.say("CL.THROTTLE k 0 1 60"), integers(&[0, 1, 0, -1, 60]), "nothing was spent");
}

#[test]
fn too_few_or_too_many_words() {
    let wrong = |name: &str| {
        let usage = match name {
            "tg.take" => "; usage: TG.TAKE key LIMIT text [COST n] [MAXWAIT ms]",
            "tg.peek" => {
                "; usage: TG.PEEK key LIMIT text [COST n] [MAXWAIT ms], or RULE name [COST n] [MAXWAIT ms] attribute value ..."
            }
            "tg.adjust" => "; usage: TG.ADJUST key LIMIT text n, or RULE name attribute value ... n",
            "tg.takeall" => "; usage: TG.TAKEALL n key LIMIT text [COST c] ...",
            "tg.release" => "; usage: TG.RELEASE permit",
            "tg.renew" => "; usage: TG.RENEW permit",
            "tg.reset" => "; usage: TG.RESET key [LIMIT text], or RULE name attribute value ...",
            _ => "",
        };
        format!("ERR wrong number of arguments for '{name}' command{usage}\r\n")
    };
    let lines = [
        "TG.TAKE",
        "TG.TAKE k",
        "TG.TAKE k LIMIT",
        "TG.TAKE k 5/m",
        "TG.PEEK k",
        "TG.PEEK RULE",
        "TG.ADJUST k LIMIT",
        "TG.ADJUST RULE a",
        "TG.TAKEALL",
        "TG.TAKEALL 1 k LIMIT",
        "TG.RELEASE",
        "TG.RELEASE a b",
        "TG.RENEW",
        "TG.RENEW a b",
        "TG.RESET",
        "DEL",
        "PING a b",
        "ECHO",
        "ECHO a b",
        "AUTH",
        "SELECT",
        "SELECT 0 0",
        "CLIENT",
        "CONFIG",
        "RESET now",
    ];
    let cases: Vec<_> = lines
        .iter()
        .map(|line| {
            let name = line.split(' ').next().unwrap_or_default().to_ascii_lowercase();
            (*line, wrong(&name))
        })
        .collect();
    assert_errors(&cases.iter().map(|(line, error)| (*line, error.as_str())).collect::<Vec<_>>());
    let usage = ["CL.THROTTLE", "CL.THROTTLE k", "CL.THROTTLE k 0 1", "cl.throttle k 0 1 60 1 1"];
    assert_errors(&usage.map(|line| (line, USAGE)));
}

#[test]
fn numbers_of_a_throttle_that_are_none() {
    let texts = ["", "+1", "01", "-0", "1.0", "1e3", "0x1", "one", "9223372036854775808", "-", "١"];
    let (_running, mut talk) = Running::start().with_raw();
    for text in texts {
        for place in 2..6 {
            let mut words = ["CL.THROTTLE", "k", "1", "1", "60", "1"];
            words[place] = text;
            let shown = text.as_bytes().escape_ascii();
            let expected = format!("-Cell error: Store error: Couldn't parse as integer: {shown}\r\n");
            assert_eq!(talk.ask(&words), expected, "{words:?}");
        }
    }
}

#[test]
fn numbers_of_a_throttle_that_make_no_limit() {
    let zero = "Cell error: Store error: Zero rates are not supported\r\n";
    assert_errors(&[
        ("CL.THROTTLE k 0 0 60", zero),
        ("CL.THROTTLE k 0 1 0", zero),
        ("CL.THROTTLE k -1 1 60", "ERR -1 is negative; numbers of CL.THROTTLE are 0 or more\r\n"),
        ("CL.THROTTLE k 0 -1 60", "ERR -1 is negative"),
        ("CL.THROTTLE k 0 1 -9223372036854775808", "ERR -9223372036854775808 is negative"),
        ("CL.THROTTLE k 0 1 60 -1", "ERR -1 is negative"),
        (
            "CL.THROTTLE k 9223372036854775807 1 60",
            "ERR limit \"1 per 60s token-bucket\": the burst takes more than 10 years",
        ),
        (
            "CL.THROTTLE k 0 1 9223372036854775807",
            "ERR limit \"1 per 9223372036854775807s token-bucket\": the period is longer than 10 years",
        ),
        (
            "CL.THROTTLE k 0 9223372036854775807 1",
            "ERR limit \"9223372036854775807 per 1s token-bucket\": the rate is above",
        ),
    ]);
}

#[test]
fn numbers_of_options_that_are_none() {
    let cost = "ERR COST takes a whole number, not ";
    let max_wait = "ERR MAXWAIT takes ";
    assert_errors(&[
        ("TG.TAKE k LIMIT 1/60s COST 0", "ERR COST is at least 1; TG.PEEK looks without spending\r\n"),
        ("TG.PEEK k LIMIT 1/60s COST 0", "ERR COST is at least 1"),
        ("TG.PEEK k LIMIT", "ERR a limit is missing; write key LIMIT"),
        ("TG.ADJUST k LIMIT 1/s", "ERR the number of units is missing; write key LIMIT text n"),
        ("TG.ADJUST k LIMIT 1/s 1 1", "ERR unexpected '1'; write key LIMIT text n"),
        ("TG.TAKE k LIMIT 1/60s COST -1", cost),
        ("TG.TAKE k LIMIT 1/60s COST +1", cost),
        ("TG.TAKE k LIMIT 1/60s COST 1.5", cost),
        ("TG.TAKE k LIMIT 1/60s COST ", cost),
        ("TG.TAKE k LIMIT 1/60s COST 18446744073709551616", cost),
        ("TG.TAKE k LIMIT 1/60s MAXWAIT -1", max_wait),
        ("TG.TAKE k LIMIT 1/60s MAXWAIT 1s", max_wait),
        (
            "TG.ADJUST k LIMIT 1/60s 0",
            "ERR adjusting by 0 changes nothing; a positive number charges, a negative one gives back\r\n",
        ),
        ("TG.ADJUST k LIMIT 1/60s -0", "ERR adjusting by 0"),
        ("TG.ADJUST k LIMIT 1/60s +1", "ERR TG.ADJUST takes a whole number, not '+1'\r\n"),
        ("TG.ADJUST k LIMIT 1/60s --1", "ERR TG.ADJUST takes a whole number"),
        ("TG.ADJUST k LIMIT 1/60s -", "ERR TG.ADJUST takes a whole number"),
    ]);
}

#[test]
fn unexpected_words() {
    let missing = "ERR expected LIMIT behind the key, found ";
    assert_errors(&[
        ("TG.TAKE k 1/60s COST 1", missing),
        ("TG.TAKE k LIMITS 1/60s", missing),
        ("TG.TAKE LIMIT 1/60s k", missing),
        (
            "TG.TAKE k LIMIT 1/60s COST",
            "ERR unexpected 'COST'; write key LIMIT text [COST n] [MAXWAIT ms]\r\n",
        ),
        ("TG.TAKE k LIMIT 1/60s now", "ERR unexpected 'now'"),
        ("TG.TAKE k LIMIT 1/60s now 1", "ERR unexpected 'now'"),
        ("TG.TAKE k LIMIT 1/60s COST 1 COST", "ERR unexpected 'COST'"),
        ("GET k", "ERR unknown command 'GET', with args beginning with: 'k' (COMMAND LIST shows all)\r\n"),
        (
            "TG.TAKEN k v",
            "ERR unknown command 'TG.TAKEN', with args beginning with: 'k' 'v' (did you mean TG.TAKE?)\r\n",
        ),
        ("TAKE k", "ERR unknown command 'TAKE', with args beginning with: 'k' (did you mean TG.TAKE?)\r\n"),
        ("EVAL return", "ERR unknown command 'EVAL'"),
        ("SET k v", "ERR unknown command 'SET'"),
        (
            "FLUSHALL",
            "ERR unknown command 'FLUSHALL', with args beginning with: (COMMAND LIST shows all)\r\n",
        ),
    ]);
}

#[test]
fn an_invalid_limit_is_an_error_with_a_remedy() {
    let (_running, mut talk) = Running::start().with_raw();
    for (text, error) in [
        ("60/min", "limit \"60/min\": "),
        ("", "limit \"\": there is nothing here; write a rate such as \"10/s\"\r\n"),
        ("0/s", "limit \"0/s\": an amount of 0 admits nothing; use at least 1\r\n"),
        ("1/s burst 0", "limit \"1/s burst 0\": a burst of 0 admits nothing; use at least 1\r\n"),
        ("1/s\r\n+OK", "limit \"1/s\\r\\n+OK\": "),
        ("1/s queue 5", "limit \"1/s queue 5\": queue belongs to leaky-bucket"),
    ] {
        for words in [
            &["TG.TAKE", "k", "LIMIT", text][..],
            &["TG.PEEK", "k", "LIMIT", text],
            &["TG.ADJUST", "k", "LIMIT", text, "1"],
            &["TG.TAKEALL", "1", "k", "LIMIT", text],
        ] {
            let heard = talk.ask(words);
            assert!(heard.starts_with(&format!("-ERR {error}")), "{words:?}: {heard}");
        }
    }
    let heard = talk.ask(&[&b"TG.TAKE"[..], b"k", b"LIMIT", b"1/s\xff"]);
    assert_eq!(heard, "-ERR the limit is no text: 1/s\\xff\r\n");
    let heard = talk.ask(&["TG.TAKE", "k", "LIMIT", &"9".repeat(200_000)]);
    assert!(heard.contains("200000 bytes are too long for a limit") && heard.len() < 300, "{heard}");
}

#[test]
fn the_longest_key_passes_and_one_byte_more_is_an_error() {
    let (_running, mut talk) = Running::start().with_raw();
    let ask = |talk: &mut Talk, verb: &str, key: &str| match verb {
        "CL.THROTTLE" => talk.ask(&[verb, key, "0", "1", "60"]),
        "TG.TAKEALL" => talk.ask(&[verb, "1", key, "LIMIT", "1/60s"]),
        "TG.ADJUST" => talk.ask(&[verb, key, "LIMIT", "1/60s", "1"]),
        "TG.RESET" | "DEL" => talk.ask(&[verb, key]),
        _ => talk.ask(&[verb, key, "LIMIT", "1/60s"]),
    };
    let (longest, longer) = ("k".repeat(LONGEST_KEY), "k".repeat(LONGEST_KEY + 1));
    for verb in ["CL.THROTTLE", "TG.TAKE", "TG.PEEK", "TG.ADJUST", "TG.TAKEALL", "TG.RESET", "DEL"] {
        assert!(!ask(&mut talk, verb, &longest).starts_with('-'), "{verb}");
        let heard = ask(&mut talk, verb, &longer);
        assert_eq!(heard, "-ERR a key has at most 65536 bytes, this one has 65537; hash it\r\n", "{verb}");
    }
    let heard = talk.ask(&["DEL", "a", &longer, "b"]);
    assert!(heard.starts_with("-ERR a key has at most"), "{heard}");
}

#[test]
fn command_docs_describes_at_most_64_commands_at_once() {
    let (_running, mut client) = Running::start().with_resp();
    let ask = |names: usize| [vec!["COMMAND", "DOCS"], vec!["ping"; names]].concat();
    assert!(matches!(client.ask(&ask(64)), Value::Array(_)));
    assert_eq!(client.ask(&ask(65)).error(), "ERR ask for at most 64 commands at once");
}

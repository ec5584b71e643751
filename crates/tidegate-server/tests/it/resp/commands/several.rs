//! Tests of `TG.TAKEALL n key LIMIT text [COST c] …`: several limits, all or none.

use super::{map, pairs};
use crate::resp::raw::Talk;
use crate::wire::Running;

fn binding(index: usize) -> String {
    format!("$7\r\nbinding\r\n:{index}\r\n")
}

fn left(talk: &mut Talk, key: &str, limit: &str) -> String {
    talk.ask(&["CL.THROTTLE", key, limit, "1", "60", "0"])
}

#[test]
fn all_pass_and_the_one_with_least_left_speaks_for_them() {
    let running = Running::start();
    let (mut second, mut third) = (Talk::new(&running), Talk::in_version_3(&running));
    let ask = "TG.TAKEALL 2 ana LIMIT 5/60s bob LIMIT 3/60s COST 1";
    assert_eq!(second.say(ask), pairs([1, 3, 2, -1, 20_000, 0], &binding(1)));
    assert_eq!(third.say(ask), map([1, 3, 1, -1, 40_000, 0], &binding(1)));
}

#[test]
fn a_denied_limit_binds_and_no_key_is_charged() {
    let (_running, mut talk) = Running::start().with_raw();
    talk.say("TG.TAKE bob LIMIT 1/60s");
    for _ in 0..3 {
        let reply = talk.say("TG.TAKEALL 3 ana LIMIT 5/60s bob LIMIT 1/60s COST 1 eve LIMIT 5/60s");
        assert_eq!(reply, pairs([0, 1, 0, 60_000, 60_000, -1], &binding(1)));
    }
    assert_eq!(left(&mut talk, "ana", "4"), super::integers(&[0, 5, 5, -1, 0]));
    assert_eq!(left(&mut talk, "eve", "4"), super::integers(&[0, 5, 5, -1, 0]));
}

#[test]
fn a_take_of_several_that_would_have_to_wait_is_denied() {
    let (_running, mut talk) = Running::start().with_raw();
    let slow = "1/s queue 100 leaky-bucket";
    talk.ask(&["TG.TAKE", "ana", "LIMIT", slow, "COST", "3", "MAXWAIT", "9000"]);
    let reply = talk.ask(&["TG.TAKEALL", "2", "ana", "LIMIT", slow, "bob", "LIMIT", "2/60s"]);
    assert_eq!(reply, pairs([0, 101, 98, 3000, 3000, -1], &binding(0)));
}

#[test]
fn one_limit_alone_is_several_enough() {
    let (_running, mut talk) = Running::start().with_raw();
    assert_eq!(talk.say("tg.takeall 1 k limit 2/60s cost 2"), pairs([1, 2, 0, -1, 60_000, 0], &binding(0)));
    assert_eq!(talk.say("tg.takeall 1 k limit 2/60s"), pairs([0, 2, 0, 30_000, 60_000, -1], &binding(0)));
}

#[test]
fn a_cost_that_never_fits_binds_without_a_wait() {
    let (_running, mut talk) = Running::start().with_raw();
    let reply = talk.say("TG.TAKEALL 2 ana LIMIT 5/60s bob LIMIT 3/60s COST 4");
    assert_eq!(reply, pairs([0, 3, 3, -1, 0, -1], &binding(1)));
}

#[test]
fn as_many_as_its_bound_go_together_and_one_more_does_not() {
    let (_running, mut talk) = Running::start().with_raw();
    let limits = |count: usize| (0..count).map(|key| format!(" k{key} LIMIT 2/60s")).collect::<String>();
    let reply = talk.say(&format!("TG.TAKEALL 64{}", limits(64)));
    assert_eq!(reply, pairs([1, 2, 1, -1, 30_000, 0], &binding(0)));
    let reply = talk.say(&format!("TG.TAKEALL 65{}", limits(65)));
    assert_eq!(reply, "-ERR TG.TAKEALL takes 1 to 64 limits, not 65\r\n");
}

/// The request and its expected error.
const WRONG: &str = r#"
TG.TAKEALL 0 a LIMIT 1/s | TG.TAKEALL takes 1 to 64 limits, not 0
TG.TAKEALL 18446744073709551615 a LIMIT 1/s | TG.TAKEALL takes 1 to 64 limits, not 18446744073709551615
TG.TAKEALL 18446744073709551616 a LIMIT 1/s | TG.TAKEALL begins with how many limits there are, not '18446744073709551616'
TG.TAKEALL a LIMIT 1/s b | TG.TAKEALL begins with how many limits there are, not 'a'
TG.TAKEALL -1 a LIMIT 1/s | TG.TAKEALL begins with how many limits there are, not '-1'
TG.TAKEALL 2 a LIMIT 1/s | a limit is missing; write key LIMIT "30/60s burst 15"
TG.TAKEALL 1 a LIMIT 1/s b LIMIT 1/s | unexpected 'b' behind 1 limits
TG.TAKEALL 1 a LIMIT 1/s COST | unexpected 'COST' behind 1 limits
TG.TAKEALL 1 a LIMIT 1/s MAXWAIT 5 | unexpected 'MAXWAIT' behind 1 limits
TG.TAKEALL 1 a LIMIT 1/s COST 0 | COST is at least 1; TG.PEEK looks without spending
TG.TAKEALL 2 a LIMIT 1/s b LIMIT 1/x | limit "1/x":
"#;

#[test]
fn a_wrong_number_of_limits_is_an_error() {
    let (_running, mut talk) = Running::start().with_raw();
    for [ask, error] in conformance::rows(WRONG) {
        let heard = talk.say(ask);
        assert!(heard.starts_with(&format!("-ERR {error}")), "{ask}: {heard}");
    }
    assert_eq!(left(&mut talk, "a", "0"), super::integers(&[0, 1, 1, -1, 0]), "nothing was spent");
}

#[test]
fn a_take_of_several_accepts_no_concurrency_limit_as_it_returns_no_permits() {
    let (_running, mut client) = Running::start().with_resp();
    let reply = client.ask(&["TG.TAKEALL", "2", "a", "LIMIT", "1/s", "b", "LIMIT", "1/60s concurrency"]);
    assert_eq!(reply.error(), "ERR TG.TAKEALL returns no permits; use TG.TAKE for a concurrency limit");
    assert_eq!(client.ask(&["TG.PEEK", "a", "LIMIT", "1/s"]).number("remaining"), 1);
}

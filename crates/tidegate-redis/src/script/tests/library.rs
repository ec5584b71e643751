//! Random calls at the same time to a server and to the library: every value of every decision is equal.

use testbed::Flavour;
use tidegate_core::{Decision, State, Timestamp};

use super::world::{Answer, Event, Who, World};
use super::{Server, decided_ask, seen, target};
use crate::script::{Call, StateName, TICKS, read_adjust, read_takes, read_whether};

/// The maximum number of calls per batch.
const BATCH: usize = 40;

#[test]
fn a_server_decides_exactly_as_the_library() {
    let calls = if std::env::var_os("TIDEGATE_FULL").is_some() { 1_000_000 } else { 20_000 };
    for flavour in Flavour::available() {
        let mut server = Server::start(flavour);
        play(&mut server, calls, in_2026());
        look_at_all(&mut server);
    }
}

#[test]
fn at_the_end_of_time_too() {
    for flavour in Flavour::available() {
        let mut server = Server::start(flavour);
        play(&mut server, 4_000, Timestamp::from_ticks((u64::MAX / TICKS - 60_000_000) * TICKS));
        look_at_all(&mut server);
    }
}

#[test]
fn about_newcomers_too() {
    let worlds = if std::env::var_os("TIDEGATE_FULL").is_some() { 2_000 } else { 60 };
    let mut server = Server::start(Flavour::Redis7);
    for world in 0..worlds {
        // Every other world begins at the epoch.
        play(&mut server, 200, if world % 2 == 0 { in_2026() } else { Timestamp::EPOCH });
        server.command(&[b"FLUSHALL"]).expect("nothing is left");
    }
}

fn in_2026() -> Timestamp {
    Timestamp::from_ticks(86_400_000_000 * 900 * TICKS)
}

fn seed() -> u64 {
    match std::env::var("TIDEGATE_SEED") {
        Ok(seed) => seed.parse().expect("TIDEGATE_SEED is a number"),
        Err(_) => fastrand::u64(..),
    }
}

fn play(server: &mut Server, calls: usize, start: Timestamp) {
    let seed = seed();
    println!("{calls} calls, TIDEGATE_SEED={seed}");
    let mut world = World::new(seed, start);
    let (mut done, mut allowed, mut decided) = (0, 0, 0);
    while done < calls {
        let size = world.random.usize(1..=BATCH);
        let (steps, sent): (Vec<_>, Vec<_>) = (0..size).map(|_| step(&mut world)).unzip();
        for ((now, event, expected), reply) in steps.into_iter().zip(server.run_all(&sent)) {
            done += 1;
            let case = format!("call {done}, TIDEGATE_SEED={seed}, at {now:?}: {event:?}\nanswer {reply:?}");
            let decisions = check(&mut world, (&event, &expected), reply, &case);
            decided += decisions.len();
            allowed += decisions.iter().filter(|decision| decision.is_allowed()).count();
        }
        world.tidy();
    }
    println!("{allowed} of {decided} decisions were to allow");
    let is_mixed = allowed * 10 > decided && allowed * 10 < 9 * decided;
    assert!(is_mixed || calls < 1_000, "a test in which nearly all is decided alike");
}

/// An event with its time and the library's answer.
type Step = (Timestamp, Event, Answer);

/// Generates one more event: applied to the library immediately, to the server with the whole batch.
fn step(world: &mut World) -> (Step, (Vec<StateName>, Call)) {
    let mut forgotten = Vec::new();
    let is_unseen = |world: &World, who: &Who| world.map.state(world.subject(who)) == State::default();
    if world.pass_time() {
        // States that the library has dropped carry no debt when the clock steps back; a server keeps them longer.
        let unseen = world.everybody().into_iter().filter(|who| is_unseen(world, who));
        forgotten = unseen.map(|who| target(&world.subject(&who)).name).collect();
    }
    let event = world.event();
    if world.is_behind() {
        // The library may also drop the state later.
        let unseen = event.subjects().into_iter().filter(|who| is_unseen(world, who));
        forgotten.extend(unseen.map(|who| target(&world.subject(&who)).name));
    }
    let call = world.call(&event);
    let answer = world.answer(&event);
    ((world.now(), event, answer), (forgotten, call))
}

fn check(
    world: &mut World,
    (event, expected): (&Event, &Answer),
    reply: redis::Value,
    case: &str,
) -> Vec<Decision> {
    match (event, expected) {
        (Event::Take(asks), Answer::Decided(expected)) => {
            let replies = read_takes(reply, asks.iter().map(Vec::len));
            let replies = replies.unwrap_or_else(|error| panic!("{error}\n{case}"));
            let (mut all, mut expected) = (Vec::new(), &expected[..]);
            for (ask, reply) in asks.iter().zip(replies) {
                let reply = reply.unwrap_or_else(|error| panic!("{error:?}\n{case}"));
                let (decisions, taken) = decided_ask(&reply, &world.subjects(ask))
                    .unwrap_or_else(|error| panic!("{error}\n{case}"));
                let (own, rest) = expected.split_at(ask.len());
                same(&decisions, own, case);
                world.note(ask, own, (&decisions, &taken));
                all.extend(decisions);
                expected = rest;
            }
            all
        }
        (Event::Peek(who, ask), Answer::Decided(expected)) => {
            let decision = seen(reply, &[(world.subject(who), *ask)]).map(|each| each[0]);
            let decision = decision.unwrap_or_else(|error| panic!("{error}\n{case}"));
            same(&[decision], expected, case);
            vec![decision]
        }
        (_, Answer::Adjusted(expected)) => {
            let adjusted = read_adjust(reply).unwrap_or_else(|error| panic!("{error}\n{case}"));
            assert_eq!(adjusted, Some(*expected), "{case}");
            Vec::new()
        }
        (_, Answer::Was(expected)) => {
            let was = read_whether(reply).unwrap_or_else(|error| panic!("{error}\n{case}"));
            assert_eq!(was, *expected, "{case}");
            Vec::new()
        }
        other => panic!("{other:?}"),
    }
}

fn same(there: &[Decision], here: &[Decision], case: &str) {
    let fields = |decision: &Decision| {
        (
            decision.verdict_in_ticks(),
            decision.limit(),
            decision.remaining(),
            decision.reset_after_in_ticks(),
            decision.permit().is_some(),
        )
    };
    let (there, here): (Vec<_>, Vec<_>) =
        (there.iter().map(fields).collect(), here.iter().map(fields).collect());
    assert_eq!(there, here, "the server, then the library; {case}");
}

/// Checks that every key has an expiry, and that no value is a fraction.
fn look_at_all(server: &mut Server) {
    let keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query(&mut server.connection).expect("keys");
    assert!(keys.len() > 10, "{} keys", keys.len());
    for key in keys {
        let name = String::from_utf8_lossy(&key).into_owned();
        assert!(!key.ends_with(b"~"), "{name} was left behind");
        let ttl: i64 = redis::cmd("PTTL").arg(&key).query(&mut server.connection).expect("a time to live");
        assert!(ttl > 0, "{name} has a time to live of {ttl}");
        let kind: String = redis::cmd("TYPE").arg(&key).query(&mut server.connection).expect("a type");
        let words: Vec<String> = match (kind.as_str(), key[10]) {
            ("zset", _) => {
                let all = redis::cmd("ZRANGE")
                    .arg(&key)
                    .arg(0)
                    .arg(-1)
                    .arg("WITHSCORES")
                    .query(&mut server.connection);
                all.expect("entries")
            }
            (_, b's') => {
                let text = "local t = cmsgpack.unpack(redis.call('GET', KEYS[1]))
                            for i = 1, #t do t[i] = string.format('%.17g', t[i]) end return t";
                let all = redis::cmd("EVAL").arg(text).arg(1).arg(&key).query(&mut server.connection);
                all.expect("slots")
            }
            _ => vec![redis::cmd("GET").arg(&key).query(&mut server.connection).expect("text")],
        };
        let is_whole =
            |word: &String| word.bytes().all(|byte| byte.is_ascii_digit() || b":#-".contains(&byte));
        assert!(words.iter().all(is_whole), "{name}: {words:?}");
    }
}

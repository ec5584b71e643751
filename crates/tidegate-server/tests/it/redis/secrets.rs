//! Tests that a password for Redis is used and never printed.

use rustix::process::Signal;
use testbed::{Flavour, Redis, Settings};

use super::place::{Node, decided_by};
use crate::command::call::Call;

const SECRET: &str = "p4ss/w@rd:x";
const ESCAPED: &str = "p4ss%2Fw%40rd%3Ax";

fn guarded() -> Redis {
    Redis::with(&Settings::new(Flavour::Redis7).password(SECRET))
}

fn call(name: &str) -> Call {
    Call::from(&format!("redis_secret_{name}"))
}

/// Returns all output of a server until its end, and its pages.
fn said_by(node: Node, asked: &str) -> String {
    let pages = ["/readyz", "/metrics", "/v1/rules"].map(|path| node.http().get(path).body);
    node.process.signal(Signal::TERM);
    let ended = node.process.end();
    [asked, &ended.err, &ended.out, &pages.concat()].concat()
}

fn tells_nothing(said: &str) {
    for part in [SECRET, ESCAPED, "p4ss"] {
        assert!(!said.contains(part), "{said}");
    }
}

#[test]
fn a_password_from_the_environment_or_a_file_opens_redis_and_is_not_printed() {
    let redis = guarded();
    let place = redis.address();
    let in_the_environment =
        call("environment").variable("TIDEGATE_STORE_URL", &format!("redis://:{ESCAPED}@{place}"));
    let text = format!("[store]\nurl = \"redis://{place}\"\npassword_file = \"secret\"\ndeadline = \"5s\"\n");
    let in_a_file = call("file").file("secret", &format!("{SECRET}\n")).file("tidegate.toml", &text);
    for call in [in_the_environment.variable("TIDEGATE_STORE_DEADLINE", "5s"), in_a_file] {
        let node = Node::of(&call);
        let store = node.process.says("store ");
        assert!(store.contains(&format!("redis://:***@{place}")), "{store}");
        assert_eq!(decided_by(&node.resp().say("TG.TAKE ana LIMIT 1000/s")), "redis");
        tells_nothing(&said_by(node, &store));
    }
}

#[test]
fn a_wrong_password_is_reported_and_not_printed() {
    let redis = guarded();
    let url = format!("redis://default:p4ssword@{}", redis.address());
    let node = Node::of(&call("wrong").variable("TIDEGATE_STORE_URL", &url));
    let absent = node.process.says("            redis://default:***@");
    assert!(absent.contains("is not reachable: "), "{absent}");
    let answer = node.resp().say("TG.PEEK ana LIMIT 1000/s");
    assert!(answer.error().starts_with("ERR the store is not available: "), "{answer:?}");
    let asked = format!("{absent} {answer:?}");
    tells_nothing(&said_by(node, &asked));
}

#[test]
fn a_password_in_a_readable_place_is_an_error_and_not_printed() {
    let text = "[store]\nkind = \"redis\"\nurl = \"redis://ana:p4ss@127.0.0.1:1\"\n";
    let broken = "[store]\nurl = \"redis://ana:p4ss@127.0.0.1:1\nkind = \"redis\"\n";
    for (text, flag) in [(text, None), (broken, None), ("", Some("--store-url=redis://:p4ss@127.0.0.1:1"))] {
        let call = call("refused").file("tidegate.toml", text);
        let ended = call.run(&["serve"].into_iter().chain(flag).collect::<Vec<_>>());
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(!ended.err.contains("p4ss") && ended.err.starts_with("error: "), "{ended:?}");
    }
    let ended = call("check").file("tidegate.toml", text).run(&["check", "--json"]);
    assert!(!ended.out.contains("p4ss") && ended.out.contains("\"line\":3"), "{ended:?}");
    for url in ["redis://ana:p4ss@", "http://ana:p4ss@host", "ana:p4ss@host"] {
        let ended = call("malformed").variable("TIDEGATE_STORE_URL", url).run(&["serve"]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(!ended.err.contains("p4ss") && ended.err.contains("TIDEGATE_STORE_URL"), "{ended:?}");
    }
}

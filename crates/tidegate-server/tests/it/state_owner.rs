//! Tests of a server whose state file belongs to another handle: only limits with states of one word are supported.

use serde_json::json;
use tidegate::Zone;
use tidegate_server::Server;

use crate::command::call::Call;
use crate::wire::http::Talk;
use crate::wire::resp::Client;
use crate::wire::settings;

const ZONE_BYTES: usize = 1 << 16;
const LOG: &str = "5/m sliding-log";

/// A server that owns the state file of a zone, and one on the same zone that does not.
struct Servers {
    owner: Server,
    other: Server,
}

impl Servers {
    fn start(name: &str) -> Servers {
        let file = Call::from(name).folder().join("zone.tg");
        let start = || {
            let zone = Zone::in_file(&file, ZONE_BYTES).expect("the file of a zone");
            Server::start(settings(), zone).expect("free ports of loopback can be had")
        };
        Servers { owner: start(), other: start() }
    }
}

fn resp(server: &Server) -> Client {
    Client::connect(server.resp().expect("it speaks RESP"))
}

fn http(server: &Server) -> Talk {
    Talk::at(server.http().expect("it speaks HTTP"))
}

/// Returns the start of the error about the limit.
fn error() -> String {
    format!(
        "limit \"{LOG}\": states of sliding-log that take more than one word belong to one process, and this one has "
    )
}

#[test]
fn every_command_with_a_limit_of_more_than_one_word_is_an_error_where_another_owns_the_states() {
    let servers = Servers::start("owner-resp");
    let (mut owner, mut other) = (resp(&servers.owner), resp(&servers.other));
    let commands: [&[&str]; 5] = [
        &["TG.TAKE", "ana", "LIMIT", LOG],
        &["TG.PEEK", "ana", "LIMIT", LOG],
        &["TG.ADJUST", "ana", "LIMIT", LOG, "1"],
        &["TG.RESET", "ana", "LIMIT", LOG],
        &["TG.TAKEALL", "2", "ana", "LIMIT", "5/m", "ana", "LIMIT", LOG],
    ];
    for command in commands {
        // A cached limit is no exception.
        for _ in 0..2 {
            let reply = other.ask(command);
            assert!(reply.error().starts_with(&format!("ERR {}", error())), "{command:?}: {reply:?}");
        }
    }
    assert_eq!(owner.ask(&["TG.TAKE", "ana", "LIMIT", LOG]).number("remaining"), 4);
    // The rejected `TG.TAKEALL` spent nothing of its first limit, which both servers share.
    assert_eq!(other.say("TG.TAKE ana LIMIT 5/m").number("remaining"), 4);
    assert_eq!(owner.say("TG.TAKE ana LIMIT 5/m").number("remaining"), 3);
}

#[test]
fn every_path_with_a_limit_of_more_than_one_word_is_a_bad_request_where_another_owns_the_states() {
    let servers = Servers::start("owner-http");
    let (mut owner, mut other) = (http(&servers.owner), http(&servers.other));
    let asked = json!({"key": "ana", "limit": LOG}).to_string();
    let adjusted = json!({"key": "ana", "limit": LOG, "amount": 1}).to_string();
    for (path, body) in
        [("/v1/take", &asked), ("/v1/peek", &asked), ("/v1/reset", &asked), ("/v1/adjust", &adjusted)]
    {
        for _ in 0..2 {
            let answer = other.post(path, body);
            assert_eq!(answer.status, 400, "{path}: {}", answer.body);
            assert!(answer.detail().starts_with(&error()), "{path}: {}", answer.body);
        }
    }
    assert_eq!(owner.post("/v1/take", &asked).json()["remaining"], 4);
    let shared = json!({"key": "ana", "limit": "5/m"}).to_string();
    assert_eq!(other.post("/v1/take", &shared).json()["remaining"], 4);
    assert_eq!(owner.post("/v1/take", &shared).json()["remaining"], 3);
}

//! Tests of the commands that stock clients send when they connect and disconnect.

use super::raw::{Talk, answers};
use crate::wire::Running;

/// Sends each line, and asserts its exact reply.
fn assert_replies(talk: &mut Talk, cases: &[(&str, &str)]) {
    for (line, expected) in cases {
        assert_eq!(talk.say(line), *expected, "{line}");
    }
}

/// Returns the greeting with the connection number replaced by `ID`.
fn greeting(reply: &str) -> String {
    let (before, behind) = reply.split_once("$2\r\nid\r\n:").expect("the number of the connection");
    let (id, behind) = behind.split_once("\r\n").expect("the end of the number");
    assert!(id.parse::<u64>().is_ok_and(|id| id > 0), "{id}");
    format!("{before}$2\r\nid\r\n:ID\r\n{behind}")
}

fn introduction(header: &str, version: u8) -> String {
    let own = env!("CARGO_PKG_VERSION");
    format!(
        "{header}\r\n$6\r\nserver\r\n$8\r\ntidegate\r\n$7\r\nversion\r\n${}\r\n{own}\r\n$5\r\nproto\r\n:{version}\r\n\
         $2\r\nid\r\n:ID\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n",
        own.len()
    )
}

#[test]
fn ping_and_echo_reply_with_their_argument() {
    let (running, mut talk) = Running::start().with_raw();
    assert_replies(
        &mut talk,
        &[("PING", "+PONG\r\n"), ("ping hello", "$5\r\nhello\r\n"), ("ECHO ", "$0\r\n\r\n")],
    );
    assert_eq!(talk.ask(&[&b"ECHO"[..], b"a\r\n+OK\r\n\0"]), "$9\r\na\r\n+OK\r\n\0\r\n");
    assert_eq!(answers(&running, b"PING\r\nping\nPiNg x\r\n"), b"+PONG\r\n+PONG\r\n$1\r\nx\r\n");
}

#[test]
fn hello_chooses_the_version_and_tells_about_the_server() {
    let (_running, mut talk) = Running::start().with_raw();
    let (second, third) = (introduction("*14", 2), introduction("%7", 3));
    for (line, expected) in [
        ("HELLO", &second),
        ("HELLO 3", &third),
        ("HELLO", &third),
        ("hello 3 setname me", &third),
        ("HELLO 2", &second),
    ] {
        assert_eq!(greeting(&talk.say(line)), *expected, "{line}");
    }
    assert_eq!(talk.say("CLIENT GETNAME"), "$2\r\nme\r\n");
}

#[test]
fn an_invalid_hello_changes_nothing() {
    let (_running, mut talk) = Running::start().with_raw();
    let version = "-NOPROTO unsupported protocol version\r\n";
    let number = "-ERR Protocol version is not an integer or out of range\r\n";
    let no_token = "-ERR AUTH <password> called without any password configured for the default user. \
                    Are you sure your configuration is correct?\r\n";
    assert_replies(
        &mut talk,
        &[
            ("HELLO 4", version),
            ("HELLO 1", version),
            ("HELLO 0", version),
            ("HELLO x", number),
            ("HELLO -3", number),
            ("HELLO 3 AUTH default secret", no_token),
            ("HELLO 3 AUTH default", "-ERR Syntax error in HELLO option 'AUTH'\r\n"),
            ("HELLO 3 SETNAME", "-ERR Syntax error in HELLO option 'SETNAME'\r\n"),
            ("HELLO 3 NOW", "-ERR Syntax error in HELLO option 'NOW'\r\n"),
            ("CLIENT GETNAME", "$-1\r\n"),
        ],
    );
    let spaced = talk.ask(&["HELLO", "3", "SETNAME", "a b"]);
    assert_eq!(spaced, "-ERR Client names cannot contain spaces, newlines or special characters.\r\n");
    assert_replies(
        &mut talk,
        &[("CLIENT GETNAME", "$-1\r\n"), ("AUTH secret", no_token), ("AUTH me secret", no_token)],
    );
}

#[test]
fn there_is_one_database() {
    let running = Running::start();
    let out_of_range = "-ERR DB index is out of range\r\n";
    let cases = [("SELECT 0", "+OK\r\n"), ("SELECT 1", out_of_range), ("SELECT x", out_of_range)];
    assert_replies(&mut Talk::new(&running), &cases);
}

#[test]
fn a_connection_has_a_name_a_number_and_a_line_about_it() {
    let (running, mut talk) = Running::start().with_raw();
    assert_replies(
        &mut talk,
        &[
            ("CLIENT GETNAME", "$-1\r\n"),
            ("CLIENT SETNAME worker-1", "+OK\r\n"),
            ("client getname", "$8\r\nworker-1\r\n"),
            ("CLIENT SETINFO LIB-NAME redis-py", "+OK\r\n"),
            ("CLIENT SETINFO lib-ver 5.0.1", "+OK\r\n"),
            ("CLIENT SETINFO LIB-AGE 5", "-ERR Unrecognized option 'LIB-AGE'\r\n"),
            ("CLIENT NO-EVICT on", "+OK\r\n"),
            ("CLIENT NO-TOUCH OFF", "+OK\r\n"),
            ("CLIENT NO-TOUCH PERHAPS", "-ERR syntax error\r\n"),
            ("CLIENT TRACKING OFF", "+OK\r\n"),
            ("CLIENT REPLY ON", "+OK\r\n"),
            ("CLIENT REPLY OFF", "-ERR unknown subcommand or wrong number of arguments for 'REPLY'.\r\n"),
            ("CLIENT KILL", "-ERR unknown subcommand or wrong number of arguments for 'KILL'.\r\n"),
        ],
    );
    let id = talk.say("CLIENT ID");
    let id = id.trim_start_matches(':').trim_end();
    let line = format!("id={id} name=worker-1 db=0 resp=2\n");
    assert_replies(&mut talk, &[("CLIENT INFO", &format!("${}\r\n{line}\r\n", line.len()))]);
    assert_ne!(Talk::new(&running).say("CLIENT ID"), format!(":{id}\r\n"));
    for name in ["a b", "a\nb", "\u{e9}", "\0"] {
        let reply = talk.ask(&["CLIENT", "SETNAME", name]);
        assert!(reply.starts_with("-ERR Client names cannot contain spaces"), "{reply}");
    }
    assert_eq!(talk.ask(&["CLIENT", "SETNAME", &"n".repeat(256)]), "+OK\r\n");
    assert_eq!(talk.ask(&["CLIENT", "SETNAME", &"n".repeat(257)]), "-ERR names have at most 256 bytes\r\n");
}

#[test]
fn commands_are_listed_counted_and_described() {
    let running = Running::start();
    let (mut second, mut third) = (Talk::new(&running), Talk::in_version_3(&running));
    let listed = second.say("COMMAND LIST");
    let count = listed.matches('$').count();
    assert!(
        count >= 20 && listed.starts_with(&format!("*{count}\r\n")) && listed.contains("$7\r\ntg.take\r\n"),
        "{listed}"
    );
    assert_replies(&mut second, &[("COMMAND COUNT", &format!(":{count}\r\n"))]);
    let throttle =
        "*10\r\n$11\r\ncl.throttle\r\n:-5\r\n*1\r\n+write\r\n:1\r\n:1\r\n:1\r\n*0\r\n*0\r\n*0\r\n*0\r\n";
    assert_eq!(second.say("COMMAND INFO CL.THROTTLE nothing"), format!("*2\r\n{throttle}$-1\r\n"));
    assert_eq!(third.say("command info nothing cl.throttle"), format!("*2\r\n_\r\n{throttle}"));
    let all = second.say("COMMAND");
    assert!(
        all.starts_with(&format!("*{count}\r\n"))
            && all.contains(throttle)
            && all == second.say("COMMAND INFO")
    );
    let summary = "$7\r\nsummary\r\n$12\r\nReplies PONG\r\n$5\r\ngroup\r\n$10\r\nconnection\r\n";
    assert_eq!(second.say("COMMAND DOCS PING nothing"), format!("*2\r\n$4\r\nping\r\n*4\r\n{summary}"));
    assert_eq!(third.say("COMMAND DOCS ping"), format!("%1\r\n$4\r\nping\r\n%2\r\n{summary}"));
    assert!(second.say("COMMAND DOCS").starts_with(&format!("*{}\r\n", 2 * count)));
    assert!(third.say("COMMAND DOCS").starts_with(&format!("%{count}\r\n")));
    let reply = second.say("COMMAND GETKEYS GET k");
    assert_eq!(reply, "-ERR unknown subcommand 'GETKEYS'. Try COMMAND COUNT, LIST, INFO or DOCS.\r\n");
}

#[test]
fn info_tells_what_clients_look_for() {
    let (_running, mut talk) = Running::start().with_raw();
    for line in ["INFO", "INFO server", "info everything clients"] {
        let reply = talk.say(line);
        for sought in [
            "# Server\r\nredis_version:7.",
            "\r\nredis_mode:standalone\r\n",
            "\r\nloading:0\r\n",
            "\r\nrole:master\r\n",
        ] {
            assert!(reply.contains(sought), "{sought} in {reply}");
        }
        assert!(reply.contains("\r\nconnected_clients:1\r\n"), "{reply}");
    }
}

#[test]
fn config_tells_what_tools_ask_for_and_sets_nothing() {
    let running = Running::start();
    let (mut second, mut third) = (Talk::new(&running), Talk::in_version_3(&running));
    assert_replies(
        &mut second,
        &[
            ("CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n"),
            ("config get APPENDONLY", "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n"),
            ("CONFIG GET maxclients requirepass", "*2\r\n$10\r\nmaxclients\r\n$5\r\n10000\r\n"),
            ("CONFIG GET requirepass", "*0\r\n"),
            ("CONFIG GET", "*0\r\n"),
        ],
    );
    assert_replies(
        &mut third,
        &[("CONFIG GET save", "%1\r\n$4\r\nsave\r\n$0\r\n\r\n"), ("CONFIG GET x", "%0\r\n")],
    );
    assert!(second.say("CONFIG GET *").starts_with("*12\r\n"));
    for line in ["CONFIG SET maxclients 1", "CONFIG REWRITE", "CONFIG RESETSTAT"] {
        assert!(second.say(line).contains(" is not possible here; settings are flags"), "{line}");
    }
}

#[test]
fn quit_is_answered_and_nothing_behind_it_is() {
    let running = Running::start();
    assert_eq!(answers(&running, b"PING\r\nQUIT\r\nCL.THROTTLE k 0 1 60\r\n"), b"+PONG\r\n+OK\r\n");
    assert_eq!(answers(&running, b"*2\r\n$4\r\nquit\r\n$3\r\nnow\r\n"), b"+OK\r\n");
    assert_eq!(Talk::new(&running).say("DEL k"), ":0\r\n");
}

#[test]
fn reset_makes_a_connection_like_a_new_one() {
    let running = Running::start();
    let mut talk = Talk::in_version_3(&running);
    assert_replies(
        &mut talk,
        &[
            ("CLIENT SETNAME me", "+OK\r\n"),
            ("CONFIG GET x", "%0\r\n"),
            ("RESET", "+RESET\r\n"),
            ("CLIENT GETNAME", "$-1\r\n"),
            ("CONFIG GET x", "*0\r\n"),
        ],
    );
}

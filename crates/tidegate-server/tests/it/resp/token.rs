//! Tests of a server with a token: the rights and the deadline of an unauthenticated client.

use std::io::{self, ErrorKind, Read, Write};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size;
use tidegate_server::Settings;
use tidegate_server::settings::{Bounds, Token};

use super::raw::{address, answers, array, connect, rest_of};
use crate::wire::in_time::{Since, in_time};
use crate::wire::{PATIENT, Running, settings};

const SECRET: &str = "open-sesame";
const NO_AUTH: &str = "-NOAUTH Authentication required.\r\n";
const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

/// A timeout that is long enough for immediate steps, and short enough to wait for.
const SOON: Duration = Duration::from_millis(200);

fn with_token() -> Running {
    Running::with(Settings { token: Token::new(SECRET), ..settings() })
}

/// Starts a server with a short timeout for unauthenticated clients.
fn in_a_hurry(arrival: Duration) -> Running {
    let bounds = Bounds { request_timeout: arrival, ..PATIENT };
    Running::with(Settings { token: Token::new(SECRET), bounds, ..settings() })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn an_unauthenticated_client_may_authenticate_or_quit_and_nothing_else() {
    let running = with_token();
    let mut talk = connect(address(&running));
    let lines = [
        "PING",
        "ECHO hi",
        "CL.THROTTLE k 0 1 60",
        "TG.TAKE k LIMIT 1/60s",
        "TG.PEEK k LIMIT 1/60s",
        "TG.TAKEALL 1 k LIMIT 1/60s",
        "TG.ADMIT user ana",
        "TG.ADJUST k LIMIT 1/60s 1",
        "TG.RELEASE x",
        "TG.RENEW x",
        "TG.RESET k",
        "DEL k",
        "SELECT 0",
        "CLIENT ID",
        "COMMAND",
        "INFO",
        "CONFIG GET *",
    ];
    for line in lines {
        talk.write_all(&array(line)).expect("the server reads");
        let mut reply = vec![0; NO_AUTH.len()];
        talk.read_exact(&mut reply).expect("an answer");
        assert_eq!(text(&reply), NO_AUTH, "{line}");
    }
    assert_eq!(
        answers(&running, b"RESET\r\nPING\r\nQUIT\r\n"),
        format!("+RESET\r\n{NO_AUTH}+OK\r\n").as_bytes()
    );
    assert_eq!(text(&answers(&running, b"HELLO 3\r\n")).split(' ').next(), Some("-NOAUTH"));
    let known = format!("AUTH {SECRET}\r\nDEL k\r\n");
    assert_eq!(text(&answers(&running, known.as_bytes())), "+OK\r\n:0\r\n", "nothing was spent");
}

#[test]
fn a_client_with_the_token_is_authenticated_until_a_reset() {
    let running = with_token();
    for line in [format!("AUTH {SECRET}"), format!("AUTH default {SECRET}"), format!("auth anybody {SECRET}")]
    {
        let replies = answers(&running, format!("PING\r\n{line}\r\nPING\r\nRESET\r\nPING\r\n").as_bytes());
        assert_eq!(text(&replies), format!("{NO_AUTH}+OK\r\n+PONG\r\n+RESET\r\n{NO_AUTH}"), "{line}");
    }
    let reply =
        text(&answers(&running, format!("HELLO 3 AUTH default {SECRET} SETNAME me\r\nPING\r\n").as_bytes()));
    assert!(reply.starts_with("%7\r\n") && reply.ends_with("+PONG\r\n"), "{reply}");
}

#[test]
fn a_wrong_token_is_an_error_and_changes_nothing() {
    let running = with_token();
    for wrong in ["", "open", "open-sesame!", "OPEN-SESAME", "open-sesam\0"] {
        let mut input = Vec::new();
        for words in [
            vec!["AUTH", wrong],
            vec!["AUTH", "default", wrong],
            vec!["HELLO", "3", "AUTH", "default", wrong],
            vec!["PING"],
        ] {
            input.extend(crate::wire::resp::request(&words));
        }
        assert_eq!(text(&answers(&running, &input)), format!("{WRONG}{WRONG}{WRONG}{NO_AUTH}"), "{wrong}");
    }
    let reply = answers(&running, b"AUTH a b c\r\n");
    assert_eq!(text(&reply), "-ERR syntax error\r\n");
}

#[test]
fn after_eight_wrong_tokens_the_connection_is_closed_even_if_the_ninth_is_right() {
    let running = with_token();
    let guesses = |count: usize| "AUTH guess\r\n".repeat(count) + &format!("AUTH {SECRET}\r\nPING\r\n");
    let seven = answers(&running, guesses(7).as_bytes());
    assert_eq!(text(&seven), WRONG.repeat(7) + "+OK\r\n+PONG\r\n");
    let eight = answers(&running, guesses(8).as_bytes());
    assert_eq!(text(&eight), WRONG.repeat(8));
}

#[test]
fn guesses_count_however_they_are_made() {
    let running = with_token();
    let guess = "AUTH x\r\nHELLO 2 AUTH default x\r\nRESET\r\nAUTH default x\r\n";
    let reply = text(&answers(&running, guess.repeat(4).as_bytes()));
    assert_eq!(reply.matches(WRONG).count(), 8, "{reply}");
    assert!(reply.ends_with(WRONG), "{reply}");
}

#[test]
fn requests_of_unauthenticated_clients_are_small() {
    let running = with_token();
    let words = |count: usize| crate::wire::resp::request(&vec!["x"; count]);
    let reply = text(&answers(&running, &words(10)));
    assert!(reply.starts_with("-ERR unknown command 'x'"), "{reply}");
    let reply = text(&answers(&running, &words(11)));
    assert_eq!(reply, "-ERR Protocol error: unauthenticated multibulk length\r\n");
    let bulk = |bytes: usize| crate::wire::resp::request(&["AUTH", &"x".repeat(bytes)]);
    let around = bulk(10_000).len() - 10_000;
    let too_long =
        "-ERR Protocol error: unauthenticated request of more than 14336 bytes; send AUTH first\r\n";
    let most = bulk((14 << 10) - around);
    assert_eq!((most.len(), text(&answers(&running, &most)).as_str()), (14 << 10, WRONG));
    for more in [bulk((14 << 10) + 1 - around), crate::wire::resp::request(&vec!["x".repeat(2000); 10])] {
        assert_eq!(text(&answers(&running, &more)), too_long);
    }
    let line = |bytes: usize| format!("AUTH {}\r\n", "x".repeat(bytes - 7));
    assert_eq!(text(&answers(&running, line(14 << 10).as_bytes())), WRONG);
    assert_eq!(text(&answers(&running, line((14 << 10) + 1).as_bytes())), too_long);
    let known = [array(&format!("AUTH {SECRET}")), words(11), array("PING")].concat();
    let reply = text(&answers(&running, &known));
    assert!(reply.starts_with("+OK\r\n-ERR unknown command 'x'") && reply.ends_with("+PONG\r\n"), "{reply}");
}

#[test]
fn an_unauthenticated_client_that_is_silent_or_sends_half_a_request_is_disconnected() {
    let running = in_a_hurry(SOON);
    for start in ["", "*2\r\n$4\r\nAU", "AUTH open"] {
        let stream = connect(address(&running));
        (&stream).write_all(start.as_bytes()).expect("the server reads");
        assert_eq!(rest_of(&stream), b"", "{start}");
    }
}

#[test]
fn an_unauthenticated_client_that_only_pings_is_disconnected() {
    let running = in_a_hurry(SOON);
    let mut stream = connect(address(&running));
    let mut reply = vec![0; NO_AUTH.len()];
    let chats = (0..10_000_000)
        .take_while(|_| stream.write_all(b"PING\r\n").is_ok() && stream.read_exact(&mut reply).is_ok());
    assert!(chats.count() < 10_000_000);
}

#[test]
fn an_unauthenticated_client_that_alternates_between_writes_and_reads_is_disconnected() {
    let running = in_a_hurry(SOON);
    let stream = connect(address(&running));
    // A small receive buffer is full at once.
    set_socket_recv_buffer_size(&stream, 4096).expect("a socket option can be set");
    stream.set_write_timeout(Some(SOON / 10)).expect("a socket option can be set");
    stream.set_read_timeout(Some(SOON / 10)).expect("a socket option can be set");
    let flood = b"PING\r\n".repeat(10_000);
    let mut sent = 0;
    let turns = (0..2000).take_while(|_| {
        let is_open = until_it_blocks(|| {
            let bytes = (&stream).write(&flood[sent..])?;
            sent = (sent + bytes) % flood.len();
            Ok(bytes)
        });
        is_open && until_it_blocks(|| (&stream).read(&mut [0; 64 << 10]))
    });
    assert!(turns.count() < 2000);
}

/// More writes than any machine completes within the timeout of an unauthenticated client.
const MOST_FLOODS: usize = 50_000;

#[test]
fn unauthenticated_clients_that_never_pause_are_disconnected() {
    let running = in_a_hurry(SOON);
    // Blank lines have no replies, so backpressure does not stop the client.
    let flood = b"\r\n".repeat(1 << 20);
    let streams = [(); 4].map(|()| connect(address(&running)));
    thread::scope(|scope| {
        for stream in &streams {
            scope.spawn(|| {
                let floods = (0..MOST_FLOODS).take_while(|_| (&*stream).write_all(&flood).is_ok());
                assert!(floods.count() < MOST_FLOODS);
            });
        }
    });
}

/// Repeats a step until it would block. Returns true if the connection is still open.
fn until_it_blocks(mut step: impl FnMut() -> io::Result<usize>) -> bool {
    loop {
        match step() {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

#[test]
fn a_client_that_authenticates_in_time_stays() {
    in_time(|arrival| {
        let (running, begin) = (in_a_hurry(arrival), Since::now());
        let known = connect(address(&running));
        let shown = (&known).write_all(&array(&format!("AUTH {SECRET}")));
        let mut reply = [0; 5];
        let reply = shown.and_then(|()| (&known).read_exact(&mut reply)).map(|()| reply);
        begin.within(arrival)?;
        assert_eq!(&reply.expect("a client that is in time gets a reply"), b"+OK\r\n");
        // When a later unauthenticated connection has been closed, the timeout of this one has passed.
        for _ in 0..3 {
            assert_eq!(rest_of(&connect(address(&running))), b"");
        }
        (&known).write_all(b"PING\r\n").expect("the server reads");
        let mut reply = [0; 7];
        (&known).read_exact(&mut reply).expect("an answer");
        assert_eq!(&reply, b"+PONG\r\n");
        Ok(())
    });
}

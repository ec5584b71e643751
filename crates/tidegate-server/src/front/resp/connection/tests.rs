//! Tests with connections that are polled by hand: the work of one turn, and the memory that a connection holds.

use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::bench::{Bench, connected, turn};
use crate::front::resp::session::MAX_UNAUTHENTICATED_BYTES;
use crate::front::resp::stretch::STRETCH_KEYS;
use crate::settings::{Bounds, Settings, Token};

/// Returns a connection and its client.
async fn connect(bench: &Bench) -> (Connection, TcpStream) {
    let (stream, client) = connected().await;
    (Connection::new(stream, &bench.worker), client)
}

/// Returns the bytes of memory that the buffers of a connection hold.
fn held(connection: &Connection) -> usize {
    connection.input.capacity() + connection.output.capacity() + connection.session.held_bytes()
}

/// Returns the bytes that the client can read now.
fn heard(client: &TcpStream) -> String {
    let mut heard = vec![0; 1 << 20];
    let bytes = client.try_read(&mut heard).unwrap_or(0);
    heard.truncate(bytes);
    String::from_utf8(heard).expect("replies are text")
}

/// Reads until `is_enough`. Returns the replies, and the number of turns.
async fn hear(
    connection: &mut Connection,
    client: &TcpStream,
    is_enough: impl Fn(&str) -> bool,
) -> (String, usize) {
    let (mut replies, mut turns) = (String::new(), 0);
    while !is_enough(&replies) {
        assert!(turn(connection).await.is_pending());
        replies += &heard(client);
        turns += 1;
    }
    (replies, turns)
}

/// Sends these bytes.
async fn say(client: &mut TcpStream, bytes: impl AsRef<[u8]>) {
    client.write_all(bytes.as_ref()).await.expect("it fits into the socket");
}

/// Returns a `DEL` of the keys with these numbers.
fn delete(keys: std::ops::Range<usize>) -> String {
    let words: String =
        keys.clone().map(|key| format!("${}\r\nk{key}\r\n", key.to_string().len() + 1)).collect();
    format!("*{}\r\n$3\r\nDEL\r\n{words}", keys.len() + 1)
}

#[test]
fn others_are_answered_between_the_stretches_of_an_exec() {
    let bench = Bench::new(Settings::default());
    bench.runtime.block_on(async {
        let (mut long, mut client) = connect(&bench).await;
        let (mut other, mut witness) = connect(&bench).await;
        let deletes = [0, 1, 2, 3].map(|nth| delete(nth * STRETCH_KEYS..(nth + 1) * STRETCH_KEYS)).concat();
        let said = format!("CL.THROTTLE k7 1 1 60\r\nMULTI\r\n{deletes}PING\r\nPING\r\nEXEC\r\nECHO end\r\n");
        say(&mut client, said).await;
        say(&mut witness, b"PING\r\n").await;

        let (replies, _) = hear(&mut long, &client, |replies| replies.contains("*6\r\n")).await;
        assert!(!replies.contains("end"), "all of it was done in one turn: {replies}");
        assert!(turn(&mut other).await.is_pending());
        let mut pong = [0; 7];
        witness.read_exact(&mut pong).await.expect("it is answered in between");
        assert_eq!(&pong, b"+PONG\r\n");

        let (rest, turns) = hear(&mut long, &client, |rest| rest.contains("end")).await;
        let replies = replies + &rest;
        assert!(turns >= 3, "{turns} turns");
        assert!(
            replies.ends_with("*6\r\n:1\r\n:0\r\n:0\r\n:0\r\n+PONG\r\n+PONG\r\n$3\r\nend\r\n"),
            "{replies}"
        );
    });
}

#[test]
fn a_delete_of_more_keys_than_a_stretch_has_is_answered_once_and_in_its_place() {
    let bench = Bench::new(Settings::default());
    bench.runtime.block_on(async {
        for (keys, least_turns) in [(STRETCH_KEYS, 1), (STRETCH_KEYS + 1, 2), (3 * STRETCH_KEYS + 1, 4)] {
            let (mut connection, mut client) = connect(&bench).await;
            let takes = format!("CL.THROTTLE k0 1 1 60\r\nCL.THROTTLE k{} 1 1 60\r\n", keys - 1);
            say(&mut client, takes).await;
            let said = format!("{}ECHO end\r\n", delete(0..keys));
            say(&mut client, said).await;
            let (replies, turns) = hear(&mut connection, &client, |replies| replies.contains("end")).await;
            assert!(turns >= least_turns, "{turns} turns for {keys} keys");
            assert!(replies.ends_with("\r\n:2\r\n$3\r\nend\r\n"), "{replies}");
        }
    });
}

fn with_token() -> Bench {
    // Longer than any of these tests, so that no timeout expires.
    let bounds = Bounds { request_timeout: Duration::from_secs(3600), ..Bounds::default() };
    Bench::new(Settings { token: Token::new("sesame"), bounds, ..Settings::default() })
}

/// Returns an `AUTH` request of this length.
fn auth(bytes: usize) -> Vec<u8> {
    let around = "*2\r\n$4\r\nAUTH\r\n$12345\r\n\r\n".len();
    let request = format!("*2\r\n$4\r\nAUTH\r\n${}\r\n{}\r\n", bytes - around, "x".repeat(bytes - around));
    assert_eq!(request.len(), bytes);
    request.into_bytes()
}

#[test]
fn an_unfinished_request_before_auth_holds_16_kib_at_most() {
    assert_eq!(MAX_UNAUTHENTICATED_BYTES, 16 << 10);
    let bench = with_token();
    bench.runtime.block_on(async {
        for pieces in [1, 100, 5000] {
            let (mut connection, mut client) = connect(&bench).await;
            let request = auth(MAX_UNAUTHENTICATED_REQUEST_BYTES);
            let (rest, last) = request.split_at(request.len() - 1);
            for piece in rest.chunks(rest.len() / pieces) {
                say(&mut client, piece).await;
                assert!(turn(&mut connection).await.is_pending());
                assert!(held(&connection) <= MAX_UNAUTHENTICATED_BYTES, "{}", held(&connection));
            }
            while connection.input.len() < rest.len() {
                assert!(turn(&mut connection).await.is_pending());
            }
            assert!(held(&connection) <= MAX_UNAUTHENTICATED_BYTES, "{}", held(&connection));
            say(&mut client, last).await;
            let (replies, _) = hear(&mut connection, &client, |replies| !replies.is_empty()).await;
            assert!(replies.starts_with("-WRONGPASS"), "{replies}");
        }
    });
}

#[test]
fn replies_that_are_not_read_before_auth_hold_no_more() {
    let bench = with_token();
    bench.runtime.block_on(async {
        for line in ["x\r\n".to_owned(), "RESET\r\n".to_owned(), format!("{}\r\n", "\x01 ".repeat(90))] {
            let (mut connection, client) = connect(&bench).await;
            set_socket_send_buffer_size(&connection.stream, 4096).expect("the option can be set");
            let flood = line.repeat((64 << 10) / line.len());
            // The connection keeps no replies until the socket buffers are full.
            while connection.output.is_empty() {
                let _ = client.try_write(flood.as_bytes());
                assert!(turn(&mut connection).await.is_pending());
                assert!(held(&connection) <= MAX_UNAUTHENTICATED_BYTES, "{}", held(&connection));
            }
            assert!(!connection.input.is_empty(), "what was read waits until it can be answered");
        }
    });
}

#[test]
fn an_unfinished_request_after_auth_is_counted_as_soon_as_it_is_long_and_given_back_at_its_end() {
    let bench = Bench::new(Settings::default());
    let all = bench.worker.engine.unfinished();
    bench.runtime.block_on(async {
        let (mut connection, mut client) = connect(&bench).await;
        let request = format!("*2\r\n$4\r\nECHO\r\n$200000\r\n{}\r\n", "x".repeat(200_000));
        for (piece, kept) in [(0..16_384, 16_384), (16_384..100_000, 100_000), (100_000..200_000, 200_000)] {
            say(&mut client, &request.as_bytes()[piece]).await;
            while connection.input.len() < kept {
                assert!(turn(&mut connection).await.is_pending());
            }
            let counted = if kept > 16_384 { held(&connection) } else { 0 };
            assert_eq!(all.held(), counted);
            assert!(counted <= kept + READ_BYTES, "{counted} for {kept}");
        }
        say(&mut client, &request.as_bytes()[200_000..]).await;
        while !connection.input.is_empty() {
            assert!(turn(&mut connection).await.is_pending());
        }
        assert_eq!(all.held(), 0);
    });
}

/// Returns the permits in flight, as another client sees them.
async fn in_use(bench: &Bench) -> u64 {
    let (mut connection, mut client) = connect(bench).await;
    say(&mut client, b"TG.PEEK ana LIMIT \"4000/1h concurrency\"\r\n").await;
    let (replies, _) = hear(&mut connection, &client, |replies| replies.contains("delay")).await;
    let remaining = replies.split("remaining\r\n:").nth(1).and_then(|rest| rest.split('\r').next());
    4000 - remaining.and_then(|number| number.parse::<u64>().ok()).unwrap_or_else(|| panic!("{replies}"))
}

#[test]
fn a_client_that_goes_without_reading_holds_only_what_was_written_to_it() {
    let bench = Bench::new(Settings::default());
    bench.runtime.block_on(async {
        let take = "*4\r\n$7\r\nTG.TAKE\r\n$3\r\nana\r\n$5\r\nLIMIT\r\n$19\r\n4000/1h concurrency\r\n";
        let (mut connection, mut client) = connect(&bench).await;
        say(&mut client, take.repeat(3)).await;
        hear(&mut connection, &client, |replies| replies.matches("permit").count() >= 3).await;
        drop((connection, client));
        assert_eq!(in_use(&bench).await, 3, "who has read its permits may come back with them");

        let (mut connection, client) = connect(&bench).await;
        set_socket_send_buffer_size(&connection.stream, 4096).expect("the option can be set");
        while connection.output.is_empty() {
            let _ = client.try_write(take.repeat(50).as_bytes());
            assert!(turn(&mut connection).await.is_pending());
        }
        let unwritten =
            String::from_utf8_lossy(&connection.output[connection.written..]).matches("permit").count();
        let before = in_use(&bench).await;
        drop((connection, client));
        let after = in_use(&bench).await;
        assert!(
            unwritten > 0 && before - after >= unwritten as u64,
            "{before} and {after}, {unwritten} unwritten"
        );
    });
}

use super::*;

type Read = Result<(Vec<Vec<u8>>, usize), ProtocolError>;

/// Returns the words of a request and its length in bytes; `None` if it is incomplete.
fn read(input: &[u8], caller: Caller) -> Option<Read> {
    let mut arguments = Arguments::default();
    match arguments.parse(input, caller) {
        Ok(Step::More { bytes }) => {
            assert!(bytes > input.len(), "{bytes} after {}", input.len());
            None
        }
        Ok(Step::Request { bytes }) => {
            Some(Ok((arguments.of(input).iter().map(<[u8]>::to_vec).collect(), bytes)))
        }
        Err(error) => Some(Err(error)),
    }
}

fn words(input: &[u8]) -> Vec<Vec<u8>> {
    let (words, bytes) = read(input, Caller::Known).expect("a whole request").expect("a request");
    assert_eq!(bytes, input.len());
    words
}

fn error(input: &[u8]) -> ProtocolError {
    read(input, Caller::Known).expect("enough to tell").expect_err("not a request")
}

#[test]
fn an_array_of_bulk_strings_is_a_request_and_any_bytes_are_a_word() {
    assert_eq!(
        words(b"*2\r\n$4\r\nECHO\r\n$5\r\na\r\n\0\xff\r\n"),
        [b"ECHO".to_vec(), b"a\r\n\0\xff".to_vec()]
    );
    assert_eq!(words(b"*1\r\n$0\r\n\r\n"), [b"".to_vec()]);
    let hundred = [b"*1\r\n$100\r\n", &[b'x'; 100][..], b"\r\n"].concat();
    assert_eq!(words(&hundred), [vec![b'x'; 100]]);
    assert!(words(b"*0\r\n").is_empty() && words(b"*-1\r\n").is_empty() && words(b"*-10\r\n").is_empty());
}

#[test]
fn a_request_is_whole_with_its_last_byte_and_not_before() {
    for whole in [
        &b"*3\r\n$3\r\nfoo\r\n$12\r\nabcdefghijkl\r\n$0\r\n\r\n"[..],
        b"PING\r\n",
        b"PING\n",
        b"ECHO \"a b\"\r\n",
    ] {
        for end in 0..whole.len() {
            assert_eq!(read(&whole[..end], Caller::Known), None, "{}", whole[..end].escape_ascii());
        }
        assert!(read(whole, Caller::Known).is_some());
        assert_eq!(read(&[whole, b"*1\r\n"].concat(), Caller::Known), read(whole, Caller::Known));
    }
}

#[test]
fn a_bulk_string_says_how_much_has_to_come() {
    let mut arguments = Arguments::default();
    let step = arguments.parse(b"*2\r\n$1\r\na\r\n$1000\r\nxy", Caller::Known);
    assert_eq!(step, Ok(Step::More { bytes: 4 + 7 + 7 + 1000 + 2 }));
}

#[test]
fn invalid_lengths_are_rejected() {
    for length in
        ["", "+1", "01", "00", "1 ", " 1", "1.0", "0x1", "-", "--1", "-0", "a", "18446744073709551616", "1\n"]
    {
        assert_eq!(
            error(format!("*{length}\r\n$1\r\na\r\n").as_bytes()),
            ProtocolError::ArrayLength,
            "{length}"
        );
        assert_eq!(
            error(format!("*1\r\n${length}\r\na\r\n").as_bytes()),
            ProtocolError::BulkLength,
            "{length}"
        );
    }
    for length in ["-1", "-2", "9223372036854775807", "-9223372036854775808", "4294967296", "2147483648"] {
        assert_eq!(error(format!("*1\r\n${length}\r\n").as_bytes()), ProtocolError::BulkLength, "{length}");
    }
    assert_eq!(error(b"*1\r\n:1\r\n"), ProtocolError::NoBulk(b':'));
    assert_eq!(error(b"*1\r\n$1\r\nabc"), ProtocolError::NoLineEnd);
    assert_eq!(error(&[b'*'; 30]), ProtocolError::ArrayLength);
    assert_eq!(error(b"*1\r\n$111111111111111111111111"), ProtocolError::BulkLength);
}

#[test]
fn each_bound_lets_its_own_size_pass_and_no_more() {
    assert_eq!(read(format!("*{MAX_ARGUMENTS}\r\n").as_bytes(), Caller::Known), None);
    assert_eq!(error(format!("*{}\r\n", MAX_ARGUMENTS + 1).as_bytes()), ProtocolError::ArrayLength);
    assert_eq!(read(format!("*1\r\n${MAX_BULK_BYTES}\r\n").as_bytes(), Caller::Known), None);
    assert_eq!(error(format!("*1\r\n${}\r\n", MAX_BULK_BYTES + 1).as_bytes()), ProtocolError::BulkLength);

    let unauthenticated = |input: String| read(input.as_bytes(), Caller::Unauthenticated);
    assert_eq!(unauthenticated(format!("*{MAX_UNAUTHENTICATED_ARGUMENTS}\r\n")), None);
    let too_many = unauthenticated(format!("*{}\r\n", MAX_UNAUTHENTICATED_ARGUMENTS + 1));
    assert_eq!(too_many, Some(Err(ProtocolError::UnauthenticatedArrayLength)));
    let around = "*1\r\n$12345\r\n\r\n".len();
    assert_eq!(unauthenticated(format!("*1\r\n${}\r\n", MAX_UNAUTHENTICATED_REQUEST_BYTES - around)), None);
    let too_long = Some(Err(ProtocolError::UnauthenticatedRequestTooLong));
    assert_eq!(
        unauthenticated(format!("*1\r\n${}\r\n", MAX_UNAUTHENTICATED_REQUEST_BYTES + 1 - around)),
        too_long
    );
    let line = |bytes: usize| unauthenticated(format!("{}\n", "x".repeat(bytes - 1)));
    assert!(matches!(line(MAX_UNAUTHENTICATED_REQUEST_BYTES), Some(Ok(_))));
    assert_eq!(line(MAX_UNAUTHENTICATED_REQUEST_BYTES + 1), too_long);
}

#[test]
fn a_request_that_will_be_too_long_is_rejected_as_soon_as_that_is_known() {
    let bulk = [format!("${MAX_BULK_BYTES}\r\n").into_bytes(), vec![b'x'; MAX_BULK_BYTES], b"\r\n".to_vec()]
        .concat();
    let three = [b"*5\r\n".to_vec(), bulk.repeat(3)].concat();
    assert_eq!(read(&three, Caller::Known), None);
    let fourth = [three, format!("${MAX_BULK_BYTES}\r\n").into_bytes()].concat();
    assert_eq!(error(&fourth), ProtocolError::RequestTooLong);
}

#[test]
fn a_request_that_came_whole_is_no_longer_than_one_in_pieces() {
    let request = |last: usize| {
        let bulk = |bytes| [format!("${bytes}\r\n").as_bytes(), &vec![b'x'; bytes], b"\r\n"].concat();
        [b"*4\r\n".to_vec(), bulk(MAX_BULK_BYTES).repeat(3), bulk(last)].concat()
    };
    let most = MAX_BULK_BYTES - (request(MAX_BULK_BYTES).len() - MAX_REQUEST_BYTES);
    assert_eq!(request(most).len(), MAX_REQUEST_BYTES);
    assert_eq!(words(&request(most)).len(), 4);
    let longer = read(&request(most + 1), Caller::Known);
    assert!(matches!(longer, Some(Err(ProtocolError::RequestTooLong))));
}

#[test]
fn a_line_is_too_long_when_its_end_is_beyond_the_bound() {
    let line = |bytes: usize| [vec![b'x'; bytes - 1], b"\n".to_vec()].concat();
    assert_eq!(words(&line(MAX_INLINE_BYTES))[0].len(), MAX_INLINE_BYTES - 1);
    assert_eq!(error(&line(MAX_INLINE_BYTES + 1)), ProtocolError::InlineTooLong);
    assert_eq!(error(&vec![b'x'; MAX_INLINE_BYTES]), ProtocolError::InlineTooLong);
}

#[test]
fn a_line_is_split_at_spaces_and_quotes_keep_them() {
    let split = |line: &str| words(line.as_bytes());
    assert_eq!(split("  PING \t x\r\n"), [b"PING".to_vec(), b"x".to_vec()]);
    assert!(split("\r\n").is_empty() && split("\n").is_empty() && split("   \r\n").is_empty());
    assert_eq!(split("ECHO \"a b\"\n"), [b"ECHO".to_vec(), b"a b".to_vec()]);
    assert_eq!(split("ECHO \"\\x41\\n\\r\\t\\b\\a\\\\\\\"\\q\"\n")[1], b"A\n\r\t\x08\x07\\\"q");
    assert_eq!(split("ECHO 'it\\'s \"x\" \\n'\n")[1], b"it's \"x\" \\n");
    assert_eq!(split("ECHO \"\" ''\n")[1..], [b"".to_vec(), b"".to_vec()]);
    for line in ["ECHO \"a\n", "ECHO 'a\n", "ECHO \"a\"b\n", "ECHO 'a'b\n", "ECHO \"a\\\"\n"] {
        assert_eq!(error(line.as_bytes()), ProtocolError::Quotes, "{line}");
    }
}

#[test]
fn http_and_tls_are_recognised() {
    for line in ["GET / HTTP/1.1\r\n", "POST /x\r\n", "post / \n", "Host: here\r\n", "OPTIONS * HTTP/2.0\r\n"]
    {
        assert_eq!(error(line.as_bytes()), ProtocolError::Http, "{line}");
    }
    assert_eq!(error(b"\x16\x03\x01\x02\x00"), ProtocolError::Tls);
}

#[test]
fn integers_are_read_as_redis_reads_them() {
    for (text, number) in [
        ("0", 0),
        ("7", 7),
        ("-7", -7),
        ("9223372036854775807", i64::MAX),
        ("-9223372036854775808", i64::MIN),
    ] {
        assert_eq!(integer(text.as_bytes()), Some(number));
    }
    for text in [
        "",
        "-",
        "+1",
        "01",
        "-01",
        "-0",
        "1a",
        " 1",
        "1 ",
        "9223372036854775808",
        "-9223372036854775809",
        "1.0",
        "1e3",
    ] {
        assert_eq!(integer(text.as_bytes()), None, "{text}");
    }
}

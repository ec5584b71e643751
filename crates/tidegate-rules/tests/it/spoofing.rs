//! Tests of inputs that try to bypass a rule, or to use the count of another key. None of them succeeds.
//!
//! Each row is a rule, the requests sent to it, and their counts. Requests with the same letter share a count; `-` is
//! not counted, because the rule does not apply.

use std::collections::HashSet;

use tidegate_rules::Attributes;

use crate::requests::{admit, still_gate};

/// The letter of the count, and the attributes that were sent.
type Sent = (char, &'static [(&'static str, &'static [u8])]);

struct Row {
    claim: &'static str,
    rule: &'static str,
    sent: &'static [Sent],
}

fn request<'a>(attributes: &[(&'a str, &'a [u8])]) -> Attributes<'a> {
    attributes.iter().fold(Attributes::new(), |request, (name, value)| request.set(*name, *value))
}

/// Sends each row twice to a rule that allows each key once.
fn holds(row: &Row) {
    let gate = still_gate(&format!("[[rule]]\nname = 'rule'\nlimit = '1/h'\n{}", row.rule));
    let mut known = HashSet::new();
    for round in 0..2 {
        for (whose, attributes) in row.sent {
            let answer = admit(&gate, &request(attributes));
            let what = format!("{}: round {round}: {attributes:?} is {whose}", row.claim);
            assert_eq!(answer.rule(), (*whose != '-').then_some("rule"), "{what}");
            assert_eq!(answer.is_allowed(), *whose == '-' || known.insert(*whose), "{what}");
        }
    }
}

const WHO: [Row; 11] = [
    Row {
        claim: "a header field has one name in any case, and what is said last counts",
        rule: "key = ['header.X-User']",
        sent: &[
            ('a', &[("header.x-user", b"ana")]),
            ('a', &[("header.X-USER", b"ana")]),
            ('a', &[("header.x-user", b"bob"), ("header.X-User", b"ana")]),
            ('b', &[("header.X-User", b"ana"), ("header.x-user", b"bob")]),
            ('c', &[("header.x-user", b"ANA")]),
        ],
    },
    Row {
        claim: "x-forwarded-for is an attribute like any other and no address",
        rule: "key = ['ip']",
        sent: &[
            ('a', &[("ip", b"192.0.2.7"), ("header.x-forwarded-for", b"198.51.100.1")]),
            ('a', &[("ip", b"192.0.2.7"), ("header.X-Forwarded-For", b"198.51.100.2, 10.0.0.1")]),
            (
                'a',
                &[("ip", b"192.0.2.7"), ("header.forwarded", b"for=198.51.100.3"), ("header.ip", b"1.2.3.4")],
            ),
            ('b', &[("header.x-forwarded-for", b"192.0.2.7")]),
            ('b', &[("header.x-real-ip", b"192.0.2.7")]),
        ],
    },
    Row {
        claim: "requests without a part share one count, which no value of the part reaches",
        rule: "key = ['user', 'plan']",
        sent: &[
            ('a', &[]),
            ('a', &[("User", b"ana"), ("x", b"y")]),
            ('b', &[("user", b"ana")]),
            ('c', &[("plan", b"free")]),
            ('d', &[("user", b""), ("plan", b"")]),
            ('e', &[("user", b"")]),
            ('f', &[("user", b"\x02"), ("plan", b"ana")]),
            ('g', &[("user", b"\x01\x02\x03ana"), ("plan", b"")]),
            ('h', &[("user", b"\x03"), ("plan", b"")]),
            ('i', &[("user", b"null"), ("plan", b"null")]),
        ],
    },
    Row {
        claim: "where a missing part is skipped, an empty one is not missing",
        rule: "key = ['user']\non_missing = 'skip'",
        sent: &[('-', &[]), ('-', &[("x", b"y")]), ('a', &[("user", b"")]), ('b', &[("user", b"\0")])],
    },
    Row {
        claim: "separators of other formats do not separate parts, nor do bytes that look like lengths",
        rule: "key = ['user', 'plan']",
        sent: &[
            ('a', &[("user", b"a:b"), ("plan", b"c")]),
            ('b', &[("user", b"a"), ("plan", b"b:c")]),
            ('c', &[("user", b"a|b"), ("plan", b"c")]),
            ('d', &[("user", b"a"), ("plan", b"b|c")]),
            ('e', &[("user", b"a\0b"), ("plan", b"c")]),
            ('f', &[("user", b"a"), ("plan", b"b\0c")]),
            ('g', &[("user", b"a\x01b"), ("plan", b"")]),
            ('h', &[("user", b"a"), ("plan", b"b")]),
            ('i', &[("user", b""), ("plan", b"a\x01b")]),
            ('j', &[("user", b"\x80"), ("plan", b"\x01")]),
            ('k', &[("user", b""), ("plan", b"\x80\x01")]),
            ('l', &[("user", b"a "), ("plan", b"b")]),
            ('m', &[("user", b"a\n"), ("plan", b"b")]),
        ],
    },
    Row {
        claim: "an address is the same in any clothes",
        rule: "key = ['ip']",
        sent: &[
            ('a', &[("ip", b"192.0.2.7")]),
            ('a', &[("ip", b"::ffff:192.0.2.7")]),
            ('a', &[("ip", b"::FFFF:c000:0207")]),
            ('a', &[("ip", b"0:0:0:0:0:ffff:192.0.2.7")]),
            ('b', &[("ip", b"::192.0.2.7")]),
            ('b', &[("ip", b"::1")]),
            ('c', &[("ip", b"192.0.2.8")]),
        ],
    },
    Row {
        claim: "what is no address is as if it were missing, also if it nearly is one",
        rule: "key = ['ip']",
        sent: &[
            ('a', &[]),
            ('a', &[("ip", b"")]),
            ('a', &[("ip", b"unknown")]),
            ('a', &[("ip", b"192.0.2.7:80")]),
            ('a', &[("ip", b"[2001:db8::1]")]),
            ('a', &[("ip", b" 192.0.2.7")]),
            ('a', &[("ip", b"192.0.2.7, 198.51.100.1")]),
            ('a', &[("ip", b"192.0.2.007")]),
            ('a', &[("ip", b"3221225991")]),
            ('a', &[("ip", b"192.0.2.7%eth0")]),
            ('a', &[("ip", b"\xff")]),
        ],
    },
    Row {
        claim: "a network of IPv6 has one count, with any name of the interface",
        rule: "key = ['ip']",
        sent: &[
            ('a', &[("ip", b"2001:db8:1:2::1")]),
            ('a', &[("ip", b"2001:db8:1:2:ffff:ffff:ffff:ffff")]),
            ('a', &[("ip", b"2001:0DB8:0001:0002::1%eth0")]),
            ('b', &[("ip", b"2001:db8:1:3::1")]),
            ('c', &[("ip", b"fe80::1%eth0")]),
            ('c', &[("ip", b"fe80::2%eth1")]),
        ],
    },
    Row {
        claim: "other lengths group as they say",
        rule: "key = ['ip']\nipv4_prefix = 24\nipv6_prefix = 48",
        sent: &[
            ('a', &[("ip", b"192.0.2.7")]),
            ('a', &[("ip", b"::ffff:192.0.2.255")]),
            ('b', &[("ip", b"192.0.3.0")]),
            ('c', &[("ip", b"2001:db8:1:2::1")]),
            ('c', &[("ip", b"2001:db8:1:ffff::1")]),
            ('d', &[("ip", b"2001:db8:2::1")]),
        ],
    },
    Row {
        claim: "a key by method counts all cases together",
        rule: "when = { method = ['POST', 'PUT'] }\nkey = ['method']",
        sent: &[
            ('a', &[("method", b"POST")]),
            ('a', &[("method", b"post")]),
            ('a', &[("method", b"pOsT")]),
            ('b', &[("method", b"put")]),
            ('-', &[("method", b"get")]),
        ],
    },
    Row {
        claim: "a key by path or host counts all spellings together",
        rule: "key = ['path', 'host']",
        sent: &[
            ('a', &[("path", b"/login"), ("host", b"example.com")]),
            ('a', &[("path", b"//login?x=1"), ("host", b"EXAMPLE.com:443")]),
            ('a', &[("path", b"/%6cogin#x"), ("host", b"Example.Com.")]),
            ('a', &[("path", b"/x/%2e%2e/login"), ("host", b"example.com.:8443")]),
            ('a', &[("path", b"/login;x=1"), ("host", b"example.com")]),
            ('a', &[("path", b"/login;x=2"), ("host", b"example.com")]),
            ('a', &[("path", b"/x/..;/login"), ("host", b"example.com")]),
            ('a', &[("path", b"http://h/login"), ("host", b"example.com")]),
            ('a', &[("path", b"/login%00.png"), ("host", b"example.com")]),
            ('a', &[("path", b"/login\0"), ("host", b"example.com")]),
            ('b', &[("path", b"/login/"), ("host", b"example.com")]),
            ('c', &[("path", b"/Login"), ("host", b"example.com")]),
            ('d', &[("path", b"/login"), ("host", b"www.example.com")]),
        ],
    },
];

#[test]
fn no_request_reaches_the_count_of_another_client() {
    WHO.iter().for_each(holds);
}

#[test]
fn a_hundred_thousand_addresses_of_one_network_are_one_count() {
    for (bits, step) in
        [(64_u32, 1_u128), (64, 1 << 40), (56, 1 << 60), (48, 1 << 70), (32, 1 << 90), (1, 1 << 100)]
    {
        let rule = format!("[[rule]]\nname = 'rule'\nkey = ['ip']\nlimit = '1/h'\nipv6_prefix = {bits}\n");
        let gate = still_gate(&rule);
        let mask = u128::MAX >> bits;
        let network = 0x2001_0db8_0001_0002_u128 << 64 & !mask;
        let allowed = (0..100_000_u128)
            .map(|turn| network | turn.wrapping_mul(step).wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask)
            .filter(|ip| {
                admit(&gate, &Attributes::new().ip(std::net::Ipv6Addr::from_bits(*ip).into())).is_allowed()
            });
        assert_eq!(allowed.count(), 1, "/{bits}");
        let neighbour = network ^ (1 << (128 - bits));
        let neighbour = Attributes::new().ip(std::net::Ipv6Addr::from_bits(neighbour).into());
        assert!(
            admit(&gate, &neighbour).is_allowed(),
            "/{bits}: the network beside it has a count of its own"
        );
    }
}

#[test]
fn every_length_of_a_prefix_groups_exactly_what_it_says() {
    let base = 0x2001_0db8_5555_aaaa_5a5a_a5a5_0f0f_f0f0_u128;
    for bits in 1..=128_u32 {
        let gate = still_gate(&format!(
            "[[rule]]\nname = 'rule'\nkey = ['ip']\nlimit = '1/h'\nipv6_prefix = {bits}\n"
        ));
        let allowed = |ip: u128| {
            admit(&gate, &Attributes::new().ip(std::net::Ipv6Addr::from_bits(ip).into())).is_allowed()
        };
        assert!(allowed(base), "/{bits}");
        assert!(
            bits == 128 || !allowed(base ^ 1 << (127 - bits)),
            "/{bits}: the first bit behind it distinguishes no clients"
        );
        assert!(!allowed(base) && allowed(base ^ 1 << (128 - bits)), "/{bits}: the last bit of it does");
    }
    for bits in 1..=32_u32 {
        let gate = still_gate(&format!(
            "[[rule]]\nname = 'rule'\nkey = ['ip']\nlimit = '1/h'\nipv4_prefix = {bits}\n"
        ));
        let base = 0xc055_aa07_u32;
        let allowed = |ip: u32| {
            admit(&gate, &Attributes::new().ip(std::net::Ipv4Addr::from_bits(ip).into())).is_allowed()
        };
        assert!(allowed(base), "/{bits}");
        assert!(bits == 32 || !allowed(base ^ 1 << (31 - bits)), "/{bits}");
        assert!(!allowed(base) && allowed(base ^ 1 << (32 - bits)), "/{bits}");
    }
}

//! The client address, for every chain of up to three hops in every form.

use std::net::IpAddr;

use http::Request;

use super::*;
use crate::key::Grouped as _;
use crate::key::peer;

/// An item of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hop {
    Trusted,
    Stranger,
    Nonsense,
    Empty,
}

const HOPS: [Hop; 4] = [Hop::Trusted, Hop::Stranger, Hop::Nonsense, Hop::Empty];

/// A function that returns the text of an address, and the address.
type Form = fn(u8, Hop) -> (String, IpAddr);

const FORMS: [Form; 6] = [
    |number, hop| (v4(number, hop), v4(number, hop).parse().unwrap()),
    |number, hop| {
        (format!("{}:{}", v4(number, hop), 1024 + u16::from(number)), v4(number, hop).parse().unwrap())
    },
    |number, hop| (format!("[{}]", v6(number, hop)), v6(number, hop).parse().unwrap()),
    |number, hop| (format!("[{}]:443", v6(number, hop)), v6(number, hop).parse().unwrap()),
    |number, hop| (format!("[::ffff:{}]", v4(number, hop)), v4(number, hop).parse().unwrap()),
    |number, hop| (v6(number, hop), v6(number, hop).parse().unwrap()),
];

fn v4(number: u8, hop: Hop) -> String {
    format!("{}.{number}", if hop == Hop::Trusted { "10.1.2" } else { "203.0.113" })
}

fn v6(number: u8, hop: Hop) -> String {
    format!("{}::{number:x}", if hop == Hop::Trusted { "fd00:1" } else { "2001:db8" })
}

/// Returns all chains of this length.
fn chains(length: u32) -> impl Iterator<Item = Vec<Hop>> {
    let all = HOPS.len().pow(length);
    (0..all).map(move |number| {
        (0..length).map(|place| HOPS[number / HOPS.len().pow(place) % HOPS.len()]).collect()
    })
}

/// Returns the item of this hop, and its address.
fn item(number: u8, hop: Hop, form: Form, pairs: bool) -> (String, Option<IpAddr>) {
    match hop {
        Hop::Empty => (String::from(" "), None),
        Hop::Nonsense => {
            let text = ["unknown", "_hidden", "10.1.2.300"][usize::from(number) % 3];
            (if pairs { format!("for={text}") } else { text.to_owned() }, None)
        }
        Hop::Trusted | Hop::Stranger => {
            let (text, ip) = form(number, hop);
            (if pairs { format!("proto=http;For=\"{text}\"") } else { text }, Some(ip))
        }
    }
}

/// Returns the expected client: from the right, past the trusted hops, up to the first item that is not an address.
fn expected(peer: (Hop, IpAddr), chain: &[(Hop, Option<IpAddr>)]) -> IpAddr {
    let (mut trusted, mut known) = (peer.0 == Hop::Trusted, peer.1);
    for (hop, ip) in chain.iter().rev().filter(|(hop, _)| *hop != Hop::Empty) {
        match ip {
            Some(ip) if trusted => (trusted, known) = (*hop == Hop::Trusted, *ip),
            _ => break,
        }
    }
    known
}

fn found(client: &impl Extract, request: &Request<()>) -> Option<IpAddr> {
    match client.extract(Head::of(request)) {
        Extracted::Now(part) => part.address(),
        Extracted::Later(_) => None,
    }
}

#[test]
fn every_chain_in_every_form_gives_the_first_who_is_not_trusted() {
    let networks = ["10.0.0.0/8", "fd00::/8", "127.0.0.1"];
    let bare = client(peer()).trusting(networks).unwrap();
    let pairs = client(peer()).trusting(networks).unwrap().forwarded();
    let mut cases = 0;
    for chain in (0..=3).flat_map(chains) {
        for form in FORMS {
            for (is_pairs, client) in [(false, &bare), (true, &pairs)] {
                for (kind, peer) in [
                    (Hop::Trusted, "10.9.9.9"),
                    (Hop::Trusted, "::ffff:127.0.0.1"),
                    (Hop::Stranger, "198.51.100.9"),
                ] {
                    let items: Vec<_> = (1_u8..)
                        .zip(&chain)
                        .map(|(number, hop)| item(number, *hop, form, is_pairs))
                        .collect();
                    let read: Vec<_> = chain.iter().copied().zip(items.iter().map(|(_, ip)| *ip)).collect();
                    let peer: IpAddr = peer.parse().unwrap();
                    let name = if is_pairs { "forwarded" } else { "x-forwarded-for" };
                    // All items in one line, and each in a line of its own.
                    let texts: Vec<_> = items.iter().map(|(text, _)| text.as_str()).collect();
                    for lines in
                        [vec![texts.join(", ")], texts.iter().map(|text| (*text).to_owned()).collect()]
                    {
                        let mut request = Request::builder().extension(peer);
                        for line in lines {
                            request = request.header(name, line);
                        }
                        let request = request.body(()).unwrap();
                        let expected = expected((kind, peer.to_canonical()), &read);
                        assert_eq!(found(client, &request), Some(expected), "{peer} {name}: {texts:?}");
                        cases += 1;
                    }
                }
            }
        }
    }
    assert!(cases > 300, "{cases}");
}

#[test]
fn no_forwarded_address_counts_unless_a_proxy_is_trusted() {
    let request = || Request::builder().header("x-forwarded-for", "192.0.2.1");
    let connected = request().extension(IpAddr::from([10, 0, 0, 1])).body(()).unwrap();
    assert_eq!(found(&client(peer()), &connected), Some(IpAddr::from([10, 0, 0, 1])));
    let unknown = request().body(()).unwrap();
    let all = client(peer()).trusting(["0.0.0.0/0", "::/0"]).unwrap();
    assert_eq!(found(&all, &unknown), None);
    assert_eq!(found(&all, &connected), Some(IpAddr::from([192, 0, 2, 1])));
}

#[test]
fn only_so_many_hops_are_looked_at() {
    let all = client(peer()).trusting(["10.0.0.0/8"]).unwrap();
    let list: Vec<_> = (0..1000).map(|number| format!("10.0.{}.{}", number / 256, number % 256)).collect();
    let request = Request::builder()
        .extension(IpAddr::from([10, 9, 9, 9]))
        .header("x-forwarded-for", list.join(","))
        .body(())
        .unwrap();
    let last = list[list.len() - MAX_HOPS].parse().unwrap();
    assert_eq!(found(&all, &request), Some(last));
}

#[test]
fn another_field_is_read_in_its_place_and_groups_are_those_that_were_set() {
    let real = client(peer()).trusting(["10.0.0.1"]).unwrap().field(HeaderName::from_static("x-real-ip"));
    let request = Request::builder()
        .extension(IpAddr::from([10, 0, 0, 1]))
        .header("x-forwarded-for", "192.0.2.1")
        .header("x-real-ip", "2001:db8::1")
        .body(())
        .unwrap();
    let part = |client: &Client<_>| match client.extract(Head::of(&request)) {
        Extracted::Now(part) => crate::key::Parts::one(part).key().parts().remove(0),
        Extracted::Later(_) => Vec::new(),
    };
    assert_eq!(part(&real), b"2001:db8::/64");
    assert_eq!(part(&real.clone().ipv6_bits(200)), b"2001:db8::1");
    assert_eq!(part(&real.clone().ipv6_bits(32)), b"2001:db8::/32");
}

#[test]
fn a_peer_that_is_found_later_is_believed_as_one_that_is_found_at_once() {
    for (peer, client) in [("10.0.0.1", "192.0.2.7"), ("198.51.100.9", "198.51.100.9")] {
        let peer: IpAddr = peer.parse().unwrap();
        let later = super::client(crate::key::later(move |_| async move { peer }))
            .trusting(["10.0.0.0/8"])
            .unwrap()
            .ipv4_bits(24);
        let request = Request::builder().header("x-forwarded-for", "203.0.113.1, 192.0.2.7, 10.9.9.9");
        let Extracted::Later(mut found) = later.extract(Head::of(&request.body(()).unwrap())) else {
            panic!("it has to be waited for")
        };
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let grouping = Grouping { ipv4_bits: 24, ..Grouping::default() };
        let expected = Part::Address(client.parse().unwrap(), grouping);
        assert_eq!(found.as_mut().poll(&mut context), std::task::Poll::Ready(expected));
    }
}

#[test]
fn what_is_no_network_is_said_so() {
    let error = client(peer()).trusting(["10.0.0.0/33"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "network \"10.0.0.0/33\": this is none; write one such as 10.0.0.0/8, 2001:db8::/32 or 192.0.2.7"
    );
    let mapped = client(peer()).trusting(["::ffff:10.0.0.0/104"]).unwrap();
    assert!(
        mapped.trusted.has(IpAddr::from([10, 1, 2, 3])) && !mapped.trusted.has(IpAddr::from([11, 1, 2, 3]))
    );
}

proptest::proptest! {
    #[test]
    fn whatever_is_sent_a_stranger_is_itself_and_a_proxy_gives_an_address(
        lines in proptest::collection::vec("[ -~]{0,60}", 0..4),
        items in proptest::collection::vec("(for=)?\"?\\[?[0-9a-f:.]{0,12}\\]?(:[0-9]{0,6})?\"?[,; ]{0,2}", 0..6),
    ) {
        let (bare, pairs) = (client(peer()).trusting(["10.0.0.0/8"]).unwrap(), client(peer()).trusting(["10.0.0.0/8"]).unwrap().forwarded());
        for peer in [IpAddr::from([10, 0, 0, 1]), IpAddr::from([192, 0, 2, 1])] {
            let mut request = Request::builder().extension(peer);
            for line in lines.iter().chain([&items.concat()]) {
                request = request.header("x-forwarded-for", line.as_str()).header("forwarded", line.as_str());
            }
            let request = request.body(()).unwrap();
            for found in [found(&bare, &request), found(&pairs, &request)] {
                let found = found.expect("there is always one");
                proptest::prop_assert!(bare.trusted.has(peer) || found == peer);
            }
        }
    }
}

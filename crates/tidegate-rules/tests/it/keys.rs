//! Tests that two requests have one key if, and only if, every part is the same in both: present or missing, byte for
//! byte.

use tidegate::Key;
use tidegate_rules::{Attributes, Gate};

use crate::random::{Random, seed, tries};
use crate::requests::{admit, still_gate};

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
/// Lengths at which an encoded length grows by a byte.
const EDGES: [usize; 7] = [0, 1, 127, 128, 129, 16_383, 16_384];
/// A few bytes, among them encodings of lengths, ends and missing parts.
const BYTES: [u8; 8] = [0, 1, 2, 3, 0x7f, 0x80, 0x81, b'a'];

type Parts = Vec<Option<Vec<u8>>>;

fn byte(random: &mut Random) -> u8 {
    BYTES[random.below(BYTES.len())]
}

fn value(random: &mut Random) -> Vec<u8> {
    if random.once_in(500) {
        let length = EDGES[random.below(EDGES.len())];
        return vec![byte(random); length];
    }
    (0..random.below(4)).map(|_| byte(random)).collect()
}

fn part(random: &mut Random) -> Option<Vec<u8>> {
    (!random.once_in(4)).then(|| value(random))
}

/// Changes a few bytes, so that neighbors are nearly the same.
fn change(random: &mut Random, parts: &mut Parts) {
    let (at, other) = (random.below(parts.len()), random.below(parts.len()));
    match random.below(9) {
        0 => {}
        1 => parts[at] = part(random),
        2 => parts.swap(at, other),
        3 => parts[at] = None,
        4 => parts[at] = Some(Vec::new()),
        5 => {
            if let Some(value) = &mut parts[at] {
                let place = random.below(value.len() + 1);
                value.insert(place, byte(random));
            }
        }
        6 => {
            if let Some(value) = &mut parts[at] {
                value.pop();
            }
        }
        // A byte moves to a neighbor.
        7 => {
            let moved = parts[at].as_mut().and_then(Vec::pop);
            if let (Some(byte), Some(to)) = (moved, &mut parts[other]) {
                to.insert(0, byte);
            }
        }
        // A part that looks like the middle of a key.
        _ => {
            let inner = parts[other].clone().unwrap_or_default();
            let length = u8::try_from(inner.len()).unwrap_or(0x80);
            if inner.len() < 64 {
                parts[at] = Some([&[length][..], &inner].concat());
            }
        }
    }
}

/// Creates a gate whose permit reveals the key of each request.
fn gate(parts: usize) -> Gate {
    let key = NAMES[..parts].iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    still_gate(&format!("[[rule]]\nname = 'rule'\nkey = [{key}]\nlimit = '1000/s concurrency'\n"))
}

fn key(gate: &Gate, parts: &Parts) -> Key {
    let there = NAMES.into_iter().zip(parts).filter_map(|(name, part)| Some((name, part.as_deref()?)));
    let request = there.fold(Attributes::new(), |request, (name, value)| request.set(name, value));
    let answer = admit(gate, &request);
    let permit = answer.permits().first().expect("there is room").clone();
    assert_eq!(gate.release(&permit).now().ok(), Some(true));
    permit.key
}

#[test]
fn keys_are_the_same_exactly_if_all_their_parts_are() {
    let gates: Vec<_> = (1..=NAMES.len()).map(gate).collect();
    let mut random = Random::new(seed());
    let mut same = 0_u64;
    let pairs = tries(10_000_000, 500_000);
    let mut tried = 0;
    while tried < pairs {
        let mut parts: Parts = (0..1 + random.below(NAMES.len())).map(|_| part(&mut random)).collect();
        let gate = &gates[parts.len() - 1];
        let mut known = vec![(key(gate, &parts), parts.clone())];
        for _ in 0..20 {
            change(&mut random, &mut parts);
            let key = key(gate, &parts);
            for (other, of) in known.iter().rev().take(8) {
                assert_eq!(*other == key, *of == parts, "{of:?} and {parts:?}: {other:?} and {key:?}");
                same += u64::from(*of == parts);
                tried += 1;
            }
            known.push((key, parts.clone()));
        }
    }
    assert!(same as usize > pairs / 100, "{same} of {tried} pairs were the same");
}

#[test]
fn a_key_tells_apart_what_is_missing_from_everything_that_can_be_sent() {
    for parts in 1..=4 {
        let gate = gate(parts);
        let values = [None, Some(vec![]), Some(vec![0]), Some(vec![1]), Some(vec![2]), Some(vec![0, 0])];
        let mut all = std::collections::HashMap::new();
        for number in 0..values.len().pow(parts as u32) {
            let list: Parts = (0..parts as u32)
                .map(|place| values[number / values.len().pow(place) % values.len()].clone())
                .collect();
            if let Some(other) = all.insert(key(&gate, &list), list.clone()) {
                panic!("{other:?} and {list:?} have one key");
            }
        }
    }
}

use std::sync::Arc;

use tidegate_core::{Key, PreparedLimit};

use super::*;

fn place(doubtful_until: Option<Instant>) -> Return {
    let limit = PreparedLimit::of_rule("rule", "2/1h concurrency".parse().expect("a limit"));
    let target = Target::new(b"", &limit, &Key::new("ana")).expect("a script holds it");
    Return::new(target, PermitId::from_number(257).expect("a number"), doubtful_until)
}

#[test]
fn places_that_are_held_find_room_when_those_in_doubt_have_none_left() {
    let (returns, now) = (Returns::default(), Instant::now());
    for _ in 0..MOST_DOUBTFUL {
        assert!(returns.put(place(Some(now)), now));
    }
    assert!(!returns.put(place(Some(now)), now));
    for _ in MOST_DOUBTFUL..MOST_PLACES {
        assert!(returns.put(place(None), now));
    }
    assert!(!returns.put(place(None), now));
    let some = returns.due(now).unwrap_or_else(|_| panic!("all are due"));
    assert_eq!(some.len(), AT_ONCE);
    for one in some {
        assert!(returns.put(one, now), "what was asked about has left room");
    }
}

#[test]
fn each_has_its_time() {
    let (returns, now) = (Returns::default(), Instant::now());
    let later = now + Duration::from_secs(1);
    assert!(matches!(returns.due(now), Err(None)));
    assert!(returns.put(place(None), later) && returns.put(place(None), now));
    assert_eq!(returns.due(now).map(|due| due.len()).ok(), Some(1));
    assert!(matches!(returns.due(now), Err(Some(at)) if at == later));
    assert_eq!(returns.due(later).map(|due| due.len()).ok(), Some(1));
    assert!(Arc::new(returns).due(later).is_err());
}

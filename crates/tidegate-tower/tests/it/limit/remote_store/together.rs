//! Requests to a remote store are sent together, and only if something was taken.

use std::sync::atomic::Ordering;

use http::StatusCode;
use tidegate_tower::Settle;
use tokio::sync::watch;
use tower::Service;
use tower_layer::Layer as _;

use super::super::by_rules::lost;
use super::super::{Counting, Task, of};
use super::{HOURLY, Slow, by};

const FOUR: &str = "[[rule]]\nname = 'a'\nlimit = '100/h'\n[[rule]]\nname = 'b'\nlimit = '100/h'\n\
    [[rule]]\nname = 'c'\nlimit = '100/h'\n[[rule]]\nname = 'd'\nlimit = '100/30s concurrency'\n";

#[test]
fn all_rules_are_corrected_and_all_places_given_back_in_one_round_trip() {
    let store = Slow::new();
    let mut service = Counting::default().behind(&by(&store, FOUR).after(|_| Settle::Charge(1)));
    let mut task = Task::new([service.call(of("ana"))]);
    assert!(task.run().is_empty());
    assert_eq!(store.asked(), 1, "what the rules say");
    store.answer(1);
    assert!(task.run().is_empty());
    assert_eq!(store.asked(), 4, "three charges and a place");
    store.answer(4);
    assert_eq!(task.run().len(), 1);
}

#[test]
fn what_passed_while_the_store_failed_is_not_given_back_by_it() {
    for how in ["open", "local"] {
        let store = Slow::new();
        store.answer(1000);
        let layer = by(&store, &format!("{HOURLY}on_store_failure = '{how}'\n"));
        let layer = layer.after(|response| match response.status() {
            StatusCode::NOT_FOUND => Settle::Refund,
            _ => Settle::Keep,
        });
        let passed = || {
            let mut service = Counting::default().behind(&layer);
            let over = Task::new((0..20).map(|_| service.call(of("ana")))).run();
            over.iter().filter(|(_, answer)| answer.as_ref().unwrap().status().is_success()).count()
        };
        assert_eq!(passed(), 2);
        let (release, released) = watch::channel(false);
        let mut slow = layer.layer(lost(&released));
        store.fails.store(true, Ordering::SeqCst);
        let mut waiting = Task::new((0..2).map(|_| slow.call(of("ana"))));
        assert!(waiting.run().is_empty());
        store.fails.store(false, Ordering::SeqCst);
        release.send(true).unwrap();
        assert_eq!(waiting.run().len(), 2);
        assert_eq!(passed(), 0, "{how}");
    }
}

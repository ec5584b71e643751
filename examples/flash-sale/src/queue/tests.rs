use futures_util::FutureExt as _;

use super::*;

fn queue(limit: &str) -> Queue {
    Queue::new(limit.parse().unwrap(), 100).unwrap()
}

/// Returns a request of a user from an address of its own.
fn of(user: &str) -> Wanted<'_> {
    Wanted { sale: 1, user, address: user }
}

#[tokio::test]
async fn the_first_passes_and_the_others_have_places_in_order() {
    let queue = queue("1/h queue 2 leaky-bucket");
    let mut first = queue.join(of("ana")).unwrap();
    assert_eq!(first.place(), 0);
    assert!((&mut first).await.is_ok());
    let (second, third) = (queue.join(of("bob")).unwrap(), queue.join(of("cleo")).unwrap());
    assert_eq!((second.place(), third.place()), (1, 2));
    assert_eq!(third.wait(third.place()), Duration::from_secs(2 * 3600));
    assert!(queue.join(of("dan")).unwrap_err() > Duration::from_secs(3000));
}

#[tokio::test]
async fn a_buyer_that_leaves_moves_up_all_behind_it() {
    let queue = queue("1/h queue 2 leaky-bucket");
    let first = queue.join(of("ana")).unwrap();
    let (second, third) = (queue.join(of("bob")).unwrap(), queue.join(of("cleo")).unwrap());
    drop(second);
    assert_eq!(third.place(), 1);
    let fourth = queue.join(of("dan")).unwrap();
    assert_eq!((fourth.place(), first.place()), (2, 0));
}

#[tokio::test]
async fn turns_come_in_the_order_of_places() {
    let queue = queue("200/s queue 20 leaky-bucket");
    let users: Vec<_> = (0..20).map(|number| number.to_string()).collect();
    let turns: Vec<_> = users.iter().map(|user| queue.join(of(user)).unwrap()).collect();
    let came = Arc::new(Mutex::new(Vec::new()));
    let tasks = turns.into_iter().enumerate().map(|(index, mut turn)| {
        let came = Arc::clone(&came);
        tokio::spawn(async move {
            (&mut turn).await.unwrap();
            came.lock().unwrap().push(index);
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(*came.lock().unwrap(), (0..20).collect::<Vec<_>>());
    assert!(lock(&queue.line).is_empty());
}

#[tokio::test]
async fn requests_of_one_buyer_share_a_place_until_the_last_of_them_leaves() {
    let queue = queue("1/h queue 2 leaky-bucket");
    let _first = queue.join(of("ana")).unwrap();
    assert!(queue.rejoin(of("bob")).is_none());
    let mut shared: Vec<_> = (0..9).map(|_| queue.join(of("bob")).unwrap()).collect();
    shared.push(queue.rejoin(of("bob")).unwrap());
    assert!(shared.iter().all(|turn| turn.place() == 1));
    let behind = queue.join(of("cleo")).unwrap();
    assert_eq!(behind.place(), 2);
    while shared.len() > 1 {
        drop(shared.swap_remove(0));
        assert_eq!(behind.place(), 2);
    }
    drop(shared);
    assert_eq!(behind.place(), 1);
    // A request for another sale has a place of its own.
    let other = queue.join(Wanted { sale: 2, ..of("cleo") }).unwrap();
    assert_eq!(other.place(), 2);
    drop((behind, other, _first));
    assert!(lock(&queue.line).is_empty());
}

#[tokio::test]
async fn all_requests_of_a_buyer_hear_of_the_turn_and_one_may_buy() {
    let queue = queue("100/s queue 2 leaky-bucket");
    let _first = queue.join(of("ana")).unwrap();
    let mut turns = [(); 3].map(|()| queue.join(of("bob")).unwrap());
    for turn in &mut turns {
        turn.await.unwrap();
    }
    let [one, two, three] = turns;
    let claim = one.claim().await.unwrap();
    // While the turn is in use, one more request waits for its end, too.
    let late = queue.rejoin(of("bob")).unwrap();
    let mut others = [two, three, late].map(|turn| Box::pin(turn.claim()));
    for other in &mut others {
        assert!(other.now_or_never().is_none());
    }
    drop(claim);
    for other in others {
        assert!(other.await.is_none());
    }
    assert!(queue.rejoin(of("bob")).is_none(), "a used turn has no owner");
}

#[tokio::test]
async fn a_request_that_still_holds_a_used_turn_does_not_keep_its_buyer_out() {
    let queue = queue("100/s queue 2 leaky-bucket");
    let (one, stalled) = (queue.join(of("ana")).unwrap(), queue.join(of("ana")).unwrap());
    drop(one.claim().await.unwrap());
    let mut anew = queue.join(of("ana")).unwrap();
    drop(stalled);
    assert!(queue.rejoin(of("ana")).is_some(), "the old request has left its own place only");
    (&mut anew).await.unwrap();
    assert!(anew.claim().await.is_some());
}

#[tokio::test]
async fn an_address_has_a_bounded_number_of_places() {
    let queue = Queue::new("1/h queue 20 leaky-bucket".parse().unwrap(), 3).unwrap();
    let _first = queue.join(of("ana")).unwrap();
    let from = |user| Wanted { sale: 1, user, address: "192.0.2.66" };
    let _ahead = queue.join(of("bob")).unwrap();
    let mut held: Vec<_> = ["e0", "e1", "e2"].map(|user| queue.join(from(user)).unwrap()).into();
    // The first place of the address is the second in the queue.
    assert_eq!(queue.join(from("e3")).unwrap_err(), Duration::from_secs(2 * 3600));
    assert_eq!(queue.join(from("e1")).unwrap().place(), 3, "a place that is there is no new one");
    assert_eq!(queue.join(of("cleo")).unwrap().place(), 5);
    held.pop();
    assert_eq!(queue.join(from("e3")).unwrap().place(), 4);
}

#[test]
fn only_a_leaky_bucket_is_a_line() {
    let error = Queue::new("200/s".parse().unwrap(), 1).unwrap_err();
    assert!(error.starts_with("queue \"200/s\": it has no queue; write"), "{error}");
}

//! The limits of one address, however many visitors it has.

use std::num::NonZeroU16;

use flash_sale::http::Settings;
use flash_sale::limits::Limiting;
use flash_sale::sale::NewSale;

use crate::open::{Got, Open, from, generous};

const EVIL: &str = "192.0.2.66";

/// Returns a shop with a maximum of three for each address.
async fn shop(settings: Settings) -> Open {
    let settings = Settings { per_address: NonZeroU16::new(3).unwrap(), ..settings };
    Open::alone(&NewSale::of(20), settings).await
}

async fn buy(shop: &Open, address: &str, (user, key): (&str, &str)) -> Got {
    shop.send(from(address, shop.wish(user, key).await)).await
}

#[tokio::test]
async fn one_address_does_not_reserve_the_stock() {
    let shop = shop(generous()).await;
    for user in ["e0", "e1", "e2"] {
        assert_eq!(buy(&shop, EVIL, (user, "k")).await.said(), (201, "reserved"));
    }
    for user in ["e3", "e4", "e5", "e6"] {
        let refused = buy(&shop, EVIL, (user, "k")).await;
        assert_eq!(refused.said(), (429, "limited"), "{refused:?}");
        let wait: u64 = refused.field("retry-after").parse().unwrap();
        assert!((1..=120).contains(&wait), "{refused:?}");
        let message = format!("this address has reserved as many pieces as it may; try again in {wait} s");
        assert_eq!(refused["message"], message);
    }
    assert_eq!(shop.tally().await.live, 3);
    // It keeps its earlier reservations.
    let again = buy(&shop, EVIL, ("e0", "k")).await;
    assert_eq!((again.said(), again.field("idempotent-replayed")), ((201, "reserved"), "true"));
    assert_eq!(buy(&shop, EVIL, ("e1", "other")).await.said(), (409, "already_bought"));
    let paid = shop.post(again.text_of("pay")).await;
    assert_eq!(paid.said(), (200, "paid"));
    // Other addresses can buy.
    assert_eq!(buy(&shop, "203.0.113.9", ("ana", "k")).await.said(), (201, "reserved"));
    assert_eq!(shop.totals(["refused", "sold"]).await, [4, 4]);
}

#[tokio::test]
async fn only_what_is_reserved_counts_for_an_address() {
    let shop = shop(generous()).await;
    for key in ["a", "b", "c", "d", "a"] {
        assert_ne!(buy(&shop, EVIL, ("ana", key)).await.status, 429, "{key}");
    }
    for user in ["bob", "cleo"] {
        assert_eq!(buy(&shop, EVIL, (user, "k")).await.status, 201, "{user}");
    }
    assert_eq!(buy(&shop, EVIL, ("dan", "k")).await.status, 429);
}

#[tokio::test]
async fn a_network_of_ipv6_is_one_address() {
    let shop = shop(generous()).await;
    for number in 1..=3 {
        let address = format!("2001:db8:1:2::{number}");
        assert_eq!(buy(&shop, &address, (&format!("e{number}"), "k")).await.status, 201, "{address}");
    }
    assert_eq!(buy(&shop, "2001:db8:1:2:ffff::1", ("e4", "k")).await.status, 429);
    assert_eq!(buy(&shop, "2001:db8:1:3::1", ("ana", "k")).await.status, 201);
}

#[tokio::test]
async fn an_experiment_without_a_limiter_counts_no_addresses() {
    let shop = shop(Settings { limiting: Limiting::Off, ..generous() }).await;
    for number in 0..9 {
        assert_eq!(buy(&shop, EVIL, (&format!("e{number}"), "k")).await.status, 201);
    }
}

#[tokio::test]
async fn one_address_does_not_fill_the_line() {
    let queue = "1/h queue 20 leaky-bucket".parse().unwrap();
    let shop = shop(Settings { limiting: Limiting::Queue, queue, ..generous() }).await;
    // The first is served at once, without a place in the queue.
    assert_eq!(buy(&shop, EVIL, ("e0", "k")).await.status, 200);
    let mut line = Vec::new();
    for user in ["e1", "e2", "e3"] {
        line.push(shop.begin(from(EVIL, shop.wish(user, "k").await)).await);
    }
    assert!(line.iter().all(|response| response.status() == 200));
    for number in 4..40 {
        // Its status is enough: a place in this queue would last an hour.
        let refused = shop.begin(from(EVIL, shop.wish(&format!("e{number}"), "k").await)).await;
        assert_eq!(refused.status(), 429, "{number}");
    }
    let honest = shop.begin(from("203.0.113.9", shop.wish("ana", "k").await)).await;
    assert_eq!(honest.status(), 200);
}

//! The pages in a real Chromium, in front of the real shop.
//!
//! Every test leaves pictures in its folder. `FLASH_SALE_PICTURES=folder` keeps them, to be looked at.

mod chromium;
mod family;
mod lost;
mod page;
mod stall;

use chromium::{Chromium, Look};
use stall::Stall;

#[tokio::test]
async fn a_visitor_waits_for_the_opening_buys_and_pays() {
    let chromium = Chromium::start();
    let visitor = chromium.visitor("buyer", Look::Desktop).await;
    let stall = Stall::open(&["--stock", "3", "--opens-in", "30s", "--price", "9.99"]);
    visitor.open(&stall.url()).await;

    visitor.until_said("opens", "0:").await;
    assert!(!visitor.is_active("buy").await, "no purchase before the opening");
    assert_eq!(visitor.text("stock").await, "3 of 3 left");
    visitor.picture("before").await;

    visitor.press("buy").await;
    let said = visitor.until_said("result", "pay in time").await;
    assert_eq!(said, "It is yours if you pay in time.");
    assert!(!visitor.is_shown("buy").await, "one is enough");
    assert_ne!(visitor.text("order").await, "");
    visitor.until_said("stock", "2 of 3 left").await;
    visitor.picture("reserved").await;

    visitor.press("pay").await;
    let said = visitor.until_said("result", "Paid").await;
    assert_eq!(said, "Paid: €9.99. Thank you!");
    assert!(!visitor.is_shown("pay").await, "paying once is enough");
    visitor.picture("paid").await;
    visitor.close().await;
}

#[tokio::test]
async fn a_reservation_is_still_there_when_the_page_is_loaded_again() {
    let chromium = Chromium::start();
    let visitor = chromium.visitor("again", Look::PhoneAtNight).await;
    let stall = Stall::open(&["--stock", "3", "--opens-in", "0s"]);
    visitor.open(&stall.url()).await;
    visitor.press("buy").await;
    visitor.until_said("result", "pay in time").await;
    let order = visitor.text("order").await;

    visitor.open(&stall.url()).await;
    visitor.until_said("order", &order).await;
    visitor.picture("reserved").await;
    visitor.press("pay").await;
    visitor.until_said("result", "Paid").await;
    visitor.close().await;
}

#[tokio::test]
async fn the_second_visitor_finds_the_last_one_sold() {
    let chromium = Chromium::start();
    let stall = Stall::open(&["--stock", "1", "--opens-in", "0s"]);
    let first = chromium.visitor("first", Look::Phone).await;
    first.open(&stall.url()).await;
    first.press("buy").await;
    first.until_said("result", "pay in time").await;
    first.close().await;

    let second = chromium.visitor("second", Look::PhoneAtNight).await;
    second.open(&stall.url()).await;
    second.until_said("buy", "Sold out").await;
    assert!(!second.is_active("buy").await);
    assert_eq!(second.text("stock").await, "None left");
    second.picture("sold-out").await;
    second.close().await;
}

#[tokio::test]
async fn a_visitor_in_line_sees_the_place_fall() {
    let chromium = Chromium::start();
    let visitor = chromium.visitor("queue", Look::Phone).await;
    let stall = Stall::open(&["--opens-in", "0s", "--limiter", "queue", "--queue", "1/2s queue 20"]);
    visitor.open(&stall.url()).await;
    let mut others = Vec::new();
    for _ in 0..5 {
        others.push(stall.stand_in_line().await);
    }

    visitor.press("buy").await;
    let place = async || visitor.text("place").await.parse::<u64>().ok();
    let first = visitor.until("a place in line", place).await;
    visitor.until_said("wait", "about").await;
    visitor.picture("in-line").await;
    let fallen = async || place().await.filter(|&now| now < first);
    visitor.until("a place further ahead", fallen).await;
    visitor.picture("ahead").await;
    visitor.until_said("result", "pay in time").await;
    assert!(!visitor.is_shown("line").await, "a served buyer is not in the queue");
    visitor.close().await;
}

#[tokio::test]
async fn a_limited_visitor_sees_when_to_try_again() {
    let chromium = Chromium::start();
    let visitor = chromium.visitor("limited", Look::DesktopAtNight).await;
    let stall = Stall::open(&["--opens-in", "0s", "--rate", "1/15s burst 1"]);
    visitor.open(&stall.url()).await;
    assert_eq!(stall.buy().await.0, 201);

    visitor.press("buy").await;
    visitor.until_said("result", "Too many requests, try again in").await;
    assert!(!visitor.is_active("buy").await, "it counts down first");
    visitor.until_said("buy", "Try again in").await;
    visitor.picture("limited").await;
    visitor.until_said("result", "You can try again now").await;
    visitor.press("buy").await;
    visitor.until_said("result", "pay in time").await;
    visitor.close().await;
}

#[tokio::test]
async fn the_shopkeeper_sees_numbers_and_lines_grow() {
    let chromium = Chromium::start();
    let keeper = chromium.visitor("keeper", Look::Desktop).await;
    let stall = Stall::open(&["--stock", "40", "--opens-in", "0s"]);
    keeper.open(&stall.keeper()).await;
    keeper.until_said("left", "40").await;
    assert!(keeper.address().await.ends_with("/keeper"), "the token is not left in the address");

    for _ in 0..3 {
        assert_eq!(stall.buy().await.0, 201);
    }
    keeper.until_said("sold", "3").await;
    keeper.until_said("left", "37").await;
    let drawn = async || Some(keeper.points("rates").await).filter(|&points| points > 0);
    let first = keeper.until("lines of what happens", drawn).await;
    assert_eq!(stall.buy().await.0, 201);
    keeper.until("longer lines", async || drawn().await.filter(|&points| points > first)).await;
    keeper.until("lines of latencies", async || (keeper.points("latency").await > 0).then_some(())).await;
    keeper.until_said("sold", "4").await;
    keeper.picture("numbers").await;
    keeper.close().await;
}

#[tokio::test]
async fn a_shopkeeper_without_a_shop_sees_an_error() {
    let chromium = Chromium::start();
    let keeper = chromium.visitor("alone", Look::PhoneAtNight).await;
    let stall = Stall::open(&["--opens-in", "0s"]);
    keeper.open(&stall.keeper()).await;
    keeper.until("lines", async || (keeper.points("rates").await > 0).then_some(())).await;

    drop(stall);
    keeper.until_said("connection", "The shop does not answer").await;
    assert!(keeper.points("rates").await > 0, "what was seen stays drawn");
    keeper.picture("silence").await;
    keeper.close().await;
}

//! Visitors whose answers are lost: what was carried out is theirs, and the page finds it.

use super::chromium::{Chromium, Look};
use super::stall::Stall;

#[tokio::test]
async fn a_buyer_of_the_last_one_who_lost_the_answer_asks_again() {
    let chromium = Chromium::start();
    let visitor = chromium.visitor("lost", Look::Phone).await;
    let stall = Stall::open(&["--stock", "1", "--opens-in", "0s"]);
    visitor.open(&stall.url()).await;
    visitor.until_said("buy", "Buy for").await;
    visitor.lose_answers("/buy").await;
    visitor.press("buy").await;
    visitor.until_said("result", "No answer yet").await;

    visitor.open(&stall.url()).await;
    visitor.until_said("stock", "None left").await;
    assert_eq!(visitor.text("buy").await, "Ask again");
    visitor.until_said("result", "you may have one").await;
    visitor.picture("unsure").await;
    visitor.press("buy").await;
    visitor.until_said("result", "pay in time").await;
    visitor.press("pay").await;
    visitor.until_said("result", "Paid").await;
    visitor.close().await;
}

#[tokio::test]
async fn a_buyer_who_left_the_queue_can_ask_again() {
    let chromium = Chromium::start();
    let visitor = chromium.visitor("left", Look::Phone).await;
    let stall = Stall::open(&["--opens-in", "0s", "--limiter", "queue", "--queue", "1/10s queue 20"]);
    visitor.open(&stall.url()).await;
    let mut others = Vec::new();
    for _ in 0..6 {
        others.push(stall.stand_in_line().await);
    }

    visitor.press("buy").await;
    visitor.press("leave").await;
    visitor.until_said("result", "You left the line. If your turn had come already, you may have one").await;
    visitor.until_said("buy", "Ask again").await;
    drop(others);
    visitor.press("buy").await;
    visitor.until_said("result", "pay in time").await;
    visitor.close().await;
}

#[tokio::test]
async fn a_payment_without_an_answer_is_asked_for_again_when_its_time_is_over() {
    let chromium = Chromium::start();
    let visitor = chromium.visitor("late", Look::Desktop).await;
    let stall = Stall::open(&["--stock", "1", "--opens-in", "0s", "--pay-within", "10m"]);
    visitor.open(&stall.url()).await;
    visitor.press("buy").await;
    visitor.until_said("result", "pay in time").await;
    visitor.lose_answers("/pay").await;
    visitor.press("pay").await;
    visitor.until_said("result", "No answer yet").await;

    visitor.let_time_run_out().await;
    visitor.open(&stall.url()).await;
    let said = visitor.until_said("result", "paid").await;
    assert_eq!(said, "It was paid already. Nothing was charged again. Thank you!");
    assert!(!visitor.is_shown("pay").await, "paying once is enough");
    visitor.close().await;
}

#[tokio::test]
async fn an_unpaid_reservation_is_gone_when_its_time_is_over() {
    let chromium = Chromium::start();
    let visitor = chromium.visitor("unpaid", Look::Desktop).await;
    let stall = Stall::open(&["--stock", "2", "--opens-in", "0s", "--pay-within", "10m"]);
    visitor.open(&stall.url()).await;
    visitor.press("buy").await;
    visitor.until_said("result", "pay in time").await;

    visitor.let_time_run_out().await;
    visitor.open(&stall.url()).await;
    visitor.until_said("result", "The time to pay is over").await;
    assert!(!visitor.is_shown("reservation").await);
    visitor.close().await;
}

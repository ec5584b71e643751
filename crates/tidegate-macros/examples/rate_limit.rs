//! A login that is slowed down for each user, and a weak service that is never called faster than it can bear.
//!
//! `cargo run -p tidegate-macros --example rate_limit`

use std::fmt;
use std::net::IpAddr;

use tidegate::Denied;
use tidegate_macros::rate_limit;

#[derive(Debug)]
enum LoginError {
    WrongPassword,
    TooManyAttempts(Denied),
}

impl From<Denied> for LoginError {
    fn from(refusal: Denied) -> LoginError {
        LoginError::TooManyAttempts(refusal)
    }
}

impl fmt::Display for LoginError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoginError::WrongPassword => out.write_str("wrong password"),
            LoginError::TooManyAttempts(refusal) => match refusal.retry_after() {
                Some(wait) => write!(out, "too many attempts, again in {} s", wait.as_secs() + 1),
                None => out.write_str("too many attempts"),
            },
        }
    }
}

/// Five attempts in any minute, for each user at each address.
#[rate_limit("5/m sliding-log", key = (user, address))]
fn login(user: &str, address: IpAddr, password: &str) -> Result<String, LoginError> {
    if password == "open sesame" {
        Ok(format!("{user} is in, from {address}"))
    } else {
        Err(LoginError::WrongPassword)
    }
}

/// Two fresh forecasts an hour for each city; the old one is good enough meanwhile.
#[rate_limit("2/h", key = city, otherwise = old_forecast)]
fn forecast(city: &str, day: u32) -> String {
    format!("{city}, day {day}: sun, just measured")
}

fn old_forecast(city: &str, day: u32) -> String {
    format!("{city}, day {day}: as yesterday")
}

/// The service behind this breaks above twenty calls a second, so calls leave evenly and wait for their turn.
#[rate_limit("20/s leaky-bucket queue 10", wait = "2s")]
async fn call_weak_service(order: u32) -> Result<u32, Denied> {
    Ok(order * 10)
}

#[tokio::main]
async fn main() {
    let address = IpAddr::from([192, 0, 2, 7]);
    for attempt in 1..=7 {
        match login("ana", address, "1234") {
            Ok(welcome) => println!("{welcome}"),
            Err(error) => println!("ana, attempt {attempt}: {error}"),
        }
    }
    match login("bob", address, "open sesame") {
        Ok(welcome) => println!("{welcome}"),
        Err(error) => println!("bob: {error}"),
    }

    for day in 1..=3 {
        println!("{}", forecast("Oslo", day));
    }

    let calls: Vec<_> = (1..=15).map(|order| tokio::spawn(call_weak_service(order))).collect();
    let (mut answered, mut refused) = (0, 0);
    for call in calls {
        match call.await {
            Ok(Ok(_)) => answered += 1,
            Ok(Err(_)) | Err(_) => refused += 1,
        }
    }
    // One at once and ten in the queue; there is no room for more.
    println!("the weak service answered {answered} and was spared {refused}");
}

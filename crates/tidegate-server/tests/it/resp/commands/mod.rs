//! Tests of each command: its replies in both versions of the protocol, and its errors.

mod admit;
mod forget;
mod lists;
mod one_key;
mod permits;
mod refused;
mod rule_key;
mod several;
mod take;
mod throttle;
mod throttlecrab;
mod transaction;

/// The decision fields in order: allowed, limit, remaining, retry after, reset after, delay.
type Figures = [i64; 6];

const NAMES: [&str; 6] = ["allowed", "limit", "remaining", "retry_after", "reset_after", "delay"];

/// Returns a decision in RESP2, followed by these fields.
fn pairs(figures: Figures, more: &str) -> String {
    let count = if more.is_empty() { 16 } else { 18 };
    format!("*{count}\r\n{}{more}", fields(figures, "$-1\r\n"))
}

/// Returns a decision in RESP3, followed by these fields.
fn map(figures: Figures, more: &str) -> String {
    let count = if more.is_empty() { 8 } else { 9 };
    format!("%{count}\r\n{}{more}", fields(figures, "_\r\n"))
}

fn fields(figures: Figures, null: &str) -> String {
    let numbers = NAMES.iter().zip(figures).map(|(name, number)| format!("{}:{number}\r\n", bulk(name)));
    let numbers: String = numbers.collect();
    format!("{numbers}{}{null}{}{}", bulk("rule"), bulk("decided_by"), bulk("memory"))
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn integers(numbers: &[i64]) -> String {
    let each: String = numbers.iter().map(|number| format!(":{number}\r\n")).collect();
    format!("*{}\r\n{each}", numbers.len())
}

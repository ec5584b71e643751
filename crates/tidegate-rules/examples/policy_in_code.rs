//! A policy that a program builds in code: one rule for each plan of its customers, and the same rules as text.
//!
//! ```text
//! cargo run -p tidegate-rules --example policy_in_code
//! ```

use std::error::Error;
use std::time::Duration;

use tidegate::{Limit, OnStoreFailure, Zone};
use tidegate_rules::{Attributes, Gate, Mode, OnMissing, Policy, Rule, StaticVerdict};

/// The plans of the customers, with the requests per second of each.
const PLANS: [(&str, u64); 2] = [("free", 2), ("paid", 5)];

fn policy() -> Result<Policy, tidegate_rules::PolicyError> {
    let health = Rule::builder("health").when("path", "/health").decision(StaticVerdict::Allow);
    let plans = PLANS.map(|(plan, rate)| {
        Rule::builder(format!("plan-{plan}"))
            .when("path", "/api/{*rest}")
            .when("plan", plan)
            .key(["user"])
            .limit(Limit::per_second(rate))
            .on_missing(OnMissing::Skip)
            .on_store_failure(OnStoreFailure::Open)
    });
    // The next limit of the free plan is measured before it is enforced.
    let next = Rule::builder("next-free").candidate_for("plan-free").limit("1/s");
    let uploads = Rule::builder("uploads")
        .when_any("method", ["POST", "PUT"])
        .limit("100/s leaky-bucket queue 50")
        .max_wait(Duration::from_millis(500))
        .mode(Mode::Shadow);
    let policy = plans.into_iter().fold(Policy::builder().rule(health), |policy, plan| policy.rule(plan));
    policy.rule(next).rule(uploads).build()
}

/// The same policy as a file.
const AS_TEXT: &str = r#"
[[rule]]
name = "health"
when = { path = "/health" }
decision = "allow"

[[rule]]
name = "plan-free"
when = { path = "/api/{*rest}", plan = "free" }
key = ["user"]
limit = "2/s"
on_missing = "skip"
on_store_failure = "open"

[[rule]]
name = "plan-paid"
when = { path = "/api/{*rest}", plan = "paid" }
key = ["user"]
limit = "5/s"
on_missing = "skip"
on_store_failure = "open"

[[rule]]
name = "next-free"
candidate_for = "plan-free"
limit = "1/s"

[[rule]]
name = "uploads"
when = { method = ["POST", "PUT"] }
limit = "100/s leaky-bucket queue 50"
max_wait = "500ms"
mode = "shadow"
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let policy = policy()?;
    assert_eq!(policy.rules(), Policy::from_toml(AS_TEXT)?.rules());

    let gate = Gate::new(policy, Zone::new(1 << 20))?;
    for (plan, rate) in PLANS {
        let request = Attributes::new().path("/api/orders").set("plan", plan).set("user", "ana");
        let allowed =
            (0..10).filter(|_| gate.admit(&request).now().is_ok_and(|answer| answer.is_allowed())).count();
        println!("plan {plan}: {rate} requests per second, {allowed} of 10 at once were allowed");
    }

    // Every error of a policy is reported at once, with its rule.
    let faulty = Rule::builder("log in").key(["IP"]).limit("60/min");
    if let Err(error) = Policy::builder().rule(faulty).build() {
        println!("\nAn invalid policy:\n{error}");
    }
    Ok(())
}

//! Tests of the metrics of rules.

use serde_json::json;
use tidegate_rules::Policy;
use tidegate_server::Settings;
use tidegate_server::settings::Token;

use super::pages::metrics;
use crate::wire::http::{by, get, post, with_json};
use crate::wire::{Running, settings};

const RULES: &str = r#"
[zone.logins]
size = "128KiB"

[[rule]]
name = "office"
when = { ip = "10.0.0.0/8" }
decision = "allow"

[[rule]]
name = "robots"
when = { user = "robot" }
decision = "deny"

[[rule]]
name = "api"
when = { path = "/api" }
key = ["user"]
limit = "5/h"
zone = "logins"

[[rule]]
name = "api-strict"
candidate_for = "api"
limit = "4/h"

[[rule]]
name = "api-loose"
candidate_for = "api"
limit = "6/h"

[[rule]]
name = "banning"
when = { path = "/banning" }
limit = "1/h"
penalty = { after = 3, within = "1h", for = "1h" }

[[rule]]
name = "watched"
when = { path = "/watched" }
key = ["user"]
limit = "1/h"
mode = "shadow"
"#;

/// Series and their expected values.
const NUMBERS: &str = r#"
tidegate_admissions_total{rule="office",verdict="allowed"} | 1.0
tidegate_admissions_total{rule="robots",verdict="denied"} | 1.0
tidegate_admissions_total{rule="api",verdict="allowed"} | 5.0
tidegate_admissions_total{rule="api",verdict="denied"} | 1.0
tidegate_admissions_total{rule="api",verdict="impossible"} | 1.0
tidegate_admissions_total{rule="api",verdict="store_full"} | 0.0
tidegate_near_limit_total{rule="api"} | 2.0
tidegate_bans_total{rule="banning"} | 0.0
tidegate_banned_total{rule="banning"} | 0.0
tidegate_shadow_decisions_total{rule="watched",verdict="allowed"} | 2.0
tidegate_shadow_decisions_total{rule="watched",verdict="denied"} | 2.0
tidegate_shadow_decisions_total{rule="api-strict",verdict="allowed"} | 4.0
tidegate_shadow_decisions_total{rule="api-strict",verdict="denied"} | 2.0
tidegate_candidate_differences_total{rule="api-strict",candidate_for="api",difference="stricter"} | 1.0
tidegate_candidate_differences_total{rule="api-strict",candidate_for="api",difference="looser"} | 0.0
tidegate_candidate_differences_total{rule="api-loose",candidate_for="api",difference="looser"} | 1.0
tidegate_candidate_differences_total{rule="api-loose",candidate_for="api",difference="stricter"} | 0.0
tidegate_unmatched_total | 1.0
tidegate_rules | 7.0
tidegate_rules_replaced_total | 0.0
tidegate_rules_rejected_total | 0.0
tidegate_rules_rejected | 0.0
tidegate_overrides | 1.0
tidegate_zone_bytes | 65536.0
tidegate_zone_bytes{zone="logins"} | 131072.0
tidegate_zone_inserts_total{zone="logins"} | 3.0
"#;

#[test]
fn decisions_of_rules_are_counted() {
    let policy = Policy::from_toml(RULES).unwrap();
    let (_running, mut talk) =
        Running::with(Settings { policy, token: Token::new("sesame"), ..settings() }).with_http();
    let mut ask = |attributes: &serde_json::Value, cost: u64| {
        let body = json!({"attributes": attributes, "cost": cost}).to_string();
        talk.ask(by("sesame", &post("/v1/admit", &body))).status
    };
    for _ in 0..5 {
        assert_eq!(ask(&json!({"path": "/api", "user": "ana"}), 1), 200);
    }
    assert_eq!(ask(&json!({"path": "/api", "user": "ana"}), 1), 429);
    assert_eq!(ask(&json!({"path": "/api", "user": "ana"}), 9), 429);
    for _ in 0..3 {
        assert_eq!(ask(&json!({"path": "/watched", "user": "ana"}), 1), 200);
    }
    assert_eq!(ask(&json!({"ip": "10.0.0.1"}), 1), 200);
    assert_eq!(ask(&json!({"user": "robot"}), 1), 403);
    assert_eq!(ask(&json!({"path": "/"}), 1), 200);
    assert_eq!(ask(&json!({"path": "/watched"}), 1), 200);
    let body = r#"{"rule":"api","key":{"user":"bob"},"decision":"deny","for":"1h"}"#;
    assert_eq!(talk.ask(by("sesame", &with_json("PUT", "/v1/overrides", body))).status, 200);

    let numbers = metrics(&talk.ask(by("sesame", &get("/metrics"))).body);
    for [series, number] in conformance::rows(NUMBERS) {
        let number: f64 = number.parse().expect(number);
        assert_eq!(numbers.get(series), Some(&number), "{series} in {numbers:#?}");
    }
    for not_there in [
        r#"tidegate_admissions_total{rule="watched",verdict="allowed"}"#,
        r#"tidegate_admissions_total{rule="api-strict",verdict="allowed"}"#,
        r#"tidegate_shadow_decisions_total{rule="api",verdict="allowed"}"#,
        r#"tidegate_bans_total{rule="api"}"#,
        r#"tidegate_shadow_bans_total{rule="banning"}"#,
    ] {
        assert!(!numbers.contains_key(not_there), "{not_there}");
    }
}

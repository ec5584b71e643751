//! Plays traces under a rule of a server, over HTTP and RESP: one request per message, or many in one body.
//!
//! Peeks, adjustments and resets name the rule. The server has a token, without which it accepts no such change.

use std::collections::HashMap;

use conformance::arm::{Answer, Arm, Take};
use serde_json::{Value as Json, json};
use tidegate::{Adjusted, Adjustment, Ask, Limit, PermitId, Ticks, Timestamp};
use tidegate_rules::Policy;
use tidegate_server::Settings;
use tidegate_server::settings::Token;

use super::front::{RESOLUTION, adjusted, json_answer, ms, resp_answer};
use crate::wire::http::{Talk, by, post};
use crate::wire::resp::{Client, Value};
use crate::wire::{Running, settings};

/// The operations that a rule does not have here. Replacing rules needs a file, and these servers have none.
pub(crate) const UNKNOWN: [&str; 1] = ["limit"];

/// A front, as a client of rules sees it.
pub(crate) trait RuleFront {
    fn connect(running: &Running) -> Self;
    fn take(&mut self, key: &str, ask: Ask) -> (Answer, Option<String>);

    /// Sends takes in one message, if the front decides them at one instant.
    fn take_each(&mut self, takes: &[Take<'_>]) -> Vec<(Answer, Option<String>)> {
        takes.iter().map(|take| self.take(take.key, take.ask)).collect()
    }

    fn peek(&mut self, key: &str, ask: Ask) -> Answer;
    fn adjust(&mut self, key: &str, adjustment: Adjustment) -> Adjusted;
    fn reset(&mut self, key: &str);
    fn release(&mut self, permit: &str) -> bool;
    fn renew(&mut self, permit: &str) -> bool;
}

/// A server with one rule.
pub(crate) struct UnderRule<F> {
    running: Running,
    front: F,
    permits: HashMap<(String, PermitId), String>,
}

impl<F: RuleFront> UnderRule<F> {
    pub(crate) fn new(limit: Limit) -> UnderRule<F> {
        let rule =
            format!("[[rule]]\nname = 'judged'\nkey = ['user']\nlimit = '{limit}'\nmax_wait = '365d'\n");
        let policy = Policy::from_toml(&rule).expect("a rule");
        let running = Running::with(Settings { policy, token: Token::new("sesame"), ..settings() });
        let front = F::connect(&running);
        UnderRule { running, front, permits: HashMap::new() }
    }

    fn note(&mut self, key: &str, (answer, permit): (Answer, Option<String>)) -> Answer {
        self.permits.extend(answer.permit.map(|id| (key.to_owned(), id)).zip(permit));
        answer
    }
}

impl<F: RuleFront> Arm for UnderRule<F> {
    fn name(&self) -> &str {
        "a rule of a server"
    }

    fn resolution(&self) -> Ticks {
        RESOLUTION
    }

    fn can(&self, need: &str) -> bool {
        !matches!(need, "give-back" | "ticks")
    }

    fn begin(&mut self, limit: Limit) {
        *self = UnderRule::new(limit);
    }

    fn set_time(&mut self, now: Timestamp) {
        self.running.ticking.set(now);
    }

    fn tick(&mut self, step: Ticks) -> bool {
        self.running.ticking.tick(step);
        true
    }

    fn take(&mut self, key: &str, ask: Ask, _: Option<&str>) -> Answer {
        let taken = self.front.take(key, ask);
        self.note(key, taken)
    }

    fn take_each(&mut self, takes: &[Take<'_>]) -> Vec<Answer> {
        let taken = self.front.take_each(takes);
        takes.iter().zip(taken).map(|(take, taken)| self.note(take.key, taken)).collect()
    }

    fn peek(&mut self, key: &str, ask: Ask) -> Answer {
        self.front.peek(key, ask)
    }

    fn adjust(&mut self, key: &str, adjustment: Adjustment) -> Adjusted {
        self.front.adjust(key, adjustment)
    }

    fn reset(&mut self, key: &str) {
        self.front.reset(key);
    }

    fn release(&mut self, key: &str, permit: PermitId) -> bool {
        self.front.release(&self.permits[&(key.to_owned(), permit)])
    }

    fn renew(&mut self, key: &str, permit: PermitId) -> bool {
        self.front.renew(&self.permits[&(key.to_owned(), permit)])
    }
}

/// JSON over HTTP. Several takes are one batch.
pub(crate) struct RuleOverHttp(Talk);

impl RuleOverHttp {
    fn post(&mut self, route: &str, body: &Json) -> Json {
        let answer = self.0.ask(by("sesame", &post(route, &body.to_string())));
        assert!(matches!(answer.status, 200 | 429), "{route} {body}: {}", answer.body);
        answer.json()
    }
}

fn request(key: &str, ask: Ask) -> Json {
    json!({ "attributes": { "user": key }, "cost": ask.cost.get(), "max_wait_ms": ms(ask.max_wait) })
}

/// Returns a body about the key of the rule, with more members.
fn of_key(key: &str, more: &Json) -> Json {
    let mut body = json!({ "rule": "judged", "key": { "user": key } });
    let more = more.as_object().cloned().unwrap_or_default();
    body.as_object_mut().expect("an object").extend(more);
    body
}

impl RuleFront for RuleOverHttp {
    fn connect(running: &Running) -> RuleOverHttp {
        RuleOverHttp(Talk::to(running))
    }

    fn take(&mut self, key: &str, ask: Ask) -> (Answer, Option<String>) {
        json_answer(&self.post("/v1/admit", &request(key, ask)))
    }

    fn take_each(&mut self, takes: &[Take<'_>]) -> Vec<(Answer, Option<String>)> {
        let requests: Vec<_> = takes.iter().map(|take| request(take.key, take.ask)).collect();
        let body = self.post("/v1/admit/batch", &json!({ "requests": requests }));
        body["answers"].as_array().expect("a list").iter().map(json_answer).collect()
    }

    fn peek(&mut self, key: &str, ask: Ask) -> Answer {
        let more = json!({ "cost": ask.cost.get(), "max_wait_ms": ms(ask.max_wait) });
        json_answer(&self.post("/v1/peek", &of_key(key, &more))).0
    }

    fn adjust(&mut self, key: &str, adjustment: Adjustment) -> Adjusted {
        let amount = match adjustment {
            Adjustment::Charge(cost) => json!(cost.get()),
            Adjustment::Refund(cost) => Json::from(-i64::try_from(cost.get()).unwrap_or(i64::MAX)),
        };
        let answer = self.post("/v1/adjust", &of_key(key, &json!({ "amount": amount })));
        adjusted(answer["adjusted"].as_str().unwrap_or_else(|| panic!("not adjusted: {answer}")))
    }

    fn reset(&mut self, key: &str) {
        let answer = self.post("/v1/reset", &of_key(key, &json!({})));
        assert!(answer["reset"].is_boolean(), "{answer}");
    }

    fn release(&mut self, permit: &str) -> bool {
        self.post("/v1/release", &json!({ "permit": permit }))["released"] == true
    }

    fn renew(&mut self, permit: &str) -> bool {
        self.post("/v1/renew", &json!({ "permit": permit }))["renewed"] == true
    }
}

/// RESP3.
pub(crate) struct RuleOverResp(Client);

impl RuleOverResp {
    /// Sends a command with the cost and the max wait of an ask before the attributes.
    fn ask(&mut self, command: &[&str], key: &str, ask: Ask) -> Value {
        let (cost, max_wait) = (ask.cost.get().to_string(), ms(ask.max_wait).to_string());
        self.0.ask(&[command, &["COST", &cost, "MAXWAIT", &max_wait, "user", key]].concat())
    }
}

impl RuleFront for RuleOverResp {
    fn connect(running: &Running) -> RuleOverResp {
        let mut client = running.resp();
        client.say("HELLO 3 AUTH default sesame");
        RuleOverResp(client)
    }

    fn take(&mut self, key: &str, ask: Ask) -> (Answer, Option<String>) {
        resp_answer(&self.ask(&["TG.ADMIT"], key, ask))
    }

    fn peek(&mut self, key: &str, ask: Ask) -> Answer {
        resp_answer(&self.ask(&["TG.PEEK", "RULE", "judged"], key, ask)).0
    }

    fn adjust(&mut self, key: &str, adjustment: Adjustment) -> Adjusted {
        let number = match adjustment {
            Adjustment::Charge(cost) => cost.get().to_string(),
            Adjustment::Refund(cost) => format!("-{}", cost.get()),
        };
        adjusted(&self.0.ask(&["TG.ADJUST", "RULE", "judged", "user", key, &number]).text("adjusted"))
    }

    fn reset(&mut self, key: &str) {
        let reply = self.0.ask(&["TG.RESET", "RULE", "judged", "user", key]);
        assert!(matches!(reply, Value::Integer(0 | 1)), "{reply:?}");
    }

    fn release(&mut self, permit: &str) -> bool {
        self.0.ask(&["TG.RELEASE", permit]) == Value::Integer(1)
    }

    fn renew(&mut self, permit: &str) -> bool {
        self.0.ask(&["TG.RENEW", permit]) == Value::Integer(1)
    }
}

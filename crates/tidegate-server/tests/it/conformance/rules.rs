//! Plays traces under a rule of a server, over HTTP: one request per message, or many in one body.

use std::collections::HashMap;

use conformance::arm::{Answer, Arm, Take};
use serde_json::{Value as Json, json};
use tidegate::{Ask, Limit, PermitId, Ticks, Timestamp};

use super::front::{RESOLUTION, json_answer, ms};
use crate::wire::Running;
use crate::wire::http::Talk;

/// The operations that a rule over HTTP does not have. Replacing rules needs a file, and these servers have none.
pub(crate) const UNKNOWN: [&str; 5] = ["peek", "charge", "refund", "reset", "limit"];

/// A server with one rule.
pub(crate) struct UnderRule {
    running: Running,
    talk: Talk,
    permits: HashMap<(String, PermitId), String>,
}

impl UnderRule {
    pub(crate) fn new(limit: Limit) -> UnderRule {
        let rule =
            format!("[[rule]]\nname = 'judged'\nkey = ['user']\nlimit = '{limit}'\nmax_wait = '365d'\n");
        let running = Running::under(&rule);
        let talk = Talk::to(&running);
        UnderRule { running, talk, permits: HashMap::new() }
    }

    fn note(&mut self, key: &str, body: &Json) -> Answer {
        let (answer, permit) = json_answer(body);
        self.permits.extend(answer.permit.map(|id| (key.to_owned(), id)).zip(permit));
        answer
    }

    fn tell(&mut self, route: &str, key: &str, permit: PermitId) -> Json {
        let permit = &self.permits[&(key.to_owned(), permit)];
        self.talk.post(route, &json!({ "permit": permit }).to_string()).json()
    }
}

fn request(key: &str, ask: Ask) -> Json {
    json!({ "attributes": { "user": key }, "cost": ask.cost.get(), "max_wait_ms": ms(ask.max_wait) })
}

impl Arm for UnderRule {
    fn name(&self) -> &str {
        "a rule over HTTP"
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
        let body = self.talk.post("/v1/admit", &request(key, ask).to_string()).json();
        self.note(key, &body)
    }

    fn take_each(&mut self, takes: &[Take<'_>]) -> Vec<Answer> {
        let requests: Vec<_> = takes.iter().map(|take| request(take.key, take.ask)).collect();
        let answer = self.talk.post("/v1/admit/batch", &json!({ "requests": requests }).to_string());
        assert_eq!(answer.status, 200, "{}", answer.body);
        let body = answer.json();
        let answers = body["answers"].as_array().expect("a list");
        takes.iter().zip(answers).map(|(take, body)| self.note(take.key, body)).collect()
    }

    fn release(&mut self, key: &str, permit: PermitId) -> bool {
        self.tell("/v1/release", key, permit)["released"] == true
    }

    fn renew(&mut self, key: &str, permit: PermitId) -> bool {
        self.tell("/v1/renew", key, permit)["renewed"] == true
    }
}

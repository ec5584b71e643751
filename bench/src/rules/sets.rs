//! Sets of rules as people write them, of any size, and requests to which two rules of a set apply.
//!
//! The first rule is for everybody. Of the others, which have numbers from 1, one applies to each request: that with
//! the request's number, or in a list of networks the one around them all.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};

use tidegate_rules::{Attributes, Policy};

/// More at once than all rounds ask for.
pub(super) const ROOMY: &str = "1000000/s burst 1000000000";
/// How many rules apply to each request.
pub(super) const APPLYING: u64 = 2;

/// A kind of rules.
pub(super) struct Set {
    pub(super) name: &'static str,
    pub(super) goal: &'static str,
    /// The goal of the set with its limits in a group.
    pub(super) grouped: &'static str,
    pub(super) what: &'static str,
    /// What is behind the name of the rule with this number, of so many.
    rule: fn(u32, u32) -> String,
    /// The number of the resource that a request asks for, and that of the tenant who asks.
    asks: fn(u32, u32) -> (Resource, u32),
}

/// What a request asks for.
enum Resource {
    Own(u32),
    Orders,
}

pub(super) const SETS: [Set; 7] = [
    Set {
        name: "paths",
        goal: "rules/paths-1000",
        grouped: "rules/paths-grouped",
        what: "a path pattern and a method for each",
        rule: |number, _| route(number),
        asks: |number, _| (Resource::Own(number), number),
    },
    Set {
        name: "tenants",
        goal: "rules/tenants-1000",
        grouped: "rules/tenants-grouped",
        what: "a tenant for each",
        rule: |number, _| counts(&format!("tenant = \"tenant{number:05}\"")),
        asks: |number, _| (Resource::Orders, number),
    },
    Set {
        name: "networks",
        goal: "rules/networks-1000",
        grouped: "rules/networks-grouped",
        what: "networks that are denied, none of them the request's, and one around all that counts",
        rule: |number, _| if number == 1 { counts("ip = \"10.0.0.0/8\"") } else { denied(number) },
        asks: |number, _| (Resource::Orders, number),
    },
    Set {
        name: "prefixes",
        goal: "rules/prefixes-1000",
        grouped: "rules/prefixes-grouped",
        what: "a prefix of a key for each",
        rule: |number, _| prefix(number),
        asks: |number, _| (Resource::Orders, number),
    },
    Set {
        name: "same path",
        goal: "rules/same-path-1000",
        grouped: "rules/same-path-grouped",
        what: "all for one path, a tenant for each",
        rule: |number, _| {
            counts(&format!("path = \"/api/v1/orders/{{id}}\", tenant = \"tenant{number:05}\""))
        },
        asks: |number, _| (Resource::Orders, number),
    },
    Set {
        name: "shop",
        goal: "rules/shop-1000",
        grouped: "rules/shop-grouped",
        what: "four in ten by path, three by tenant and path, one each denied, by prefix, by list and plan",
        rule: shop,
        // Only those by path are asked for.
        asks: |number, _| (Resource::Own(number / 10 * 10 + 1), number / 10 * 10 + 1),
    },
    Set {
        name: "grid",
        goal: "rules/grid-1000",
        grouped: "rules/grid-grouped",
        what: "every path with every tenant, as many paths as tenants: neither alone tells one rule",
        rule: |number, count| {
            let (path, tenant) = (number / side(count), number % side(count));
            counts(&format!("path = \"/api/v1/resource{path:05}/{{id}}\", tenant = \"tenant{tenant:05}\""))
        },
        asks: |number, count| (Resource::Own(number / side(count)), number % side(count)),
    },
];

impl Set {
    /// So many rules.
    pub(super) fn policy(&self, count: u32) -> Policy {
        self.made(count, |rule| rule)
    }

    /// So many rules, of which those with a limit are members of one group, but for the one for everybody.
    pub(super) fn grouped_policy(&self, count: u32) -> Policy {
        let is_limit = |rule: &String| rule.contains("\nlimit = ");
        self.made(count, |rule| if is_limit(&rule) { rule + "\ngroup = 'plan'" } else { rule })
    }

    fn made(&self, count: u32, of: impl Fn(String) -> String) -> Policy {
        let mut text = format!("[[rule]]\nname = 'all'\nkey = ['ip']\nlimit = '{ROOMY}'\n");
        for number in 1..count {
            let _ = writeln!(text, "[[rule]]\nname = 'rule{number}'\n{}", of((self.rule)(number, count)));
        }
        Policy::from_toml(&text).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// The request with this number, where there are so many rules.
    pub(super) fn request(&self, number: u32, count: u32) -> Attributes<'static> {
        let (resource, tenant) = (self.asks)(number, count);
        let path = match resource {
            Resource::Own(resource) => format!("/api/v1/resource{resource:05}/4217"),
            Resource::Orders => "/api/v1/orders/4217".to_owned(),
        };
        Attributes::new()
            .ip(IpAddr::V4(network(number) | Ipv4Addr::new(0, 0, 0, 200)))
            .set("method", "GET")
            .set("host", "api.example.com")
            .set("path", path)
            .set("tenant", format!("tenant{tenant:05}"))
            .set("user", "ana")
            .set("plan", "free")
            .set("header.x-api-key", format!("team{tenant:05}-k3y"))
    }
}

fn shop(number: u32, _: u32) -> String {
    match number % 10 {
        0..=3 => route(number),
        4..=6 => counts(&format!("path = \"/api/v1/orders/{{id}}\", tenant = \"tenant{number:05}\"")),
        7 => denied(number),
        8 => prefix(number),
        _ => counts(&format!(
            "path = \"/api/v1/{{*rest}}\", plan = [\"plan{number:05}\", \"trial{number:05}\"], user = \"*\""
        )),
    }
}

fn route(number: u32) -> String {
    counts(&format!("path = \"/api/v1/resource{number:05}/{{id}}\", method = \"GET\""))
}

fn prefix(number: u32) -> String {
    counts(&format!("\"header.x-api-key\" = \"team{number:05}-*\""))
}

/// Half of the network in whose other half the request of this number is.
fn denied(number: u32) -> String {
    format!("when = {{ ip = \"{}/25\" }}\ndecision = 'deny'", network(number))
}

fn network(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0000 | number << 8)
}

fn counts(when: &str) -> String {
    format!("when = {{ {when} }}\nkey = ['user']\nlimit = '{ROOMY}'")
}

/// How many paths and how many tenants make so many rules.
fn side(count: u32) -> u32 {
    count.isqrt() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rules_apply_to_every_request_of_every_set() {
        for (set, count) in SETS.iter().flat_map(|set| [10, 100].map(|count| (set, count))) {
            let policy = set.policy(count);
            assert_eq!(policy.rules().len(), count as usize);
            for number in 1..count {
                let request = set.request(number, count);
                assert_eq!(policy.matching(&request).len() as u64, APPLYING, "{} {number}", set.name);
            }
        }
    }
}

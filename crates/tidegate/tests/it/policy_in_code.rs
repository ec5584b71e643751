//! A policy that is built in code, a gate that decides by it, and its replacement.

use std::{error::Error, net::IpAddr};

use tidegate::{
    Limit, Zone,
    rules::{Attributes, Gate, Mode, Policy, PolicyError, Rule, StaticVerdict},
};

fn policy(per_user: Limit) -> Result<Policy, PolicyError> {
    Policy::builder()
        .rule(Rule::builder("blocked-network").when("ip", "203.0.113.0/24").decision(StaticVerdict::Deny))
        .rule(Rule::builder("api-per-user").when("path", "/api/{*rest}").key(["user"]).limit(per_user))
        .rule(Rule::builder("per-address").key(["ip"]).limit("1/h").mode(Mode::Shadow))
        .build()
}

fn request<'a>(ip: [u8; 4], path: &'a str, user: &'a str) -> Attributes<'a> {
    Attributes::new().ip(IpAddr::from(ip)).path(path).set("user", user)
}

#[test]
fn a_gate_decides_by_the_policy_in_force() -> Result<(), Box<dyn Error>> {
    let gate = Gate::new(policy(Limit::per_hour(2))?, Zone::new(1 << 20))?;

    let blocked = gate.admit(&request([203, 0, 113, 9], "/api/orders", "ana")).now()?;
    assert!(!blocked.is_allowed() && blocked.is_forbidden());
    assert_eq!(blocked.rule(), Some("blocked-network"));

    let order = request([192, 0, 2, 7], "/api/orders", "ana");
    for _ in 0..2 {
        let admitted = gate.admit(&order).now()?;
        assert!(admitted.is_allowed());
    }
    let denied = gate.admit(&order).now()?;
    assert!(!denied.is_allowed() && !denied.is_forbidden());
    assert_eq!(denied.rule(), Some("api-per-user"));
    let binding = denied.binding().ok_or("a limit denied it")?;
    assert!(binding.decision.retry_after().is_some());

    let other_user = request([192, 0, 2, 8], "/api/orders", "bob");
    assert!(gate.admit(&other_user).now()?.is_allowed());
    let other_path = request([192, 0, 2, 8], "/about", "ana");
    assert!(gate.admit(&other_path).now()?.is_allowed());

    // The rule in shadow mode denied nothing; it counts what it would have denied.
    let counts = gate.counts();
    let (_, shadow) = counts.iter().find(|(rule, _)| rule.name() == "per-address").ok_or("no such rule")?;
    assert_eq!((shadow.shadow.allowed, shadow.shadow.denied), (2, 2));
    Ok(())
}

#[test]
fn a_new_policy_keeps_the_counts() -> Result<(), Box<dyn Error>> {
    let gate = Gate::new(policy(Limit::per_hour(2))?, Zone::new(1 << 20))?;
    let order = request([192, 0, 2, 7], "/api/orders", "ana");
    for is_allowed in [true, true, false] {
        assert_eq!(gate.admit(&order).now()?.is_allowed(), is_allowed);
    }

    gate.replace(policy(Limit::per_hour(3))?)?;
    for is_allowed in [true, false] {
        assert_eq!(gate.admit(&order).now()?.is_allowed(), is_allowed);
    }
    Ok(())
}

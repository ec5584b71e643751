//! Traefik with `ForwardAuth`.

use std::net::SocketAddr;
use std::process::Command;

use tidegate_rules::Policy;
use tidegate_server::Settings;
use tidegate_server::settings::{AuthSettings, Token, TrustedProxies};

use super::place::{Place, TOKEN, blocks, installed, rules, until};
use super::{holds_behind, send};
use crate::wire::{Running, settings};

/// The options of Traefik that the page names for a place behind a load balancer: of the file, and of the command.
const BEHIND_A_BALANCER: [&str; 2] =
    ["        trustForwardHeader: true\n", "--entryPoints.web.forwardedHeaders.trustedIPs=127.0.0.1/32"];

/// Starts Traefik with the configuration of the page, and with further options.
fn start(place: &mut Place, tidegate: SocketAddr, [of_file, of_command]: [&str; 2]) {
    let forward_auth = "      forwardAuth:\n";
    let block = blocks("yaml")[0].replace(forward_auth, &format!("{forward_auth}{of_file}"));
    place.write("dynamic.yml", &place.placed(&block, tidegate));
    let mut command = Command::new(installed("traefik"));
    command.arg(format!("--entryPoints.web.address={}", place.address()));
    command.args(["--providers.file.filename=dynamic.yml", "--global.checkNewVersion=false"]);
    command.args(Some(of_command).filter(|option| !option.is_empty()));
    place.start(command.arg("--global.sendAnonymousUsage=false"));
    // It accepts connections before it has read its routes, and replies 404 until then.
    until("Traefik has read its routes", || send(&mut place.talk(), "GET", "/", &[]).status != 404);
}

#[test]
fn the_rules_hold_behind_traefik() {
    let mut place = Place::new("traefik");
    let tidegate = place.tidegate();
    start(&mut place, tidegate, [""; 2]);
    holds_behind(&place);
    let denied = send(&mut place.talk(), "POST", "/login", &[]);
    assert_eq!(denied.json()["rule"], "login", "the client gets the problem document");
}

#[test]
fn while_the_server_is_down_traefik_denies() {
    let mut place = Place::without_server("traefik_closed");
    let absent = testbed::Port::free();
    start(&mut place, absent.address(), [""; 2]);
    assert_eq!(send(&mut place.talk(), "GET", "/", &[]).status, 500);
}

#[test]
fn behind_a_balancer_traefik_reports_the_address_that_the_balancer_has_added() {
    let mut trusted_proxies = TrustedProxies::default();
    trusted_proxies.add_text("127.0.0.0/8").expect("it is a network");
    let auth = AuthSettings { trusted_proxies, ..AuthSettings::default() };
    let policy = Policy::from_toml(rules()).unwrap_or_else(|error| panic!("{error}"));
    let running = Running::with(Settings { policy, auth, token: Token::new(TOKEN), ..settings() });
    let mut place = Place::before(running, "traefik_balancer");
    let tidegate = place.tidegate();
    start(&mut place, tidegate, BEHIND_A_BALANCER);
    let login =
        |ip: &str| send(&mut place.talk(), "POST", "/login", &[&format!("X-Forwarded-For: {ip}")]).status;
    let statuses: Vec<_> = (0..6).map(|_| login("203.0.113.7")).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429]);
    assert_eq!(login("203.0.113.8"), 200);
}

//! Traefik with `ForwardAuth`.

use std::net::SocketAddr;
use std::process::Command;

use super::place::{Place, blocks, installed, until};
use super::{holds_behind, send};

/// Starts Traefik with the configuration of the page.
fn start(place: &mut Place, tidegate: SocketAddr) {
    place.write("dynamic.yml", &place.placed(blocks("yaml")[0], tidegate));
    let mut command = Command::new(installed("traefik"));
    command.arg(format!("--entryPoints.web.address={}", place.address()));
    command.args(["--providers.file.filename=dynamic.yml", "--global.checkNewVersion=false"]);
    place.start(command.arg("--global.sendAnonymousUsage=false"));
    // It accepts connections before it has read its routes, and replies 404 until then.
    until("Traefik has read its routes", || send(&mut place.talk(), "GET", "/", &[]).status != 404);
}

#[test]
fn the_rules_hold_behind_traefik() {
    let mut place = Place::new("traefik");
    let tidegate = place.tidegate();
    start(&mut place, tidegate);
    holds_behind(&place);
    let denied = send(&mut place.talk(), "POST", "/login", &[]);
    assert_eq!(denied.json()["rule"], "login", "the client gets the problem document");
}

#[test]
fn while_the_server_is_down_traefik_denies() {
    let mut place = Place::without_server("traefik_closed");
    let absent = testbed::Port::free();
    start(&mut place, absent.address());
    assert_eq!(send(&mut place.talk(), "GET", "/", &[]).status, 500);
}

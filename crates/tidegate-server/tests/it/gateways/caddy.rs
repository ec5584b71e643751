//! Caddy with `forward_auth`.

use std::net::SocketAddr;
use std::process::Command;

use super::place::{Place, blocks, installed};
use super::{holds_behind, send};

/// Starts Caddy with this site.
fn start(place: &mut Place, site: &str, tidegate: SocketAddr) {
    let site = place.placed(site, tidegate);
    place.write("Caddyfile", &format!("{{\n\tadmin off\n\tauto_https off\n}}\n{site}"));
    let mut command = Command::new(installed("caddy"));
    command.args(["run", "--config", "Caddyfile", "--adapter", "caddyfile"]).env("HOME", &place.folder);
    place.start(
        command.env("XDG_DATA_HOME", place.folder.clone()).env("XDG_CONFIG_HOME", place.folder.clone()),
    );
}

#[test]
fn the_rules_hold_behind_caddy() {
    let mut place = Place::new("caddy");
    let tidegate = place.tidegate();
    start(&mut place, blocks("caddyfile")[0], tidegate);
    holds_behind(&place);
    let denied = send(&mut place.talk(), "POST", "/login", &[]);
    assert_eq!(denied.json()["rule"], "login", "the client gets the problem document");
}

#[test]
fn while_the_server_is_down_caddy_does_what_its_configuration_says() {
    let [site, open] = blocks("caddyfile")[..] else { panic!("the page has two blocks of Caddy") };
    let end = site.rfind('}').expect("a site ends");
    let open = format!("{}{open}{}", &site[..end], &site[end..]);
    for (name, site, without) in [("closed", site, 502), ("open", &open, 200)] {
        let mut place = Place::without_server(&format!("caddy_{name}"));
        let absent = testbed::Port::free();
        start(&mut place, site, absent.address());
        assert_eq!(send(&mut place.talk(), "GET", "/", &[]).status, without, "{name}");
    }
    // A failure of the service is no failure of the limiter: the request is sent once.
    let mut place = Place::new("caddy_broken");
    let tidegate = place.tidegate();
    start(&mut place, &open, tidegate);
    let talk = &mut place.talk();
    assert_eq!(send(talk, "POST", "/status/503", &[]).status, 503);
    assert_eq!(send(talk, "POST", "/broken", &[]).status, 502);
    assert_eq!(place.app.times_seen("POST /broken"), 1);
}

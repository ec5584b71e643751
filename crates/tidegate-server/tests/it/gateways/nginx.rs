//! nginx with `auth_request`.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use rustix::process::Signal;
use tidegate::SECOND;

use super::place::{Place, TOKEN, blocks, rules, until};
use super::{holds_behind, send};
use crate::command::call::{Call, address};
use crate::process::Process;

/// What the rest of a configuration says on any machine. The page has the part in the block `http`.
fn main_file(site: &str) -> String {
    format!(
        "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log error.log info;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\naccess_log off;\nclient_body_temp_path body;\nproxy_temp_path proxy;\n\
         fastcgi_temp_path fastcgi;\nuwsgi_temp_path uwsgi;\nscgi_temp_path scgi;\n{site}\n}}\n"
    )
}

/// Returns the site of the page. If it is fail-open, with the lines that the page adds for that.
fn site(is_open: bool) -> String {
    let [site, line, location] = blocks("nginx")[..] else { panic!("the page has three blocks of nginx") };
    if !is_open {
        return site.to_owned();
    }
    let timeout = "        proxy_read_timeout 1s;\n";
    assert!(site.contains(timeout), "{site}");
    let site = site.replace(timeout, &format!("{timeout}{line}"));
    let end = site.rfind('}').expect("a server ends");
    format!("{}{location}{}", &site[..end], &site[end..])
}

/// Starts nginx with this site.
pub(super) fn start(place: &mut Place, site: &str, tidegate: SocketAddr) {
    place.write("nginx.conf", &main_file(&place.placed(site, tidegate)));
    let mut command = Command::new(crate::clients::tools::program("nginx"));
    place.start(command.arg("-p").arg(place.folder.clone()).args(["-c", "nginx.conf"]));
}

#[test]
fn the_rules_hold_behind_nginx_and_no_denial_is_an_error_in_its_log() {
    let mut place = Place::new("nginx");
    let tidegate = place.tidegate();
    start(&mut place, &site(false), tidegate);
    holds_behind(&place);
    let allowed = send(&mut place.talk(), "GET", "/", &[]);
    assert!(
        allowed.field("ratelimit").is_some_and(|field| field.starts_with("\"per-client\";r=")),
        "{allowed:?}"
    );

    let log = fs::read_to_string(place.folder.join("error.log")).expect("nginx writes a log");
    let errors: Vec<_> =
        log.lines().filter(|line| !line.contains("[notice]") && !line.contains("[info]")).collect();
    assert!(errors.is_empty(), "{errors:?}");

    // After the wait that the reply names, the same request passes.
    place.running.as_ref().expect("it runs").clock.advance(60 * SECOND);
    assert_eq!(send(&mut place.talk(), "POST", "/login", &[]).status, 200);
}

#[test]
fn nginx_accepts_every_configuration_of_the_page_for_its_users() {
    let page = include_str!("../../../../../docs/coming-from/nginx.md");
    let folder = Place::without_server("coming_from").folder;
    let mut count = 0;
    for block in page.split("```nginx\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        // A block without a server is a part of one.
        let site =
            if block.contains("server {") { block.to_owned() } else { format!("server {{\n{block}}}\n") };
        fs::write(folder.join("nginx.conf"), main_file(&site)).expect("a file can be written");
        let mut command = Command::new(crate::clients::tools::program("nginx"));
        let output = command.arg("-p").arg(&folder).args(["-t", "-c", "nginx.conf"]).output();
        let output = output.expect("nginx starts");
        assert!(output.status.success(), "{block}{}", String::from_utf8_lossy(&output.stderr));
        count += 1;
    }
    assert!(count >= 4, "{count} blocks");
}

/// A server as a process, which a test can kill and start again on the same port.
fn serve(call: &Call, port: &testbed::Port) -> Process {
    let http = port.address().to_string();
    let (process, ready) =
        call.ready(&["serve", "--json", "--resp", "off", "--http", &http, "--config", "tidegate.toml"]);
    assert_eq!(address(&ready, "http"), port.address());
    process
}

#[test]
fn while_the_server_is_down_or_hangs_nginx_does_what_its_configuration_says() {
    for (name, is_open, without) in [("closed", false, 500), ("open", true, 200)] {
        let call = Call::from(&format!("gateway_{name}"))
            .file("tidegate.toml", rules())
            .variable("TIDEGATE_TOKEN", TOKEN);
        let port = testbed::Port::free();
        let process = serve(&call, &port);
        let mut place = Place::without_server(&format!("nginx_{name}"));
        start(&mut place, &site(is_open), port.address());
        // nginx closes the connection after a 500.
        let ask = || send(&mut place.talk(), "GET", "/", &[]).status;
        until("the server answers", || ask() == 200);
        process.signal(Signal::STOP);
        assert_eq!((ask(), ask()), (without, without), "{name}, the server hangs");
        process.signal(Signal::CONT);
        until("the server answers again", || ask() == 200);
        drop(process);
        assert_eq!((ask(), ask()), (without, without), "{name}, the server is gone");
        let _process = serve(&call, &port);
        // nginx asks a server that has failed again after its `fail_timeout`.
        until("nginx asks the new server", || ask() == 200);
    }
}

//! `INFO` and `CONFIG`: what clients and people want to know about the server.

use std::fmt::Write as _;

use super::reply::echo;
use super::session::{Call, Refused};

/// The version of Redis whose clients find what they look for.
const REDIS_VERSION: &str = "7.0.0";

/// `INFO [section…]`: always everything, which is little.
pub(super) fn info(call: &mut Call<'_, '_>) -> Refused {
    let engine = &call.post.engine;
    let (meters, zone) = (&engine.meters, engine.zone.counts());
    let port = engine.settings.resp.map_or(0, |address| address.port());
    let opened = meters.sum(|meter| &meter.resp_connections) + meters.sum(|meter| &meter.http_connections);
    // Threads count while this adds up: one may have closed what another had not yet seen opened.
    let open = opened.saturating_sub(meters.sum(|meter| &meter.closed));
    let lines: [(&str, String); 20] = [
        ("# Server", String::new()),
        ("redis_version", REDIS_VERSION.to_owned()),
        ("tidegate_version", env!("CARGO_PKG_VERSION").to_owned()),
        ("redis_mode", "standalone".to_owned()),
        ("process_id", std::process::id().to_string()),
        ("tcp_port", port.to_string()),
        ("uptime_in_seconds", engine.uptime().as_secs().to_string()),
        ("# Clients", String::new()),
        ("connected_clients", open.to_string()),
        ("maxclients", engine.settings.bounds.max_connections.to_string()),
        ("# Persistence", String::new()),
        ("loading", "0".to_owned()),
        ("# Stats", String::new()),
        ("total_commands_processed", meters.sum(|meter| &meter.resp_commands).to_string()),
        ("tidegate_allowed", meters.sum(|meter| &meter.allowed).to_string()),
        ("tidegate_denied", meters.sum(|meter| &meter.denied).to_string()),
        ("tidegate_zone_cells", zone.cells.to_string()),
        ("tidegate_zone_live", zone.live.to_string()),
        ("# Replication", String::new()),
        ("role", "master".to_owned()),
    ];
    let mut text = String::new();
    for (name, value) in &lines {
        let wrote = if name.starts_with('#') {
            write!(text, "{name}\r\n")
        } else {
            write!(text, "{name}:{value}\r\n")
        };
        wrote.expect("a string takes everything");
    }
    call.replies.bulk(text.as_bytes());
    call.session.pauses = true;
    Ok(())
}

/// `CONFIG GET name…`: what stock tools ask for. Nothing can be set: settings are flags, variables and a file.
pub(super) fn config(call: &mut Call<'_, '_>) -> Refused {
    let subcommand = call.words.get(1).unwrap_or_default();
    if !subcommand.eq_ignore_ascii_case(b"GET") {
        return Err(format!(
            "ERR CONFIG {} is not possible here; settings are flags, TIDEGATE_* variables and the file of --config",
            echo(&subcommand.to_ascii_uppercase())
        ));
    }
    let most = call.post.engine.settings.bounds.max_connections.to_string();
    let idle = call.post.engine.settings.bounds.idle.as_secs().to_string();
    let known = [
        ("appendonly", "no"),
        ("maxclients", &most),
        ("maxmemory", "0"),
        ("maxmemory-policy", "noeviction"),
        ("save", ""),
        ("timeout", &idle),
    ];
    let wanted = call.words.from(2);
    let matches =
        |name: &str| wanted.iter().any(|word| word == b"*" || word.eq_ignore_ascii_case(name.as_bytes()));
    let found: Vec<_> = known.into_iter().filter(|(name, _)| matches(name)).collect();
    call.replies.map(found.len());
    for (name, value) in found {
        call.replies.bulk(name.as_bytes());
        call.replies.bulk(value.as_bytes());
    }
    Ok(())
}

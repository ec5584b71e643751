//! `INFO` and `CONFIG`: the server's state and settings, in the form that Redis tools expect.
//!
//! Tools such as redis-cli, redis-benchmark and exporters ask for both on connect. The fields have the names of
//! Redis where one fits, and the prefix `tidegate_` otherwise.

use super::reply::echo;
use super::session::{Call, CommandResult};
use crate::meter::{Count, Meter};

/// The Redis version that is reported to clients.
const REDIS_VERSION: &str = "7.0.0";

/// `INFO [section…]`: always all sections, since the reply is short.
pub(super) fn info(call: &mut Call<'_, '_>) -> CommandResult {
    let engine = &call.worker.engine;
    let sum = |which: fn(&Meter) -> &Count| engine.meters().sum(which);
    let opened = sum(|meter| &meter.resp_connections) + sum(|meter| &meter.http_connections);
    // The counters of several threads are not read at one instant: a close may be counted before its open.
    let open = opened.saturating_sub(sum(|meter| &meter.closed));
    let (zone, version) = (engine.zone().counts(), env!("CARGO_PKG_VERSION"));
    let text = format!(
        "# Server\r\nredis_version:{REDIS_VERSION}\r\ntidegate_version:{version}\r\nredis_mode:standalone\r\n\
         process_id:{process}\r\ntcp_port:{port}\r\nuptime_in_seconds:{uptime}\r\n\
         # Clients\r\nconnected_clients:{open}\r\nmaxclients:{most}\r\n\
         # Persistence\r\nloading:0\r\n\
         # Stats\r\ntotal_commands_processed:{commands}\r\ntidegate_allowed:{allowed}\r\ntidegate_denied:{denied}\r\n\
         tidegate_zone_cells:{cells}\r\ntidegate_zone_live:{live}\r\n\
         # Replication\r\nrole:master\r\n",
        process = std::process::id(),
        port = engine.settings().resp.map_or(0, |address| address.port()),
        uptime = engine.uptime().as_secs(),
        most = engine.settings().bounds.max_connections,
        commands = sum(|meter| &meter.resp_commands),
        allowed = sum(|meter| &meter.allowed),
        denied = sum(|meter| &meter.denied),
        cells = zone.cells,
        live = zone.live,
    );
    call.replies.bulk(text.as_bytes());
    call.session.pauses = true;
    Ok(())
}

/// `CONFIG GET name…`: the settings that stock tools ask for. There is no `CONFIG SET`: settings are flags, variables
/// and a file.
pub(super) fn config(call: &mut Call<'_, '_>) -> CommandResult {
    let subcommand = call.words.get(1).unwrap_or_default();
    if !subcommand.eq_ignore_ascii_case(b"GET") {
        return Err(format!(
            "ERR CONFIG {} is not possible here; settings are flags, TIDEGATE_* variables and the file of --config",
            echo(&subcommand.to_ascii_uppercase())
        ));
    }
    let most = call.worker.engine.settings().bounds.max_connections.to_string();
    let idle = call.worker.engine.settings().bounds.idle_timeout.as_secs().to_string();
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

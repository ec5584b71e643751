//! Tests of the sources of settings and their precedence.

use super::call::Call;

/// A file with its own address; variables and flags name others.
const FILE: &str = "[server]\nresp = \"127.0.0.2:0\"\nhttp = \"off\"\n";

fn resp_of(call: &Call, arguments: &[&str]) -> (String, String) {
    let (process, ready) = call.ready(&[&["serve", "--json"], arguments].concat());
    let origin = process.says("settings  ");
    let address = ready["resp"].as_str().expect("it speaks RESP");
    (address.rsplit_once(':').expect("it has a port").0.to_owned(), origin.replace("settings  ", ""))
}

#[test]
fn a_flag_counts_before_a_variable_before_the_file() {
    let address_from = |address: &str, origin: &str| (address.to_owned(), origin.to_owned());
    let file = Call::from("precedence").file("tidegate.toml", FILE);
    assert_eq!(resp_of(&file, &[]), address_from("127.0.0.2", "./tidegate.toml"));
    let variable = file.variable("TIDEGATE_RESP", "127.0.0.3:0");
    assert_eq!(resp_of(&variable, &[]), address_from("127.0.0.3", "./tidegate.toml, TIDEGATE_RESP"));
    let flag = ["--resp", "127.0.0.4:0"];
    assert_eq!(resp_of(&variable, &flag), address_from("127.0.0.4", "./tidegate.toml, --resp"));
}

#[test]
fn an_empty_variable_says_nothing() {
    let call = Call::from("empty_variable").file("tidegate.toml", FILE).variable("TIDEGATE_RESP", "");
    assert_eq!(resp_of(&call, &[]).0, "127.0.0.2");
}

#[test]
fn every_key_of_the_file_has_a_variable_and_a_flag() {
    let all = [
        ("resp", "127.0.0.1:0"),
        ("http", "off"),
        ("headers", "draft03"),
        ("threads", "2"),
        ("max_connections", "100"),
        ("max_unfinished", "8MiB"),
        ("idle_timeout", "1m30s"),
        ("request_timeout", "5s"),
        ("write_timeout", "500ms"),
        ("shutdown_timeout", "0s"),
        ("store_kind", "memory"),
        ("store_size", "8MiB"),
        ("store_file", "zone.tg"),
        ("token_file", "token"),
    ];
    let call = Call::from("every_variable").file("token", "secret\n");
    let with_all = all
        .iter()
        .fold(call, |call, (key, value)| call.variable(&format!("TIDEGATE_{}", key.to_uppercase()), value));
    let (process, _) = with_all.ready(&["serve", "--json"]);
    let origin = process.says("settings  ");
    assert_eq!(origin.matches("TIDEGATE_").count(), all.len(), "{origin}");
    assert_eq!(process.says("store "), "store     8 MiB in zone.tg; survives restarts and kill -9");
    drop(process);

    let flags: Vec<_> = all.iter().flat_map(|(key, value)| [flag(key), (*value).to_owned()]).collect();
    let call = Call::from("every_flag").file("token", "secret\n");
    let flags: Vec<_> = ["serve", "--json"].into_iter().chain(flags.iter().map(String::as_str)).collect();
    let (process, ready) = call.ready(&flags);
    assert_eq!(process.says("settings  ").matches("--").count(), all.len());
    assert!(ready["http"].is_null());
}

#[test]
fn every_key_about_redis_has_a_variable_and_a_flag() {
    let all = [
        ("store_kind", "redis"),
        ("store_url", "redis://127.0.0.1:1"),
        ("store_password_file", "password"),
        ("store_nodes", "2"),
        ("store_deadline", "50ms"),
        ("store_prefix", "x:"),
        ("store_denial_cache", "false"),
        ("on_store_failure", "open"),
        ("store_size", "8MiB"),
    ];
    let store =
        "store     redis://:***@127.0.0.1:1, shared by 2 servers; 8 MiB in memory for when it is away";
    let call = Call::from("every_variable_about_redis").file("password", "secret\n");
    let with_all = all
        .iter()
        .fold(call, |call, (key, value)| call.variable(&format!("TIDEGATE_{}", key.to_uppercase()), value));
    let (process, _) = with_all.serve(&[]);
    assert_eq!(process.says("settings  ").matches("TIDEGATE_").count(), all.len());
    assert_eq!(process.says("store "), store);
    drop(process);

    let flags: Vec<_> = all.iter().flat_map(|(key, value)| [flag(key), (*value).to_owned()]).collect();
    let call = Call::from("every_flag_about_redis").file("password", "secret\n");
    let (process, _) = call.serve(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    let origin = process.says("settings  ");
    // And those of the two addresses.
    assert_eq!(origin.matches("--").count(), all.len() + 2, "{origin}");
    assert_eq!(process.says("store "), store);
}

fn flag(key: &str) -> String {
    format!("--{}", key.replace('_', "-"))
}

#[test]
fn paths_in_a_file_are_meant_from_its_folder() {
    let text = "[server]\nresp = \"127.0.0.1:0\"\nhttp = \"off\"\ntoken_file = \"token\"\n[store]\nfile = \"zone.tg\"\n";
    let call = Call::from("folder").file("etc/tidegate.toml", text).file("etc/token", "secret\n");
    let (_process, _) = call.ready(&["serve", "--json", "--config", "etc/tidegate.toml"]);
    assert!(call.folder().join("etc/zone.tg").is_file());
}

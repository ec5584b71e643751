//! Random texts of policies, with every field and with values at the edges of validity. Some are invalid.

use crate::random::Random;

pub(crate) const ATTRIBUTES: [&str; 8] =
    ["ip", "user", "path", "host", "method", "header.x-a", "cookie.session", "query.q"];
pub(crate) const NAMES: [&str; 6] = ["a", "b", "login", "x.y:z/-_", "api", "zone"];

const NUMBERS: [&str; 13] = [
    "1",
    "2",
    "3",
    "7",
    "100",
    "1000",
    "1024",
    "65535",
    "1048576",
    "10000000",
    "4611686018427387904",
    "9223372036854775807",
    "18446744073709551615",
];
const PERIODS: [&str; 12] =
    ["us", "1us", "16us", "ms", "s", "1m30s", "h", "d", "365d", "520w", "3650d", "1000w"];

fn number(random: &mut Random) -> &'static str {
    // Small numbers are valid more often.
    if random.once_in(3) { random.pick(&NUMBERS) } else { random.pick(&NUMBERS[..6]) }
}

fn span(random: &mut Random) -> &'static str {
    random.pick(&["1us", "500ms", "1s", "1m30s", "30d", "365d", "0s"])
}

/// Returns the text of a limit.
pub(crate) fn limit(random: &mut Random) -> String {
    let mut limit = match random.once_in(40) {
        true => "unlimited pacer".to_owned(),
        false => format!("{}/{}", number(random), random.pick(&PERIODS)),
    };
    let say = |random: &mut Random, limit: &mut String, word: &str, value: &str| {
        if random.once_in(3) {
            *limit += &format!(" {word} {value}");
        }
    };
    match random.below(8) {
        0 | 1 => {
            let (burst, debt) = (number(random), number(random));
            say(random, &mut limit, "burst", burst);
            say(random, &mut limit, "max-debt", debt);
        }
        2 => {
            let (queue, after) = (number(random), random.pick(&["0", "1", "5", "all", "1048576"]));
            limit += " leaky-bucket";
            say(random, &mut limit, "queue", queue);
            say(random, &mut limit, "delay-after", after);
        }
        3 => {
            limit += " fixed-window";
            let align = random.pick(&["epoch", "first-hit"]);
            say(random, &mut limit, "align", align);
        }
        4 => limit += random.pick(&[" sliding-log", " sliding-log count-denied"]),
        5 => {
            limit += " sliding-window";
            let (slots, mode) =
                (random.pick(&["1", "2", "16", "1024"]), random.pick(&["strict", "estimate"]));
            say(random, &mut limit, "slots", slots);
            say(random, &mut limit, "mode", mode);
        }
        6 => {
            limit += " pacer";
            let (burst, pay) = (span(random), random.pick(&["next", "self"]));
            let (warm_up, factor) = (span(random), random.pick(&["1", "2", "3", "100"]));
            match random.below(3) {
                0 => say(random, &mut limit, "burst", burst),
                1 => say(random, &mut limit, "pay", pay),
                _ => {
                    limit += &format!(" warm-up {warm_up}");
                    say(random, &mut limit, "cold-factor", factor);
                }
            }
        }
        _ => limit += " concurrency",
    }
    if limit.starts_with("unlimited") { "unlimited pacer".to_owned() } else { limit }
}

fn pattern(random: &mut Random, attribute: &str) -> &'static str {
    match attribute {
        "ip" => random.pick(&[
            "10.0.0.0/8",
            "::/0",
            "0.0.0.0/0",
            "2001:db8::/32",
            "192.0.2.7",
            "::1",
            "::ffff:10.0.0.0/104",
        ]),
        "path" => random.pick(&[
            "/login",
            "/api/{*rest}",
            "/{a}",
            "/{a}/",
            "*",
            "/*",
            "/a//b/../c",
            "/%61*",
            "/x/{id}/y",
        ]),
        "host" => random.pick(&["Example.com:80", "www.*", "*", "", "[::1]"]),
        "method" => random.pick(&["GET", "POST", "*", ""]),
        _ => random.pick(&["", "*", "a", "a*", "ana", "\\\\*", "ü"]),
    }
}

fn conditions(random: &mut Random, field: &str) -> String {
    let mut conditions = Vec::new();
    for attribute in ATTRIBUTES {
        if random.once_in(5) {
            let count = if random.once_in(5) { 20 } else { 1 + random.below(2) };
            let value = |random: &mut Random| match random.below(12) {
                0 => "{ missing = true }".to_owned(),
                1 => "{ present = true }".to_owned(),
                _ => format!("\"{}\"", pattern(random, attribute)),
            };
            let values: Vec<_> = (0..count).map(|_| value(random)).collect();
            conditions.push(format!("\"{attribute}\" = [{}]", values.join(", ")));
        }
    }
    format!("{field} = {{ {} }}\n", conditions.join(", "))
}

fn list(random: &mut Random, most: usize) -> String {
    let mut all = ATTRIBUTES.to_vec();
    let names = (0..random.below(most + 1)).map(|_| format!("'{}'", all.remove(random.below(all.len()))));
    names.collect::<Vec<_>>().join(", ")
}

fn window(random: &mut Random) -> String {
    let (from, to) = random.pick(&[
        &("11-11T00:00", "11-12T00:00"),
        &("02-29T00:00", "03-01T00:00"),
        &("12-31T23:59", "01-01T00:01"),
        &("22:00", "06:00"),
        &("00:00", "24:00"),
        &("2026-03-08T02:30", "2026-11-01T01:30"),
        &("00:00", "00:01"),
        &("2026-01-01T00:00:00", "2026-01-01T00:00:01"),
        &("09:00", "17:00:30"),
        &("0001-01-01T00:00", "9999-12-31T23:59"),
    ]);
    // A window that never ends takes long to explain.
    let to = if *to == "23:59:59" && random.once_in(30) { "24:00" } else { *to };
    let mut window = format!("from = '{from}', to = '{to}'");
    if random.once_in(2) {
        let zone = random.pick(&[
            "America/New_York",
            "Asia/Shanghai",
            "UTC",
            "Pacific/Apia",
            "Australia/Lord_Howe",
            "Africa/Casablanca",
        ]);
        window += &format!(", timezone = '{zone}'");
    }
    if random.once_in(3) {
        window += random.pick(&[
            ", days = ['mon']",
            ", days = ['sat', 'sun']",
            ", days = ['mon', 'tue', 'wed', 'thu', 'fri']",
        ]);
    }
    window += &match random.below(4) {
        0 => format!(", cost = {}", random.pick(&["1", "5", "4611686018427387904"])),
        1 => format!(", max_wait = '{}'", span(random)),
        2 => format!(", mode = '{}'", random.pick(&["enforce", "shadow"])),
        _ => format!(", limit = '{}'", limit(random)),
    };
    format!("{{ {window} }}")
}

/// Returns the lines that both a rule and a candidate may have.
fn terms(random: &mut Random) -> String {
    let mut text = format!("limit = '{}'\n", limit(random));
    if random.once_in(4) {
        text += &format!("cost = {}\n", random.pick(&["1", "2", "1000", "4611686018427387904"]));
    }
    if random.once_in(4) {
        text += &format!("max_wait = '{}'\n", span(random));
    }
    if random.once_in(4) {
        let windows: Vec<_> = (0..1 + random.below(3)).map(|_| window(random)).collect();
        text += &format!("schedule = [{}]\n", windows.join(", "));
    }
    text
}

fn rule(random: &mut Random, number: usize) -> String {
    let name = if number < NAMES.len() { NAMES[number].to_owned() } else { format!("rule-{number}") };
    let mut text = format!("[[rule]]\nname = '{name}'\n");
    if number > 0 && random.once_in(5) {
        return text
            + &format!("candidate_for = '{}'\n{}", NAMES[random.below(number.min(3))], terms(random));
    }
    if !random.once_in(3) {
        text += &conditions(random, "when");
    }
    if random.once_in(4) {
        text += &conditions(random, "unless");
    }
    if random.once_in(3) {
        text += &format!("mode = '{}'\n", random.pick(&["enforce", "shadow"]));
    }
    if random.once_in(8) {
        return text + &format!("decision = '{}'\n", random.pick(&["allow", "deny"]));
    }
    text += &terms(random);
    let most = if random.once_in(6) { 8 } else { 2 };
    text += &format!("key = [{}]\n", list(random, most));
    if random.once_in(3) {
        text += &format!("group = '{}'\n", random.pick(&["plan", "other"]));
    }
    for (word, values) in [
        ("on_missing", &["share", "skip"][..]),
        ("on_store_failure", &["open", "closed", "local"]),
        ("when_full", &["share", "forget"]),
        ("zone", &["small", "other"]),
    ] {
        if random.once_in(4) {
            text += &format!("{word} = '{}'\n", random.pick(values));
        }
    }
    if random.once_in(4) {
        text += &format!("ipv4_prefix = {}\nipv6_prefix = {}\n", 1 + random.below(32), 1 + random.below(128));
    }
    text
}

/// Returns the text of a policy, which may be invalid.
pub(crate) fn config(random: &mut Random) -> String {
    let count = if random.once_in(20) { 30 } else { 1 + random.below(4) };
    let rules: String = (0..count).map(|number| rule(random, number)).collect();
    let unmatched = random.pick(&["", "[rules]\nunmatched = 'deny'\n", "[rules]\n"]);
    format!("[zone.small]\nsize = '4KiB'\n[zone.other]\nsize = '8192'\n{unmatched}{rules}")
}

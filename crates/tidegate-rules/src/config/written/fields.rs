//! The fields of each table, with an example for each.
//!
//! A field that is not in these lists is an error with a suggestion, never ignored: an ignored `limits = "5/s"` would
//! be a rule that limits no request. The example of a field is the remedy for a value of the wrong type.

/// A field of a table, with an example.
///
/// Its example is TOML, so that a message can be copied into the file: `cost: is text; write cost = 5`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) example: &'static str,
}

const fn field(name: &'static str, example: &'static str) -> Field {
    Field { name, example }
}

/// The fields of a table `[[rule]]`. Only `name` is required, with one of `limit` and `decision`.
pub(super) const RULE: [Field; 22] = [
    field("name", "\"login\""),
    field("when", "{ path = \"/api/{*rest}\" }"),
    field("unless", "{ path = \"/healthz\" }"),
    field("group", "\"plan\""),
    field("key", "[\"ip\"]"),
    field("limit", "\"10/s burst 20\""),
    field("limit_for", "{ \"ana\" = \"50/m\" }"),
    field("penalty", "{ after = 3, within = \"1m\", for = \"10m\" }"),
    field("mode", "\"shadow\""),
    field("candidate_for", "\"login\""),
    field("decision", "\"allow\""),
    field("cost", "5"),
    field("max_wait", "\"500ms\""),
    field("schedule", "[{ from = \"11-11T00:00\", to = \"11-12T00:00\", limit = \"50/s\" }]"),
    field("on_missing", "\"share\""),
    field("on_repeated", "\"deny\""),
    field("on_store_failure", "\"local\""),
    field("when_full", "\"share\""),
    field("zone", "\"logins\""),
    field("ipv4_prefix", "24"),
    field("ipv6_prefix", "56"),
    field("trusted", "[\"header.x-user\"]"),
];

/// The fields of an entry of `schedule`. `from` and `to` are required, with at least one of the last four.
pub(super) const WINDOW: [Field; 8] = [
    field("from", "\"11-11T00:00\""),
    field("to", "\"11-12T00:00\""),
    field("days", "[\"sat\", \"sun\"]"),
    field("timezone", "\"Asia/Shanghai\""),
    field("limit", "\"50/s burst 100\""),
    field("cost", "1"),
    field("max_wait", "\"500ms\""),
    field("mode", "\"shadow\""),
];

/// The fields of `penalty`. All of them are required.
pub(super) const PENALTY: [Field; 3] =
    [field("after", "3"), field("within", "\"1m\""), field("for", "\"10m\"")];

/// The names of all tables of a file.
///
/// Another table is an error if the file belongs to no server, because it is usually a misspelled `[[rule]]`.
pub(super) const TABLES: [&str; 6] = ["rule", "zone", "rules", "attributes", "server", "store"];

/// The fields of a table `[zone.NAME]`. The size is required.
pub(super) const ZONE: [Field; 1] = [field("size", "\"16MiB\"")];

/// The fields of the table `[rules]`.
pub(super) const RULES: [Field; 1] = [field("unmatched", "\"deny\"")];

/// The fields of the table `[attributes]`. The names are required.
pub(super) const ATTRIBUTES: [Field; 1] = [field("names", "[\"user\", \"plan\"]")];

/// Names that are no fields of a table, each with the same remedy.
pub(super) type Misplaced = (&'static [&'static str], &'static str);

/// Fields that are often written in the wrong table, with the correct location.
///
/// Other rate limiters have these as separate fields. A similar name of a field would be a misleading suggestion.
pub(super) const MISPLACED: [Misplaced; 6] = [
    (
        &["burst", "queue", "slots", "delay_after", "delay-after", "max_debt", "max-debt"],
        "is part of the limit; write it there, as in limit = \"10/s burst 20\"",
    ),
    (
        &["algorithm", "kind", "type"],
        "is part of the limit; write it there, as in limit = \"5/60s sliding-log\"",
    ),
    (
        &["rate", "amount", "count", "requests", "period", "per", "window", "interval", "unit"],
        "is part of the limit; write it there, as in limit = \"30/60s\"",
    ),
    (
        &["timezone", "tz", "from", "to", "days"],
        "is part of a schedule; write it there, as in schedule = [{ from = \"09:00\", to = \"17:00\", timezone = \"Europe/Berlin\", limit = \"50/s\" }]",
    ),
    (
        &["not", "except", "exclude"],
        "is no field; write what the rule is not for as unless = { path = \"/healthz\" }",
    ),
    (
        &["ip", "path", "host", "method", "user", "header", "cookie", "query"],
        "is a condition; write it in braces, as in when = { path = \"/api/{*rest}\" }",
    ),
];

/// Fields of a penalty that are written beside it, by their names or by those of other tools.
pub(super) const BESIDE_PENALTY: [Misplaced; 1] = [(
    &[
        "after", "within", "for", "strikes", "ban", "bans", "ban_for", "ban_time", "bantime", "findtime",
        "maxretry", "block", "jail", "lockout", "cooldown", "fail2ban",
    ],
    "is part of a penalty; write it there, as in penalty = { after = 3, within = \"1m\", for = \"10m\" }",
)];

/// Fields of a rule that are written in a window of its schedule, where they have no effect.
pub(super) const BESIDE_SCHEDULE: [Misplaced; 1] = [(
    &["penalty"],
    "belongs to the rule, at all times; write it beside the schedule, as in penalty = { after = 3, within = \"1m\", \
     for = \"10m\" }",
)];

/// Names of other tools for the fields of a penalty.
pub(super) const IN_PENALTY: [Misplaced; 6] = [
    (
        &[
            "strikes", "strike", "count", "denials", "denied", "failures", "attempts", "tries", "times",
            "max", "most", "maxretry", "amount", "requests", "number",
        ],
        NUMBER_OF_DENIALS,
    ),
    (&["max_retry", "max_strikes", "max_attempts", "threshold"], NUMBER_OF_DENIALS),
    (
        &[
            "window", "period", "per", "in", "interval", "during", "span", "every", "findtime", "rate",
            "unit", "from",
        ],
        "is no field of a penalty; write the span within which denials count as within = \"1m\"",
    ),
    (
        &[
            "ban", "bans", "banned", "ban_for", "bantime", "ban_time", "duration", "length", "lasts", "time",
            "timeout", "ttl", "expires", "until", "to", "block", "blocked", "jail", "lockout", "cooldown",
            "penalty",
        ],
        LENGTH_OF_BAN,
    ),
    (&["ban_duration", "ban_length", "block_for", "block_duration"], LENGTH_OF_BAN),
    (
        &["seconds", "secs", "minutes", "mins", "hours", "days"],
        "is no field of a penalty; a span has its unit, as in within = \"60s\" and for = \"10m\"",
    ),
];

const NUMBER_OF_DENIALS: &str = "is no field of a penalty; write the number of denials as after = 3";
const LENGTH_OF_BAN: &str = "is no field of a penalty; write the length of the ban as for = \"10m\"";

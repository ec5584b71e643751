//! An override as JSON, in the file and in Redis.
//!
//! ```text
//! {"rule":"api","key":{"ip":"192.0.2.7"},"limit":"100/s","until":"2026-11-15T14:00:00Z","by":"ana",
//!  "at":"2026-11-15T12:00:00Z"}
//! ```

use std::fmt;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use tidegate::Limit;
use tidegate_rules::{Instead, Override, OverrideId, OverrideSet, parse_kept_limit};

use crate::date;
use crate::explained::Parts;

/// An override as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OverrideRecord {
    /// The name of the rule.
    rule: String,
    /// The parts of the key, in the spelling in which the rule counts.
    key: RecordKey,
    /// The limit in place of that of the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit: Option<LimitText>,
    /// The decision in place of the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<AllowOrDeny>,
    /// The end; without it, the override does not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<KeptDate>,
    /// The author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// The time at which it was put.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<KeptDate>,
}

/// The words for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AllowOrDeny {
    Allow,
    Deny,
}

/// The parts of a key, serialized as an object.
#[derive(Clone, Debug)]
struct RecordKey(Vec<(String, String)>);

/// A limit, serialized as its text. One in a time zone that this machine does not have is valid, and has no effect.
#[derive(Clone, Copy, Debug)]
struct LimitText(Limit);

/// A date in seconds since 1970, serialized as RFC 3339 text. A date that no calendar has is its number of seconds.
#[derive(Clone, Copy, Debug)]
struct KeptDate(i64);

impl OverrideRecord {
    /// Parses the JSON of one override. The error has the line, the fault and a remedy.
    pub(super) fn read(json: &[u8]) -> Result<Override, String> {
        let record: OverrideRecord = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        record.into_override()
    }

    /// Returns the override.
    pub(super) fn into_override(self) -> Result<Override, String> {
        let instead = match (self.limit, self.decision) {
            (Some(LimitText(limit)), None) => Instead::Limit(limit),
            (None, Some(AllowOrDeny::Allow)) => Instead::Allow,
            (None, Some(AllowOrDeny::Deny)) => Instead::Deny,
            _ => {
                return Err(format!(
                    "override of {}: has not exactly one of limit and decision; keep one of them",
                    self.shown_key()
                ));
            }
        };
        let mut one = Override::new(self.rule, self.key.0, instead);
        one.until = self.until.map(|KeptDate(until)| until);
        one.by = self.by;
        one.at = self.at.map_or(0, |KeptDate(at)| at);
        Ok(one)
    }

    /// Returns the record of an override without its author and time, which a line of the audit log has.
    pub(super) fn without_author(one: &Override) -> OverrideRecord {
        OverrideRecord { by: None, at: None, ..OverrideRecord::from(one) }
    }

    /// Returns the record of a key, without a limit or decision.
    pub(crate) fn of_key(id: &OverrideId) -> OverrideRecord {
        let (rule, key) = (id.rule().to_owned(), RecordKey(id.key().to_vec()));
        OverrideRecord { rule, key, limit: None, decision: None, until: None, by: None, at: None }
    }

    /// Parses a body that names a key as overrides are listed: in the spelling in which the rule counts.
    pub(crate) fn named_key(json: &[u8]) -> Option<OverrideId> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct NamedKey {
            rule: String,
            key: RecordKey,
        }
        let NamedKey { rule, key } = serde_json::from_slice(json).ok()?;
        Some(OverrideId::new(rule, key.0))
    }

    /// Returns its rule and key as text, for messages.
    pub(crate) fn shown_key(&self) -> String {
        let key = serde_json::to_string(&self.key).unwrap_or_default();
        format!("rule {:?}, key {key}", self.rule)
    }
}

impl From<&Override> for OverrideRecord {
    fn from(one: &Override) -> OverrideRecord {
        let (limit, decision) = match one.instead {
            Instead::Limit(limit) => (Some(LimitText(limit)), None),
            Instead::Allow => (None, Some(AllowOrDeny::Allow)),
            Instead::Deny => (None, Some(AllowOrDeny::Deny)),
        };
        OverrideRecord {
            rule: one.rule.to_string(),
            key: RecordKey(one.key.clone()),
            limit,
            decision,
            until: one.until.map(KeptDate),
            by: one.by.clone(),
            at: Some(KeptDate(one.at)),
        }
    }
}

/// Collects overrides into a set. The error names the override that does not fit.
pub(super) fn set_of(
    each: impl Iterator<Item = Result<Override, String>>,
    now: i64,
) -> Result<OverrideSet, String> {
    let mut set = OverrideSet::default();
    for one in each {
        let one = one?;
        let shown = || OverrideRecord::from(&one).shown_key();
        if set.get(&one.id()).is_some() {
            return Err(format!("override of {}: is there twice; keep one of them", shown()));
        }
        if !one.has_ended(now) {
            let put = set.put(one.clone());
            put.map_err(|error| format!("override of {}: {error}", shown()))?;
        }
    }
    Ok(set)
}

impl Serialize for RecordKey {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Parts(&self.0).serialize(to)
    }
}

impl Serialize for LimitText {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

impl Serialize for KeptDate {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match date::read(&date::written(self.0)) {
            Some(_) => to.serialize_str(&date::written(self.0)),
            None => to.serialize_i64(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for LimitText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<LimitText, D::Error> {
        let text = String::deserialize(from)?;
        let limit = parse_kept_limit(&text);
        limit.map(LimitText).map_err(|error| de::Error::custom(format!("limit {text:?}: {error}")))
    }
}

/// The visitor of the parts of a key.
struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = RecordKey;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object of texts such as {\"ip\":\"192.0.2.7\"}")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<RecordKey, M::Error> {
        let mut parts: Vec<(String, String)> = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, String>()? {
            if parts.iter().any(|(known, _)| *known == name) {
                return Err(de::Error::custom(format!("key: {name:?} is there twice; keep one of them")));
            }
            parts.push((name, value));
        }
        Ok(RecordKey(parts))
    }
}

impl<'de> Deserialize<'de> for RecordKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<RecordKey, D::Error> {
        from.deserialize_map(KeyVisitor)
    }
}

/// The visitor of a date.
struct DateVisitor;

impl Visitor<'_> for DateVisitor {
    type Value = KeptDate;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a date such as \"2026-11-15T12:00:00Z\", or whole seconds since 1970")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<KeptDate, E> {
        date::read(text).map(KeptDate).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }

    fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<KeptDate, E> {
        Ok(KeptDate(seconds))
    }

    fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<KeptDate, E> {
        Ok(KeptDate(seconds.try_into().unwrap_or(i64::MAX)))
    }
}

impl<'de> Deserialize<'de> for KeptDate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<KeptDate, D::Error> {
        from.deserialize_any(DateVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> Override {
        let key =
            vec![("user".to_owned(), "a\"\n\u{1}b".to_owned()), ("ip".to_owned(), "192.0.2.0/24".to_owned())];
        let mut one = Override::new("api \"x\"", key, Instead::Limit("100/m burst 7".parse().unwrap()));
        (one.until, one.by, one.at) = (Some(1_794_744_000), Some("ana".to_owned()), 1_794_740_000);
        one
    }

    #[test]
    fn what_is_written_reads_back() {
        let mut all = vec![one()];
        for (until, instead) in
            [(None, Instead::Allow), (Some(i64::MAX - 1), Instead::Deny), (Some(-5), Instead::Deny)]
        {
            let mut other = one();
            (other.until, other.instead, other.by) = (until, instead, None);
            all.push(other);
        }
        for one in all {
            let json = serde_json::to_string(&OverrideRecord::from(&one)).unwrap();
            assert!(!json.contains('\n'), "{json}");
            assert_eq!(OverrideRecord::read(json.as_bytes()), Ok(one), "{json}");
        }
    }

    #[test]
    fn a_calendar_of_a_zone_that_no_rule_names_reads_back() {
        for zone in ["Asia/Shanghai", "Mars/Olympus_Mons"] {
            let limit = format!("100/month calendar {zone} from 15 max-debt 5");
            let json = format!(r#"{{"rule":"api","key":{{"user":"ana"}},"limit":"{limit}","at":5}}"#);
            let one = OverrideRecord::read(json.as_bytes()).unwrap();
            let again = serde_json::to_string(&OverrideRecord::from(&one)).unwrap();
            assert!(again.contains(&format!("\"limit\":\"{limit}\"")), "{again}");
            assert_eq!(OverrideRecord::read(again.as_bytes()), Ok(one));
        }
    }

    #[test]
    fn a_broken_record_is_an_error_with_its_place() {
        let valid = r#"{"rule":"api","key":{"ip":"192.0.2.7"},"decision":"deny"}"#;
        assert!(OverrideRecord::read(valid.as_bytes()).is_ok());
        for (from, to, said) in [
            ("\"deny\"", "\"never\"", "unknown variant `never`, expected `allow` or `deny`"),
            ("\"deny\"", "\"deny\",\"limit\":\"1/s\"", "has not exactly one of limit and decision"),
            (",\"decision\":\"deny\"", "", "has not exactly one of limit and decision"),
            ("\"decision\":\"deny\"", "\"limit\":\"60/min\"", "limit \"60/min\": unknown unit \"min\""),
            ("\"deny\"", "\"deny\",\"until\":\"tomorrow\"", "expected a date such as"),
            ("\"deny\"", "\"deny\",\"til\":1", "unknown field `til`"),
            ("\"192.0.2.7\"", "7", "invalid type: integer `7`, expected a string"),
            ("{\"ip\":", "{\"ip\":\"192.0.2.8\",\"ip\":", "key: \"ip\" is there twice"),
            ("\"rule\":\"api\",", "", "missing field `rule`"),
        ] {
            let broken = valid.replace(from, to);
            let error = OverrideRecord::read(broken.as_bytes()).expect_err(&broken);
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_set_has_each_key_once_and_none_that_ended() {
        let other = Override::new("api", vec![], Instead::Deny);
        let mut ended = Override::new("over", vec![], Instead::Deny);
        ended.until = Some(10);
        let set = set_of([one(), other.clone(), ended].into_iter().map(Ok), 10).unwrap();
        assert_eq!(set.len(), 2);
        let error = set_of([one(), other.clone(), other].into_iter().map(Ok), 10).unwrap_err();
        assert_eq!(error, "override of rule \"api\", key {}: is there twice; keep one of them");
    }
}

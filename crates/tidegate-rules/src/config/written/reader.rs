//! Reads tables, and reports unknown fields and values of the wrong type.
//!
//! The TOML parser keeps the position of every key and value. The reader is written by hand in place of a derived
//! deserializer, which would stop at the first error and know no remedy.
//!
//! The reader checks only types and names. A value of the right type, such as an unknown time zone, is the concern of
//! `valid/`. After an error the field is absent from the result, and its name stays in the list of present fields.

use std::ops::Range;

use tidegate_support::{Complaint, Complaints, decimal, kind_of, unknown};
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

use super::super::OtherTables;
use super::super::valid::{MAX_COST, MAX_RULES, too_many_rules};
use super::conditions::Namespace;
use super::fields::{
    ATTRIBUTES, BESIDE_PENALTY, BESIDE_SCHEDULE, Field, IN_PENALTY, MISPLACED, Misplaced, PENALTY, RULE,
    RULES, TABLES, WINDOW, ZONE,
};
use super::{
    ConditionText, MAX_LIST, PenaltyText, PolicyText, RuleText, WindowText, Written, ZoneText, empty_unless,
    too_long_list,
};

/// The reader of the tables of a file.
///
/// It collects complaints and has no other state, so tables can be read in any order.
#[derive(Debug, Default)]
pub(in crate::config) struct Reader {
    pub(in crate::config) complaints: Complaints,
}

pub(super) type Name<'t> = Spanned<DeString<'t>>;
pub(super) type TomlValue<'t> = Spanned<DeValue<'t>>;

impl Reader {
    /// Reads the tables `[[rule]]`, `[zone.NAME]`, `[rules]` and `[attributes]`.
    ///
    /// Tables come in alphabetical order, not in that of the file. Within `[[rule]]` the order of the file is kept.
    pub(in crate::config) fn policy(&mut self, root: &DeTable<'_>, others: OtherTables) -> PolicyText {
        let mut policy = PolicyText::default();
        for (name, value) in root {
            match name.get_ref().as_ref() {
                "rule" => policy.rules = self.rules(name, value),
                "zone" => policy.zones = self.zones(name, value),
                "rules" => policy.unmatched = self.settings_of_rules(value),
                "attributes" => policy.attributes = self.attributes(name, value),
                _ if others == OtherTables::Any => {}
                other if !TABLES.contains(&other) => {
                    self.complain(name.span(), unknown("table", other, TABLES.into_iter()));
                }
                _ => {}
            }
        }
        policy
    }

    /// Reads the list of rules. `[rule]` in single brackets is a common mistake, and `[rule.login]` is another; both
    /// are reported with the correct form.
    ///
    /// With more than [`MAX_RULES`] rules none is read, so that a huge file costs one complaint and little time.
    fn rules(&mut self, name: &Name<'_>, value: &TomlValue<'_>) -> Vec<RuleText> {
        let DeValue::Array(rules) = value.get_ref() else {
            let named = match value.get_ref() {
                DeValue::Table(rule) => {
                    rule.iter().find(|(_, inner)| matches!(inner.get_ref(), DeValue::Table(_)))
                }
                _ => None,
            };
            let named = named.filter(|(name, _)| name.get_ref() != "when");
            let under = named.map_or(String::new(), |(name, _)| {
                format!(", and write name = {:?} under it", name.get_ref())
            });
            let what = format!("rule: is no list of rules; begin each with [[rule]], in two brackets{under}");
            self.complain(name.span(), what);
            return Vec::new();
        };
        if let Some(beyond) = rules.get(MAX_RULES) {
            self.complain(beyond.span(), too_many_rules());
            return Vec::new();
        }
        rules.iter().filter_map(|rule| self.rule(rule)).collect()
    }

    /// Reads one rule. A field whose value has the wrong type is reported and recorded as present.
    fn rule(&mut self, rule: &TomlValue<'_>) -> Option<RuleText> {
        let table = self.table(rule, "rule", "begin each rule with [[rule]], in two brackets")?;
        let mut text = RuleText { span: rule.span(), ..RuleText::default() };
        for (name, value) in table {
            let Some(field) = self.field(name, &RULE, &[&MISPLACED, &BESIDE_PENALTY]) else { continue };
            text.fields.push(Written { value: field.name, span: name.span() });
            match field.name {
                "name" => text.name = self.text(field, value),
                "when" => text.when = self.when(field, value),
                "unless" => text.unless = self.unless(field, value),
                "group" => text.group = self.text(field, value),
                "key" => text.key = self.texts(field, value),
                "limit" => text.limit = self.text(field, value),
                "limit_for" => text.limit_for = self.limit_for(field, value),
                "penalty" => text.penalty = self.penalty(field, value),
                "mode" => text.mode = self.text(field, value),
                "candidate_for" => text.candidate_for = self.text(field, value),
                "decision" => text.decision = self.text(field, value),
                "cost" => text.cost = self.number(field, value),
                "max_wait" => text.max_wait = self.text(field, value),
                "schedule" => text.schedule = self.schedule(field, value),
                "on_missing" => text.on_missing = self.text(field, value),
                "on_repeated" => text.on_repeated = self.text(field, value),
                "on_store_failure" => text.on_store_failure = self.text(field, value),
                "when_full" => text.when_full = self.text(field, value),
                "zone" => text.zone = self.text(field, value),
                "ipv4_prefix" => text.ipv4_prefix = self.number(field, value),
                "ipv6_prefix" => text.ipv6_prefix = self.number(field, value),
                _ => text.trusted = self.texts(field, value),
            }
        }
        Some(text)
    }

    /// Reads the conditions of a rule. The attributes come in alphabetical order, with those of nested tables in
    /// between.
    fn when(&mut self, field: Field, value: &TomlValue<'_>) -> Vec<ConditionText> {
        let remedy = format!("write {} = {}", field.name, field.example);
        let Some(table) = self.table(value, field.name, &remedy) else { return Vec::new() };
        let mut conditions = Vec::new();
        self.conditions(&Namespace::root(), table, &mut conditions);
        conditions
    }

    /// Reads the conditions of `unless`, which must not be empty.
    fn unless(&mut self, field: Field, value: &TomlValue<'_>) -> Vec<ConditionText> {
        if matches!(value.get_ref(), DeValue::Table(table) if table.is_empty()) {
            self.complain(value.span(), empty_unless());
        }
        self.when(field, value)
    }

    /// Reads the table `[rules]`, whose settings are for all rules. `[[rules]]` is a misspelled `[[rule]]`.
    fn settings_of_rules(&mut self, value: &TomlValue<'_>) -> Option<Written<String>> {
        let remedy = "begin each rule with [[rule]]; [rules] has the settings for all rules, as in unmatched = \"deny\"";
        let table = self.table(value, "rules", remedy)?;
        let mut unmatched = None;
        for (name, value) in table {
            if let Some(field) = self.field(name, &RULES, &[]) {
                unmatched = self.text(field, value);
            }
        }
        unmatched
    }

    /// Reads the table `[attributes]`. Without its list it is an error: every attribute would be undeclared.
    fn attributes(&mut self, name: &Name<'_>, value: &TomlValue<'_>) -> Option<Vec<Written<String>>> {
        let remedy = "write [attributes] on a line of its own, and names = [\"user\", \"plan\"] under it";
        let table = self.table(value, "attributes", remedy)?;
        if table.is_empty() {
            self.complain(name.span(), format!("attributes: has no names; {remedy}"));
        }
        let mut names = None;
        for (name, value) in table {
            if let Some(field) = self.field(name, &ATTRIBUTES, &[]) {
                names = self.texts(field, value);
            }
        }
        names
    }

    /// Reads the limits of single values of a key. A value with a dot needs quotes, as `a.b` is a table in a table.
    fn limit_for(&mut self, field: Field, value: &TomlValue<'_>) -> Vec<(Written<String>, Written<String>)> {
        let remedy = format!("write limit_for = {}", field.example);
        let Some(table) = self.table(value, field.name, &remedy) else { return Vec::new() };
        let mut each = Vec::new();
        for (name, limit) in table {
            let of = Written { value: name.get_ref().clone().into_owned(), span: name.span() };
            match limit.get_ref() {
                DeValue::String(text) => {
                    each.push((of, Written { value: text.clone().into_owned(), span: limit.span() }));
                }
                DeValue::Table(_) => {
                    let what = format!(
                        "limit_for: {0:?} is followed by a dot; write the whole value in quotes, as in \"{0}.x\" = \"50/m\"",
                        of.value
                    );
                    self.complain(of.span, what);
                }
                other => {
                    let what = format!(
                        "limit_for: the limit of {:?} is {}; write a limit in quotes, as in \"50/m\"",
                        of.value,
                        kind_of(other)
                    );
                    self.complain(limit.span(), what);
                }
            }
        }
        each
    }

    /// Reads a penalty.
    fn penalty(&mut self, field: Field, value: &TomlValue<'_>) -> Option<PenaltyText> {
        let remedy = format!("write penalty = {}", field.example);
        let table = self.table(value, field.name, &remedy)?;
        let mut text = PenaltyText { span: value.span(), ..PenaltyText::default() };
        for (name, value) in table {
            let Some(field) = self.field(name, &PENALTY, &[&IN_PENALTY]) else {
                text.has_unknown = true;
                continue;
            };
            text.fields.push(field.name);
            match field.name {
                "after" => text.after = self.number(field, value),
                "within" => text.within = self.text(field, value),
                _ => text.lasts = self.text(field, value),
            }
        }
        Some(text)
    }

    /// Reads the windows of a schedule, in the order of the file.
    fn schedule(&mut self, field: Field, value: &TomlValue<'_>) -> Vec<WindowText> {
        let DeValue::Array(windows) = value.get_ref() else {
            self.wrong_kind(field, value);
            return Vec::new();
        };
        windows.iter().filter_map(|window| self.window(window)).collect()
    }

    /// Reads one window. Dates and times may be written as TOML dates, without quotes.
    fn window(&mut self, window: &TomlValue<'_>) -> Option<WindowText> {
        let table = self.table(window, "schedule", "write each window in braces, as in { from = \"11-11T00:00\", to = \"11-12T00:00\", limit = \"50/s\" }")?;
        let mut text = WindowText { span: window.span(), ..WindowText::default() };
        for (name, value) in table {
            let Some(field) = self.field(name, &WINDOW, &[&MISPLACED, &BESIDE_SCHEDULE]) else { continue };
            text.fields.push(field.name);
            match field.name {
                "from" => text.from = self.moment(field, value),
                "to" => text.to = self.moment(field, value),
                "days" => text.days = self.texts(field, value),
                "timezone" => text.timezone = self.text(field, value),
                "limit" => text.limit = self.text(field, value),
                "cost" => text.cost = self.number(field, value),
                "max_wait" => text.max_wait = self.text(field, value),
                _ => text.mode = self.text(field, value),
            }
        }
        Some(text)
    }

    /// Reads the tables `[zone.NAME]`. `[zone]` with a size and no name is reported as such.
    fn zones(&mut self, name: &Name<'_>, value: &TomlValue<'_>) -> Vec<ZoneText> {
        let nameless = "has no name; write something like [zone.logins] on a line of its own, and size = \"16MiB\" under it";
        let DeValue::Table(table) = value.get_ref() else {
            self.complain(name.span(), format!("zone: {nameless}"));
            return Vec::new();
        };
        let mut zones = Vec::new();
        for (name, value) in table {
            let of = Written { value: name.get_ref().clone().into_owned(), span: name.span() };
            if of.value == "size" && !matches!(value.get_ref(), DeValue::Table(_)) {
                self.complain(of.span, format!("zone: {nameless}"));
                continue;
            }
            let remedy =
                format!("write [zone.{}] on a line of its own, and size = \"16MiB\" under it", of.value);
            let Some(fields) = self.table(value, &format!("zone {:?}", of.value), &remedy) else { continue };
            let mut zone = ZoneText { name: of, has_fields: !fields.is_empty(), size: None };
            for (name, value) in fields {
                if let Some(field) = self.field(name, &ZONE, &[]) {
                    zone.size = self.text(field, value);
                }
            }
            zones.push(zone);
        }
        zones
    }

    /// Returns a table, or reports a value of another type with this remedy.
    pub(super) fn table<'t>(
        &mut self,
        value: &'t TomlValue<'_>,
        of: &str,
        remedy: &str,
    ) -> Option<&'t DeTable<'t>> {
        match value.get_ref() {
            DeValue::Table(table) => Some(table),
            other => {
                self.complain(value.span(), format!("{of}: is {} and no table; {remedy}", kind_of(other)));
                None
            }
        }
    }

    /// Returns the field with this name, or reports an unknown field.
    ///
    /// A name that belongs into another table, or into the text of the limit, is reported with the correct place. For
    /// any other name a similar field is suggested.
    fn field(&mut self, name: &Name<'_>, known: &[Field], misplaced: &[&[Misplaced]]) -> Option<Field> {
        let found = known.iter().find(|field| field.name == name.get_ref());
        if found.is_none() {
            let names = known.iter().map(|field| field.name);
            let mut misplaced = misplaced.iter().copied().flatten();
            let what = match misplaced.find(|(of, _)| of.contains(&name.get_ref().as_ref())) {
                Some((_, remedy)) => format!("{}: {remedy}", name.get_ref()),
                None => unknown("field", name.get_ref(), names),
            };
            self.complain(name.span(), what);
        }
        found.copied()
    }

    /// Returns text, or reports a value of another type. Numbers are not converted to text.
    fn text(&mut self, field: Field, value: &TomlValue<'_>) -> Option<Written<String>> {
        match value.get_ref() {
            DeValue::String(text) => Some(Written { value: text.clone().into_owned(), span: value.span() }),
            _ => {
                self.wrong_kind(field, value);
                None
            }
        }
    }

    /// Reads a moment. A date without quotes is accepted as well.
    ///
    /// An offset such as `+08:00` is not accepted, because the time zone is a field of its own.
    fn moment(&mut self, field: Field, value: &TomlValue<'_>) -> Option<Written<String>> {
        match value.get_ref() {
            DeValue::Datetime(moment) if moment.offset.is_none() => {
                Some(Written { value: moment.to_string(), span: value.span() })
            }
            _ => self.text(field, value),
        }
    }

    /// Returns a number that is not negative, or reports its range. Hexadecimal and underscores are accepted, as in
    /// TOML.
    fn number(&mut self, field: Field, value: &TomlValue<'_>) -> Option<Written<u64>> {
        let DeValue::Integer(number) = value.get_ref() else {
            self.wrong_kind(field, value);
            return None;
        };
        let read = u64::from_str_radix(&number.as_str().replace('_', ""), number.radix());
        if read.is_err() {
            if field.name == "after" {
                let what =
                    format!("after {}: is out of range; write 1 to 1000 denials, such as 3", decimal(number));
                self.complain(value.span(), what);
                return None;
            }
            let (most, usual) = match field.name {
                "cost" => (MAX_COST, 1),
                "ipv4_prefix" => (32, 32),
                _ => (128, 64),
            };
            let what = format!(
                "{} {}: is out of range; write 1 to {most}, or leave it out for {usual}",
                field.name,
                decimal(number)
            );
            self.complain(value.span(), what);
        }
        read.ok().map(|value_of| Written { value: value_of, span: value.span() })
    }

    /// Returns a list of texts, or reports a value of another type. A single text is not a list.
    fn texts(&mut self, field: Field, value: &TomlValue<'_>) -> Option<Vec<Written<String>>> {
        match value.get_ref() {
            DeValue::Array(list) => Some(self.list(field.name, list)),
            _ => {
                self.wrong_kind(field, value);
                None
            }
        }
    }

    /// Reads the values of a list. Those of the wrong type are reported and left out. After [`MAX_LIST`] values the
    /// rest is not read.
    fn list(&mut self, of: &str, list: &DeArray<'_>) -> Vec<Written<String>> {
        let mut texts = Vec::new();
        for value in list.iter() {
            match value.get_ref() {
                DeValue::String(text) => {
                    texts.push(Written { value: text.clone().into_owned(), span: value.span() });
                }
                other => {
                    let what = format!("{of}: has {} in its list; write it in quotes", kind_of(other));
                    self.complain(value.span(), what);
                }
            }
            if texts.len() > MAX_LIST {
                self.complain(value.span(), too_long_list(of));
                break;
            }
        }
        texts
    }

    /// Reports a value of the wrong type, with the example of the field as the remedy.
    fn wrong_kind(&mut self, field: Field, value: &TomlValue<'_>) {
        let what = format!("{}: is {}; write {0} = {}", field.name, kind_of(value.get_ref()), field.example);
        self.complain(value.span(), what);
    }

    /// Adds a complaint about these bytes of the file.
    pub(super) fn complain(&mut self, span: Range<usize>, what: impl Into<String>) {
        self.complaints.push(Complaint::at(span, what));
    }
}

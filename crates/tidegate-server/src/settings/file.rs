//! Reads the `[server]` and `[store]` tables of a TOML file. An unknown key is an error.
//!
//! The tables `rule` and `zone` belong to the policy and are skipped here. Values become the text that a flag would
//! take, so that file, environment and flags share one parser per setting.

use std::ops::Range;
use std::path::Path;

use tidegate_support::{Complaint, decimal, kind_of, syntax};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::key::{KEYS, SettingKey, SettingTable};
use super::written::{Place, SettingValue};

/// Keys that users expect and this version does not accept, each with a remedy. `None` stands for a key outside all
/// tables.
const NOT_HERE: [(Option<SettingTable>, &str, &str); 3] = [
    (Some(SettingTable::Server), "grpc", "this version does not speak gRPC yet; leave it out"),
    (
        Some(SettingTable::Server),
        "token",
        "a secret does not belong here; write it to a file, and name that: token_file = \"token\"",
    ),
    (
        Some(SettingTable::Store),
        "password",
        "a secret does not belong here; write it to a file, and name that: password_file = \"redis.password\"",
    ),
];

/// Reads all settings of a file's text, with every complaint about them. Relative paths start at `folder`.
pub(super) fn read(text: &str, folder: &Path) -> (Vec<SettingValue>, Vec<Complaint>) {
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // After a syntax error the rest of the parse is not reliable.
        return (Vec::new(), errors.iter().take(1).map(|error| syntax(error, text)).collect());
    }
    let mut reader = Reader { folder, said: Vec::new(), complaints: Vec::new() };
    root.get_ref().iter().for_each(|(name, value)| reader.table(name, value));
    (reader.said, reader.complaints)
}

/// Tables that the policy reads.
const OF_RULES: [&str; 4] = ["rule", "zone", "rules", "attributes"];

/// The state of a read: values so far, and complaints so far.
struct Reader<'a> {
    /// The folder at which relative paths start.
    folder: &'a Path,
    /// The values in the order of the file.
    said: Vec<SettingValue>,
    /// The complaints about names and types. Values are checked later.
    complaints: Vec<Complaint>,
}

type Name<'a> = Spanned<DeString<'a>>;
type Value<'a> = Spanned<DeValue<'a>>;

impl Reader<'_> {
    /// Reads one table, and complains about an unknown one.
    fn table(&mut self, name: &Name<'_>, value: &Value<'_>) {
        if OF_RULES.contains(&name.get_ref().as_ref()) {
            return;
        }
        let Some(table) = SettingTable::ALL.into_iter().find(|table| table.name() == name.get_ref()) else {
            return self.complain(name.span(), unknown(None, name.get_ref()));
        };
        match value.get_ref() {
            DeValue::Table(entries) => {
                entries.iter().for_each(|(name, value)| self.entry(table, name, value));
            }
            _ => self.complain(
                name.span(),
                format!("{}: is a table; write {table} on a line of its own", table.name()),
            ),
        }
    }

    /// Reads one setting. Its value is checked later, together with values of flags and the environment.
    fn entry(&mut self, table: SettingTable, name: &Name<'_>, value: &Value<'_>) {
        let Some(key) = SettingKey::find(table, name.get_ref()) else {
            return self.complain(name.span(), unknown(Some(table), name.get_ref()));
        };
        match text_of(key, value.get_ref()) {
            Some(text) => {
                let place = Place::File { span: value.span(), folder: self.folder.to_owned() };
                self.said.push(SettingValue { key, text, place });
            }
            None => {
                let what = format!(
                    "{}: is {}; write {0} = {}",
                    key.name,
                    kind_of(value.get_ref()),
                    key.example_in_file()
                );
                self.complain(value.span(), what);
            }
        }
    }

    /// Adds a complaint about a place of the file.
    fn complain(&mut self, span: Range<usize>, what: String) {
        self.complaints.push(Complaint::at(span, what));
    }
}

/// Returns a value as the text that the flag would take, or `None` if its type is wrong.
///
/// A number or a text is accepted for every setting, a boolean only for a switch: the parser of the setting rejects
/// the rest.
fn text_of(key: &SettingKey, value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::Boolean(is_so) if key.is_yes_or_no() => Some(is_so.to_string()),
        DeValue::String(text) => Some(text.clone().into_owned()),
        DeValue::Integer(number) => Some(decimal(number)),
        _ => None,
    }
}

/// Returns the complaint about a name that is unknown in this table, or unknown outside all tables.
///
/// It names a similar key, the right table, or the keys that exist.
fn unknown(table: Option<SettingTable>, name: &str) -> String {
    if let Some((.., what)) = NOT_HERE.iter().find(|(of, known, _)| *of == table && *known == name) {
        return format!("{name}: {what}");
    }
    if let Some(table) = SettingTable::ALL.into_iter().find(|table| SettingKey::find(*table, name).is_some())
    {
        return format!("{name}: belongs under {table}; move it there");
    }
    let known: Vec<_> = match table {
        Some(table) => KEYS.iter().filter(|key| key.table == table).map(|key| key.name).collect(),
        None => SettingTable::ALL.map(SettingTable::name).into_iter().chain(OF_RULES).collect(),
    };
    tidegate_support::unknown(if table.is_some() { "key" } else { "table" }, name, known.iter().copied())
}

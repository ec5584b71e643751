//! The tables of docs/settings.md, written from the table of settings.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use super::key::{KEYS, SettingKey, SettingTable};

/// The lines of the page around the tables.
const BEGIN: &str = "<!-- generated: begin -->\n";
const END: &str = "<!-- generated: end -->\n";

/// Returns the place of the page.
fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md")
}

/// Returns the tables, one for each table of the file.
fn tables() -> String {
    let mut out = String::new();
    for table in SettingTable::ALL {
        let title = table.heading();
        write!(out, "\n## {title}: `{table}`\n\n").expect("a text grows");
        out += "| key | value | default | flag and variable | meaning |\n|---|---|---|---|---|\n";
        KEYS.iter().filter(|key| key.table == table).for_each(|key| out += &row(key));
    }
    out + "\n"
}

/// Returns the row of a setting.
fn row(key: &SettingKey) -> String {
    let SettingKey { name, placeholder, flag, variable, help, .. } = key;
    let default = key.default.map_or("none".to_owned(), |default| format!("`{default}`"));
    // Without spaces, a bar would end the cell.
    assert!(!help.contains('|'), "{help}");
    format!("| `{name}` | `{placeholder}` | {default} | `--{flag}`<br>`{variable}` | {} |\n", help.trim_end())
}

#[test]
fn the_page_of_settings_is_that_of_the_table() {
    let text = fs::read_to_string(page()).expect("the page is there");
    let (before, rest) = text.split_once(BEGIN).expect("the page has tables");
    let (shown, after) = rest.split_once(END).expect("the tables end");
    if env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(page(), [before, BEGIN, &tables(), END, after].concat()).expect("the page can be written");
    } else {
        assert_eq!(shown, tables(), "TIDEGATE_BLESS=1 writes them again");
    }
}

#[test]
fn the_page_explains_every_kind_of_value() {
    let text = fs::read_to_string(page()).expect("the page is there");
    for key in KEYS.iter() {
        assert!(text.contains(&format!("\n| `{}` |", key.placeholder)), "{}", key.placeholder);
    }
}

//! Settings from the command line and the environment: a flag and a variable for each key of the file.
//!
//! clap knows the flags from [`KEYS`], so a new setting needs no code here. A flag and its variable have the same
//! parser, which runs later, with the values of the file.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};

use crate::settings::{KEYS, Place, SettingKey, SettingValue};

/// The values of all flags and variables.
pub(super) struct Written(pub(super) Vec<SettingValue>);

impl Args for Written {
    fn augment_args(command: Command) -> Command {
        command.args(KEYS.iter().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Written::augment_args(command)
    }
}

/// Returns the flag of a key, with its variable and its help line.
fn flag(key: &'static SettingKey) -> Arg {
    let default = key.default.map(|default| format!(" [default: {default}]"));
    Arg::new(key.flag)
        .long(key.flag)
        .env(key.variable)
        .hide_env_values(true)
        .value_name(key.placeholder)
        .help(format!("{}{}", key.help, default.unwrap_or_default()))
        .help_heading(key.table.heading())
}

impl FromArgMatches for Written {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Written, Error> {
        let mut written: Vec<_> = KEYS.iter().filter_map(|key| said(key, matches)).collect();
        written.extend(SettingValue::token());
        Ok(Written(written))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Written::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns the value of a key, if it is set. An empty variable counts as not set.
fn said(key: &'static SettingKey, matches: &ArgMatches) -> Option<SettingValue> {
    let text = matches.get_one::<String>(key.flag)?.clone();
    let place = match matches.value_source(key.flag)? {
        ValueSource::EnvVariable if text.is_empty() => return None,
        ValueSource::EnvVariable => Place::Environment,
        _ => Place::Flag,
    };
    Some(SettingValue { key, text, place })
}

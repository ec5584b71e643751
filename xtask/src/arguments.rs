//! What may follow the name of a command: nothing, or after `--` what is meant for somebody else.

use crate::failure::Failure;

/// Refuses arguments for a command that takes none.
pub(crate) fn no_arguments(command: &str, arguments: &[String]) -> Result<(), Failure> {
    match arguments.first() {
        None => Ok(()),
        Some(first) => Err(Failure::usage(format!("`{command}` takes no arguments, but got \"{first}\""))),
    }
}

/// The arguments after `--`, which the command passes on to `receiver`; refuses any before it.
pub(crate) fn after_dashes<'a>(arguments: &'a [String], receiver: &str) -> Result<&'a [String], Failure> {
    match arguments.split_first() {
        None => Ok(arguments),
        Some((dashes, extra)) if dashes == "--" => Ok(extra),
        Some((first, _)) => Err(Failure::usage(format!("write `-- {first}` to pass it to {receiver}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn an_argument_for_a_command_that_takes_none_is_a_usage_error() {
        assert!(no_arguments("fix", &[]).is_ok());
        assert_eq!(no_arguments("fix", &words("all")).unwrap_err().code(), 2);
    }

    #[test]
    fn arguments_for_somebody_else_come_after_dashes() {
        assert_eq!(after_dashes(&words("-- --shard 1/4"), "cargo-mutants").unwrap(), words("--shard 1/4"));
        assert_eq!(after_dashes(&[], "cargo-mutants").unwrap(), words(""));
    }

    #[test]
    fn arguments_without_dashes_are_a_usage_error_that_names_the_receiver() {
        let failure = after_dashes(&words("--shard 1/4"), "cargo-mutants").unwrap_err();

        assert_eq!(failure.code(), 2);
        assert_eq!(failure.to_string(), "write `-- --shard` to pass it to cargo-mutants");
    }
}

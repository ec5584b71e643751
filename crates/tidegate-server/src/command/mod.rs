//! The command line: one file or folder per command.
//!
//! Data goes to standard output, messages to standard error. The exit code is 0 on success, 1 on failure, and 2 for an
//! invalid call or configuration. `take`, `admit` and `peek` exit with 3 for a denial.
//!
//! A command is a type with clap attributes and a function `run`. The doc line of the type is its help line, so
//! such lines are in the imperative.

mod adjust;
mod admit;
mod check;
mod completions;
mod doctor;
mod explain;
mod failure;
mod file_owner;
mod init;
mod man;
mod output;
mod overrides;
mod peek;
mod reset;
mod ruled;
mod serve;
mod server;
mod span;
mod table;
mod take;
mod top;
mod written;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use failure::Failure;

/// The examples at the end of the help text.
const EXAMPLES: &str = "\
Examples:
  tidegate serve                                      start a server on this machine
  tidegate take user123 --limit \"30/60s burst 16\"     take from a limit of user123
  redis-cli -p 6380 CL.THROTTLE user123 15 30 60      the same from any Redis client
  tidegate init && tidegate check                     write a file of rules, and check it
  tidegate explain ip=192.0.2.7 path=/login           explain the rules for a request
  tidegate admit ip=192.0.2.7 path=/login             decide by the rules of a running server
  tidegate reset login ip=192.0.2.7                   give a key its whole limit back
  tidegate adjust login ip=192.0.2.7 --give-back 2    give a key a part of it back
  tidegate top                                        show the heaviest keys
  tidegate doctor --store-url redis://10.0.0.5        check a Redis before limits depend on it";

/// Rate limiter: decides if a request may happen now, later or never
#[derive(Parser)]
#[command(name = "tidegate", version, after_help = EXAMPLES, arg_required_else_help = true)]
#[command(subcommand_value_name = "COMMAND")]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

// clap would print a doc comment here as the description of the program.
#[derive(Subcommand)]
enum Command {
    Serve(serve::Serve),
    Take(take::Take),
    Admit(admit::Admit),
    Peek(peek::Peek),
    Adjust(adjust::Adjust),
    Reset(reset::Reset),
    #[command(name = "override")]
    Overrides(overrides::Overrides),
    Top(top::Top),
    Init(init::Init),
    Check(check::Check),
    Explain(explain::Explain),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
    Man(man::Man),
}

/// Runs the command line of the process, and returns the exit code.
pub fn run() -> ExitCode {
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(error) => {
            // A closed pipe is not an error for help output.
            let _ = error.print();
            return exit_code(error.exit_code());
        }
    };
    let done = match line.command {
        Command::Serve(serve) => serve.run(),
        Command::Take(take) => take.run(),
        Command::Admit(admit) => admit.run(),
        Command::Peek(peek) => peek.run(),
        Command::Adjust(adjust) => adjust.run(),
        Command::Reset(reset) => reset.run(),
        Command::Overrides(overrides) => overrides.run(),
        Command::Top(top) => top.run(),
        Command::Init(init) => init.run(),
        Command::Check(check) => check.run(),
        Command::Explain(explain) => explain.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::Completions(completions) => completions.run(&mut CommandLine::command()),
        Command::Man(man) => man.run(CommandLine::command()),
    };
    done.unwrap_or_else(|failure: Failure| failure.report())
}

/// Converts the exit code of clap, which is 0 for help output and 2 for an invalid call.
fn exit_code(code: i32) -> ExitCode {
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        CommandLine::command().debug_assert();
    }
}

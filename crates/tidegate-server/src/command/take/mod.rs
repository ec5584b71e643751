//! `tidegate take`: takes from a limit on a running server.

mod client;
mod decision;
mod reply;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tidegate::Limit;
use tidegate_support::{ceil_ms, duration};

use super::failure::Failure;
use super::output::print_line;
use crate::settings::{TOKEN, Token, TokenSource};
use decision::DecisionReply;
use reply::RespReply;

/// The exit code of a denial.
const REFUSED: u8 = 3;

const ABOUT: &str = "\
Ask a running server whether one more action may happen

Ends with 0 if it may, with 3 if it is refused, with 1 if no server answers, with 2 if the question makes no sense. \
Where a server wants a token, TIDEGATE_TOKEN holds it, or the file of --token-file.";

const EXAMPLES: &str = "\
Examples:
  tidegate take user123 --limit \"30/60s burst 15\"
  tidegate take user123 --limit \"5/60s sliding-log\" --cost 2 --json
  tidegate take backup --limit 1/h && ./backup.sh";

/// Ask a running server whether one more action may happen
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(super) struct Take {
    /// Who acts: any text
    key: OsString,
    /// What is allowed, as in "10/s burst 20" or "5/60s sliding-log"
    #[arg(long, value_name = "TEXT")]
    limit: String,
    /// How much it weighs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    cost: u64,
    /// The longest delay that is acceptable, as in 500ms; without it none is
    #[arg(long, value_name = "TIME")]
    max_wait: Option<String>,
    /// Where the server speaks RESP
    #[arg(long, value_name = "ADDRESS", env = "TIDEGATE_RESP", hide_env_values = true, default_value = DEFAULT_SERVER)]
    server: String,
    /// The file with the server's token
    #[arg(long, value_name = "FILE", env = "TIDEGATE_TOKEN_FILE", hide_env_values = true)]
    token_file: Option<PathBuf>,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

const DEFAULT_SERVER: &str = "127.0.0.1:6380";

impl Take {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let take = self.question()?;
        let token = self.token()?;
        let server = if self.server.is_empty() { DEFAULT_SERVER } else { &self.server };
        let told = DecisionReply::read(client::ask(server, token.as_deref(), &take)?)?;
        if self.json {
            print_line(serde_json::to_string(&told).expect("numbers and text are JSON"));
        } else {
            print_line(&told);
        }
        Ok(if told.allowed { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
    }

    /// Returns the words of `TG.TAKE`. An invalid limit is rejected here, before the server is called.
    fn question(&self) -> Result<Vec<Vec<u8>>, Failure> {
        self.limit.parse::<Limit>()?;
        let mut words = vec![b"TG.TAKE".to_vec(), self.key.as_bytes().to_vec()];
        let mut add = |name: &str, value: &str| words.extend([name.into(), value.into()]);
        add("LIMIT", &self.limit);
        add("COST", &self.cost.to_string());
        if let Some(text) = &self.max_wait {
            let wrong = |what| Failure::misused(format!("--max_wait {text:?}: {what}"));
            add("MAXWAIT", &ceil_ms(duration(text).map_err(wrong)?).to_string());
        }
        Ok(words)
    }

    /// Returns the token of the server, if there is one.
    fn token(&self) -> Result<Option<String>, Failure> {
        let file = self.token_file.clone().filter(|path| !path.as_os_str().is_empty());
        let (name, source) = match (file, std::env::var_os(TOKEN.variable)) {
            (Some(path), _) => (path.display().to_string(), TokenSource::File(path)),
            (None, Some(secret)) => {
                (TOKEN.variable.to_owned(), TokenSource::Secret(secret.to_string_lossy().into_owned()))
            }
            (None, None) => return Ok(None),
        };
        let secret = source.read().and_then(|secret| match Token::new(&secret) {
            Some(_) => Ok(secret),
            None => Err(Token::why_not(&secret)),
        });
        secret.map(Some).map_err(|what| Failure::misused(format!("{name}: {what}")))
    }
}

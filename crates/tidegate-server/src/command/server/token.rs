//! Reads the token that a command sends.

use std::path::PathBuf;

use crate::command::failure::Failure;
use crate::settings::{TOKEN, Token, TokenSource};

/// A token to send, with its origin.
#[derive(Debug)]
pub(in crate::command) struct CallerToken {
    /// The token.
    pub(in crate::command) secret: String,
    /// The variable or the file that it comes from.
    pub(in crate::command) origin: String,
}

/// Returns the token of the server, if there is one.
///
/// A file takes precedence over the variable. The token is validated before it is sent.
pub(in crate::command) fn read(file: Option<PathBuf>) -> Result<Option<CallerToken>, Failure> {
    let file = file.filter(|path| !path.as_os_str().is_empty());
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
    match secret {
        Ok(secret) => Ok(Some(CallerToken { secret, origin: name })),
        Err(what) => Err(Failure::misused(format!("{name}: {what}"))),
    }
}

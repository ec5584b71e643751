//! The token of callers, and its source.
//!
//! A server without a token serves loopback addresses only, and allows no changes of rules over HTTP. With a token
//! every request needs it, except health checks.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// A secret that callers have to send. It is never printed. The comparison takes constant time for a given token.
///
/// The time of a comparison depends on the length of the token, and not on the guess: an attacker learns nothing
/// from it.
///
/// ```
/// use tidegate_server::settings::Token;
///
/// assert!(Token::new("open-sesame").is_some());
/// assert!(Token::new("open sesame").is_none(), "a space does not fit into a header field");
/// ```
#[doc(alias = "authentication")]
#[doc(alias = "bearer token")]
#[doc(alias = "password")]
#[derive(Clone)]
pub struct Token(Box<[u8]>);

impl Token {
    /// The longest token, in bytes.
    pub const MAX_BYTES: usize = 4096;

    /// Creates a token. Returns `None` unless `secret` has 1 to [`Token::MAX_BYTES`] visible ASCII characters, as a
    /// header field requires.
    ///
    /// Surrounding white space has to be removed before; a space inside is an error.
    pub fn new(secret: &str) -> Option<Token> {
        let fits = (1..=Token::MAX_BYTES).contains(&secret.len());
        let is_plain = secret.bytes().all(|byte| byte.is_ascii_graphic());
        (fits && is_plain).then(|| Token(secret.as_bytes().into()))
    }

    /// Returns the reason why a text is not a valid token, without quoting the text.
    pub(crate) fn why_not(secret: &str) -> String {
        match secret.len() {
            0 => "the token is empty; make one with `openssl rand -hex 32`".to_owned(),
            bytes if bytes > Token::MAX_BYTES => {
                format!(
                    "the token is longer than {} bytes; make one with `openssl rand -hex 32`",
                    Token::MAX_BYTES
                )
            }
            _ => "the token has spaces or other characters that no header can hold; \
                  make one with `openssl rand -hex 32`"
                .to_owned(),
        }
    }

    /// Returns true if `guess` equals the token.
    pub(crate) fn is(&self, guess: &[u8]) -> bool {
        let differences = self.0.iter().enumerate().fold(0, |differences, (at, byte)| {
            // A missing byte of the guess is replaced by one that differs.
            differences | (byte ^ guess.get(at).copied().unwrap_or(!byte))
        });
        std::hint::black_box(differences) == 0 && guess.len() == self.0.len()
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Token) -> bool {
        self.is(&other.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token")
    }
}

/// The source of a token.
///
/// `Debug` prints the path of a file, and nothing of a secret.
#[derive(Clone)]
pub(crate) enum TokenSource {
    /// A file that contains only the token. Surrounding white space is ignored.
    File(PathBuf),
    /// The token itself, from the environment.
    Secret(String),
}

impl TokenSource {
    /// Reads the secret, without validating it.
    pub(crate) fn read(&self) -> Result<String, String> {
        match self {
            TokenSource::Secret(secret) => Ok(secret.clone()),
            TokenSource::File(path) => secret_in(path, "token"),
        }
    }

    /// Returns the shell expression, for use within double quotes, that expands to the secret.
    ///
    /// The startup report prints example commands with it, so that the secret itself is never printed.
    pub(crate) fn in_a_shell(&self) -> String {
        match self {
            TokenSource::Secret(_) => "$TIDEGATE_TOKEN".to_owned(),
            TokenSource::File(path) => {
                format!("$(cat '{}')", path.display().to_string().replace('\'', "'\\''"))
            }
        }
    }
}

/// Reads the secret in a file, without surrounding white space and without validating it.
pub(super) fn secret_in(path: &Path, what: &str) -> Result<String, String> {
    match read_start(path) {
        Ok(secret) => Ok(String::from_utf8_lossy(&secret).trim().to_owned()),
        Err(error) => Err(format!("cannot be read: {error}; name a file that holds the {what}")),
    }
}

/// Reads the start of a file: twice the longest token, so that a longer one is detected.
fn read_start(path: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    File::open(path)?.take(2 * Token::MAX_BYTES as u64).read_to_end(&mut start)?;
    Ok(start)
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenSource::File(path) => out.debug_tuple("File").field(path).finish(),
            TokenSource::Secret(_) => out.write_str("Secret"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_whole_or_not_at_all() {
        let token = Token::new("secret").unwrap();
        assert!(token.is(b"secret"));
        for guess in ["", "s", "secre", "secrets", "Secret", "secres"] {
            assert!(!token.is(guess.as_bytes()), "{guess}");
        }
        assert_eq!(format!("{token:?}"), "Token");
    }

    #[test]
    fn what_does_not_fit_into_a_header_is_no_token() {
        for secret in ["", "with space", "line\nbreak", "ünïcode", &"x".repeat(Token::MAX_BYTES + 1)] {
            assert!(Token::new(secret).is_none(), "{secret:?}");
        }
        assert!(Token::new(&"x".repeat(Token::MAX_BYTES)).is_some());
    }
}

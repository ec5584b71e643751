//! The secret that callers have to know, and where it is kept.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// A secret that callers have to know. It is never printed, and comparing takes the same time however wrong a
/// guess is.
#[derive(Clone)]
pub struct Token(Box<[u8]>);

impl Token {
    /// The longest secret, in bytes.
    pub const MAX_BYTES: usize = 4096;

    /// A secret of at least one byte, without control characters, as it has to fit into a header.
    pub fn new(secret: &str) -> Option<Token> {
        let fits = (1..=Token::MAX_BYTES).contains(&secret.len());
        let is_plain = secret.bytes().all(|byte| byte.is_ascii_graphic());
        (fits && is_plain).then(|| Token(secret.as_bytes().into()))
    }

    /// What is wrong with something that is no token, without telling it.
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

    /// Whether somebody knows it.
    pub(crate) fn is(&self, guess: &[u8]) -> bool {
        let differences = self.0.iter().enumerate().fold(0, |differences, (at, byte)| {
            // What a guess lacks is compared with something that differs.
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

/// Where a token is kept.
#[derive(Clone)]
pub(crate) enum TokenSource {
    /// In this file, alone; white space around it does not count.
    File(PathBuf),
    /// In the environment: this is it.
    Secret(String),
}

impl TokenSource {
    /// The secret, not yet known to be a token.
    pub(crate) fn read(&self) -> Result<String, String> {
        match self {
            TokenSource::Secret(secret) => Ok(secret.clone()),
            TokenSource::File(path) => secret_in(path, "token"),
        }
    }

    /// What a shell replaces by the secret, within double quotes.
    pub(crate) fn in_a_shell(&self) -> String {
        match self {
            TokenSource::Secret(_) => "$TIDEGATE_TOKEN".to_owned(),
            TokenSource::File(path) => {
                format!("$(cat '{}')", path.display().to_string().replace('\'', "'\\''"))
            }
        }
    }
}

/// What stands in this file alone, not yet known to be one.
pub(super) fn secret_in(path: &Path, what: &str) -> Result<String, String> {
    match read_start(path) {
        Ok(secret) => Ok(String::from_utf8_lossy(&secret).trim().to_owned()),
        Err(error) => Err(format!("cannot be read: {error}; name a file that holds the {what}")),
    }
}

/// As much of a file as a token and white space may take, and a little more so that a longer one is seen.
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

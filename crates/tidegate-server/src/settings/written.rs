//! Settings as text with their place, before validation.
//!
//! ```text
//!   SettingValue (key, text, place) --SettingKey::set--> Draft --checks across settings--> Settings
//! ```
//!
//! Checks of a single value are in the parser of its setting. Checks that involve several settings are here: a port
//! open to other machines needs a token, both fronts need different ports, and a store is either shared or in a
//! file.

use std::env;
use std::ops::Range;
use std::path::{Path, PathBuf};

use tidegate_support::Complaint;

use super::key::{SettingKey, SettingTable, TOKEN};
use super::shared::SharedDraft;
use super::token::TokenSource;
use super::url::hidden;
use super::{Settings, Token};

/// The text of one setting. It can be a secret, so `Debug` does not print the text.
#[derive(Clone)]
pub(crate) struct SettingValue {
    /// The setting.
    pub(crate) key: &'static SettingKey,
    /// The value as it was written.
    pub(crate) text: String,
    /// The source of the value, which decides its precedence.
    pub(crate) place: Place,
}

/// The place of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A range of bytes in the file. Relative paths start at `folder`.
    File { span: Range<usize>, folder: PathBuf },
    /// The environment.
    Environment,
    /// The command line.
    Flag,
}

impl std::fmt::Debug for SettingValue {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SettingValue")
            .field("key", &self.key.name)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl SettingValue {
    /// Returns the token of the environment, if it is set.
    pub(crate) fn token() -> Option<SettingValue> {
        let secret = env::var_os(TOKEN.variable)?;
        Some(SettingValue {
            key: &TOKEN,
            text: secret.to_string_lossy().into_owned(),
            place: Place::Environment,
        })
    }

    /// Returns its name at its place: the key, the variable or the flag.
    pub(crate) fn name(&self) -> String {
        match self.place {
            Place::File { .. } => self.key.name.to_owned(),
            Place::Environment => self.key.variable.to_owned(),
            Place::Flag => format!("--{}", self.key.flag),
        }
    }

    /// Returns the path of the file that it names. An empty name is an error.
    ///
    /// A path in the file is relative to the folder of the file, any other path to the working directory.
    pub(super) fn path(&self) -> Result<PathBuf, String> {
        let folder = match &self.place {
            Place::File { folder, .. } => folder,
            Place::Environment | Place::Flag => Path::new(""),
        };
        match self.text.as_str() {
            "" => Err("names no file; name one".to_owned()),
            name => Ok(folder.join(name)),
        }
    }

    /// Creates a complaint about it, with its place.
    ///
    /// The value is shown with its secrets masked; a token is not shown at all.
    fn complaint(&self, what: &str) -> Complaint {
        let span = match &self.place {
            Place::File { span, .. } => Some(span.clone()),
            Place::Environment | Place::Flag => None,
        };
        let value = if self.is_secret() { String::new() } else { format!(" {:?}", hidden(&self.text)) };
        Complaint { span, what: format!("{}{value}: {what}", self.name()) }
    }

    /// Returns true for the token itself, and for the file that contains it.
    fn is_token(&self) -> bool {
        self.is_secret() || self.key.name == "token_file"
    }

    /// Returns true if the text itself is the token.
    fn is_secret(&self) -> bool {
        self.key.name == TOKEN.name
    }
}

/// Settings while they are read.
#[derive(Default)]
pub(super) struct Draft {
    /// The settings so far, which begin with the defaults.
    pub(super) settings: Settings,
    /// The source of the token, which is read after all values.
    pub(super) token: Option<TokenSource>,
    /// The file of overrides that was written, `Some(None)` if there shall be none.
    pub(super) overrides_file: Option<Option<PathBuf>>,
    /// The settings of the shared store so far.
    pub(super) shared: SharedDraft,
}

impl Draft {
    /// Applies all values in order: a later value overrides an earlier one. Returns every complaint at once.
    pub(super) fn read(written: &[SettingValue]) -> Result<Draft, Vec<Complaint>> {
        let mut draft = Draft::default();
        let mut complaints: Vec<_> = written
            .iter()
            .filter_map(|said| (said.key.set)(&mut draft, said).err().map(|what| said.complaint(&what)))
            .collect();
        complaints.extend(two_tokens(written));
        complaints.extend(draft.read_token(written));
        complaints.extend(draft.open_to_others(written));
        complaints.extend(draft.listens_twice(written));
        complaints.extend(draft.share(written));
        if complaints.is_empty() { Ok(draft) } else { Err(complaints) }
    }

    /// Reads the token from its source. The complaint is about the value that named it last.
    fn read_token(&mut self, written: &[SettingValue]) -> Option<Complaint> {
        let secret = self.token.as_ref()?.read();
        match secret.and_then(|secret| Token::new(&secret).ok_or_else(|| Token::why_not(&secret))) {
            Ok(token) => {
                self.settings.token = Some(token);
                None
            }
            Err(what) => written.iter().rfind(|said| said.is_token()).map(|said| said.complaint(&what)),
        }
    }

    /// Returns a complaint for each address that other machines can reach if there is no token.
    ///
    /// Any client on the network could otherwise spend every quota.
    fn open_to_others(&self, written: &[SettingValue]) -> Vec<Complaint> {
        let fronts = [("resp", self.settings.resp), ("http", self.settings.http)];
        let open = fronts
            .into_iter()
            .filter(|(_, address)| address.is_some_and(|address| !address.ip().is_loopback()))
            .filter(|_| self.token.is_none());
        open.filter_map(|(name, _)| written.iter().rfind(|said| said.key.name == name))
            .map(|said| {
                said.complaint(
                    "would be open to other machines without a token; \
                     set TIDEGATE_TOKEN or --token-file, or listen on 127.0.0.1",
                )
            })
            .collect()
    }

    /// Returns a complaint if both fronts use the same port.
    fn listens_twice(&self, written: &[SettingValue]) -> Option<Complaint> {
        let address = self.settings.resp.filter(|address| address.port() != 0)?;
        if self.settings.http != Some(address) {
            return None;
        }
        let said = written.iter().rfind(|said| ["resp", "http"].contains(&said.key.name))?;
        Some(said.complaint("resp and http cannot share a port; choose another for one of them"))
    }

    /// Determines the store, and returns the complaint about it, if any.
    ///
    /// A URL without a shared store is a complaint: it would be ignored.
    fn share(&mut self, written: &[SettingValue]) -> Option<Complaint> {
        let said = |name: &str| {
            written.iter().rfind(|said| said.key.table == SettingTable::Store && said.key.name == name)
        };
        if !self.shared.is_meant() {
            let url = said("url")?;
            return Some(
                url.complaint("counts are held in memory; write kind = \"redis\", or leave the URL out"),
            );
        }
        if let Some(file) = said("file") {
            return Some(file.complaint(
                "counts in Redis survive there, and what is decided without it is not kept; leave it out",
            ));
        }
        if let Err((name, what)) = self.shared.read_files() {
            return said(name).map(|said| said.complaint(&what));
        }
        self.settings.store.shared = Some(self.shared.settings.clone());
        None
    }
}

/// Returns a complaint if the environment sets both token variables: neither takes precedence.
fn two_tokens(written: &[SettingValue]) -> Option<Complaint> {
    let mut tokens = written.iter().filter(|said| said.is_token() && said.place == Place::Environment);
    let (first, second) = (tokens.next()?, tokens.next()?);
    let what = format!("{} and {} are both set; leave one of them out", first.name(), second.name());
    Some(Complaint::alone(what))
}

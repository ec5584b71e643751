//! Settings as they were written, before anybody knows whether they hold.

use std::env;
use std::ops::Range;
use std::path::{Path, PathBuf};

use tidegate_support::Complaint;

use super::key::{Key, TOKEN, Table};
use super::shared::SharedDraft;
use super::token::TokenSource;
use super::url::hidden;
use super::{Settings, Token};

/// A value as somebody wrote it. It may be a secret, so it is not to be printed whole.
#[derive(Clone)]
pub(crate) struct Said {
    pub(crate) key: &'static Key,
    pub(crate) text: String,
    pub(crate) place: Place,
}

/// Where somebody wrote a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the file, at these bytes; paths are meant from its folder.
    File { span: Range<usize>, folder: PathBuf },
    /// In the environment.
    Environment,
    /// On the command line.
    Flag,
}

impl std::fmt::Debug for Said {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Said")
            .field("key", &self.key.name)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl Said {
    /// The token, if it is in the environment.
    pub(crate) fn token() -> Option<Said> {
        let secret = env::var_os(TOKEN.variable)?;
        Some(Said { key: &TOKEN, text: secret.to_string_lossy().into_owned(), place: Place::Environment })
    }

    /// What it is called where it was said.
    pub(crate) fn name(&self) -> String {
        match self.place {
            Place::File { .. } => self.key.name.to_owned(),
            Place::Environment => self.key.variable.to_owned(),
            Place::Flag => format!("--{}", self.key.flag),
        }
    }

    /// The file that it names.
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

    /// What is wrong with it, and where it stands.
    fn complaint(&self, what: &str) -> Complaint {
        let span = match &self.place {
            Place::File { span, .. } => Some(span.clone()),
            Place::Environment | Place::Flag => None,
        };
        let value = if self.is_secret() { String::new() } else { format!(" {:?}", hidden(&self.text)) };
        Complaint { span, what: format!("{}{value}: {what}", self.name()) }
    }

    fn is_token(&self) -> bool {
        self.is_secret() || self.key.name == "token_file"
    }

    fn is_secret(&self) -> bool {
        self.key.name == TOKEN.name
    }
}

/// Settings that are being read.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) settings: Settings,
    pub(super) token: Option<TokenSource>,
    pub(super) shared: SharedDraft,
}

impl Draft {
    /// Reads everything that was said, in the order in which it was said: what comes later counts.
    pub(super) fn read(written: &[Said]) -> Result<Draft, Vec<Complaint>> {
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

    fn read_token(&mut self, written: &[Said]) -> Option<Complaint> {
        let secret = self.token.as_ref()?.read();
        match secret.and_then(|secret| Token::new(&secret).ok_or_else(|| Token::why_not(&secret))) {
            Ok(token) => {
                self.settings.token = Some(token);
                None
            }
            Err(what) => written.iter().rfind(|said| said.is_token()).map(|said| said.complaint(&what)),
        }
    }

    /// Addresses that other machines reach need a token.
    fn open_to_others(&self, written: &[Said]) -> Vec<Complaint> {
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

    /// A port speaks one language.
    fn listens_twice(&self, written: &[Said]) -> Option<Complaint> {
        let address = self.settings.resp.filter(|address| address.port() != 0)?;
        if self.settings.http != Some(address) {
            return None;
        }
        let said = written.iter().rfind(|said| ["resp", "http"].contains(&said.key.name))?;
        Some(said.complaint("resp and http cannot share a port; choose another for one of them"))
    }

    /// Settles where counts are, and what is wrong with that.
    fn share(&mut self, written: &[Said]) -> Option<Complaint> {
        let said =
            |name: &str| written.iter().rfind(|said| said.key.table == Table::Store && said.key.name == name);
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

/// Of two tokens in the environment neither counts before the other.
fn two_tokens(written: &[Said]) -> Option<Complaint> {
    let mut tokens = written.iter().filter(|said| said.is_token() && said.place == Place::Environment);
    let (first, second) = (tokens.next()?, tokens.next()?);
    let what = format!("{} and {} are both set; leave one of them out", first.name(), second.name());
    Some(Complaint::alone(what))
}

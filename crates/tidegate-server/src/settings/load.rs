//! Settings from everywhere: flag before environment before file before default.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use tidegate_rules::config::{self, OtherTables, Reading};
use tidegate_support::{Complaint, in_order};

use super::complaint::SettingsError;
use super::key::Table;
use super::token::TokenSource;
use super::url::covered;
use super::written::{Draft, Place, Said};
use super::{Settings, file, fits};

/// The file that is looked for if none is named.
const USUAL_FILE: &str = "./tidegate.toml";
/// Longer than any file of settings.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Settings that hold, and where they come from.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) settings: Settings,
    /// Where the token is kept, if there is one.
    pub(crate) token: Option<TokenSource>,
    /// The file, the variables and the flags that were read, as people know them.
    pub(crate) origin: String,
    /// What holds and is probably not meant so, as people read it.
    pub(crate) warnings: Vec<String>,
    /// The same, as programs read it.
    pub(crate) warned: Vec<Complaint>,
    /// The text of the file, if there is one.
    pub(crate) text: Option<String>,
}

/// A file of settings as it is.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// Where settings come from: a file that is named, or the usual one if it is there, and what the command line and
/// the environment say.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    path: Option<PathBuf>,
    said: Vec<Said>,
}

impl Source {
    pub(crate) fn new(path: Option<PathBuf>, said: Vec<Said>) -> Source {
        Source { path, said }
    }

    /// The file, whether it is there or not.
    pub(crate) fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(USUAL_FILE))
    }

    /// Reads everything as it is now.
    pub(crate) fn load(&self) -> Result<Loaded, SettingsError> {
        self.read(ConfigFile::find(self.path.as_deref())?)
    }

    /// Reads everything as if the file had this text.
    pub(crate) fn load_text(&self, text: &str) -> Result<Loaded, SettingsError> {
        self.read(Some(ConfigFile { path: self.path().to_owned(), text: text.to_owned() }))
    }

    fn read(&self, file: Option<ConfigFile>) -> Result<Loaded, SettingsError> {
        let origin = origin(file.as_ref(), &self.said);
        let Some(file) = file else {
            let draft = self.draft(Vec::new());
            let draft = draft.map_err(|complaints| SettingsError::new(None, complaints))?;
            let (settings, token) = (draft.settings, draft.token);
            return Ok(Loaded { settings, token, origin, warnings: vec![], warned: vec![], text: None });
        };
        let (written, mut complaints) = file::read(&file.text, file.path.parent().unwrap_or(Path::new("")));
        let draft = self.draft(written).map_err(|more| complaints.extend(more));
        let Reading { policy, errors, warnings: mut warned } = config::read(&file.text, OtherTables::Any);
        if !errors.iter().all(|error| complaints.contains(error)) {
            complaints.extend(errors);
        }
        if let (Ok(draft), Some(policy)) = (&draft, &policy) {
            complaints.extend(fits::complaints(&file.text, &draft.settings, policy));
            warned.extend(fits::warnings(&file.text, &draft.settings, policy));
            in_order(&mut warned);
        }
        match (draft, policy) {
            (Ok(Draft { mut settings, token, .. }), Some(policy)) if complaints.is_empty() => {
                settings.policy = policy;
                let text = Some(file.text.clone());
                let file = file.without_secrets();
                let warnings = warned.iter().map(|warning| file.shown(warning)).collect();
                Ok(Loaded { settings, token, origin, warnings, warned, text })
            }
            _ => Err(SettingsError::new(Some(file.without_secrets()), complaints)),
        }
    }

    /// What the file, the environment and the flags say together.
    fn draft(&self, mut written: Vec<Said>) -> Result<Draft, Vec<Complaint>> {
        let is_flag = |said: &&Said| said.place == Place::Flag;
        written.extend(self.said.iter().filter(|said| !is_flag(said)).cloned());
        written.extend(self.said.iter().filter(is_flag).cloned());
        Draft::read(&written)
    }
}

fn origin(file: Option<&ConfigFile>, said: &[Said]) -> String {
    let file = file.map_or_else(|| "built-in defaults".to_owned(), |file| file.path.display().to_string());
    let names = said.iter().map(Said::name);
    [file].into_iter().chain(names).collect::<Vec<_>>().join(", ")
}

impl ConfigFile {
    /// The same to be shown: no line of it tells a password.
    fn without_secrets(self) -> ConfigFile {
        ConfigFile { text: covered(&self.text), ..self }
    }

    /// A complaint about it, with its place.
    pub(super) fn shown(&self, complaint: &Complaint) -> String {
        complaint.shown(&self.path.display().to_string(), &self.text)
    }

    fn find(path: Option<&Path>) -> Result<Option<ConfigFile>, SettingsError> {
        let (path, must_exist) = path.map_or((Path::new(USUAL_FILE), false), |path| (path, true));
        match File::open(path).and_then(text_of) {
            Ok(text) => Ok(Some(ConfigFile { path: path.to_owned(), text })),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !must_exist => Ok(None),
            Err(error) => Err(SettingsError::alone(format!(
                "{}: cannot be read: {error}; name a file of settings with --config",
                path.display()
            ))),
        }
    }
}

/// Returns true if this text names a store file, whatever else it says about a server.
pub(crate) fn names_store_file(text: &str) -> bool {
    let (written, _) = file::read(text, Path::new(""));
    written.iter().any(|said| said.key.table == Table::Store && said.key.name == "file")
}

/// The text of a file of settings.
pub(crate) fn text_of(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("it is longer than {MAX_FILE_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        io::Error::other(format!("it is no UTF-8 text from byte {} on", error.utf8_error().valid_up_to() + 1))
    })
}

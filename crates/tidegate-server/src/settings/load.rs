//! Loads settings from all sources. A flag overrides the environment, the environment the file, the file the default.
//!
//! The file is read once, and its text is kept: rules in force are compared with it, and complaints are shown with
//! its lines. All sources are read before anything is checked, so that a check sees the final values.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use tidegate_rules::config::{self, OtherTables, Reading};
use tidegate_support::{Complaint, in_order};

use super::complaint::SettingsError;
use super::key::SettingTable;
use super::token::TokenSource;
use super::url::covered;
use super::written::{Draft, Place, SettingValue};
use super::{Settings, file, fits};

/// The file that is read if none is named; it is optional.
const USUAL_FILE: &str = "./tidegate.toml";
/// The largest accepted settings file, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Valid settings, and their origin.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The settings, with the policy of the file.
    pub(crate) settings: Settings,
    /// The source of the token, if there is one.
    pub(crate) token: Option<TokenSource>,
    /// The file, the variables and the flags that were read, for display.
    pub(crate) origin: String,
    /// Warnings about valid but probably unintended settings, for display.
    pub(crate) warnings: Vec<String>,
    /// The same warnings in structured form.
    pub(crate) warned: Vec<Complaint>,
    /// The text of the file, if there is one.
    pub(crate) text: Option<String>,
}

/// A settings file: its path and its text.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    /// The path as it was given, for messages.
    pub(crate) path: PathBuf,
    /// The text; in errors and warnings its secrets are masked.
    pub(crate) text: String,
}

/// The sources of settings: a named file, or [`USUAL_FILE`] if it exists, and values of flags and the environment.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The named file, which has to exist; `None` for the usual one.
    path: Option<PathBuf>,
    /// Values of flags and variables. A reload uses them again.
    said: Vec<SettingValue>,
}

impl Source {
    /// Creates a source. Nothing is read before [`Source::load`].
    pub(crate) fn new(path: Option<PathBuf>, said: Vec<SettingValue>) -> Source {
        Source { path, said }
    }

    /// Returns the path of the file. The file may not exist.
    pub(crate) fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(USUAL_FILE))
    }

    /// Loads settings from the current contents of all sources.
    ///
    /// The file is read again, and so are the files that it names, such as token and password files.
    pub(crate) fn load(&self) -> Result<Loaded, SettingsError> {
        self.read(ConfigFile::find(self.path.as_deref())?)
    }

    /// Loads settings as if the file contained this text.
    ///
    /// Nothing is written. `PUT /v1/rules` checks a text with it before the file is replaced.
    pub(crate) fn load_text(&self, text: &str) -> Result<Loaded, SettingsError> {
        self.read(Some(ConfigFile { path: self.path().to_owned(), text: text.to_owned() }))
    }

    /// Merges the file with flags and variables, and checks the result together with the policy.
    fn read(&self, file: Option<ConfigFile>) -> Result<Loaded, SettingsError> {
        let origin = origin(file.as_ref(), &self.said);
        let Some(file) = file else {
            let draft = self.draft(Vec::new());
            let draft = draft.map_err(|complaints| SettingsError::new(None, complaints))?;
            let (mut settings, token) = (draft.settings, draft.token);
            settings.overrides_file = draft.overrides_file.flatten();
            return Ok(Loaded { settings, token, origin, warnings: vec![], warned: vec![], text: None });
        };
        let (written, mut complaints) = file::read(&file.text, file.path.parent().unwrap_or(Path::new("")));
        let draft = self.draft(written).map_err(|more| complaints.extend(more));
        let Reading { policy, errors, warnings: mut warned, .. } = config::read(&file.text, OtherTables::Any);
        if !errors.iter().all(|error| complaints.contains(error)) {
            complaints.extend(errors);
        }
        if let (Ok(draft), Some(policy)) = (&draft, &policy) {
            complaints.extend(fits::complaints(&file.text, &draft.settings, policy));
            warned.extend(fits::warnings(&file.text, &draft.settings, policy));
            in_order(&mut warned);
        }
        match (draft, policy) {
            (Ok(Draft { mut settings, token, overrides_file, .. }), Some(policy))
                if complaints.is_empty() =>
            {
                settings.policy = policy;
                settings.overrides_file = overrides_file.unwrap_or_else(|| overrides_beside(&file.path));
                let text = Some(file.text.clone());
                let file = file.without_secrets();
                let warnings = warned.iter().map(|warning| file.shown(warning)).collect();
                Ok(Loaded { settings, token, origin, warnings, warned, text })
            }
            _ => Err(SettingsError::new(Some(file.without_secrets()), complaints)),
        }
    }

    /// Merges the values of the file, the environment and the flags, in ascending precedence.
    fn draft(&self, mut written: Vec<SettingValue>) -> Result<Draft, Vec<Complaint>> {
        let is_flag = |said: &&SettingValue| said.place == Place::Flag;
        written.extend(self.said.iter().filter(|said| !is_flag(said)).cloned());
        written.extend(self.said.iter().filter(is_flag).cloned());
        Draft::read(&written)
    }
}

/// Returns the file of overrides beside a settings file; `None` if that is a pipe or a device.
fn overrides_beside(file: &Path) -> Option<PathBuf> {
    let mut path = file.as_os_str().to_owned();
    path.push(".overrides");
    file.metadata().is_ok_and(|found| found.is_file()).then(|| path.into())
}

/// Returns the file and the names of variables and flags that were set, for the startup report.
fn origin(file: Option<&ConfigFile>, said: &[SettingValue]) -> String {
    let file = file.map_or_else(|| "built-in defaults".to_owned(), |file| file.path.display().to_string());
    let names = said.iter().map(SettingValue::name);
    [file].into_iter().chain(names).collect::<Vec<_>>().join(", ")
}

impl ConfigFile {
    /// Masks secrets in the text, so that no line that is shown contains a password.
    fn without_secrets(self) -> ConfigFile {
        ConfigFile { text: covered(&self.text), ..self }
    }

    /// Returns a complaint with its line and carets.
    pub(super) fn shown(&self, complaint: &Complaint) -> String {
        complaint.shown(&self.path.display().to_string(), &self.text)
    }

    /// Reads the file. Returns `None` if no file was named and the usual one does not exist.
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

/// Returns true if this text sets `store.file`, even if other settings in it are invalid.
///
/// `tidegate explain` reports bytes on disk only then.
pub(crate) fn names_store_file(text: &str) -> bool {
    let (written, _) = file::read(text, Path::new(""));
    written.iter().any(|said| said.key.table == SettingTable::Store && said.key.name == "file")
}

/// Reads a settings file. Returns an error if it is longer than [`MAX_FILE_BYTES`] or is not UTF-8.
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

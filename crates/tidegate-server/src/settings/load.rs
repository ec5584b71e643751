//! Settings from everywhere: flag before environment before file before default.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::complaint::SettingsError;
use super::token::TokenSource;
use super::written::{Draft, Place, Said};
use super::{Settings, file};

/// The file that is looked for if none is named.
const USUAL_FILE: &str = "./tidegate.toml";
/// Longer than any file of settings.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Settings that hold, and where they come from.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) settings: Settings,
    /// Where the token is kept, if there is one.
    pub(crate) token: Option<TokenSource>,
    /// The file, the variables and the flags that were read, as people know them.
    pub(crate) origin: String,
}

/// A file of settings as it is.
#[derive(Debug)]
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// Reads the file that is named, or the usual one if it is there, and then what the command line and the
/// environment say.
pub(crate) fn load(path: Option<&Path>, said: Vec<Said>) -> Result<Loaded, SettingsError> {
    let file = ConfigFile::find(path)?;
    let origin = origin(file.as_ref(), &said);
    let (mut written, mut complaints) = match &file {
        Some(file) => file::read(&file.text, file.path.parent().unwrap_or(Path::new(""))),
        None => Default::default(),
    };
    let (flags, environment): (Vec<_>, Vec<_>) = said.into_iter().partition(|said| said.place == Place::Flag);
    written.extend(environment);
    written.extend(flags);
    match Draft::read(&written) {
        Ok(Draft { settings, token }) if complaints.is_empty() => Ok(Loaded { settings, token, origin }),
        Ok(_) => Err(SettingsError::new(file, complaints)),
        Err(more) => {
            complaints.extend(more);
            Err(SettingsError::new(file, complaints))
        }
    }
}

fn origin(file: Option<&ConfigFile>, said: &[Said]) -> String {
    let file = file.map_or_else(|| "built-in defaults".to_owned(), |file| file.path.display().to_string());
    let names = said.iter().map(Said::name);
    [file].into_iter().chain(names).collect::<Vec<_>>().join(", ")
}

impl ConfigFile {
    fn find(path: Option<&Path>) -> Result<Option<ConfigFile>, SettingsError> {
        let (path, must_exist) = path.map_or((Path::new(USUAL_FILE), false), |path| (path, true));
        match read_text(path) {
            Ok(text) => Ok(Some(ConfigFile { path: path.to_owned(), text })),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !must_exist => Ok(None),
            Err(error) => Err(SettingsError::alone(format!(
                "{}: cannot be read: {error}; name a file of settings with --config",
                path.display()
            ))),
        }
    }
}

fn read_text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("it is longer than {MAX_FILE_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        io::Error::other(format!("it is no UTF-8 text from byte {} on", error.utf8_error().valid_up_to() + 1))
    })
}

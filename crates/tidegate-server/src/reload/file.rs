//! The file of rules as a whole: read without being held up, written without ever being seen in part.

use std::fs::{self, File, Metadata};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

use crate::settings::text_of;

/// How many names are tried for what is written beside a file. They are drawn by lot, so none is taken but on purpose.
const MAX_NAMES: usize = 8;

/// The text of a file. What is no regular file is refused: a pipe would hold its reader up, a device has no end.
pub(crate) fn read_regular(path: &Path) -> io::Result<String> {
    // Without waiting, as opening a pipe waits for somebody who writes.
    let file = File::from(open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?);
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::Error::other("it is a directory"));
    }
    if !kind.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    text_of(file)
}

/// Writes a file so that everybody sees it as it was or as it is, and never a part: beside it first, then in its
/// place. Where a link points, the link stays and its target changes.
pub(crate) fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let target = fs::canonicalize(path)?;
    let before = fs::metadata(&target)?;
    if !before.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let names = std::iter::repeat_with(|| name_beside(&target)).take(MAX_NAMES);
    let (file, beside) = create_one_of(names)?;
    put_in_place(file, &beside, text, &target, &before)
}

/// A name that nobody knows before.
fn name_beside(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{:016x}.new", RandomState::new().hash_one(())));
    target.with_file_name(name)
}

/// A new file of the first name that is free, for us alone. What is there already is left alone, and a link is not
/// followed: whoever can plant one in the folder would choose what we write to.
fn create_one_of(names: impl Iterator<Item = PathBuf>) -> io::Result<(File, PathBuf)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut taken = io::Error::from(io::ErrorKind::AlreadyExists);
    for name in names {
        match open(&name, flags, Mode::RUSR | Mode::WUSR).map_err(io::Error::from) {
            Ok(file) => return Ok((File::from(file), name)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = error,
            Err(error) => return Err(error),
        }
    }
    Err(taken)
}

/// Writes what is beside a file, and moves it there.
fn put_in_place(file: File, beside: &Path, text: &str, target: &Path, before: &Metadata) -> io::Result<()> {
    let written = write_as(file, text, before).and_then(|()| fs::rename(beside, target));
    if written.is_err() {
        // What is left is of no use to anybody.
        let _ = fs::remove_file(beside);
    } else if let Some(folder) = target.parent() {
        // It is in place already; this only makes it last if the power fails now.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    written
}

/// Writes a file that belongs to those to whom another one does.
fn write_as(mut file: File, text: &str, other: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (other.uid(), other.gid()) {
        // Not everybody may give files away; then it belongs to the server.
        let _ = fchown(&file, Some(other.uid()), Some(other.gid()));
    }
    file.set_permissions(other.permissions())?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::reload::folder::Folder;

    #[test]
    fn what_somebody_has_planted_is_neither_written_nor_removed() {
        let folder = Folder::new();
        folder.put("victim", "precious");
        symlink(folder.path("victim"), folder.path("a")).unwrap();
        symlink("nowhere", folder.path("b")).unwrap();
        folder.put("c", "taken");
        let names =
            |names: &[&str]| names.iter().map(|name| folder.path(name)).collect::<Vec<_>>().into_iter();
        let refused = create_one_of(names(&["a", "b", "c"])).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        let (file, name) = create_one_of(names(&["a", "b", "c", "d", "e"])).unwrap();
        assert_eq!(name, folder.path("d"));
        assert_eq!(
            file.metadata().unwrap().permissions().mode() & 0o777,
            0o600,
            "nobody else reads it meanwhile"
        );
        assert_eq!(folder.names(), ["a", "b", "c", "d", "victim"]);
        assert_eq!(fs::read_to_string(folder.path("victim")).unwrap(), "precious");
    }

    #[test]
    fn names_are_not_known_before() {
        let target = Path::new("/etc/tidegate.toml");
        let [one, other] = [name_beside(target), name_beside(target)];
        assert_ne!(one, other);
        assert_eq!(one.parent(), target.parent());
    }

    #[test]
    fn nothing_is_left_behind_where_moving_fails() {
        let folder = Folder::new();
        folder.put("file", "");
        let before = fs::metadata(folder.path("file")).unwrap();
        fs::create_dir(folder.path("target")).unwrap();
        let (file, beside) = create_one_of([folder.path("beside")].into_iter()).unwrap();
        assert!(put_in_place(file, &beside, "text", &folder.path("target"), &before).is_err());
        assert_eq!(folder.names(), ["file", "target"]);
    }
}

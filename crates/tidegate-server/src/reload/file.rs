//! Reads the rules file without blocking, and writes it atomically.
//!
//! The rules file belongs to an operator, so it may be anything: missing, a pipe, a directory, half written. Reads
//! therefore check the type after the open, and never block on a pipe.

use std::fs::{self, File, Metadata};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

use crate::settings::text_of;

/// The maximum number of names that are tried for the temporary file. Names are random, so only an attack occupies
/// them.
const MAX_NAMES: usize = 8;

/// Reads the text of a regular file. Any other type is an error: a pipe would block the reader, and a device has no
/// end.
///
/// The type is checked on the open descriptor, so it cannot change between the check and the read. Fails also above
/// the size limit of a settings file, and for text that is not UTF-8.
pub(crate) fn read_regular(path: &Path) -> io::Result<String> {
    // Nonblocking, because opening a pipe waits for a writer.
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

/// Writes a file atomically: to a temporary file in the same folder, which then replaces the target. A reader sees the
/// old or the new text, never a part. A symbolic link stays, and its target changes.
///
/// Fails if the file does not exist. The owner, the group and the permissions stay, as far as the user of the
/// server may set them.
pub(crate) fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let target = fs::canonicalize(path)?;
    let before = fs::metadata(&target)?;
    if !before.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    put(text, &target, Some(&before))
}

/// Writes a file of the server atomically, whether it exists or not. A new file has mode 0600; a symbolic link is replaced.
///
/// Temporary files that a killed process has left are removed. The caller has a lock, so no other process writes one now.
pub(crate) fn replace_whole(path: &Path, text: &str) -> io::Result<()> {
    // They take space only, so the write goes on without them or with them.
    let _ = remove_temporary(path);
    put(text, path, None)
}

/// Removes the temporary files of a target: regular files with exactly the names that [`name_beside`] gives.
fn remove_temporary(target: &Path) -> io::Result<()> {
    let Some(name) = target.file_name() else { return Ok(()) };
    for entry in fs::read_dir(folder_of(target))? {
        let entry = entry?;
        if is_temporary(entry.file_name().as_bytes(), name.as_bytes()) && entry.file_type()?.is_file() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Returns true if this is a name that [`name_beside`] gives to a temporary file of the target.
fn is_temporary(name: &[u8], target: &[u8]) -> bool {
    let number = || name.strip_prefix(target)?.strip_prefix(b".")?.strip_suffix(b".new");
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    number().is_some_and(|number| number.len() == 16 && number.iter().all(is_digit))
}

/// Returns the folder of a file.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Writes a temporary file beside the target, and renames it to the target.
fn put(text: &str, target: &Path, before: Option<&Metadata>) -> io::Result<()> {
    let names = std::iter::repeat_with(|| name_beside(target)).take(MAX_NAMES);
    let (file, beside) = create_one_of(names)?;
    put_in_place(file, &beside, text, target, before)
}

/// Returns an unpredictable name for the temporary file.
fn name_beside(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{:016x}.new", RandomState::new().hash_one(())));
    target.with_file_name(name)
}

/// Creates a file with mode 0600 under the first free name. An existing file is left alone, and a symbolic link is not
/// followed. Otherwise a user with write access to the folder could choose the file that the server overwrites.
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

/// Writes the temporary file, and renames it to the target.
///
/// On an error the temporary file is removed, and the target is unchanged.
fn put_in_place(
    file: File,
    beside: &Path,
    text: &str,
    target: &Path,
    before: Option<&Metadata>,
) -> io::Result<()> {
    let written = write_as(file, text, before).and_then(|()| fs::rename(beside, target));
    if written.is_err() {
        // The temporary file is of no further use.
        let _ = fs::remove_file(beside);
    } else {
        // The rename is done; the sync makes it survive a power failure.
        let _ = File::open(folder_of(target)).and_then(|folder| folder.sync_all());
    }
    written
}

/// Writes a file with the owner, group and permissions of `other`, if there is one.
fn write_as(mut file: File, text: &str, other: Option<&Metadata>) -> io::Result<()> {
    if let Some(other) = other {
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (other.uid(), other.gid()) {
            // A change of owner may need privileges. Without them the file belongs to the server.
            let _ = fchown(&file, Some(other.uid()), Some(other.gid()));
        }
        file.set_permissions(other.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::reload::folder::Folder;

    #[test]
    fn a_planted_file_is_neither_written_nor_removed() {
        let folder = Folder::new();
        folder.put("victim", "precious");
        symlink(folder.path("victim"), folder.path("a")).unwrap();
        symlink("nowhere", folder.path("b")).unwrap();
        folder.put("c", "taken");
        let names =
            |names: &[&str]| names.iter().map(|name| folder.path(name)).collect::<Vec<_>>().into_iter();
        let error = create_one_of(names(&["a", "b", "c"])).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        let (file, name) = create_one_of(names(&["a", "b", "c", "d", "e"])).unwrap();
        assert_eq!(name, folder.path("d"));
        assert_eq!(
            file.metadata().unwrap().permissions().mode() & 0o777,
            0o600,
            "no other user reads it meanwhile"
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
    fn temporary_files_of_a_killed_process_are_removed_and_no_others() {
        let folder = Folder::new();
        let kept = [
            "file.0123456789abcdef.new.old",
            "file.0123456789abcdeF.new",
            "file.0123456789abcde.new",
            "other.0123456789abcdef.new",
            "file.new",
        ];
        kept.iter().for_each(|name| folder.put(name, "kept"));
        folder.link("file.1123456789abcdef.new", "nowhere");
        folder.put("file.0123456789abcdef.new", "left");
        replace_whole(&folder.path("file"), "text").unwrap();
        let mut names: Vec<_> = kept.into_iter().chain(["file", "file.1123456789abcdef.new"]).collect();
        names.sort_unstable();
        assert_eq!(folder.names(), names);
        assert_eq!(fs::read_to_string(folder.path("file")).unwrap(), "text");
    }

    #[test]
    fn nothing_is_left_behind_where_moving_fails() {
        let folder = Folder::new();
        folder.put("file", "");
        let before = fs::metadata(folder.path("file")).unwrap();
        fs::create_dir(folder.path("target")).unwrap();
        let (file, beside) = create_one_of([folder.path("beside")].into_iter()).unwrap();
        assert!(put_in_place(file, &beside, "text", &folder.path("target"), Some(&before)).is_err());
        assert_eq!(folder.names(), ["file", "target"]);
    }
}

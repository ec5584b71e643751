//! Tests of files that are created, opened again, or rejected.

mod clock;

use std::error::Error;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::super::folder::Folder;
use super::super::header::CELLS_AT;
use super::super::record::PLACES;
use super::*;
use crate::time::boot::BootId;
use crate::time::{HOUR, Ticks};

const SMALL: Geometry = Geometry { bucket_cells: 8, buckets: 2 };
const SMALL_BYTES: u64 = CELLS_AT as u64 + 256;

const HERE: Option<BootId> = Some([1; 16]);
const IN_2024: Duration = Duration::from_secs(1_704_067_200);

fn reading(boot: Option<BootId>, since_boot: Duration, wall: Duration) -> Reading {
    Reading { boot, since_boot: Ticks::saturating_from(since_boot), wall }
}

fn made() -> Reading {
    reading(HERE, HOUR, IN_2024)
}

fn open_small(path: &Path) -> Result<ZoneFile, ZoneError> {
    open(path, SMALL, None, &made)
}

/// Creates a folder with the file of a small zone.
fn folder_with_zone() -> (Folder, PathBuf) {
    let folder = Folder::new();
    let path = folder.path("zone.tg");
    open_small(&path).unwrap();
    (folder, path)
}

/// Returns the error for a file, which must remain unchanged.
fn refused(path: &Path, wanted: Geometry) -> ZoneError {
    let bytes = || if path.is_file() { fs::read(path).ok() } else { None };
    let before = bytes();
    let error = open(path, wanted, None, &made).expect_err("it is refused");
    assert_eq!(bytes(), before, "it was changed");
    error
}

/// Returns the message without the path.
fn words(path: &Path, error: &ZoneError) -> String {
    let message = error.to_string();
    message.strip_prefix(&format!("{path:?}: ")).expect("the path comes first").to_owned()
}

/// Returns the message for a zone that was changed by `change`.
fn words_after(change: impl FnOnce(&mut Vec<u8>)) -> String {
    let (_folder, path) = folder_with_zone();
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
    words(&path, &refused(&path, SMALL))
}

/// Returns the remedy that replaces the files by new ones.
fn anew(path: &Path) -> String {
    format!("stop what uses it and move it and \"{}.*\" away to begin with all counts anew", path.display())
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn a_new_zone_is_whole_private_and_alone_in_its_folder() {
    let (folder, path) = folder_with_zone();
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!((metadata.len(), metadata.mode() & 0o7777), (SMALL_BYTES, 0o600));
    assert!(metadata.blocks() * 512 >= SMALL_BYTES);
    assert_eq!(folder.names(), ["zone.tg"]);
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn a_zone_keeps_its_seed_its_cells_and_its_words() {
    let (_folder, path) = folder_with_zone();
    let first = open_small(&path).unwrap();
    let cells = first.cells::<AtomicU64>();
    assert_eq!(cells.len(), 32);
    assert!(cells.iter().all(|word| word.load(Ordering::Relaxed) == 0));
    cells[31].store(7, Ordering::Relaxed);
    first.deepest().store(8, Ordering::Relaxed);
    first.latest().store(9, Ordering::Relaxed);
    first.flush().unwrap();

    let second = open_small(&path).unwrap();
    assert_eq!(second.cells::<AtomicU64>()[31].swap(70, Ordering::Relaxed), 7);
    assert_eq!((second.seed(), second.shift()), (first.seed(), first.shift()));
    assert_eq!((second.latest().load(Ordering::Relaxed), second.deepest().load(Ordering::Relaxed)), (9, 8));
    assert_eq!(cells[31].load(Ordering::Relaxed), 70, "both have the same memory");
    let bytes = fs::read(&path).unwrap();
    assert_eq!((bytes[WORDS_AT + 8], bytes[WORDS_AT], bytes[CELLS_AT + 31 * 8]), (8, 9, 70));
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn every_zone_has_a_seed_of_its_own() {
    let folder = Folder::new();
    let seeds = ["a", "b"].map(|name| open_small(&folder.path(name)).unwrap().seed());
    assert_ne!(seeds[0], seeds[1]);
    assert_ne!(seeds[0], [0, 0]);
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn those_who_make_a_zone_at_once_have_the_same() {
    for _ in 0..20 {
        let folder = Folder::new();
        let path = folder.path("zone.tg");
        let seeds: Vec<_> = thread::scope(|scope| {
            let open = || scope.spawn(|| open_small(&path).unwrap().seed());
            let threads: Vec<_> = (0..16).map(|_| open()).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(seeds.iter().all(|seed| *seed == seeds[0]), "{seeds:x?}");
        assert_eq!(folder.names(), ["zone.tg"]);
    }
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn a_link_to_a_zone_is_that_zone() {
    let (folder, path) = folder_with_zone();
    symlink(&path, folder.path("link")).unwrap();
    assert_eq!(open_small(&folder.path("link")).unwrap().seed(), open_small(&path).unwrap().seed());
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn what_is_not_a_file_is_refused() {
    let folder = Folder::new();
    let _socket = UnixListener::bind(folder.path("socket")).unwrap();
    symlink(folder.path("nothing"), folder.path("link")).unwrap();
    let pipe = Command::new("mkfifo").arg(folder.path("pipe")).status();
    let words = |path: PathBuf| {
        let error = refused(&path, SMALL);
        assert!(error.is_not_a_zone() && !error.is_damaged(), "{error:?}");
        words(&path, &error)
    };
    assert_eq!(words(folder.path("")), "is a folder; name a file in it");
    assert_eq!(words(folder.path("socket")), "is a socket, not a file; name another path");
    assert_eq!(words("/dev/null".into()), "is a device, not a file; name another path");
    assert_eq!(
        words(folder.path("link")),
        "is a link to a file that does not exist; remove the link, or name that file"
    );
    if pipe.is_ok_and(|status| status.success()) {
        assert_eq!(words(folder.path("pipe")), "is a pipe, not a file; name another path");
    }
    assert_eq!(fs::read_link(folder.path("link")).unwrap(), folder.path("nothing"));
    assert!(!folder.path("nothing").exists());
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn a_place_that_cannot_be_is_refused() {
    let (folder, _) = folder_with_zone();
    let no_folder = "its folder does not exist; create the folder, or name another path";
    for name in ["missing/zone.tg", "missing/", "missing/.", "zone.tg/zone.tg"] {
        let path = folder.path(name);
        assert_eq!(words(&path, &refused(&path, SMALL)), no_folder);
    }
    let error = refused(&folder.path("missing/zone.tg"), SMALL);
    assert_eq!(error.source().unwrap().to_string(), "No such file or directory (os error 2)");
    let nameless = Path::new("");
    assert_eq!(words(nameless, &refused(nameless, SMALL)), "names no file; name one");
    let long = folder.path(&"z".repeat(300));
    assert_eq!(
        words(&long, &refused(&long, SMALL)),
        "the system could not open the file for reading and writing; its own words are the cause"
    );
    assert_eq!(folder.names(), ["zone.tg"]);
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn a_file_that_others_can_write_is_refused() {
    let (_folder, path) = folder_with_zone();
    for mode in [0o620, 0o602, 0o666, 0o777] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let expected =
            format!("can be written by others (mode {mode:o}); take that from them with `chmod 600`");
        assert_eq!(words(&path, &refused(&path, SMALL)), expected);
    }
    for mode in [0o600, 0o644, 0o755] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        open_small(&path).unwrap();
    }
}

/// Only root can change the owner of a file; for other users this tests nothing.
#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn a_file_of_another_owner_is_rejected_which_root_can_try() {
    const OTHER_OWNER: u32 = 65_534;
    if system::user() != 0 {
        println!("skipped: a_file_of_another_owner_is_rejected_which_root_can_try needs root");
        return;
    }
    let (folder, path) = folder_with_zone();
    symlink(&path, folder.path("link")).unwrap();
    chown(&path, Some(OTHER_OWNER), None).unwrap();
    for name in ["zone.tg", "link"] {
        let error = refused(&folder.path(name), SMALL);
        assert!(!error.is_damaged() && !error.is_not_a_zone(), "{error:?}");
        assert_eq!(
            words(&folder.path(name), &error),
            format!(
                "belongs to user 65534, who can change its counts at any time, and this process runs as user 0; run it as \
                 user 65534, or {}",
                anew(&folder.path(name))
            )
        );
    }
    chown(&path, Some(0), Some(OTHER_OWNER)).unwrap();
    open_small(&path).unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn what_is_not_a_zone_is_refused() {
    let folder = Folder::new();
    let about = |bytes: &[u8]| {
        let path = folder.path("file");
        fs::write(&path, bytes).unwrap();
        let error = refused(&path, SMALL);
        assert!(error.is_not_a_zone() && !error.is_damaged(), "{error:?}");
        words(&path, &error)
    };
    assert_eq!(about(b""), "is empty; remove it, and a zone is made in its place");
    assert_eq!(about(b"a letter"), "is not a zone; name another path, or move the file away");
    assert_eq!(about(&[0; 10_000]), "is not a zone; name another path, or move the file away");
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn a_zone_of_another_size_is_rejected_and_the_error_names_the_valid_size() {
    let folder = Folder::new();
    let path = folder.path("zone.tg");
    let made_with = |buckets| Geometry { bucket_cells: 8, buckets };
    open(&path, made_with(65536), None, &made).unwrap();
    let error = refused(&path, made_with(32768));
    assert!(error.is_wrong_size() && !error.is_damaged());
    assert_eq!(
        words(&path, &error),
        format!("holds 8 MiB, but 4 MiB were asked for; ask for 8 MiB (8388608 bytes), or {}", anew(&path))
    );
    ZoneFile::open(&path, 8_388_608 / 128, 128, None).unwrap();
    assert_eq!(
        words(&path, &refused(&path, Geometry { bucket_cells: 4, buckets: 65536 })),
        format!(
            "has buckets of 8 cells, and this program has 4; run the version that wrote it, or {}",
            anew(&path)
        )
    );
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn a_zone_that_was_damaged_is_refused() {
    let copy = "put back a copy of all files of the store, or stop what uses it and move it and ";
    let after = [
        (words_after(|bytes| bytes.truncate(100)), "was cut off after 100 bytes; "),
        (words_after(|bytes| bytes.truncate(4096)), "has 4096 bytes, and was made with 151808; "),
        (words_after(|bytes| bytes.push(0)), "has 151809 bytes, and was made with 151808; "),
        (words_after(|bytes| bytes[40] ^= 1), "was damaged: the checksum of its header is wrong; "),
        (words_after(|bytes| bytes[PLACES[0]] ^= 1), "was damaged: neither of its clock records is whole; "),
    ];
    for (words, expected) in after {
        assert!(words.starts_with(&format!("{expected}{copy}")), "{words}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn a_zone_is_refused_after_any_change_of_a_byte_that_matters() {
    let (folder, path) = folder_with_zone();
    let whole = fs::read(&path).unwrap();
    let seed = open_small(&path).unwrap().seed();
    let changed = folder.path("changed");
    fs::write(&changed, &whole).unwrap();
    fs::set_permissions(&changed, fs::Permissions::from_mode(0o600)).unwrap();
    for at in 0..HEADER_BYTES {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&changed, &bytes).unwrap();
        match (at, open_small(&changed)) {
            (0..104 | 128..184, Err(error)) => {
                assert!(error.is_damaged() || error.is_not_a_zone() || (16..20).contains(&at), "{error}");
                assert_eq!(fs::read(&changed).unwrap(), bytes, "it was changed");
            }
            (0..104 | 128..184, Ok(_)) => panic!("byte {at} matters"),
            (_, opened) => assert_eq!(opened.expect("this byte does not matter").seed(), seed),
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn a_zone_that_was_cut_off_anywhere_is_refused() {
    let (_folder, path) = folder_with_zone();
    let whole = fs::read(&path).unwrap();
    let strides = (0..whole.len()).step_by(37);
    let edges = [HEADER_BYTES, CELLS_AT, whole.len()].into_iter().flat_map(|end| end - 9..end + 9);
    for length in strides.chain(edges).filter(|length| *length < whole.len()) {
        fs::write(&path, &whole[..length]).unwrap();
        let error = refused(&path, SMALL);
        assert_eq!(error.is_damaged(), length > 0, "{error}");
    }
    fs::write(&path, &whole).unwrap();
    open_small(&path).unwrap();
}

/// A file that is too large stands for a full disk, which a test cannot easily get.
#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn a_zone_for_which_there_is_no_room_leaves_nothing_behind() {
    if !Path::new("/dev/shm").is_dir() {
        return;
    }
    let folder = Folder::inside(Path::new("/dev/shm"));
    let path = folder.path("zone.tg");
    let (buckets, bytes) = (1 << 50, (1_u64 << 57) + CELLS_AT as u64);
    let error = refused(&path, Geometry { bucket_cells: 8, buckets });
    let expected = format!("there is no room for a file of {bytes} bytes; make room, or ask for fewer");
    assert_eq!(words(&path, &error), expected);
    let error = refused(&path, Geometry { bucket_cells: 8, buckets: u64::MAX });
    assert_eq!(words(&path, &error), "would be larger than a file can be; ask for fewer bytes");
    assert_eq!(folder.names(), [""; 0]);
    open_small(&path).unwrap();
}

#[test]
fn a_processor_without_wide_atomics_is_denied_a_zone_in_a_file() {
    let path = Path::new("zone.tg");
    require_atomic_cells(path, true).unwrap();
    let error = require_atomic_cells(path, false).expect_err("other processes do not see locks");
    assert_eq!(
        words(path, &error),
        "zones in files need a processor with 16-byte atomic instructions (x86-64 with cmpxchg16b, AArch64); use a zone in memory"
    );
}

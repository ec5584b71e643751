//! The system calls for a zone's file that the standard library does not provide.
//!
//! Calls that a signal can interrupt are repeated. They are for opening and creating files; none of them runs in a
//! decision.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FlockOperation, OFlags, RenameFlags, fallocate, flock, fstatfs, linkat,
    renameat_with,
};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::geteuid;

/// The flags to open a file without blocking, and without taking a controlling terminal.
pub(super) const NO_WAITING: i32 = OFlags::NONBLOCK.union(OFlags::NOCTTY).bits() as i32;

/// The same flags, with links not followed.
pub(super) const NO_LINK: i32 = NO_WAITING | OFlags::NOFOLLOW.bits() as i32;

/// The file systems whose files are on another machine, or may be, by the kernel's magic number.
const NETWORKS: [(u32, &str); 22] = [
    (0x0000_517b, "smb"),
    (0x0000_564c, "ncp"),
    (0x0000_6969, "nfs"),
    (0x00c3_6400, "ceph"),
    (0x0102_1997, "9p"),
    (0x0116_1970, "gfs2"),
    (0x0131_11a8, "ibrix"),
    (0x0bd0_0bd0, "lustre"),
    (0x1983_0326, "beegfs"),
    (0x2003_0528, "orangefs"),
    (0x4750_4653, "gpfs"),
    (0x5346_414f, "afs"),
    (0x6573_5546, "fuse"),
    (0x6b41_4653, "afs"),
    (0x7375_7245, "coda"),
    (0x7461_636f, "ocfs2"),
    (0x786f_4256, "vboxsf"),
    (0x7c7c_6673, "prl_fs"),
    (0xaad7_aaea, "panfs"),
    (0xbacb_acbc, "vmhgfs"),
    (0xfe53_4d42, "smb"),
    (0xff53_4d42, "cifs"),
];

/// Returns the name of the network file system that the file is on, if it is on one. FUSE counts as one, because the
/// file system behind it may be remote.
pub(super) fn network(file: &File) -> io::Result<Option<&'static str>> {
    // The numbers have 32 bits; some kernels extend the sign.
    Ok(network_name(retry_on_intr(|| fstatfs(file))?.f_type as u32))
}

/// Returns the name for a magic number of the kernel.
fn network_name(number: u32) -> Option<&'static str> {
    NETWORKS.iter().find(|(network, _)| *network == number).map(|(_, name)| *name)
}

/// Returns the effective user of this process, which owns the files that it creates.
pub(super) fn user() -> u32 {
    geteuid().as_raw()
}

/// Sets the length of a file to `bytes`, and allocates disk space for all of them. Where the file system cannot
/// allocate, the bytes are written as zeros, which takes longer.
pub(super) fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, bytes)) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => write_zeros(file, bytes),
        allocated => Ok(allocated?),
    }
}

/// Allocates disk space for all bytes of a file, because a copy may be sparse. Does nothing where the file system does
/// not support this.
pub(super) fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, bytes)) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        reserved => Ok(reserved?),
    }
}

/// Writes the zeros in steps of 64 KiB.
fn write_zeros(file: &File, bytes: u64) -> io::Result<()> {
    static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
    let mut written = 0;
    while written < bytes {
        let count = (bytes - written).min(ZEROS.len() as u64);
        file.write_all_at(&ZEROS[..count as usize], written)?;
        written += count;
    }
    Ok(())
}

/// Gives a file its name, unless that name exists. The old name may remain. File systems without such a rename get a
/// second link instead, which fails as well if the name exists.
pub(super) fn publish(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => link(from, to),
        renamed => Ok(renamed?),
    }
}

/// Adds a second name to the file, and follows no link.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    Ok(linkat(CWD, from, CWD, to, AtFlags::empty())?)
}

/// An exclusive lock on the file.
///
/// A mapping keeps a lock alive even when the file is closed, so the lock must be released explicitly.
#[derive(Debug)]
pub(super) struct Lock<'a>(&'a File);

impl<'a> Lock<'a> {
    /// Waits for the lock.
    pub(super) fn new(file: &'a File) -> io::Result<Lock<'a>> {
        retry_on_intr(|| flock(file, FlockOperation::LockExclusive))?;
        Ok(Lock(file))
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        unlock(self.0);
    }
}

/// Locks a file without waiting. Returns false if another process has the lock.
pub(super) fn try_lock(file: &File) -> bool {
    retry_on_intr(|| flock(file, FlockOperation::NonBlockingLockExclusive)).is_ok()
}

/// Releases the lock of this open file, for all descriptors that share it.
pub(super) fn unlock(file: &File) {
    // Unlocking an open file does not fail.
    let _ = flock(file, FlockOperation::Unlock);
}

#[cfg(test)]
#[cfg(not(tidegate_models))]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::super::folder::Folder;
    use super::*;

    #[test]
    fn file_systems_of_other_machines_are_known_by_their_numbers() {
        for (number, name) in [
            (0x6969, "nfs"),
            (0x517b, "smb"),
            (0xff53_4d42, "cifs"),
            (0xfe53_4d42, "smb"),
            (0x0102_1997, "9p"),
            (0x00c3_6400, "ceph"),
            (0x5346_414f, "afs"),
            (0x6b41_4653, "afs"),
            (0x7375_7245, "coda"),
            (0x0bd0_0bd0, "lustre"),
            (0x4750_4653, "gpfs"),
            (0x6573_5546, "fuse"),
        ] {
            assert_eq!(network_name(number), Some(name));
        }
        let (ext4, xfs, btrfs, tmpfs, overlay) = (0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630);
        for local in [ext4, xfs, btrfs, tmpfs, overlay] {
            assert_eq!(network_name(local), None, "{local:x}");
        }
        assert!(NETWORKS.is_sorted());
    }

    #[test]
    #[cfg_attr(miri, ignore = "it needs the kernel")]
    fn the_kernel_says_on_what_a_file_lies() {
        let shared = File::open("/dev/shm").and_then(|folder| network(&folder));
        assert!(
            matches!(shared, Ok(None)) || shared.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        );
    }

    #[test]
    #[cfg_attr(miri, ignore = "it needs files")]
    fn a_file_gets_all_its_bytes_whatever_the_file_system() {
        let folder = Folder::new();
        for (name, give) in [("allocated", allocate as fn(&File, u64) -> _), ("written", write_zeros)] {
            let file = File::create_new(folder.path(name)).unwrap();
            give(&file, 200_001).unwrap();
            let metadata = file.metadata().unwrap();
            assert_eq!(metadata.len(), 200_001);
            assert!(metadata.blocks() * 512 >= 200_001, "{name}");
            assert!(fs::read(folder.path(name)).unwrap().iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "it needs files")]
    fn holes_are_filled_and_bytes_stay() {
        let folder = Folder::new();
        let file = File::create_new(folder.path("sparse")).unwrap();
        file.write_all_at(b"end", 1_000_000).unwrap();
        assert!(file.metadata().unwrap().blocks() * 512 < 1_000_003);
        reserve(&file, 1_000_003).unwrap();
        assert!(file.metadata().unwrap().blocks() * 512 >= 1_000_003);
        assert_eq!(file.metadata().unwrap().len(), 1_000_003);
        assert!(fs::read(folder.path("sparse")).unwrap().ends_with(b"\0end"));
    }

    #[test]
    #[cfg_attr(miri, ignore = "it needs files")]
    fn a_name_that_is_taken_is_not_taken_away() {
        let folder = Folder::new();
        for (from, publish) in [("a", publish as fn(&Path, &Path) -> _), ("b", link)] {
            fs::write(folder.path(from), from).unwrap();
            fs::write(folder.path("taken"), "first").unwrap();
            let error = publish(&folder.path(from), &folder.path("taken")).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(fs::read_to_string(folder.path("taken")).unwrap(), "first");
            let free = folder.path(&format!("free-{from}"));
            publish(&folder.path(from), &free).unwrap();
            assert_eq!(fs::read_to_string(free).unwrap(), from);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "it needs files")]
    fn a_lock_is_had_by_one_and_given_back() {
        let folder = Folder::new();
        let open =
            || File::options().write(true).create(true).truncate(false).open(folder.path("file")).unwrap();
        let (first, second) = (open(), open());
        let try_second = || flock(&second, FlockOperation::NonBlockingLockExclusive);
        let lock = Lock::new(&first).unwrap();
        assert_eq!(try_second(), Err(Errno::WOULDBLOCK));
        drop(lock);
        assert_eq!(try_second(), Ok(()));
    }
}

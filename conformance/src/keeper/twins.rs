//! Two zones that put every key into the same cells.
//!
//! Where keys are in a zone depends on a random seed. A zone in a file keeps its seed there, so a zone on
//! a copy of the file has the same one. That makes zones comparable which are so small that keys share cells.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use tidegate::{Clock, Zone};

use crate::Folder;

/// Two empty zones of so many bytes, each by its own clock, in which the same keys share the same cells.
pub fn twin_zones(bytes: usize, [one, other]: [Arc<dyn Clock>; 2]) -> [Zone; 2] {
    let folder = Folder::new();
    let [first, second] = ["first.tg", "second.tg"].map(|name| folder.path().join(name));
    let open = |path: &PathBuf, clock| {
        Zone::in_file_with_clock(path, bytes, clock).unwrap_or_else(|error| panic!("{error}"))
    };
    let zone = open(&first, one);
    zone.flush().expect("a file of temporary files can be written");
    fs::copy(&first, &second).expect("a file of temporary files can be copied");
    [zone, open(&second, other)]
}

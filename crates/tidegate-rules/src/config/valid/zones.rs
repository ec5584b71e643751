//! The zones that rules may name.
//!
//! A zone separates keys that would otherwise evict each other or share cells. Rules name it by `zone = "NAME"`, and it
//! exists as long as a policy has it.

use tidegate_support::{Bytes, nearest, size};

use super::super::written::{Written, ZoneText};
use super::Valid;
use crate::policy::NamedZone;

/// The maximum size of all these zones together. A larger size is certainly a mistake.
const MAX_ZONE_BYTES: usize = 64 << 30;

impl Valid<'_> {
    /// Validates the zones of a policy. Their sizes are at least 4 KiB each, and at most 64 GiB together.
    pub(super) fn zones(&mut self, texts: &[ZoneText]) -> Vec<NamedZone> {
        let mut zones = Vec::new();
        for text in texts {
            self.name("zone", &text.name);
            // A zone with an invalid size still exists, so that rules can name it.
            let mut zone = NamedZone { name: text.name.value.as_str().into(), bytes: 0 };
            match text.size.as_ref().map(|written| (size(&written.value), written)) {
                Some((Ok(bytes), _)) => zone.bytes = bytes,
                Some((Err(what), written)) => {
                    self.complain(&written.span, format!("size {:?}: {what}", written.value));
                }
                None if text.has_fields => {}
                None => {
                    let what =
                        format!("zone {:?}: has no size; add one, as in size = \"16MiB\"", text.name.value);
                    self.complain(&text.name.span, what);
                }
            }
            zones.push(zone);
        }
        self.zone_bytes(&zones, texts);
        zones
    }

    /// Reports the largest zone if all zones together are too large.
    pub(super) fn zone_bytes(&mut self, zones: &[NamedZone], texts: &[ZoneText]) {
        let sum = zones.iter().fold(0, |sum: usize, zone| sum.saturating_add(zone.bytes));
        let largest = zones.iter().zip(texts).max_by_key(|(zone, _)| zone.bytes);
        let Some(size) = largest.and_then(|(_, text)| text.size.as_ref()).filter(|_| sum > MAX_ZONE_BYTES)
        else {
            return;
        };
        let (sum, most) = (Bytes(sum), Bytes(MAX_ZONE_BYTES));
        let what = format!("all zones together have {sum}; write sizes of at most {most} in all");
        self.complain(&size.span, format!("size {:?}: {what}", size.value));
    }

    /// Validates the zone that a rule names. The outer `None` is an error, the inner one is the zone of the store.
    pub(super) fn zone(
        &mut self,
        written: Option<&Written<String>>,
        zones: &[NamedZone],
    ) -> Option<Option<Box<str>>> {
        let Some(written) = written else { return Some(None) };
        if zones.iter().any(|zone| *zone.name == *written.value) {
            return Some(Some(written.value.as_str().into()));
        }
        let what = match nearest(&written.value, zones.iter().map(|zone| &*zone.name)) {
            Some(near) => format!("there is no such zone; did you mean {near:?}?"),
            None => format!(
                "there is no such zone; add [zone.{}] with a size, as in size = \"16MiB\"",
                written.value
            ),
        };
        self.complain(&written.span, format!("zone {:?}: {what}", written.value));
        None
    }
}

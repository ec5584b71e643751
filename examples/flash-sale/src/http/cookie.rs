//! Cookies: read by name, and written with all that limits their use.

use axum::http::HeaderMap;
use axum::http::header::COOKIE;

/// A cookie that the shop sets. No script reads it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cookie {
    pub(super) name: &'static str,
    /// The path below which browsers send it.
    pub(super) path: &'static str,
    /// The prefix of its name where buyers come by TLS. Browsers take a cookie of such a name only if it was set by TLS,
    /// and with `__Host-` only from this very host, so a sibling domain cannot put its own in place of it.
    pub(super) prefix: &'static str,
    pub(super) same_site: &'static str,
    pub(super) max_age_s: u32,
}

impl Cookie {
    /// Returns the value of the field `Set-Cookie`.
    pub(super) fn set(&self, value: &str, is_behind_tls: bool) -> String {
        let Cookie { path, same_site, max_age_s, .. } = self;
        let (name, secure) = (self.name(is_behind_tls), if is_behind_tls { "; Secure" } else { "" });
        format!("{name}={value}; Path={path}; Max-Age={max_age_s}; HttpOnly; SameSite={same_site}{secure}")
    }

    /// Returns all values that a request has of it: a browser may hold several, of other paths and domains.
    pub(super) fn values<'h>(
        &self,
        headers: &'h HeaderMap,
        is_behind_tls: bool,
    ) -> impl Iterator<Item = &'h str> {
        let name = self.name(is_behind_tls);
        let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.filter(move |(found, _)| *found == name).map(|(_, value)| value)
    }

    fn name(&self, is_behind_tls: bool) -> String {
        let prefix = if is_behind_tls { self.prefix } else { "" };
        format!("{prefix}{}", self.name)
    }
}

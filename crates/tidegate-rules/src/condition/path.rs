//! A path pattern: `/users/{id}/posts`, `/api/{*rest}`.
//!
//! ```text
//!   /users/{id}/posts     segments: users, any, posts          no rest
//!   /api/{*rest}          segments: api                        a rest of at least one character
//!   /static/              segments: static, (empty)            only the path with the trailing slash
//! ```
//!
//! The syntax is that of axum 0.8 and of matchit. A whole segment is a literal or a placeholder; `/a{id}` is an error.
//! Literals are percent-decoded when a pattern is parsed, because paths are decoded before they are compared.

use std::fmt;

/// Consecutive path segments, and an optional rest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PathPattern {
    pub(crate) segments: Box<[Segment]>,
    /// The name of the rest, if one may follow. The rest has at least one character.
    pub(crate) rest: Option<Box<str>>,
}

/// One segment between two slashes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Segment {
    Literal(Box<[u8]>),
    /// Any segment that is not empty. The name is only documentation.
    Any(Box<str>),
}

impl PathPattern {
    /// Parses a pattern that begins with a slash.
    ///
    /// # Errors
    /// The fault and its remedy, without the pattern itself: an unknown use of braces or stars, text behind `{*rest}`,
    /// or a literal that no normalized path contains, such as an empty segment, `.` or `..`.
    pub(crate) fn read(text: &str) -> Result<PathPattern, String> {
        let (mut segments, mut rest) = (Vec::new(), None);
        let mut pieces = text[1..].split('/').peekable();
        while let Some(piece) = pieces.next() {
            if rest.is_some() {
                return Err("has something behind {*rest}, which takes everything; leave it out".to_owned());
            }
            match named(piece)? {
                Some(name) if name.starts_with('*') => rest = Some(name[1..].into()),
                Some(name) => segments.push(Segment::Any(name.into())),
                None => {
                    if piece.contains('*') {
                        return Err(
                            "has a star beside braces; write {*rest} for all below, or %2A for a star itself"
                                .to_owned(),
                        );
                    }
                    let bytes = tidegate_support::decoded(piece.as_bytes());
                    let is_gone = bytes.is_empty() && pieces.peek().is_some();
                    if is_gone || matches!(&bytes[..], b"." | b"..") || bytes.contains(&b'/') {
                        return Err(format!(
                            "has {piece:?} between slashes, where no path has it once it is plain; leave it out"
                        ));
                    }
                    segments.push(Segment::Literal(bytes.into()));
                }
            }
        }
        Ok(PathPattern { segments: segments.into(), rest })
    }

    /// Returns true if a normalized path matches. The whole path has to match: without a rest, `/users/{id}` does not
    /// match `/users/7/`.
    pub(crate) fn matches(&self, path: &[u8]) -> bool {
        let Some(mut left) = path.strip_prefix(b"/").map(Some) else { return false };
        for segment in &self.segments {
            let Some(more) = left else { return false };
            let (piece, after) = first_piece(more);
            if !segment.matches(piece) {
                return false;
            }
            left = after;
        }
        match &self.rest {
            Some(_) => left.is_some_and(|rest| !rest.is_empty()),
            None => left.is_none(),
        }
    }

    /// Returns true if this pattern matches every path that the other one matches.
    pub(crate) fn covers(&self, other: &PathPattern) -> bool {
        let enough = if self.rest.is_some() {
            // The rest and the segments of the other pattern have at least one character each.
            other.segments.len() + usize::from(other.rest.is_some()) > self.segments.len()
        } else {
            other.rest.is_none() && other.segments.len() == self.segments.len()
        };
        let ends_empty = matches!(other.segments.last(), Some(Segment::Literal(piece)) if piece.is_empty());
        enough
            && !(self.rest.is_some() && ends_empty && other.segments.len() == self.segments.len() + 1)
            && self.segments.iter().zip(&other.segments).all(|(wide, narrow)| wide.covers(narrow))
            && other.segments.len() >= self.segments.len()
    }

    /// Returns the common prefix of all paths that match.
    ///
    /// It ends at the first placeholder. With it a prefix pattern such as `/api*` is compared with a path pattern.
    pub(crate) fn literal_beginning(&self) -> Vec<u8> {
        let mut bytes = b"/".to_vec();
        for (index, segment) in self.segments.iter().enumerate() {
            let Segment::Literal(piece) = segment else { break };
            bytes.extend_from_slice(piece);
            if index + 1 < self.segments.len() || self.rest.is_some() {
                bytes.push(b'/');
            }
        }
        bytes
    }
}

impl Segment {
    /// Returns true if one segment of a path matches. A placeholder does not match an empty segment.
    fn matches(&self, piece: &[u8]) -> bool {
        match self {
            Segment::Literal(bytes) => **bytes == *piece,
            Segment::Any(_) => !piece.is_empty(),
        }
    }

    /// Returns true if every segment that the other one matches is matched by this one.
    fn covers(&self, other: &Segment) -> bool {
        match (self, other) {
            (Segment::Literal(wide), Segment::Literal(narrow)) => wide == narrow,
            (Segment::Any(_), Segment::Literal(piece)) => !piece.is_empty(),
            (Segment::Any(_), Segment::Any(_)) => true,
            (Segment::Literal(_), Segment::Any(_)) => false,
        }
    }
}

/// Returns the segment up to the next slash, and the path after it.
///
/// `None` means that the path ended, `Some` of an empty path that it ended in a slash.
pub(crate) fn first_piece(path: &[u8]) -> (&[u8], Option<&[u8]>) {
    match path.iter().position(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], Some(&path[slash + 1..])),
        None => (path, None),
    }
}

/// Returns the name between braces; `None` if there are no braces.
///
/// # Errors
/// Braces around something that is no name, braces within a segment, or a brace without its partner.
fn named(piece: &str) -> Result<Option<&str>, String> {
    if !piece.contains(['{', '}']) {
        return Ok(None);
    }
    let name = piece.strip_prefix('{').and_then(|name| name.strip_suffix('}'));
    let bare = name.map(|name| name.strip_prefix('*').unwrap_or(name));
    match (name, bare) {
        (Some(name), Some(bare))
            if !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') =>
        {
            Ok(Some(name))
        }
        _ => Err(format!(
            "has {piece:?} between slashes; write a whole piece as {{name}}, or the rest as {{*rest}}"
        )),
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            match segment {
                Segment::Literal(piece) => write!(out, "/{}", String::from_utf8_lossy(piece))?,
                Segment::Any(name) => write!(out, "/{{{name}}}")?,
            }
        }
        self.rest.as_ref().map_or(Ok(()), |name| write!(out, "/{{*{name}}}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> PathPattern {
        PathPattern::read(text).unwrap()
    }

    #[test]
    fn a_path_has_a_shape_or_not() {
        for (shape, path, is_so) in [
            ("/api/{*rest}", "/api/x", true),
            ("/api/{*rest}", "/api/x/y", true),
            ("/api/{*rest}", "/api/", false),
            ("/api/{*rest}", "/api", false),
            ("/api/{*rest}", "/apis/x", false),
            ("/{*rest}", "/", false),
            ("/{*rest}", "/a", true),
            ("/users/{id}", "/users/7", true),
            ("/users/{id}", "/users/", false),
            ("/users/{id}", "/users/7/", false),
            ("/users/{id}", "/users/7/posts", false),
            ("/users/{id}/posts", "/users/7/posts", true),
            ("/{a}/{b}", "/x/y", true),
            ("/{a}/{b}", "/x", false),
            ("/{a}/", "/x/", true),
            ("/{a}", "x", false),
            ("/{a}", "", false),
        ] {
            assert_eq!(pattern(shape).matches(path.as_bytes()), is_so, "{shape} {path}");
        }
    }

    #[test]
    fn one_shape_covers_another_only_if_it_has_all_its_paths() {
        for (wide, narrow, is_so) in [
            ("/{*rest}", "/api/{*rest}", true),
            ("/api/{*rest}", "/api/{id}", true),
            ("/api/{*rest}", "/api/{id}/x", true),
            ("/api/{*rest}", "/{*rest}", false),
            ("/api/{*rest}", "/api/{id}/", true),
            ("/{a}/{*rest}", "/{a}/", false),
            ("/users/{id}", "/users/{name}", true),
            ("/users/{id}", "/users/{name}/x", false),
            ("/users/{id}", "/{a}/{b}", false),
            ("/{a}/{b}", "/users/{id}", true),
        ] {
            assert_eq!(pattern(wide).covers(&pattern(narrow)), is_so, "{wide} {narrow}");
        }
    }

    #[test]
    fn other_braces_are_rejected_with_the_valid_syntax() {
        for text in ["/a{b}", "/{}", "/{*}", "/{a", "/a}", "/{a b}", "/{{a}}"] {
            assert!(PathPattern::read(text).unwrap_err().contains("write a whole piece"), "{text}");
        }
        assert!(PathPattern::read("/{*rest}/x").unwrap_err().contains("behind {*rest}"));
    }
}

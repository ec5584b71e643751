//! Problem documents (`application/problem+json`, RFC 9457).
//!
//! A document has the members `type`, `title`, `status` and `detail`, then those of the kind. It is written directly to
//! a buffer, without a JSON library.

use std::fmt::{self, Write};

use http::StatusCode;

/// The kind of a problem: its `type` and its `title`.
///
/// Two kinds are registered with IANA by the draft on rate limit header fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// A limit denied the request.
    QuotaExceeded,
    /// The service has no capacity for the request, or no store is available to decide.
    ReducedCapacity,
    /// No registered type; the status is the only information.
    Plain,
}

/// The members at the start of every problem document. The status code is repeated in the document, because a proxy may
/// change that of the response.
#[doc(alias = "RFC 9457")]
#[doc(alias = "RFC 7807")]
#[doc(alias = "problem+json")]
#[doc(alias = "429")]
#[derive(Clone, Copy, Debug)]
pub struct Problem<D> {
    /// Its kind.
    pub kind: ProblemKind,
    /// Its status, equal to that of the response.
    pub status: StatusCode,
    /// Its detail, as plain text.
    pub detail: D,
}

impl<D: fmt::Display> Problem<D> {
    /// Writes the object without its closing brace, so that other members can follow.
    ///
    /// The detail is escaped while it is formatted; nothing is allocated here.
    pub fn put(&self, out: &mut impl Write) {
        let (kind, title) = match self.kind {
            ProblemKind::QuotaExceeded => {
                ("https://iana.org/assignments/http-problem-types#quota-exceeded", "Quota exceeded")
            }
            ProblemKind::ReducedCapacity => (
                "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
                "Temporarily reduced capacity",
            ),
            ProblemKind::Plain => ("about:blank", self.status.canonical_reason().unwrap_or_default()),
        };
        let status = self.status.as_str();
        for text in ["{\"type\":\"", kind, "\",\"title\":\"", title, "\",\"status\":", status, ",\"detail\":"]
        {
            // Writes to a buffer in memory do not fail.
            let _ = out.write_str(text);
        }
        put_json(out, &self.detail);
    }

    /// Returns the document. `violated`, if set, follows the detail under `violated-policies`.
    pub fn document(&self, violated: Option<&str>) -> String {
        let mut document = String::new();
        self.put(&mut document);
        if let Some(name) = violated {
            put_violated(&mut document, name);
        }
        document.push('}');
        document
    }
}

/// Writes the member with the name of the policy that denied the request.
pub fn put_violated(out: &mut impl Write, name: &str) {
    // Writes to a buffer in memory do not fail.
    let _ = out.write_str(",\"violated-policies\":[");
    put_json(out, name);
    let _ = out.write_str("]");
}

/// Writes text as a JSON string. Quotes, backslashes and control characters are escaped. Other characters are written
/// as they are, in UTF-8.
pub fn put_json(out: &mut impl Write, text: impl fmt::Display) {
    // Writes to a buffer in memory do not fail.
    let _ = out.write_char('"');
    let _ = write!(Escaped(out), "{text}");
    let _ = out.write_char('"');
}

/// A writer that escapes text within a JSON string.
struct Escaped<'a, W>(&'a mut W);

impl<W: Write> Write for Escaped<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(|letter: char| matches!(letter, '"' | '\\' | '\0'..='\x1f')) {
            self.0.write_str(&rest[..at])?;
            match rest.as_bytes()[at] {
                b'"' => self.0.write_str("\\\"")?,
                b'\\' => self.0.write_str("\\\\")?,
                b'\n' => self.0.write_str("\\n")?,
                b'\r' => self.0.write_str("\\r")?,
                b'\t' => self.0.write_str("\\t")?,
                0x08 => self.0.write_str("\\b")?,
                0x0c => self.0.write_str("\\f")?,
                control => write!(self.0, "\\u{control:04x}")?,
            }
            rest = &rest[at + 1..];
        }
        self.0.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let mut out = String::new();
        put_json(&mut out, "a\"b\\c\n\r\t\u{8}\u{c}\u{0}\u{1f}\u{7f}\u{e4}");
        assert_eq!(out, "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0000\\u001f\u{7f}\u{e4}\"");
    }

    #[test]
    fn a_document_has_its_kind_status_detail_and_policy() {
        let status = StatusCode::TOO_MANY_REQUESTS;
        let problem = Problem { kind: ProblemKind::QuotaExceeded, status, detail: "by \"a\"" };
        assert_eq!(
            problem.document(Some("a")),
            "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\
             \"title\":\"Quota exceeded\",\"status\":429,\"detail\":\"by \\\"a\\\"\",\"violated-policies\":[\"a\"]}"
        );
        let plain = Problem { kind: ProblemKind::Plain, ..problem };
        assert_eq!(
            plain.document(None),
            r#"{"type":"about:blank","title":"Too Many Requests","status":429,"detail":"by \"a\""}"#
        );
    }
}

//! Masks passwords in texts that may be Redis URLs, before they are shown.
//!
//! Masking errs on the side of hiding: a text that is not a valid URL may still contain a password.

/// The replacement of a secret.
const HIDDEN: &str = "***";

/// Returns a text that may be a URL with its secrets masked. A password can contain any character. Therefore everything
/// before the last `@` counts as secret, except the scheme and a user name before a colon.
pub(super) fn hidden(text: &str) -> String {
    let (text, secrets) = match text.split_once('?') {
        Some((before, query)) => (before, query.split('&').map(without_secret).collect::<Vec<_>>().join("&")),
        None => (text, String::new()),
    };
    let query = if secrets.is_empty() { String::new() } else { format!("?{secrets}") };
    let Some((before, hosts)) = text.rsplit_once('@') else { return format!("{text}{query}") };
    let (scheme, who) = before.split_once("://").map_or(("", before), |(scheme, who)| (scheme, who));
    let scheme = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    let shown = match who.split_once(':') {
        Some((name, _)) => format!("{name}:{HIDDEN}@"),
        // A user name alone grants no access.
        None => format!("{who}@"),
    };
    format!("{scheme}{shown}{hosts}{query}")
}

/// Returns true if the text contains a secret.
pub(super) fn has_secret(text: &str) -> bool {
    hidden(text) != text
}

/// Masks the value of a query parameter if its name contains "pass".
fn without_secret(part: &str) -> String {
    match part.split_once('=') {
        Some((name, _)) if name.to_ascii_lowercase().contains("pass") => format!("{name}={HIDDEN}"),
        _ => part.to_owned(),
    }
}

/// Masks all URL secrets in the text of a file. Every line keeps its length, so that carets stay in place.
pub(super) fn covered(text: &str) -> String {
    text.split_inclusive('\n').map(covered_line).collect()
}

/// Masks everything between the scheme and the last `@` of a line with asterisks.
fn covered_line(line: &str) -> String {
    let (Some(start), Some(end)) = (line.find("://"), line.rfind('@')) else { return line.to_owned() };
    let start = start + "://".len();
    if start >= end {
        return line.to_owned();
    }
    format!("{}{}{}", &line[..start], "*".repeat(end - start), &line[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (text, shown) in [
            ("redis://127.0.0.1:6379", "redis://127.0.0.1:6379"),
            ("redis://:secret@host", "redis://:***@host"),
            ("rediss://ana:secret@host:6380/2", "rediss://ana:***@host:6380/2"),
            ("redis://ana:se/c@r:et@host", "redis://ana:***@host"),
            ("redis+sentinel://:secret@a:1,b:2/main", "redis+sentinel://:***@a:1,b:2/main"),
            (
                "redis+sentinel://a:1/main?sentinel_password=secret&x=1",
                "redis+sentinel://a:1/main?sentinel_password=***&x=1",
            ),
            ("ana:secret@host", "ana:***@host"),
            ("redis://ana@host", "redis://ana@host"),
        ] {
            assert_eq!(hidden(text), shown);
            assert_eq!(has_secret(text), shown.contains(HIDDEN));
        }
    }

    #[test]
    fn a_line_that_is_shown_keeps_its_length_and_no_secret() {
        let text = "[store]\nurl = \"redis://:secret@host\" # a@b\nsize = 5\n# me@here\n";
        let covered = covered(text);
        assert_eq!(covered.len(), text.len());
        assert!(!covered.contains("secret") && covered.contains("size = 5") && covered.contains("me@here"));
        assert_eq!(super::covered("url = \"redis://host\" \n"), "url = \"redis://host\" \n");
    }
}

//! How a text that may be a URL of a Redis is shown: a password in it is never printed.

/// What stands for a secret.
const HIDDEN: &str = "***";

/// A text that may be a URL, without what may be a secret in it. A password may hold any sign, so whatever is before
/// the last `@` is one, but for the scheme and a name that a colon ends.
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
        // A name alone lets nobody in.
        None => format!("{who}@"),
    };
    format!("{scheme}{shown}{hosts}{query}")
}

/// Whether there is something in it that must not be printed.
pub(super) fn has_secret(text: &str) -> bool {
    hidden(text) != text
}

/// A part of a query, without its value if it may be a secret.
fn without_secret(part: &str) -> String {
    match part.split_once('=') {
        Some((name, _)) if name.to_ascii_lowercase().contains("pass") => format!("{name}={HIDDEN}"),
        _ => part.to_owned(),
    }
}

/// The text of a file in which every line is as long as it was, and no secret of a URL can be read.
pub(super) fn covered(text: &str) -> String {
    text.split_inclusive('\n').map(covered_line).collect()
}

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

//! Suggestions for misspelled names.

use tidegate_core::attribute::distance;

/// The largest edit distance of a suggestion. It covers a transposition, and a missing or doubled letter.
const MAX_DISTANCE: usize = 2;

/// Returns the known word with the smallest edit distance, if it is near enough. The case of `word` is ignored.
///
/// # Examples
///
/// ```
/// use tidegate_support::nearest;
///
/// assert_eq!(nearest("brust", ["burst", "rate"]), Some("burst"));
/// assert_eq!(nearest("colour", ["burst", "rate"]), None);
/// ```
#[doc(alias = "did you mean")]
#[doc(alias = "spell check")]
#[doc(alias = "suggestion")]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = &word.to_lowercase();
    let letters = word.chars().count();
    // Words of another length are too far away, and may be long.
    let known = known.into_iter().filter(|name| name.chars().count().abs_diff(letters) <= MAX_DISTANCE);
    let near = known.map(|name| (distance(word, name), name)).min()?;
    (near.0 <= MAX_DISTANCE.min(letters / 2)).then_some(near.1)
}

/// Returns the message about an unknown name, with a suggestion if there is one. Without a suggestion, the message
/// lists all known names.
pub fn unknown<'n>(what: &str, name: &str, known: impl Iterator<Item = &'n str> + Clone) -> String {
    match nearest(name, known.clone()) {
        Some(near) => format!("unknown {what} {name:?}; did you mean {near:?}?"),
        None if known.clone().count() == 1 => {
            format!("unknown {what} {name:?}; write {:?}", known.collect::<String>())
        }
        None => format!("unknown {what} {name:?}; known are {}", known.collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let known = ["resp", "http", "threads", "max_connections"];
        for (word, meant) in [
            ("rsep", Some("resp")),
            ("htttp", Some("http")),
            ("max-connections", Some("max_connections")),
            ("thread", Some("threads")),
            ("HTTP", Some("http")),
            ("port", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}

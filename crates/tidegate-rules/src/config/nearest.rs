//! What somebody probably meant.

/// How many letters of a word may be wrong.
const MAX_DISTANCE: usize = 2;

/// The known word that is like this one, if one is; capital letters do not count.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = &word.to_lowercase();
    let letters = word.chars().count();
    // Others are too far away, and may be long.
    let known = known.into_iter().filter(|name| name.chars().count().abs_diff(letters) <= MAX_DISTANCE);
    let near = known.map(|name| (distance(word, name), name)).min()?;
    (near.0 <= MAX_DISTANCE.min(letters / 2)).then_some(near.1)
}

/// How many letters have to be changed, added or dropped to get from one word to another.
pub(crate) fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (index, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in to.chars().enumerate() {
            let changed = diagonal + usize::from(letter != other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[row.len() - 1]
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

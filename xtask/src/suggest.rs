//! Finds what was probably meant by a misspelt word.

/// The candidate that needs the fewest edits to become `word`; the first of equals.
pub(crate) fn closest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates.min_by_key(|candidate| distance(word, candidate))
}

/// Insertions, deletions and replacements between two words (Levenshtein), one row of the table at a time.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (above, from) in left.chars().enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for (column, to) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_single_letter_edits() {
        assert_eq!(distance("", "soak"), 4);
        assert_eq!(distance("soak", "soak"), 0);
        assert_eq!(distance("saok", "soak"), 2);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn closest_prefers_the_fewest_edits() {
        assert_eq!(closest("tset", ["bench", "test", "fix"].into_iter()), Some("test"));
        assert_eq!(closest("anything", [].into_iter()), None);
    }
}

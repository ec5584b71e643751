//! What was asked of a bench that has sections.

/// What was asked for.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// Whether to draw a picture.
    pub(crate) plot: bool,
    /// All sections, if none is named.
    sections: Vec<String>,
}

impl Options {
    /// Nothing, if there is a word that is no section's name.
    pub(crate) fn read(arguments: &[&str], known: &[&str]) -> Option<Options> {
        let mut options = Options::default();
        for argument in arguments {
            match *argument {
                "--plot" => options.plot = true,
                name if known.contains(&name) => options.sections.push(name.to_owned()),
                _ => return None,
            }
        }
        Some(options)
    }

    pub(crate) fn asks_for(&self, name: &str) -> bool {
        self.sections.is_empty() || self.sections.iter().any(|section| section == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 3] = ["hot", "memory", "worst"];

    #[test]
    fn without_names_all_sections_are_asked_for() {
        let options = Options::read(&["--plot"], &KNOWN).unwrap();
        assert!(options.plot && options.asks_for("hot") && options.asks_for("worst"));
        let options = Options::read(&["memory", "hot"], &KNOWN).unwrap();
        assert!(!options.plot && options.asks_for("hot") && !options.asks_for("worst"));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert!(Options::read(&["--plod"], &KNOWN).is_none());
        assert!(Options::read(&["hot", "cold"], &KNOWN).is_none());
    }
}

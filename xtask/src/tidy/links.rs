//! Relative links of documents lead to a file of the repository, and their anchors to one of its headings.

use std::collections::{HashMap, HashSet};

use super::{File, Finding};

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let known: HashMap<&str, &File> = files.iter().map(|file| (&*file.path, file)).collect();
    let folders: HashSet<&str> = files.iter().flat_map(|file| folders_of(&file.path)).collect();
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.extension() == Some("md")) {
        for (line, target) in links(&file.text) {
            let (path, anchor) = target.split_once('#').map_or((target, None), |(path, at)| (path, Some(at)));
            let Some(path) = resolved(&file.path, path) else {
                findings.push(file.finding(line, format!("the link `{target}` leads out of the repository")));
                continue;
            };
            match (known.get(&*path), anchor) {
                (None, _) if !folders.contains(&*path) => {
                    findings.push(file.finding(line, format!("the link `{target}` leads nowhere")));
                }
                (Some(found), Some(anchor)) if !anchors(&found.text).contains(anchor) => {
                    let message = format!("the link `{target}` leads to no heading of {path}");
                    findings.push(file.finding(line, message));
                }
                _ => {}
            }
        }
    }
    findings
}

/// All folders that a file is in.
fn folders_of(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(slash, _)| &path[..slash])
}

/// The lines of a document that are no code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((index + 1, line))
    })
}

/// The targets of all relative links, with the numbers of their lines.
pub(crate) fn links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(text).flat_map(|(number, line)| {
        // What is between an odd and an even backtick is code.
        let parts = line.split('`').step_by(2).collect::<Vec<_>>();
        let spans = parts.into_iter().flat_map(|part| part.split("](").skip(1));
        // A link whose text is code begins right behind a backtick.
        let targets = spans.filter_map(|span| Some(span.split_once(')')?.0));
        targets.filter(|target| !target.contains(':')).map(move |target| (number, target))
    })
}

/// Where a path leads from a file; none if that is outside of everything.
pub(crate) fn resolved(from: &str, path: &str) -> Option<String> {
    if path.is_empty() {
        return Some(from.to_owned());
    }
    let mut pieces: Vec<&str> = from.split('/').collect();
    pieces.pop();
    for piece in path.trim_end_matches('/').split('/') {
        match piece {
            "." => {}
            ".." => drop(pieces.pop()?),
            piece => pieces.push(piece),
        }
    }
    Some(pieces.join("/"))
}

/// The anchors of all headings, as GitHub makes them.
fn anchors(text: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        let is_heading = (1..=6).contains(&(line.len() - heading.len())) && heading.starts_with(' ');
        if !is_heading {
            continue;
        }
        let letters = heading.trim().chars().flat_map(char::to_lowercase);
        let kept = letters.filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
        let anchor: String = kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect();
        let again = (1..).map(|number| format!("{anchor}-{number}"));
        let free = [anchor.clone()].into_iter().chain(again).find(|anchor| !found.contains(anchor));
        found.extend(free);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn messages(text: &str) -> Vec<(usize, String)> {
        let other =
            "# A page\n\n## What it's for: all\n\n```text\n# no heading\n```\n\n## Twice\n\n## Twice\n";
        let files = [
            file("docs/a.md", text),
            file("docs/b.md", other),
            file("docs/picture.png", ""),
            file("src/deep/c.rs", ""),
        ];
        check(&files).into_iter().map(|finding| (finding.line, finding.message)).collect()
    }

    #[test]
    fn links_to_files_folders_and_headings_pass() {
        let text = "# Top\n[a](b.md) [b](b.md#a-page) [c](b.md#what-its-for-all) [d](#top) ![e](picture.png)\n\
                    [f](../src/deep/c.rs) [g](../src/deep) [h](../src/) [i](https://example.com/x) \
                    [j](b.md#twice) [k](b.md#twice-1) [l](./b.md) [m](mailto:a@example.com) [`n`](b.md)\n";
        assert_eq!(messages(text), []);
    }

    #[test]
    fn code_has_no_links() {
        assert_eq!(messages("`[a](nowhere.md)`\n\n```md\n[b](nowhere.md)\n```\n"), []);
    }

    #[test]
    fn what_leads_nowhere_is_found_on_its_line() {
        for (link, what) in [
            ("[a](nowhere.md)", "the link `nowhere.md` leads nowhere"),
            ("[`a`](nowhere.md)", "the link `nowhere.md` leads nowhere"),
            ("[a](b.md) [a](src)", "the link `src` leads nowhere"),
            ("[a](../../b.md)", "the link `../../b.md` leads out of the repository"),
            ("[a](b.md#no-heading)", "the link `b.md#no-heading` leads to no heading of docs/b.md"),
            ("[a](b.md#twice-2)", "the link `b.md#twice-2` leads to no heading of docs/b.md"),
            ("[a](#bottom)", "the link `#bottom` leads to no heading of docs/a.md"),
        ] {
            assert_eq!(messages(&format!("# Top\n\n{link}\n")), [(3, what.to_owned())]);
        }
    }
}

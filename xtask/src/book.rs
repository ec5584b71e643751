//! Builds the documentation as a book, and checks that every link of the book resolves.
//!
//! ```text
//!   docs/SUMMARY.md, pages and pictures --stage--> TARGET/book/source --mdbook--> TARGET/book/html --check--> dead links
//! ```
//!
//! The pages link to other files of the repository. So the stage has the layout of the repository, and holds every file
//! that a page links to. A link to a folder without a README becomes plain text.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::arguments::no_arguments;
use crate::failure::Failure;
use crate::run::succeed;
use crate::tidy::{links, resolved};
use crate::workspace::{cache_folder, cargo, files, root, target_folder, walk};

/// The version of mdbook.
const MDBOOK: &str = "0.5.4";

/// The table of contents.
const SUMMARY: &str = "docs/SUMMARY.md";

/// The preprocessors would rename each `README.md`, but not the links to it.
const SETTINGS: &str = "[book]\ntitle = \"Tidegate\"\nlanguage = \"en\"\nsrc = \"source\"\n\n\
    [build]\nuse-default-preprocessors = false\n\n[output.html.playground]\nrunnable = false\n";

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    no_arguments("book", arguments)?;
    let mdbook = mdbook()?;
    let base = target_folder()?.join("book");
    // A page that is gone must not stay. The folder does not exist on the first run.
    let _ = fs::remove_dir_all(&base);
    stage(&base)?;
    succeed(Command::new(mdbook).arg("build").arg("--dest-dir").arg("html").current_dir(&base))?;
    let html = base.join("html");
    let start = start_page(&fs::read_to_string(base.join("source/SUMMARY.md")).map_err(Failure::at(&base))?);
    write(&html.join("index.html"), start.as_bytes())?;
    let dead = dead_links(&html)?;
    dead.iter().for_each(|link| println!("{link}"));
    if !dead.is_empty() {
        return Err(Failure::new(format!("links of the book that lead nowhere: {}", dead.len())));
    }
    println!("book: {}", html.join("index.html").display());
    Ok(())
}

/// Returns the program mdbook, and installs it into the cache if it is not there.
fn mdbook() -> Result<PathBuf, Failure> {
    let tools = cache_folder()?.join("tools");
    let program = tools.join("bin/mdbook");
    let version = Command::new(&program).arg("--version").output();
    if !version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(MDBOOK)) {
        let mut install =
            cargo(&["install", "--locked", "--force", "mdbook", "--version", MDBOOK, "--root"])?;
        succeed(install.arg(&tools))?;
    }
    Ok(program)
}

/// Copies the pages, and everything that they link to.
fn stage(base: &Path) -> Result<(), Failure> {
    let known: BTreeSet<String> = files()?.into_iter().collect();
    let source = base.join("source");
    let mut needed: BTreeSet<String> = known.iter().filter(|path| is_page(path)).cloned().collect();
    for page in needed.clone() {
        let text = read(&page)?;
        let targets: Vec<_> = links(&text).filter_map(|(_, target)| of_link(&page, target)).collect();
        needed.extend(targets.iter().filter(|path| known.contains(*path)).cloned());
        write(&source.join(&page), without_folders(&page, &text, &known).as_bytes())?;
    }
    for path in needed.iter().filter(|path| !is_page(path)) {
        let place = root().join(path);
        write(&source.join(path), &fs::read(&place).map_err(Failure::at(&place))?)?;
    }
    write(&source.join("SUMMARY.md"), summary(&known)?.as_bytes())?;
    write(&base.join("book.toml"), SETTINGS.as_bytes())
}

fn is_page(path: &str) -> bool {
    path.ends_with(".md") && path != SUMMARY
}

fn read(path: &str) -> Result<String, Failure> {
    let place = root().join(path);
    fs::read_to_string(&place).map_err(Failure::at(&place))
}

fn write(place: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder).map_err(Failure::at(folder))?;
    }
    fs::write(place, bytes).map_err(Failure::at(place))
}

/// Returns the path that a link of a page leads to, without its anchor.
fn of_link(page: &str, target: &str) -> Option<String> {
    resolved(page, target.split('#').next().unwrap_or_default())
}

/// Replaces links to folders: by a link to the README of the folder, or by plain text.
fn without_folders(page: &str, text: &str, known: &BTreeSet<String>) -> String {
    let mut text = text.to_owned();
    let all: BTreeSet<String> = links(&text).map(|(_, target)| target.to_owned()).collect();
    for target in all {
        let Some(path) = of_link(page, &target) else { continue };
        if known.contains(&path) {
            continue;
        }
        let link = format!("]({target})");
        if known.contains(&format!("{path}/README.md")) {
            text = text.replace(&link, &format!("]({}/README.md)", target.trim_end_matches('/')));
        } else {
            while let Some(at) = text.find(&link) {
                let begin = text[..at].rfind('[').unwrap_or(at);
                text.replace_range(at..at + link.len(), "");
                text.replace_range(begin..=begin, "");
            }
        }
    }
    text
}

/// Returns the table of contents, with paths from the root of the repository and with the decision records.
fn summary(known: &BTreeSet<String>) -> Result<String, Failure> {
    let text = read(SUMMARY)?;
    let mut summary = text.replace("](", "](docs/").replace("](docs/../", "](");
    summary.push_str("\n# Decision records\n\n");
    for path in known.iter().filter(|path| path.starts_with("docs/decisions/")) {
        let text = read(path)?;
        let title = text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']).to_owned();
        summary.push_str(&format!("- [{title}]({path})\n"));
    }
    Ok(summary)
}

/// Returns a page that leads to the first page of the contents. mdbook copies that page itself to the root, where the
/// links of a page in a folder lead nowhere.
fn start_page(summary: &str) -> String {
    let first = links(summary).next().map_or_else(String::new, |(_, target)| target.replace(".md", ".html"));
    format!(
        "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>Tidegate</title>\n\
         <meta http-equiv=\"refresh\" content=\"0; url={first}\">\n<a href=\"{first}\">Tidegate</a>\n"
    )
}

/// Returns every relative link of the book that leads to no file, or to no element of a page.
fn dead_links(html: &Path) -> Result<Vec<String>, Failure> {
    let mut dead = Vec::new();
    for path in walk(html)?.iter().filter(|path| path.ends_with(".html") && !is_generated(path)) {
        let place = html.join(path);
        let text = fs::read_to_string(&place).map_err(Failure::at(&place))?;
        for target in targets(&text) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let Some(found) = resolved(path, file).map(|path| html.join(path)) else {
                dead.push(format!("{path}: {target} leads out of the book"));
                continue;
            };
            let page = match found.extension().is_some_and(|extension| extension == "html") {
                true => fs::read_to_string(&found).ok(),
                false => found.is_file().then(String::new),
            };
            match page {
                None => dead.push(format!("{path}: {target} leads nowhere")),
                Some(page) if !anchor.is_empty() && !page.contains(&format!("id=\"{anchor}\"")) => {
                    dead.push(format!("{path}: {target} leads to no heading"));
                }
                Some(_) => {}
            }
        }
    }
    dead.sort();
    dead.dedup();
    Ok(dead)
}

/// Pages of mdbook itself, of which one holds all others.
fn is_generated(path: &str) -> bool {
    matches!(path, "print.html" | "404.html" | "toc.html")
}

/// Returns the relative targets of links and pictures.
fn targets(html: &str) -> impl Iterator<Item = &str> {
    ["href=\"", "src=\""].into_iter().flat_map(move |attribute| {
        let values = html.split(attribute).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0));
        values.filter(|value| !value.is_empty() && !value.contains(':') && !value.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_a_folder_becomes_its_readme_or_plain_text() {
        let known = ["docs/b.md", "kit/README.md", "crates/c/d.rs"].map(str::to_owned).into();
        let text = "[a](b.md#x) [kit](../kit/) and [code](../crates/c), [`code`](../crates/c).\n";
        assert_eq!(
            without_folders("docs/a.md", text, &known),
            "[a](b.md#x) [kit](../kit/README.md) and code, `code`.\n"
        );
    }

    #[test]
    fn the_start_leads_to_the_first_page() {
        let page =
            start_page("# Summary\n\n[Introduction](docs/introduction.md)\n\n- [Install](docs/install.md)\n");
        assert_eq!(targets(&page).collect::<Vec<_>>(), ["docs/introduction.html"]);
    }

    #[test]
    fn only_relative_targets_are_checked() {
        let html =
            r#"<a href="b.html#x"><img src="c.svg"><a href="https://example.com"><a href="/"><a href="">"#;
        assert_eq!(targets(html).collect::<Vec<_>>(), ["b.html#x", "c.svg"]);
    }

    #[test]
    fn dead_links_are_found() {
        let folder = std::env::temp_dir().join(format!("tidegate-xtask-book-{}", std::process::id()));
        write(&folder.join("a.html"), br##"<h1 id="top"></h1><a href="b/c.html#in"><a href="b/c.html#no"><a href="d.html"><a href="#top">"##).unwrap();
        write(&folder.join("b/c.html"), br#"<h2 id="in"></h2><a href="../../e.html"><img src="../f.svg">"#)
            .unwrap();
        let dead = dead_links(&folder).unwrap();
        assert_eq!(
            dead,
            [
                "a.html: b/c.html#no leads to no heading",
                "a.html: d.html leads nowhere",
                "b/c.html: ../../e.html leads out of the book",
                "b/c.html: ../f.svg leads nowhere",
            ]
        );
        fs::remove_dir_all(folder).unwrap();
    }
}

//! Circles of files: files of a crate that import each other in a loop, so that none can be read first.
//!
//! What a file imports is read from its paths: `use` declarations and paths in the code that begin at the crate, at a
//! parent, at a module of the file or at an imported name. A re-exported name counts for the file that defines it.
//! Methods are not followed: a call of one names no file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Files of one crate that import each other in a loop, as paths below the crate's `src`, in order.
pub type Circle = BTreeSet<String>;

/// Which file imports which, as paths below the `src` of their crate.
pub type Imports = BTreeMap<String, BTreeSet<String>>;

/// A path of names, such as `crate::job::complete`.
type Names = Vec<String>;

/// How many re-exports of re-exports are followed.
const REEXPORTS_MAX: usize = 8;

/// What is known of one file.
#[derive(Default)]
struct File {
    /// The module that the file is, from the root of the crate.
    module: Names,
    /// Imported names with the path of each, as written; a glob has the name `*` and the path of its module.
    imports: Vec<(String, Names)>,
    /// Paths in the code outside of `use` declarations.
    paths: Vec<Names>,
}

/// The imports between the files of a crate, without its tests.
pub fn imports(crates: &Path, name: &str) -> Imports {
    let prefix = format!("{name}/src/");
    let files: BTreeMap<String, File> = crate::sources_without_tests(crates, &[name])
        .into_iter()
        .map(|(path, text)| {
            let path = path.strip_prefix(&prefix).expect("a source of this crate").to_owned();
            let file = read(&path, &text);
            (path, file)
        })
        .collect();
    let modules: BTreeMap<Names, String> =
        files.iter().map(|(path, file)| (file.module.clone(), path.clone())).collect();
    let house = House { files, modules };
    house.files.keys().map(|path| (path.clone(), house.imported_by(path))).collect()
}

/// The circles among these imports, the largest first.
pub fn circles(imports: &Imports) -> Vec<Circle> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        imports.keys().map(|file| (file, reach(imports, file))).collect();
    let mut found: BTreeSet<Circle> = BTreeSet::new();
    for (file, others) in &reached {
        if others.contains(*file) {
            found.insert(
                others.iter().filter(|other| reached[**other].contains(*file)).map(|other| (*other).clone()).collect(),
            );
        }
    }
    let mut found: Vec<Circle> = found.into_iter().filter(|circle| circle.len() > 1).collect();
    found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    found
}

/// What differs between the circles of a crate and the list of those that are left: new or larger ones, and rows of the list
/// that can shrink.
pub fn differences(name: &str, found: &[Circle], left: &[Circle]) -> Vec<String> {
    let sentence = |circle: &Circle| circle.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
    let new = found.iter().filter(|circle| !left.iter().any(|allowed| circle.is_subset(allowed)));
    let gone = left.iter().filter(|allowed| !found.contains(allowed));
    new.map(|circle| {
        format!(
            "{name}: {} files import each other in a loop: {}. Move what both ends name to a file below them.",
            circle.len(),
            sentence(circle)
        )
    })
    .chain(gone.map(|circle| {
        format!("{name}: crates/tidy/circles.tsv lists a circle that is no more, or smaller: {}", sentence(circle))
    }))
    .collect()
}

/// The files that can be reached from one along its imports.
fn reach<'a>(imports: &'a Imports, from: &'a String) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for other in &imports[file] {
            if reached.insert(other) {
                open.push(other);
            }
        }
    }
    reached
}

/// All files of a crate.
struct House {
    files: BTreeMap<String, File>,
    modules: BTreeMap<Names, String>,
}

impl House {
    fn imported_by(&self, path: &str) -> BTreeSet<String> {
        let file = &self.files[path];
        let targets = file.imports.iter().map(|(_, names)| names).chain(&file.paths);
        targets
            .filter_map(|names| self.resolve(file, names, 0))
            .filter(|other| *other != path)
            .map(str::to_owned)
            .collect()
    }

    /// The file that defines what a path names in a file. A path that ends at a module names no definition.
    fn resolve(&self, file: &File, names: &[String], depth: usize) -> Option<&str> {
        let (module, rest) = self.absolute(file, names, depth)?;
        let (first, _) = rest.split_first()?;
        self.definition(&module, first, depth)
    }

    /// The module where a path begins to name definitions, and what is left of it there.
    fn absolute<'a>(&self, file: &File, names: &'a [String], depth: usize) -> Option<(Names, &'a [String])> {
        let (first, mut rest) = names.split_first()?;
        let mut module = match first.as_str() {
            "crate" => Vec::new(),
            "self" => file.module.clone(),
            "super" => file.module[..file.module.len().checked_sub(1)?].to_vec(),
            name => {
                let mut child = file.module.clone();
                child.push(name.to_owned());
                match self.modules.contains_key(&child) {
                    true => child,
                    // An imported module, or else a name of another crate or a definition that its own import counts for.
                    false if depth < REEXPORTS_MAX => {
                        let (_, target) =
                            file.imports.iter().find(|(alias, target)| alias == name && target.as_slice() != names)?;
                        let (module, left) = self.absolute(file, target, depth + 1)?;
                        if !left.is_empty() {
                            return None;
                        }
                        module
                    }
                    false => return None,
                }
            }
        };
        while let Some((next, left)) = rest.split_first() {
            if next == "super" {
                module.pop()?;
            } else {
                module.push(next.clone());
                if !self.modules.contains_key(&module) {
                    module.pop();
                    break;
                }
            }
            rest = left;
        }
        Some((module, rest))
    }

    /// The file that defines a name of a module, along re-exports.
    fn definition(&self, module: &[String], name: &str, depth: usize) -> Option<&str> {
        let path = self.modules.get(module)?;
        let file = &self.files[path];
        let exported = file.imports.iter().find(|(alias, _)| alias == name);
        if depth < REEXPORTS_MAX
            && let Some((_, target)) = exported
        {
            return self.resolve(file, target, depth + 1);
        }
        Some(path)
    }
}

fn read(path: &str, text: &str) -> File {
    let mut module: Names = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| last == "mod" || last == "lib" || last == "main") {
        module.pop();
    }
    let code: String = text.lines().map(|line| crate::code(line) + "\n").collect();
    let mut file = File { module, ..File::default() };
    let tokens = tokens(&code);
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at] == "use" {
            at += 1;
            at = import(&tokens, at, &Vec::new(), &mut file.imports);
        } else if is_name(tokens[at]) && tokens.get(at + 1) == Some(&"::") && (at == 0 || tokens[at - 1] != "::") {
            let mut names = vec![tokens[at].to_owned()];
            while tokens.get(at + 1) == Some(&"::") && tokens.get(at + 2).is_some_and(|token| is_name(token)) {
                names.push(tokens[at + 2].to_owned());
                at += 2;
            }
            file.paths.push(names);
            at += 1;
        } else {
            at += 1;
        }
    }
    file
}

/// Reads one tree of a `use` declaration from `at` and returns the place after it.
fn import(tokens: &[&str], mut at: usize, before: &Names, imports: &mut Vec<(String, Names)>) -> usize {
    let mut names = before.clone();
    while let Some(token) = tokens.get(at) {
        match *token {
            "::" => {}
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| *token != "}") {
                    at = import(tokens, at, &names, imports);
                    if tokens.get(at) == Some(&",") {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "as" => {
                let alias = tokens.get(at + 1).copied().unwrap_or("_").to_owned();
                imports.push((alias, names));
                return at + 2;
            }
            "*" => {
                imports.push(("*".to_owned(), names));
                return at + 1;
            }
            name if is_name(name) => names.push(name.to_owned()),
            _ => break,
        }
        at += 1;
    }
    if names.len() > 1 && names.last().is_some_and(|last| last == "self") {
        names.pop();
    }
    if let Some(last) = names.last() {
        imports.push((last.clone(), names));
    }
    at
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Names, `::` and single other characters.
fn tokens(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_alphanumeric() || first == '_' {
            rest.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        found.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn house(files: &[(&str, &str)]) -> Imports {
        let files: BTreeMap<String, File> =
            files.iter().map(|(path, text)| ((*path).to_owned(), read(path, text))).collect();
        let modules = files.iter().map(|(path, file)| (file.module.clone(), path.clone())).collect();
        let house = House { files, modules };
        house.files.keys().map(|path| (path.clone(), house.imported_by(path))).collect()
    }

    #[test]
    fn paths_lead_to_the_file_that_defines_their_name() {
        let imports = house(&[
            ("lib.rs", "mod a; mod b; pub use a::deep::Deep;"),
            ("a.rs", "pub mod deep; use crate::b::{self, One as Other}; fn f() { b::two() }"),
            ("a/deep.rs", "pub struct Deep; fn g() { super::f(); super::super::b::two() }"),
            ("b.rs", "pub fn two() -> crate::Deep { serde::x() }"),
        ]);
        assert_eq!(imports["a.rs"], BTreeSet::from(["b.rs".to_owned()]));
        assert_eq!(imports["a/deep.rs"], BTreeSet::from(["a.rs".to_owned(), "b.rs".to_owned()]));
        assert_eq!(imports["b.rs"], BTreeSet::from(["a/deep.rs".to_owned()]), "a re-export is not where it is defined");
        let circles = circles(&imports);
        assert_eq!(circles, [BTreeSet::from(["a.rs", "a/deep.rs", "b.rs"].map(str::to_owned))]);
    }

    #[test]
    fn circles_may_only_shrink() {
        let circle = |files: &[&str]| files.iter().map(|file| (*file).to_owned()).collect::<Circle>();
        let listed = [circle(&["a", "b", "c"])];
        assert!(differences("x", &listed, &listed).is_empty());
        assert!(differences("x", &[circle(&["a", "b", "d"])], &listed)[0].contains("import each other in a loop"));
        assert!(differences("x", &[circle(&["a", "b"])], &listed)[0].contains("smaller"), "the list shrinks with it");
        assert!(differences("x", &[], &listed)[0].contains("is no more"));
    }
}

//! The model files that commands are given, and their names.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::client::{ClientError, Outcome};
use crate::input::STANDARD_INPUT;

/// What a directory is searched for.
const EXTENSIONS: [&str; 4] = ["bpmn", "dmn", "form", "rpa"];
/// How deep directories are searched.
const DEPTH_MAX: usize = 32;

/// A file with its name.
pub(crate) struct Model {
    pub name: String,
    pub content: Vec<u8>,
}

/// Reads files, all models of directories, and standard input under the given name.
///
/// A resource is named by its file, one of a directory by its path in there. Files of one name in different places keep
/// their whole path as a name, because a deployment takes each name only once.
pub(crate) fn read(paths: &[PathBuf], standard_input: &str) -> Outcome<Vec<Model>> {
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for path in paths {
        if path.as_os_str() == STANDARD_INPUT {
            found.push((standard_input.to_owned(), path.clone()));
        } else if path.is_dir() {
            let before = found.len();
            search(path, path, DEPTH_MAX, &mut found)?;
            if found.len() == before {
                return Err(ClientError::NoModels { path: path.clone() });
            }
        } else {
            let name = path.file_name().unwrap_or(path.as_os_str());
            found.push((name.to_string_lossy().into_owned(), path.clone()));
        }
    }
    tell_apart(&mut found);
    found.into_iter().map(|(name, path)| Ok(Model { name, content: content(&path)? })).collect()
}

fn content(path: &Path) -> Outcome<Vec<u8>> {
    let file_error = |source| ClientError::File { path: path.to_owned(), source };
    if path.as_os_str() != STANDARD_INPUT {
        return std::fs::read(path).map_err(file_error);
    }
    let mut content = Vec::new();
    std::io::stdin().read_to_end(&mut content).map_err(file_error)?;
    Ok(content)
}

/// All models below a directory, in the order of their names.
fn search(root: &Path, directory: &Path, depth: usize, found: &mut Vec<(String, PathBuf)>) -> Outcome {
    let file_error = |source| ClientError::File { path: directory.to_owned(), source };
    let entries = std::fs::read_dir(directory).map_err(file_error)?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(file_error)?;
    paths.sort();
    for path in paths {
        let is_model = path
            .extension()
            .and_then(|extension| extension.to_str())
            .is_some_and(|extension| EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(extension)));
        // A link to a directory may lead back.
        if path.is_dir() && !path.is_symlink() && depth > 0 {
            search(root, &path, depth - 1, found)?;
        } else if is_model && path.is_file() {
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            found.push((name, path));
        }
    }
    Ok(())
}

fn tell_apart(found: &mut [(String, PathBuf)]) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (name, _) in &*found {
        *counts.entry(name.clone()).or_default() += 1;
    }
    for (name, path) in found {
        if counts[name] > 1 {
            *name = path.to_string_lossy().into_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[PathBuf]) -> Vec<String> {
        read(paths, "in.bpmn").unwrap().into_iter().map(|model| model.name).collect()
    }

    #[test]
    fn directories_give_their_models_and_equal_names_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for folder in ["a", "b", "none"] {
            std::fs::create_dir(root.join(folder)).unwrap();
        }
        for file in ["a/order.bpmn", "b/order.bpmn", "b/discount.DMN", "b/readme.txt"] {
            std::fs::write(root.join(file), file).unwrap();
        }
        assert_eq!(names(&[root.to_owned()]), ["a/order.bpmn", "b/discount.DMN", "b/order.bpmn"]);
        assert_eq!(names(&[root.join("a/order.bpmn")]), ["order.bpmn"]);
        let both = [root.join("a/order.bpmn"), root.join("b/order.bpmn")];
        assert_eq!(names(&both), both.clone().map(|path| path.to_string_lossy().into_owned()));
        let refusal = |name: &str| read(&[root.join(name)], "").map(|_| ()).unwrap_err().to_string();
        let none = refusal("none");
        assert!(none.contains("none") && none.contains(".bpmn"), "{none}");
        let missing = refusal("missing.bpmn");
        assert!(missing.contains("missing.bpmn"), "{missing}");
    }
}

//! The files that exporters write, no two of them the same one.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::ExporterError;

/// A file that nobody but one exporter may write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    /// The argument that names it.
    pub argument: &'static str,
    /// Where it is.
    pub path: PathBuf,
    /// When it is full it gets the name `path.1`, and so on up to this number.
    pub numbered: u64,
}

/// Refuses files that two exporters of a node, or two partitions of one, would write: each would destroy what the other
/// wrote. A file that one writes may not have the name of another's full file either.
///
/// # Errors
/// With the names of both exporters.
pub fn check_written_files<'a>(
    exporters: impl IntoIterator<Item = (&'a str, Vec<WrittenFile>)>,
) -> Result<(), ExporterError> {
    let mut claims: Vec<Claim> = Vec::new();
    for (exporter, files) in exporters {
        claims.extend(files.into_iter().map(|file| Claim { exporter, places: places(&file.path), file }));
    }
    let mut owners: BTreeMap<&Path, usize> = BTreeMap::new();
    for (index, claim) in claims.iter().enumerate() {
        for place in &claim.places {
            let owner = *owners.entry(place).or_insert(index);
            if owner != index {
                return Err(conflict(claim, &claims[owner], place, "writes too"));
            }
        }
    }
    for claim in &claims {
        for place in &claim.places {
            let Some((file, number)) = numbered(place) else { continue };
            let owner = owners.get(file.as_path()).map(|owner| &claims[*owner]);
            if let Some(owner) = owner.filter(|owner| number <= owner.file.numbered) {
                return Err(conflict(claim, owner, place, "gives to a full file"));
            }
        }
    }
    Ok(())
}

struct Claim<'a> {
    exporter: &'a str,
    file: WrittenFile,
    /// Where its name is, and where its bytes are if the name is a link.
    places: Vec<PathBuf>,
}

fn conflict(claim: &Claim<'_>, owner: &Claim<'_>, place: &Path, does: &str) -> ExporterError {
    let place = place.display();
    let problem = if claim.exporter == owner.exporter {
        format!("gives two partitions the same file {place}; name another path")
    } else {
        format!("names the file {place}, which the exporter '{}' {does}; name another path", owner.exporter)
    };
    ExporterError::argument(claim.exporter, claim.file.argument, problem)
}

fn places(path: &Path) -> Vec<PathBuf> {
    let target = resolved(path);
    let name = path.file_name().map(|name| resolved(path.parent().unwrap_or(Path::new(""))).join(name));
    let mut places = vec![target];
    places.extend(name.filter(|name| *name != places[0]));
    places
}

/// The path without links and detours, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    // Without a working directory nothing that is relative can be opened, and the exporter will say so.
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut resolved = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                resolved.pop();
            }
            other => {
                resolved.push(other);
                if let Ok(canonical) = resolved.canonicalize() {
                    resolved = canonical;
                }
            }
        }
    }
    resolved
}

/// The file whose numbered name this may be, and the number.
fn numbered(path: &Path) -> Option<(PathBuf, u64)> {
    let (name, number) = path.file_name()?.to_str()?.rsplit_once('.')?;
    let value = number.parse::<u64>().ok().filter(|value| *value > 0 && value.to_string() == number)?;
    Some((path.with_file_name(name), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: impl Into<PathBuf>, numbered: u64) -> WrittenFile {
        WrittenFile { argument: "path", path: path.into(), numbered }
    }

    fn refusal(one: &[WrittenFile], other: &[WrittenFile]) -> Option<String> {
        let exporters = [("one", one.to_vec()), ("other", other.to_vec())];
        check_written_files(exporters).err().map(|error| error.to_string())
    }

    #[test]
    fn a_file_has_one_exporter_however_it_is_named() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let root = directory.path().canonicalize().expect("there");
        std::fs::create_dir(root.join("logs")).expect("writable");
        std::fs::write(root.join("a"), "").expect("writable");
        std::os::unix::fs::symlink(root.join("logs"), root.join("link")).expect("writable");
        std::os::unix::fs::symlink(root.join("a"), root.join("b")).expect("writable");
        for (one, other, place) in [
            ("x", "x", "x"),
            ("x", "./x", "x"),
            ("x", "logs/../x", "x"),
            ("x", "link/../logs/../x", "x"),
            ("logs/x", "link/x", "logs/x"),
            ("new/deep/x", "new/./deep/y/../x", "new/deep/x"),
            ("a", "b", "a"),
        ] {
            let place = root.join(place).display().to_string();
            let problem = format!(
                "The argument 'path' of the exporter 'other' names the file {place}, which the exporter 'one' writes too; \
                 name another path"
            );
            let refused = refusal(&[file(root.join(one), 0)], &[file(root.join(other), 3)]);
            assert_eq!(refused.as_deref(), Some(&*problem), "{one} and {other}");
        }
        assert_eq!(refusal(&[file("x", 0)], &[file("./x", 0)]).map(|refusal| refusal.contains("'one'")), Some(true));
        assert_eq!(refusal(&[file(root.join("x"), 2)], &[file(root.join("y"), 2)]), None);
    }

    #[test]
    fn a_full_file_has_a_name_of_its_own_too() {
        let rotated = [file("/nowhere/x", 10)];
        for name in ["/nowhere/x.1", "/nowhere/y/../x.10"] {
            for refused in [refusal(&rotated, &[file(name, 0)]), refusal(&[file(name, 0)], &rotated)] {
                let refused = refused.expect("they share a name");
                let is_both = refused.contains("'one'") && refused.contains("'other'");
                assert!(is_both && refused.contains("gives to a full file"), "{refused}");
            }
        }
        for name in ["/nowhere/x.11", "/nowhere/x.0", "/nowhere/x.01", "/nowhere/x.y", "/elsewhere/x.1"] {
            assert_eq!(refusal(&rotated, &[file(name, 0)]), None, "{name}");
        }
    }

    #[test]
    fn partitions_do_not_share_a_file_by_detours() {
        let refused = refusal(&[file("/nowhere/1/../x", 0), file("/nowhere/2/../x", 0)], &[]);
        assert!(refused.expect("the same").contains("'one' gives two partitions the same file /nowhere/x"));
    }
}

//! The planted bugs fit the code: one that does not is never caught, and nobody notices.

use std::fs;
use std::path::Path;

/// What a patch expects to find, by file.
fn expected(patch: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut file = String::new();
    // The title and an empty line come first.
    for line in patch.lines().skip(2) {
        if line.starts_with("--- ") {
            continue;
        }
        if let Some(path) = line.strip_prefix("+++ b/") {
            path.clone_into(&mut file);
        } else if line.starts_with("@@") {
            all.push((file.clone(), String::new()));
        } else if let Some(kept) = line.strip_prefix(' ').or_else(|| line.strip_prefix('-'))
            && let Some((_, text)) = all.last_mut()
        {
            text.push_str(kept);
            text.push('\n');
        }
    }
    all
}

#[test]
fn every_planted_bug_fits_the_code() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut patches: Vec<_> = fs::read_dir(here.join("planted")).unwrap().map(|entry| entry.unwrap().path()).collect();
    patches.sort();
    assert!(!patches.is_empty(), "there are planted bugs");
    let mut misfits = Vec::new();
    for patch in &patches {
        let expected = expected(&fs::read_to_string(patch).unwrap());
        assert!(!expected.is_empty(), "{} changes nothing", patch.display());
        for (file, text) in expected {
            let code = fs::read_to_string(here.join("../..").join(&file)).unwrap_or_default();
            if !code.contains(&text) {
                misfits.push(format!("{} does not fit {file}", patch.file_name().unwrap().display()));
            }
        }
    }
    assert!(misfits.is_empty(), "renew these patches, or nobody looks for their bugs:\n{}", misfits.join("\n"));
}

//! Address profiles: names for clusters, in a small file of the user.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use figment::Figment;
use figment::providers::{Format, Yaml};
use serde::Deserialize;

use crate::configuration::Environment;
use crate::variables;

/// Where a cluster is. What is not said is as if there were no profile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Profile {
    /// host:port or URL.
    pub grpc_address: Option<String>,
    /// host:port or URL.
    pub rest_address: Option<String>,
    /// Certificate (PEM) to trust.
    pub ca_certificate: Option<PathBuf>,
}

/// Why there is no such profile.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProfileError {
    #[error("There is no directory for profiles: neither {file} nor XDG_CONFIG_HOME nor HOME is set.", file = variables::PROFILES_FILE)]
    NoDirectory,
    #[error("There is no file {}, so there is no profile '{name}'. docs/operations.md shows what it holds.", path.display())]
    NoFile { path: PathBuf, name: String },
    #[error("The profiles in {} cannot be read: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("There is no profile '{name}' in {}. There is: {known}.", path.display())]
    Unknown { path: PathBuf, name: String, known: String },
}

/// The profile that a flag or the environment names, or an empty one.
///
/// # Errors
/// When one is named and the file does not have it.
pub(crate) fn find(flag: Option<&str>, environment: &Environment) -> Result<Profile, ProfileError> {
    let Some(name) = flag.or_else(|| environment.get(variables::PROFILE)) else { return Ok(Profile::default()) };
    read(&file(environment)?, name)
}

fn file(environment: &Environment) -> Result<PathBuf, ProfileError> {
    if let Some(path) = environment.get(variables::PROFILES_FILE) {
        return Ok(path.into());
    }
    let directory = environment.get("XDG_CONFIG_HOME").map(PathBuf::from);
    let directory = directory.or_else(|| environment.get("HOME").map(|home| Path::new(home).join(".config")));
    Ok(directory.ok_or(ProfileError::NoDirectory)?.join("osmia").join("profiles.yaml"))
}

fn read(path: &Path, name: &str) -> Result<Profile, ProfileError> {
    let path_buf = || path.to_owned();
    if !path.exists() {
        return Err(ProfileError::NoFile { path: path_buf(), name: name.to_owned() });
    }
    let all: Result<BTreeMap<String, Profile>, _> = Figment::from(Yaml::file_exact(path)).extract();
    let mut all = all.map_err(|error| ProfileError::Unreadable { path: path_buf(), reason: error.to_string() })?;
    all.remove(name).ok_or_else(|| {
        let known: Vec<String> = all.into_keys().collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        ProfileError::Unknown { path: path_buf(), name: name.to_owned(), known }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_found_by_flag_or_environment_and_mistakes_are_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("osmia").join("profiles.yaml");
        let environment = |extra: &[(&str, &str)]| {
            let home = ("XDG_CONFIG_HOME", directory.path().to_str().unwrap());
            Environment::new([home].iter().chain(extra).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
        };
        assert_eq!(find(None, &environment(&[])).unwrap(), Profile::default());
        let missing = find(Some("test"), &environment(&[])).unwrap_err().to_string();
        assert!(missing.contains("profiles.yaml") && missing.contains("'test'"), "{missing}");

        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "test:\n  rest-address: a:8080\n  grpc-address: https://a:26500\nlive: {}\n").unwrap();
        let found = find(None, &environment(&[(variables::PROFILE, "test")])).unwrap();
        assert_eq!(found.rest_address.as_deref(), Some("a:8080"));
        assert_eq!(found.grpc_address.as_deref(), Some("https://a:26500"));
        assert_eq!(find(Some("live"), &environment(&[(variables::PROFILE, "test")])).unwrap(), Profile::default());
        let unknown = find(Some("staging"), &environment(&[])).unwrap_err().to_string();
        assert!(unknown.ends_with("There is: live, test."), "{unknown}");

        std::fs::write(&path, "test:\n  adress: a:8080\n").unwrap();
        let unreadable = find(Some("test"), &environment(&[])).unwrap_err().to_string();
        assert!(unreadable.contains("adress"), "{unreadable}");
        assert!(matches!(find(Some("x"), &Environment::new([])), Err(ProfileError::NoDirectory)));
    }
}

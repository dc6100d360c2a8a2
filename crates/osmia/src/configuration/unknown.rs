//! Variables of the environment that look like settings and are none.

use super::sources::{EXPORTERS_VARIABLES, Environment, relaxed};
use super::{ConfigurationError, SETTINGS, cluster};
use crate::variables;

/// Prefixes of names that are meant for a node, here or on the reference.
const PREFIXES: [&str; 3] = ["OSMIA_", "CAMUNDA_", "ZEEBE_"];
/// What `osmia start` itself reads, besides the settings.
const CONFIGURATION_FILE: &str = "OSMIA_CONFIG";
/// What clients and other programs of Camunda on the same machine read.
const FOR_OTHERS: [&str; 6] = [
    "CAMUNDA_AUTH_STRATEGY",
    "CAMUNDA_GRPC_ADDRESS",
    "CAMUNDA_REST_ADDRESS",
    "CAMUNDA_TENANT_ID",
    "ZEEBE_REST_ADDRESS",
    "ZEEBE_TOKEN_AUDIENCE",
];
/// What many names of the same kind begin with.
const FOR_OTHERS_PREFIXES: [&str; 6] =
    ["CAMUNDA_BASIC_AUTH_", "CAMUNDA_CLIENT_", "CAMUNDA_CONSOLE_", "CAMUNDA_OAUTH_", "CAMUNDA_TOKEN_", "ZEEBE_CLIENT_"];
/// Words in names that are about who may do what. Underscores do not count.
const PROTECTION: [&str; 5] =
    ["AUTHORIZATION", "AUTHENTICATION", "SECURITYENABLED", "MULTITENANCY", "TRANSPORTLAYERSECURITY"];
/// Spring's own, by which the reference checks who its users are.
const SPRING_SECURITY: &str = "SPRING_SECURITY_OAUTH2_";
/// What the reference is to do may be named in profiles.
const PROFILES: &str = "SPRING_PROFILES_ACTIVE";
/// Values that ask for nothing.
const DENIALS: [&str; 6] = ["", "false", "none", "no", "off", "0"];
/// The one variable about protection whose denial asks for it.
const UNPROTECTED: &str = "UNPROTECTEDAPI";
/// Encryption of the ports for clients, which this version has. Not every name says whose it is.
const ENCRYPTION: [&str; 3] =
    ["ZEEBE_BROKER_GATEWAY_SECURITY_ENABLED", "ZEEBE_GATEWAY_SECURITY_ENABLED", "CAMUNDA_API_GRPC_SSL_ENABLED"];
/// The same in Spring's words, each of which is enough there.
const SPRING_ENCRYPTION: [&str; 4] = ["SSL_ENABLED", "SSL_CERTIFICATE", "SSL_KEY_STORE", "SSL_BUNDLE"];
/// Before these words: of the ports for clients, and of the management port, which is never encrypted.
const SERVER: &str = "SERVER_";
const MANAGEMENT_SERVER: &str = "MANAGEMENT_SERVER_";

/// What a variable wants to have encrypted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Encryption {
    Clients,
    Management,
}

impl Encryption {
    fn of(canonical: &str) -> Option<Encryption> {
        let same = |known: &str| relaxed(known) == relaxed(canonical);
        let is_of = |server: &str| SPRING_ENCRYPTION.iter().any(|words| same(&format!("{server}{words}")));
        match canonical {
            _ if is_of(MANAGEMENT_SERVER) => Some(Encryption::Management),
            _ if is_of(SERVER) || ENCRYPTION.iter().any(|known| same(known)) => Some(Encryption::Clients),
            _ => None,
        }
    }
}

/// Names of variables that nothing here understands.
///
/// # Errors
/// When one of them asks for protection: a node without it would only look protected.
pub(super) fn unknown(environment: &Environment, is_encrypted: bool) -> Result<Vec<String>, ConfigurationError> {
    let mut names = Vec::new();
    for (name, value) in environment.all() {
        let canonical = canonical(name);
        let encryption = Encryption::of(&canonical);
        let is_springs = is_springs_protection(&canonical, value);
        let is_meant_for_a_node =
            encryption.is_some() || is_springs || PREFIXES.iter().any(|prefix| canonical.starts_with(prefix));
        let is_fulfilled = encryption == Some(Encryption::Clients) && is_encrypted;
        if !is_meant_for_a_node || is_known(name) || is_for_others(name) || is_fulfilled {
            continue;
        }
        // What an exporter is told is about what it writes to.
        let is_of_an_exporter = EXPORTERS_VARIABLES.iter().any(|prefix| canonical.starts_with(prefix));
        if !is_of_an_exporter && asks_for_protection(&canonical, value, encryption.is_some() || is_springs) {
            let instead = match encryption {
                Some(Encryption::Clients) => "set tls-certificate and tls-key for encrypted connections, or unset it",
                Some(Encryption::Management) => {
                    "unset it, and let only a network that you trust reach the management port, which is never encrypted"
                }
                None => {
                    "unset it, and let a network or a proxy that you trust decide who reaches the ports of this node"
                }
            };
            return Err(ConfigurationError::Protection { name: name.to_owned(), value: value.to_owned(), instead });
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

/// A name as variables are usually written. The reference takes them in small letters and with dots too, so whoever asks for
/// protection like that means it.
fn canonical(name: &str) -> String {
    name.replace(['.', '-'], "_").to_ascii_uppercase()
}

/// Whether a node reads it, in exactly this form.
fn is_known(name: &str) -> bool {
    let same = |known: &str| relaxed(known) == relaxed(name);
    name == CONFIGURATION_FILE
        || EXPORTERS_VARIABLES.iter().any(|prefix| name.starts_with(prefix))
        || SETTINGS.iter().any(|setting| setting.variable() == name || setting.camunda.iter().any(|known| same(known)))
        || cluster::held_against_the_list().any(same)
}

/// Whether commands of this program read it, which are clients of a node, or other programs do.
fn is_for_others(name: &str) -> bool {
    let canonical = canonical(name);
    let profiles = [variables::PROFILES_FILE, variables::PROFILE];
    let own = variables::GRPC_ADDRESS.iter().chain(&variables::REST_ADDRESS).chain(&profiles);
    own.into_iter().any(|known| *known == name)
        || name == variables::MANAGEMENT_ADDRESS
        || FOR_OTHERS.contains(&&*canonical)
        || FOR_OTHERS_PREFIXES.iter().any(|prefix| canonical.starts_with(prefix))
}

/// Whether it has users checked, by a setting of Spring or by a profile of the reference.
fn is_springs_protection(canonical: &str, value: &str) -> bool {
    let is_profile = |profile: &str| profile == "identity" || profile.ends_with("-auth");
    match canonical {
        PROFILES => value.split(',').any(|profile| is_profile(profile.trim())),
        _ => canonical.starts_with(SPRING_SECURITY) && !value.is_empty(),
    }
}

fn asks_for_protection(name: &str, value: &str, is_encryption: bool) -> bool {
    let name = relaxed(name);
    let denies = DENIALS.iter().any(|denial| denial.eq_ignore_ascii_case(value));
    if name.contains(UNPROTECTED) {
        return denies;
    }
    (is_encryption || PROTECTION.iter().any(|word| name.contains(word))) && !denies
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)], is_encrypted: bool) -> Result<Vec<String>, String> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        unknown(&Environment::new(variables), is_encrypted).map_err(|error| error.to_string())
    }

    #[test]
    fn what_nothing_understands_is_named() {
        let variables = [
            ("OSMIA_DTA", "/d"),
            ("OSMIA_GRPC_PORT", "1"),
            ("OSMIA_EXPORTERS_A_TYPE", "json-lines"),
            ("ZEEBE_BROKER_EXPORTERS_ES_CLASSNAME", "x"),
            ("ZEEBE_BROKER_EXPERIMENTAL_FEATURES_X", "x"),
            ("ZEEBE_BROKER_CLUSTER_PARTITIONS_COUNT", "1"),
            ("CAMUNDA_CLUSTER_SIZE", "1"),
            ("ZEEBE_CLIENT_ID", "id"),
            ("PATH", "/bin"),
            ("CAMUNDA_SECURITY_AUTHORIZATIONS_ENABLED", "false"),
            ("CAMUNDA_SECURITY_AUTHENTICATION_UNPROTECTED_API", "true"),
        ];
        let unknown = of(&variables, false).unwrap();
        let expected = [
            "CAMUNDA_SECURITY_AUTHENTICATION_UNPROTECTED_API",
            "CAMUNDA_SECURITY_AUTHORIZATIONS_ENABLED",
            "OSMIA_DTA",
            "ZEEBE_BROKER_EXPERIMENTAL_FEATURES_X",
        ];
        assert_eq!(unknown, expected);
    }

    #[test]
    fn whoever_asks_for_protection_does_not_get_a_node_without() {
        for (name, value) in [
            ("CAMUNDA_SECURITY_AUTHORIZATIONS_ENABLED", "true"),
            ("CAMUNDA_SECURITY_AUTHENTICATION_METHOD", "oidc"),
            ("CAMUNDA_SECURITY_AUTHENTICATION_UNPROTECTEDAPI", "false"),
            ("ZEEBE_BROKER_GATEWAY_SECURITY_AUTHENTICATION_MODE", "identity"),
            ("ZEEBE_BROKER_GATEWAY_MULTITENANCY_ENABLED", "true"),
            ("ZEEBE_BROKER_NETWORK_SECURITY_ENABLED", "true"),
            ("camunda_security_authorizations_enabled", "true"),
            ("camunda.security.authentication.unprotected-api", "false"),
            ("CAMUNDA_SECURITY_TRANSPORTLAYERSECURITY_CLUSTER_ENABLED", "true"),
            ("SPRING_PROFILES_ACTIVE", "broker,consolidated-auth"),
            ("SPRING_PROFILES_ACTIVE", "identity"),
            ("SPRING_SECURITY_OAUTH2_RESOURCESERVER_JWT_ISSUERURI", "http://keycloak/realms/camunda"),
        ] {
            for is_encrypted in [false, true] {
                let error = of(&[(name, value)], is_encrypted).unwrap_err();
                assert!(error.contains(name), "{error}");
            }
        }
    }

    #[test]
    fn whoever_asks_for_encryption_does_not_get_a_node_without() {
        let files = ["SERVER_SSL_CERTIFICATE", "SERVER_SSL_KEY_STORE", "server.ssl.key-store", "SERVER_SSL_BUNDLE"];
        for name in files.into_iter().chain(["MANAGEMENT_SERVER_SSL_CERTIFICATE", "MANAGEMENT_SERVER_SSL_KEY_STORE"]) {
            let error = of(&[(name, "/etc/osmia/server")], false).unwrap_err();
            assert!(error.contains(name), "{error}");
        }
        assert_eq!(of(&files.map(|name| (name, "/etc/osmia/server")), true), Ok(vec![]));
        for name in [
            "ZEEBE_BROKER_GATEWAY_SECURITY_ENABLED",
            "zeebe.broker.gateway.security.enabled",
            "CAMUNDA_API_GRPC_SSL_ENABLED",
            "camunda.api.grpc.ssl.enabled",
            "SERVER_SSL_ENABLED",
            "server.ssl.enabled",
        ] {
            let error = of(&[(name, "true")], false).unwrap_err();
            assert!(error.contains(name) && error.contains("tls-certificate"), "{error}");
            assert_eq!(of(&[(name, "true")], true), Ok(vec![]));
            assert_eq!(of(&[(name, "false")], false), Ok(vec![name.to_owned()]));
        }
        for name in ["MANAGEMENT_SERVER_SSL_ENABLED", "management.server.ssl.enabled"] {
            for is_encrypted in [false, true] {
                let error = of(&[(name, "true")], is_encrypted).unwrap_err();
                assert!(error.contains(name) && error.contains("never encrypted"), "{error}");
            }
        }
        let of_others =
            [("SERVER_SSL_KEY_STORE_PASSWORD", "x"), ("SERVER_PORT", "1"), ("SPRING_PROFILES_ACTIVE", "prod")];
        assert_eq!(of(&of_others, false), Ok(vec![]), "they may be another program's");
    }

    #[test]
    fn what_clients_read_is_known_by_its_whole_name() {
        let read = [
            "OSMIA_ADDRESS",
            "OSMIA_CONFIG",
            "OSMIA_MANAGEMENT_ADDRESS",
            "OSMIA_PROFILE",
            "OSMIA_PROFILES",
            "OSMIA_REST_ADDRESS",
            "ZEEBE_ADDRESS",
            "ZEEBE_GRPC_ADDRESS",
            "ZEEBE_REST_ADDRESS",
            "CAMUNDA_GRPC_ADDRESS",
            "camunda.client.mode",
        ];
        assert_eq!(of(&read.map(|name| (name, "x")), false), Ok(vec![]));
        let like_them = [
            "OSMIA_ADDRESSES",
            "OSMIA_CONFIGURATION",
            "OSMIA_CONFIG_FILE",
            "OSMIA_GRPCPORT",
            "OSMIA_REST_ADDRESS_2",
            "ZEEBE_ADDRESS_OLD",
            "osmia_data",
            "zeebe.broker.exporters.es.args.authentication.username",
        ];
        assert_eq!(of(&like_them.map(|name| (name, "x")), false), Ok(like_them.map(str::to_owned).to_vec()));
    }
}

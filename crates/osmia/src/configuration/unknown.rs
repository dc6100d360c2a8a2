//! Variables of the environment that look like settings and are none.

use super::sources::{EXPORTERS_VARIABLES, Environment, relaxed};
use super::{ConfigurationError, ONLY, SETTINGS};

/// Prefixes of names that are meant for a node, here or on the reference.
const PREFIXES: [&str; 3] = ["OSMIA_", "CAMUNDA_", "ZEEBE_"];
/// Prefixes of names that are meant for others on the same machine: clients, and other programs of Camunda.
const FOR_OTHERS: [&str; 16] = [
    "OSMIA_ADDRESS",
    "OSMIA_CONFIG",
    "CAMUNDA_AUTH_STRATEGY",
    "CAMUNDA_BASIC_AUTH_",
    "CAMUNDA_CLIENT_",
    "CAMUNDA_CONSOLE_",
    "CAMUNDA_GRPC_ADDRESS",
    "CAMUNDA_OAUTH_",
    "CAMUNDA_REST_ADDRESS",
    "CAMUNDA_TENANT_ID",
    "CAMUNDA_TOKEN_",
    "ZEEBE_ADDRESS",
    "ZEEBE_CLIENT_",
    "ZEEBE_GRPC_ADDRESS",
    "ZEEBE_REST_ADDRESS",
    "ZEEBE_TOKEN_AUDIENCE",
];
/// Words in names that are about who may do what. Underscores do not count.
const PROTECTION: [&str; 4] = ["AUTHORIZATION", "AUTHENTICATION", "SECURITYENABLED", "MULTITENANCY"];
/// Values that ask for nothing.
const DENIALS: [&str; 5] = ["false", "none", "no", "off", "0"];
/// The one variable about protection whose denial asks for it.
const UNPROTECTED: &str = "UNPROTECTEDAPI";
/// Encryption of the gateway, which this version has.
const GATEWAY_ENCRYPTION: [&str; 2] = ["ZEEBE_BROKER_GATEWAY_SECURITY_ENABLED", "ZEEBE_GATEWAY_SECURITY_ENABLED"];

/// Names of variables that nothing here understands.
///
/// # Errors
/// When one of them asks for protection: a node without it would only look protected.
pub(super) fn unknown(environment: &Environment, is_encrypted: bool) -> Result<Vec<String>, ConfigurationError> {
    let mut names = Vec::new();
    for (name, value) in environment.all() {
        if !PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || is_known(name) {
            continue;
        }
        let is_encryption = GATEWAY_ENCRYPTION.iter().any(|known| relaxed(known) == relaxed(name));
        if is_encryption && is_encrypted {
            continue;
        }
        if asks_for_protection(name, value) {
            let instead = match is_encryption {
                true => "set tls-certificate and tls-key for encrypted connections, or unset it",
                false => {
                    "unset it, and let a network or a proxy that you trust decide who reaches the ports of this node"
                }
            };
            return Err(ConfigurationError::Protection { name: name.to_owned(), value: value.to_owned(), instead });
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

fn is_known(name: &str) -> bool {
    let same = |known: &str| relaxed(known) == relaxed(name);
    FOR_OTHERS.iter().chain(&EXPORTERS_VARIABLES).any(|prefix| name.starts_with(prefix))
        || SETTINGS.iter().any(|setting| same(&setting.variable()) || setting.camunda.iter().any(|known| same(known)))
        || ONLY.iter().any(|(known, _)| same(known))
}

fn asks_for_protection(name: &str, value: &str) -> bool {
    let name = relaxed(name);
    let denies = DENIALS.iter().any(|denial| denial.eq_ignore_ascii_case(value));
    if name.contains(UNPROTECTED) {
        return denies;
    }
    PROTECTION.iter().any(|word| name.contains(word)) && !denies
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
            ("ZEEBE_BROKER_GATEWAY_SECURITY_ENABLED", "true"),
        ] {
            let error = of(&[(name, value)], false).unwrap_err();
            assert!(error.contains(name), "{error}");
        }
        assert_eq!(of(&[("ZEEBE_BROKER_GATEWAY_SECURITY_ENABLED", "true")], true), Ok(vec![]));
    }
}

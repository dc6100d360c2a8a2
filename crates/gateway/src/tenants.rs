//! Whose things a request may be about. This is the one place that decides it: everything else is handed the ids of tenants.
//!
//! There is only the default tenant, as with multi-tenancy switched off.

use protocol::{DEFAULT_TENANT, Text};

use crate::outcome::Failure;
use crate::validation::excerpt;

/// The tenant of what a request makes.
///
/// # Errors
/// When the client wants another one than there is.
pub(crate) fn tenant(given: &str) -> Result<Text, Failure> {
    if given.is_empty() || given == DEFAULT_TENANT {
        return Ok(DEFAULT_TENANT.into());
    }
    Err(Failure::OtherTenant(excerpt(given).to_owned()))
}

/// The tenants whose jobs a worker wants: those it names, or those it may have. Without duplicates, in order.
///
/// # Errors
/// When one of them is another one than there is.
pub(crate) fn tenants(given: &[String]) -> Result<Vec<Text>, Failure> {
    given.iter().try_for_each(|tenant_id| tenant(tenant_id).map(drop))?;
    Ok(vec![DEFAULT_TENANT.into()])
}

/// The tenant of a command about something that has a key, for requests that name none.
pub(crate) fn tenant_by_key() -> Text {
    DEFAULT_TENANT.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_tenant() {
        for given in ["", "<default>"] {
            assert_eq!(tenant(given).unwrap(), DEFAULT_TENANT);
        }
        let other = Failure::OtherTenant("other".to_owned());
        assert_eq!(tenant("other"), Err(other.clone()));
        assert!(other.message("PublishMessage").contains("PublishMessage with tenant identifier 'other'"));
        assert_eq!(tenants(&["<default>".to_owned(), "other".to_owned()]), Err(other));
        assert_eq!(tenants(&[]).unwrap(), ["<default>"]);
    }
}

//! Resources that are only kept.

use protocol::{ResourceIntent, ResourceValue};

use crate::database::{Database, Result};

/// A deleted one is gone.
pub(super) fn write(database: &Database, intent: ResourceIntent, value: &ResourceValue) -> Result<()> {
    let metadata = &value.metadata;
    let key = metadata.resource_key.raw();
    match intent {
        ResourceIntent::Created => {
            let insert = "INSERT INTO resource(key, id, name, version, version_tag, deployment_key, tenant_id) \
                          VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT(key) DO NOTHING";
            let values = [
                key.into(),
                (&*metadata.resource_id).into(),
                (&*metadata.resource_name).into(),
                metadata.version.into(),
                Some(&*metadata.version_tag).filter(|tag| !tag.is_empty()).into(),
                metadata.deployment_key.raw().into(),
                (&*metadata.tenant_id).into(),
            ];
            database.execute(insert, &values)?;
        }
        ResourceIntent::Deleted => {
            database.execute("DELETE FROM resource WHERE key = ?", &[key.into()])?;
        }
        _ => {}
    }
    Ok(())
}

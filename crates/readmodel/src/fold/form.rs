//! Forms, and with which of them a process begins.

use protocol::{FormIntent, FormValue};

use crate::database::{Database, Result};

/// The namespace of the extensions.
const ZEEBE: &str = "http://camunda.org/schema/zeebe/1.0";

/// A deleted form is kept for the tasks that were given it; nothing new begins with it.
pub(super) fn write(database: &Database, intent: FormIntent, value: &FormValue) -> Result<()> {
    let metadata = &value.metadata;
    let insert = "INSERT INTO form(key, id, version, tenant_id, is_deleted, content) VALUES (?, ?, ?, ?, ?, ?) \
                  ON CONFLICT(key) DO UPDATE SET id = excluded.id, version = excluded.version, \
                  tenant_id = excluded.tenant_id, is_deleted = excluded.is_deleted, content = excluded.content";
    let content = String::from_utf8_lossy(&value.resource);
    let values = [
        metadata.form_key.raw().into(),
        (&*metadata.form_id).into(),
        metadata.version.into(),
        (&*metadata.tenant_id).into(),
        (intent == FormIntent::Deleted).into(),
        (&*content).into(),
    ];
    database.execute(insert, &values)?;
    Ok(())
}

/// Notes a form that a process begins with.
const WRITE_START_FORM: &str = "INSERT INTO start_form(process_definition_key, form_id) VALUES (?, ?) \
                                           ON CONFLICT(process_definition_key) DO UPDATE SET form_id = excluded.form_id";

/// Notes the form that the start event of a process has, if it has one.
pub(crate) fn write_start_form(database: &Database, definition: i64, process_id: &str, model: &[u8]) -> Result<()> {
    let Some(form_id) = start_form(process_id, model) else { return Ok(()) };
    database.execute(WRITE_START_FORM, &[definition.into(), (&form_id).into()])?;
    Ok(())
}

/// The id of the form of the start event on which nothing has to happen.
fn start_form(process_id: &str, model: &[u8]) -> Option<String> {
    const NO_ADVICE: model_file::Advice = model_file::Advice { too_large: "", too_deep: "" };
    // It was deployed, so it can be read.
    let text = model_file::decode(model, &NO_ADVICE).ok()?;
    let document = model_file::parse(&text, &NO_ADVICE).ok()?;
    let mut nodes = document.root_element().children();
    let process = nodes.find(|node| node.has_tag_name("process") && node.attribute("id") == Some(process_id))?;
    let starts = process.children().filter(|node| node.tag_name().name() == "startEvent");
    let mut none =
        starts.filter(|start| !start.children().any(|child| child.tag_name().name().ends_with("EventDefinition")));
    let form = none.next()?.descendants().find(|node| node.has_tag_name((ZEEBE, "formDefinition")))?;
    form.attribute("formId").filter(|id| !id.trim().is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_start_event_without_a_trigger_gives_its_form() {
        let form = |id: &str| format!("<b:extensionElements><z:formDefinition formId=\"{id}\"/></b:extensionElements>");
        let model = format!(
            "<b:definitions xmlns:b=\"http://www.omg.org/spec/BPMN/20100524/MODEL\" xmlns:z=\"{ZEEBE}\">\
             <b:process id=\"other\"><b:startEvent>{}</b:startEvent></b:process>\
             <b:process id=\"p\"><b:startEvent>{}<b:timerEventDefinition/></b:startEvent>\
             <b:startEvent>{}</b:startEvent><b:userTask>{}</b:userTask></b:process>\
             <b:process id=\"none\"><b:startEvent/></b:process></b:definitions>",
            form("of-other"),
            form("of-timer"),
            form("wanted"),
            form("of-task")
        );
        assert_eq!(start_form("p", model.as_bytes()).as_deref(), Some("wanted"));
        assert_eq!(start_form("none", model.as_bytes()), None);
        assert_eq!(start_form("missing", model.as_bytes()), None);
        assert_eq!(start_form("p", b"no model"), None);
    }
}

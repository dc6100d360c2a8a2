//! `osmia modify`.

use std::convert::Infallible;
use std::str::FromStr;

use clap::{ArgGroup, Args};
use gateway_interface::ModifyProcessInstanceRequest;
use gateway_interface::modify_process_instance_request::{
    ActivateInstruction, MoveInstruction, TerminateInstruction, VariableInstruction,
};
use serde_json::json;

use super::action::Action;
use crate::client::{Client, Outcome};
use crate::input::Variables;
use crate::output::{Output, key};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("instructions").args(["activate", "terminate", "move"]).required(true).multiple(true))]
pub(crate) struct Modify {
    /// Key of the process instance.
    pub key: i64,
    /// Start this element; may be given several times.
    #[arg(long, value_name = "ELEMENT")]
    pub activate: Vec<String>,
    /// End this element instance (a key), or all of this element (an id); may be given several times.
    #[arg(long, value_name = "KEY|ELEMENT")]
    pub terminate: Vec<Source>,
    /// End as with --terminate, and start the other element for each; may be given several times.
    #[arg(long = "move", id = "move", value_name = "KEY|ELEMENT=ELEMENT", value_parser = movement)]
    pub moves: Vec<(Source, String)>,
    /// Key of the element instance in which elements start, if there are several candidates.
    #[arg(long, value_name = "KEY", default_value_t = -1)]
    pub ancestor: i64,
    /// Variables to set in the process instance before elements start: a JSON object, @FILE, or - for standard input.
    #[arg(long, default_value = "")]
    pub variables: Variables,
}

/// Which element instances end. Ids of BPMN elements never begin with a digit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    Key(i64),
    Element(String),
}

impl FromStr for Source {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Source, Infallible> {
        Ok(text.parse().map_or_else(|_| Source::Element(text.to_owned()), Source::Key))
    }
}

/// Two names with `=` between them.
pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((source, target)) if !source.is_empty() && !target.is_empty() => {
            Ok((source.to_owned(), target.to_owned()))
        }
        _ => Err("write both names with '=' between them, for example check=review".to_owned()),
    }
}

fn movement(text: &str) -> Result<(Source, String), String> {
    let (source, target) = pair(text)?;
    let Ok(source) = source.parse();
    Ok((source, target))
}

impl Action for Modify {
    async fn carry_out(self, mut client: Client, output: &Output) -> Outcome {
        let instance = self.key;
        client.gateway.modify_process_instance(client.request(self.into_request())).await?;
        let json = || json!({ "processInstanceKey": key(instance) });
        Ok(output.say(format_args!("process instance {instance} is modified"), json)?)
    }
}

impl Modify {
    fn into_request(self) -> ModifyProcessInstanceRequest {
        let text = String::from(self.variables);
        let variables = || match text.as_str() {
            "" => Vec::new(),
            text => vec![VariableInstruction { variables: text.to_owned(), scope_id: String::new() }],
        };
        let activate = |element_id| ActivateInstruction {
            element_id,
            ancestor_element_instance_key: self.ancestor,
            variable_instructions: variables(),
        };
        let terminate = |source| match source {
            Source::Key(element_instance_key) => TerminateInstruction { element_instance_key, ..Default::default() },
            Source::Element(element_id) => TerminateInstruction { element_id, ..Default::default() },
        };
        let movement = |(source, target_element_id)| {
            let instruction = MoveInstruction {
                target_element_id,
                ancestor_element_instance_key: self.ancestor,
                variable_instructions: variables(),
                ..Default::default()
            };
            match source {
                Source::Key(source_element_instance_key) => {
                    MoveInstruction { source_element_instance_key, ..instruction }
                }
                Source::Element(source_element_id) => MoveInstruction { source_element_id, ..instruction },
            }
        };
        ModifyProcessInstanceRequest {
            process_instance_key: self.key,
            activate_instructions: self.activate.into_iter().map(activate).collect(),
            terminate_instructions: self.terminate.into_iter().map(terminate).collect(),
            move_instructions: self.moves.into_iter().map(movement).collect(),
            operation_reference: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_named_by_key_or_id() {
        assert_eq!("7".parse(), Ok(Source::Key(7)));
        assert_eq!("check".parse(), Ok(Source::Element("check".into())));
        assert_eq!(movement("8=a"), Ok((Source::Key(8), "a".into())));
        assert_eq!(movement("b=c"), Ok((Source::Element("b".into()), "c".into())));
        assert!(movement("b=").is_err() && movement("=c").is_err() && movement("b").is_err());
    }
}

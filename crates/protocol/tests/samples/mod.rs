//! Records of each value type, with something in every list, so that all fields are seen that they can have.

use std::sync::Arc;

use protocol::*;

/// One of each type, of senders of each kind.
pub fn records() -> Vec<Record> {
    let payloads =
        [of_instances(), of_jobs(), of_events(), of_resources(), of_decisions(), of_operations(), of_the_engine()];
    let identity = Identity::new("demo", None).expect("short");
    let actors = [Actor::Anonymous, Actor::System, Actor::User(identity.clone()), Actor::Client(identity)];
    let sent = |(payload, actor)| Record { actor, ..Record::event(1, 2, key(), payload) };
    payloads.concat().into_iter().zip(actors.into_iter().cycle()).map(sent).collect()
}

fn key() -> Key {
    Key::new(PartitionId(1), 7)
}

fn of_instances() -> Vec<Payload> {
    let creation = ProcessInstanceCreationValue {
        start_instructions: vec![Text::default()],
        runtime_instructions: vec![RuntimeInstruction::default()],
        ..ProcessInstanceCreationValue::default()
    };
    let result = ProcessInstanceResultValue {
        bpmn_process_id: Text::default(),
        version: 1,
        process_definition_key: key(),
        process_instance_key: key(),
        variables: Text::default(),
        tags: Vec::new(),
        tenant_id: Text::default(),
        business_id: Text::default(),
    };
    let variable = VariableValue {
        name: Text::default(),
        value: Text::default(),
        scope_key: key(),
        process_instance_key: key(),
        process_definition_key: key(),
        bpmn_process_id: Text::default(),
        tenant_id: Text::default(),
    };
    let document = VariableDocumentValue {
        scope_key: key(),
        update_semantics: VariableDocumentUpdateSemantics::Local,
        variables: Text::default(),
        tenant_id: Text::default(),
    };
    let batch = ProcessInstanceBatchValue {
        process_instance_key: key(),
        batch_element_instance_key: key(),
        index: -1,
        tenant_id: Text::default(),
        up_to: None,
    };
    let error = ErrorValue {
        exception_message: Text::default(),
        stacktrace: Text::default(),
        error_event_position: 1,
        process_instance_key: key(),
    };
    // Other results leave out the element that was produced.
    let loop_result = MultiInstanceValue { output_element: "1".into(), ..MultiInstanceValue::default() };
    let instruction = AdHocSubProcessInstructionValue {
        activate_elements: vec![AdHocSubProcessActivateElement::default()],
        ..AdHocSubProcessInstructionValue::default()
    };
    vec![
        Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, Arc::default()),
        Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Created, Box::new(creation)),
        Payload::ProcessInstanceResult(ProcessInstanceResultIntent::Completed, Box::new(result)),
        Payload::ProcessInstanceBatch(ProcessInstanceBatchIntent::Activate, Box::new(batch)),
        Payload::Incident(IncidentIntent::Created, Box::default()),
        Payload::Error(ErrorIntent::Created, Box::new(error)),
        Payload::Variable(VariableIntent::Created, Box::new(variable)),
        Payload::VariableDocument(VariableDocumentIntent::Updated, Box::new(document)),
        Payload::MultiInstance(MultiInstanceIntent::InputCollectionEvaluated, Box::new(loop_result)),
        Payload::AdHocSubProcessInstruction(AdHocSubProcessInstructionIntent::Activated, Box::new(instruction)),
        Payload::RuntimeInstruction(RuntimeInstructionIntent::Interrupted, Box::default()),
        Payload::CompensationSubscription(CompensationSubscriptionIntent::Created, Box::default()),
    ]
}

fn of_jobs() -> Vec<Payload> {
    let result = JobResult {
        activate_elements: vec![AdHocSubProcessActivateElement::default()],
        corrections: Some(Box::default()),
        ..JobResult::default()
    };
    let job = JobValue { result: Some(Box::new(result)), ..JobValue::default() };
    let batch = JobBatchValue { jobs: vec![job.clone()], ..JobBatchValue::default() };
    vec![
        Payload::Job(JobIntent::Completed, Arc::new(job)),
        Payload::JobBatch(JobBatchIntent::Activated, Box::new(batch)),
        Payload::JobStream(JobStreamIntent::Added, Box::default()),
        Payload::UserTask(UserTaskIntent::Created, Box::default()),
        Payload::GlobalListener(GlobalListenerIntent::Created, Box::default()),
        Payload::GlobalListenerBatch(
            GlobalListenerBatchIntent::Configured,
            Box::new(GlobalListenerBatchValue {
                global_listener_batch_key: key(),
                task_listeners: vec![GlobalListenerValue::default()],
            }),
        ),
    ]
}

fn of_events() -> Vec<Payload> {
    let started = ConditionalStartedProcessInstance { process_definition_key: key(), process_instance_key: key() };
    let evaluation = ConditionalEvaluationValue {
        started_process_instances: vec![started],
        ..ConditionalEvaluationValue::default()
    };
    vec![
        Payload::Timer(TimerIntent::Created, Box::default()),
        Payload::Message(MessageIntent::Published, Box::default()),
        Payload::MessageBatch(MessageBatchIntent::Expire, Box::default()),
        Payload::MessageCorrelation(MessageCorrelationIntent::Correlating, Box::default()),
        Payload::MessageSubscription(MessageSubscriptionIntent::Created, Box::default()),
        Payload::MessageStartEventSubscription(MessageStartEventSubscriptionIntent::Created, Box::default()),
        Payload::ProcessMessageSubscription(ProcessMessageSubscriptionIntent::Created, Box::default()),
        Payload::ProcessEvent(ProcessEventIntent::Triggering, Box::default()),
        Payload::Escalation(EscalationIntent::Escalated, Box::default()),
        Payload::Signal(SignalIntent::Broadcasted, Box::default()),
        Payload::SignalSubscription(SignalSubscriptionIntent::Created, Box::default()),
        Payload::ConditionalSubscription(ConditionalSubscriptionIntent::Created, Box::default()),
        Payload::ConditionalEvaluation(ConditionalEvaluationIntent::Evaluated, Box::new(evaluation)),
    ]
}

fn process() -> ProcessMetadata {
    ProcessMetadata {
        bpmn_process_id: Text::default(),
        version: 1,
        version_tag: Text::default(),
        process_definition_key: key(),
        resource_name: Text::default(),
        checksum: Arc::default(),
        duplicate: false,
        deployment_key: key(),
        tenant_id: Text::default(),
    }
}

fn form() -> FormMetadata {
    FormMetadata {
        form_id: Text::default(),
        version: 1,
        version_tag: Text::default(),
        form_key: key(),
        resource_name: Text::default(),
        checksum: Arc::default(),
        duplicate: false,
        deployment_key: key(),
        tenant_id: Text::default(),
    }
}

fn decision() -> DecisionValue {
    DecisionValue {
        decision_id: Text::default(),
        decision_name: Text::default(),
        version: 1,
        version_tag: Text::default(),
        decision_key: key(),
        decision_requirements_id: Text::default(),
        decision_requirements_key: key(),
        duplicate: false,
        deployment_key: key(),
        tenant_id: Text::default(),
    }
}

fn decision_requirements() -> DecisionRequirementsMetadata {
    DecisionRequirementsMetadata {
        decision_requirements_id: Text::default(),
        decision_requirements_name: Text::default(),
        decision_requirements_version: 1,
        decision_requirements_key: key(),
        namespace: Text::default(),
        resource_name: Text::default(),
        checksum: Arc::default(),
        duplicate: false,
        tenant_id: Text::default(),
    }
}

fn of_resources() -> Vec<Payload> {
    let deployment = DeploymentValue {
        resources: vec![DeploymentResource { resource_name: Text::default(), resource: Arc::default() }],
        processes_metadata: vec![process()],
        decisions_metadata: vec![decision()],
        decision_requirements_metadata: vec![decision_requirements()],
        form_metadata: vec![form()],
        resource_metadata: vec![ResourceMetadata::default()],
        ..DeploymentValue::default()
    };
    let definition = ProcessValue { metadata: process(), resource: Arc::default() };
    let form = FormValue { metadata: form(), resource: Arc::default() };
    vec![
        Payload::Deployment(DeploymentIntent::Created, Box::new(deployment)),
        Payload::Process(ProcessIntent::Created, Box::new(definition)),
        Payload::Form(FormIntent::Created, Box::new(form)),
        Payload::Resource(ResourceIntent::Created, Box::default()),
        Payload::ResourceDeletion(ResourceDeletionIntent::Deleted, Box::default()),
    ]
}

fn of_decisions() -> Vec<Payload> {
    let requirements = DecisionRequirementsValue { metadata: decision_requirements(), resource: Arc::default() };
    let input =
        EvaluatedInputValue { input_id: Text::default(), input_name: Text::default(), input_value: Text::default() };
    let output = EvaluatedOutputValue {
        output_id: Text::default(),
        output_name: Text::default(),
        output_value: Text::default(),
    };
    let evaluated = EvaluatedDecisionValue {
        decision_id: Text::default(),
        decision_evaluation_instance_key: Text::default(),
        decision_name: Text::default(),
        decision_key: key(),
        decision_version: 1,
        decision_type: Text::default(),
        decision_output: Text::default(),
        evaluated_inputs: vec![input],
        matched_rules: vec![MatchedRuleValue {
            rule_id: Text::default(),
            rule_index: 1,
            evaluated_outputs: vec![output],
        }],
        tenant_id: Text::default(),
    };
    let evaluation =
        DecisionEvaluationValue { evaluated_decisions: vec![evaluated], ..DecisionEvaluationValue::default() };
    vec![
        Payload::Decision(DecisionIntent::Created, Box::new(decision())),
        Payload::DecisionRequirements(DecisionRequirementsIntent::Created, Box::new(requirements)),
        Payload::DecisionEvaluation(DecisionEvaluationIntent::Evaluated, Box::new(evaluation)),
        Payload::Expression(ExpressionIntent::Evaluated, Box::default()),
    ]
}

fn of_operations() -> Vec<Payload> {
    let variables = || vec![ModificationVariableInstruction::default()];
    let modification = ProcessInstanceModificationValue {
        terminate_instructions: vec![ModificationTerminateInstruction::default()],
        activate_instructions: vec![ModificationActivateInstruction {
            variable_instructions: variables(),
            ..ModificationActivateInstruction::default()
        }],
        move_instructions: vec![ModificationMoveInstruction {
            variable_instructions: variables(),
            ..ModificationMoveInstruction::default()
        }],
        ..ProcessInstanceModificationValue::default()
    };
    let migration = ProcessInstanceMigrationValue {
        mapping_instructions: vec![MigrationMappingInstruction::default()],
        ..ProcessInstanceMigrationValue::default()
    };
    vec![
        Payload::ProcessInstanceModification(ProcessInstanceModificationIntent::Modified, Box::new(modification)),
        Payload::ProcessInstanceMigration(ProcessInstanceMigrationIntent::Migrated, Box::new(migration)),
    ]
}

fn of_the_engine() -> Vec<Payload> {
    let distribution = CommandDistributionValue {
        partition_id: PartitionId(2),
        queue_id: Text::default(),
        value_type: Text::default(),
        intent: Text::default(),
        // Its fields are those of the value that is on its way.
        command: None,
    };
    let outbox = OutboxValue {
        partition: PartitionId(2),
        sequence: 1,
        distribution_key: Key::NONE,
        command: None,
        incarnation: 1,
    };
    vec![
        Payload::CommandDistribution(CommandDistributionIntent::Started, Box::new(distribution)),
        Payload::Outbox(OutboxIntent::Enqueued, Box::new(outbox)),
        Payload::Work(WorkIntent::Enqueued, Box::default()),
        Payload::FeatureLevel(FeatureLevelIntent::Raised, FeatureLevelValue::default()),
        Payload::Incarnation(IncarnationIntent::Raised, Box::default()),
        Payload::Settings(SettingsIntent::Changed, SettingsValue::default()),
        Payload::Node(NodeIntent::Started, NodeValue::default()),
        Payload::Cluster(ClusterIntent::Bootstrapped, Box::default()),
        Payload::JobPoll(JobPollIntent::Yielded, Box::default()),
        Payload::Clock(ClockIntent::Pinned, ClockValue::default()),
        Payload::Purge(PurgeIntent::Purged, PurgeValue::default()),
    ]
}

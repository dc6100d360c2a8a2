from grpc import StatusCode
from pyzeebe.errors import ProcessDefinitionNotFoundError, ProcessInvalidError
from server import model_text, unique_id
from status import refused


async def test_the_answer_describes_what_was_deployed(server):
    process_id = unique_id("deploy")

    deployment = await server.deploy_text(f"{process_id}.bpmn", model_text("one-task", process_id))

    assert deployment.key > 0
    [process] = deployment.deployments
    assert process.bpmn_process_id == process_id
    assert process.version == 1
    assert process.process_definition_key > 0
    assert process.resource_name == f"{process_id}.bpmn"


async def test_a_changed_model_is_the_next_version_and_the_same_model_is_not(server):
    process_id = unique_id("versions")
    file = f"{process_id}.bpmn"

    [first] = (await server.deploy_text(file, model_text("one-task", process_id))).deployments
    [same] = (await server.deploy_text(file, model_text("one-task", process_id))).deployments
    [second] = (await server.deploy_text(file, model_text("two-tasks", process_id))).deployments

    assert (same.version, same.process_definition_key) == (1, first.process_definition_key)
    assert second.version == 2
    assert second.process_definition_key != first.process_definition_key


async def test_a_broken_model_is_refused_by_name(server):
    process_id = unique_id("broken")

    message = await refused(
        StatusCode.INVALID_ARGUMENT,
        server.deploy_text(f"{process_id}.bpmn", model_text("broken", process_id)),
        ProcessInvalidError,
    )

    assert f"{process_id}.bpmn" in message
    assert "nameless" in message
    await refused(StatusCode.NOT_FOUND, server.client.run_process(process_id), ProcessDefinitionNotFoundError)


async def test_text_that_is_no_xml_is_refused(server):
    await refused(
        StatusCode.INVALID_ARGUMENT,
        server.deploy_text("garbled.bpmn", "<definitions><oops"),
        ProcessInvalidError,
    )

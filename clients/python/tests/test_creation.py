import pytest
from grpc import StatusCode
from pyzeebe.errors import InvalidJSONError, ProcessDefinitionNotFoundError
from pyzeebe.proto import gateway_pb2
from server import model_text, needs_full_gateway, unique_id
from status import refused


async def two_versions(server):
    process_id = unique_id("two-versions")
    [first] = (await server.deploy_text("one.bpmn", model_text("one-task", process_id))).deployments
    [second] = (await server.deploy_text("two.bpmn", model_text("two-tasks", process_id))).deployments
    return process_id, first, second


async def test_by_id_takes_the_latest_version(server):
    process_id, _, second = await two_versions(server)

    created = await server.client.run_process(process_id)

    assert created.bpmn_process_id == process_id
    assert created.version == 2
    assert created.process_definition_key == second.process_definition_key
    job = await server.poll_one(f"{process_id}-first")
    assert job.process_instance_key == created.process_instance_key


async def test_by_version_takes_that_version(server):
    process_id, first, _ = await two_versions(server)

    created = await server.client.run_process(process_id, version=1)

    assert created.version == 1
    assert created.process_definition_key == first.process_definition_key
    await server.poll_one(f"{process_id}-work")


async def test_by_key_takes_that_definition(server):
    process_id, first, _ = await two_versions(server)

    created = await server.stub.CreateProcessInstance(
        gateway_pb2.CreateProcessInstanceRequest(processDefinitionKey=first.process_definition_key)
    )

    assert (created.bpmnProcessId, created.version) == (process_id, 1)
    await server.poll_one(f"{process_id}-work")


async def test_unknown_processes_are_not_found(server):
    model = await server.deploy("one-task")

    message = await refused(
        StatusCode.NOT_FOUND, server.client.run_process("no-such-process"), ProcessDefinitionNotFoundError
    )
    assert "no-such-process" in message
    await refused(
        StatusCode.NOT_FOUND, server.client.run_process(model.id, version=99), ProcessDefinitionNotFoundError
    )
    await refused(
        StatusCode.NOT_FOUND,
        server.stub.CreateProcessInstance(gateway_pb2.CreateProcessInstanceRequest(processDefinitionKey=99)),
    )


@needs_full_gateway
@pytest.mark.parametrize("variables", [[1, 2], 17, "text"])
async def test_variables_that_are_no_object_are_invalid(server, variables):
    model = await server.deploy("one-task")

    await refused(
        StatusCode.INVALID_ARGUMENT, server.client.run_process(model.id, variables), InvalidJSONError
    )

    await server.assert_none(model.job_type("work"))


@needs_full_gateway
@pytest.mark.parametrize("text", ['{"a":', "no json at all"])
async def test_text_that_is_no_json_is_invalid(server, text):
    model = await server.deploy("one-task")

    await refused(
        StatusCode.INVALID_ARGUMENT,
        server.stub.CreateProcessInstance(
            gateway_pb2.CreateProcessInstanceRequest(bpmnProcessId=model.id, version=-1, variables=text)
        ),
    )

    await server.assert_none(model.job_type("work"))

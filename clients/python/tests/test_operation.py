"""Starting anywhere, moving and migrating instances, and deleting what was deployed.

pyzeebe wraps none of this: its generated stub is used.
"""

import asyncio

from grpc import StatusCode
from pyzeebe.proto.gateway_pb2 import (
    CreateProcessInstanceRequest,
    DeleteResourceRequest,
    MigrateProcessInstanceRequest,
    ModifyProcessInstanceRequest,
    ProcessInstanceCreationStartInstruction,
)
from server import UNKNOWN_KEY, needs_full_gateway
from status import refused


def modification(instance, element, terminated, *variables):
    activate = ModifyProcessInstanceRequest.ActivateInstruction(
        elementId=element,
        variableInstructions=[
            ModifyProcessInstanceRequest.VariableInstruction(variables=text, scopeId=scope)
            for text, scope in variables
        ],
    )
    terminate = ModifyProcessInstanceRequest.TerminateInstruction(elementInstanceKey=terminated)
    return ModifyProcessInstanceRequest(
        processInstanceKey=instance, activateInstructions=[activate], terminateInstructions=[terminate]
    )


async def test_an_instance_starts_at_the_elements_that_are_named(server):
    model = await server.deploy("sub-process")

    def create(*elements):
        starts = [ProcessInstanceCreationStartInstruction(elementId=element) for element in elements]
        variables = '{"order": {"items": []}}'
        request = CreateProcessInstanceRequest(
            bpmnProcessId=model.id, version=-1, variables=variables, startInstructions=starts
        )
        return server.stub.CreateProcessInstance(request)

    created = await create("box", "ship")

    for task in ("box", "ship"):
        job = await server.poll_one(model.job_type(task))
        assert job.process_instance_key == created.processInstanceKey
    assert "nowhere" in await refused(StatusCode.INVALID_ARGUMENT, create("box", "nowhere"))


async def test_one_element_ends_and_another_begins(server):
    model = await server.deploy("two-tasks")
    result = asyncio.create_task(model.create_with_result({"a": 1}))
    first = await server.poll_one(model.job_type("first"))

    variables = [('{"b": 2}', ""), ('{"local": 3}', "second")]
    request = modification(first.process_instance_key, "second", first.element_instance_key, *variables)
    await server.stub.ModifyProcessInstance(request)

    await refused(StatusCode.NOT_FOUND, server.complete(first))
    second = await server.poll_one(model.job_type("second"))
    assert second.variables == {"a": 1, "b": 2, "local": 3}
    await server.complete(second)
    assert (await result).variables == {"a": 1, "b": 2}


async def test_nothing_happens_when_one_instruction_is_wrong(server):
    model = await server.deploy("two-tasks")
    instance = await model.create()
    first = await server.poll_one(model.job_type("first"))

    wrong = modification(instance, "third", first.element_instance_key)
    message = await refused(StatusCode.INVALID_ARGUMENT, server.stub.ModifyProcessInstance(wrong))
    assert "third" in message
    wrong = modification(UNKNOWN_KEY, "second", first.element_instance_key)
    await refused(StatusCode.NOT_FOUND, server.stub.ModifyProcessInstance(wrong))

    await server.complete(first)
    await server.poll_one(model.job_type("second"))


async def test_an_instance_goes_on_in_another_definition(server):
    source = await server.deploy("one-task")
    target = await server.deploy("two-tasks")
    instance = await source.create()
    work = await server.poll_one(source.job_type("work"))

    def migrate(sourceElementId, targetElementId):
        mapping = MigrateProcessInstanceRequest.MappingInstruction(
            sourceElementId=sourceElementId, targetElementId=targetElementId
        )
        plan = MigrateProcessInstanceRequest.MigrationPlan(
            targetProcessDefinitionKey=target.metadata.process_definition_key, mappingInstructions=[mapping]
        )
        request = MigrateProcessInstanceRequest(processInstanceKey=instance, migrationPlan=plan)
        return server.stub.MigrateProcessInstance(request)

    await refused(StatusCode.FAILED_PRECONDITION, migrate("start", "start"))
    await refused(StatusCode.INVALID_ARGUMENT, migrate("work", "third"))
    await migrate("work", "first")

    await server.fail(work, 3)
    again = await server.poll_one(source.job_type("work"))
    assert (again.key, again.bpmn_process_id, again.element_id) == (work.key, target.id, "first")
    await server.complete(again)
    assert (await server.poll_one(target.job_type("second"))).process_instance_key == instance


@needs_full_gateway
async def test_a_process_is_deleted_when_no_instance_runs(server):
    model = await server.deploy("one-task")
    # The partition that decides, the first, knows the instances that run there.
    instances = 1
    while await model.create() >> 51 != 1:
        instances += 1
    deletion = DeleteResourceRequest(resourceKey=model.metadata.process_definition_key)

    message = await refused(StatusCode.FAILED_PRECONDITION, server.stub.DeleteResource(deletion))
    assert "still running instances" in message
    for job in await server.poll(model.job_type("work"), instances):
        await server.complete(job)
    await server.stub.DeleteResource(deletion)

    await refused(StatusCode.NOT_FOUND, model.create())
    await refused(StatusCode.NOT_FOUND, server.stub.DeleteResource(deletion))

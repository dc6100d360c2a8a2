import asyncio

from grpc import StatusCode
from pyzeebe.errors import ProcessDefinitionNotFoundError, ProcessTimeoutError
from server import needs_full_gateway
from status import refused


async def test_the_result_holds_what_the_workers_wrote(server):
    model = await server.deploy("two-tasks")
    result = asyncio.create_task(model.create_with_result({"a": 1, "b": 1}))

    await server.complete(await server.poll_one(model.job_type("first")), {"b": 2})
    second = await server.poll_one(model.job_type("second"))
    assert not result.done()
    await server.complete(second, {"c": {"deep": "ü \"quoted\""}})

    answer = await result
    assert answer.process_instance_key == second.process_instance_key
    assert answer.bpmn_process_id == model.id
    assert answer.version == 1
    assert answer.variables == {"a": 1, "b": 2, "c": {"deep": "ü \"quoted\""}}


async def test_only_the_asked_for_variables_are_fetched(server):
    model = await server.deploy("straight-through")

    answer = await model.create_with_result({"a": 1, "b": 2, "c": 3}, variables_to_fetch=["a", "c", "missing"])

    assert answer.variables == {"a": 1, "c": 3}


@needs_full_gateway
async def test_the_caller_may_give_up_and_the_instance_goes_on(server):
    model = await server.deploy("one-task")

    await refused(StatusCode.DEADLINE_EXCEEDED, model.create_with_result(timeout=500), ProcessTimeoutError)

    await server.complete(await server.poll_one(model.job_type("work")))


async def test_an_unknown_process_is_not_found(server):
    await refused(
        StatusCode.NOT_FOUND,
        server.client.run_process_with_result("no-such-process"),
        ProcessDefinitionNotFoundError,
    )

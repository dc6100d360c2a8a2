"""Jobs that listen, over gRPC. pyzeebe cannot say there how a listener of a user task decides."""

import asyncio

from grpc import StatusCode
from pyzeebe.errors import JobAlreadyDeactivatedError, JobNotFoundError
from records import incident
from status import refused


async def test_listeners_surround_the_work_of_an_element(server):
    model = await server.deploy("listeners")
    result = asyncio.ensure_future(model.create_with_result({"a": 1}))

    before = await server.poll_one(model.job_type("before"))
    assert (before.element_id, before.retries) == ("work", 2)
    await server.assert_none(model.job_type("work"))
    error = server.jobs.throw_error(before.key, "", {}, "E")
    await refused(StatusCode.FAILED_PRECONDITION, error, JobAlreadyDeactivatedError)
    await server.complete(before, {"own": 1})

    work = await server.poll_one(model.job_type("work"))
    assert work.variables == {"a": 1, "own": 1}
    await server.complete(work, {"done": True})

    await server.complete(await server.poll_one(model.job_type("after")), {"heard": True})
    assert (await result).variables == {"a": 1, "done": True, "heard": True}


async def test_a_listener_that_fails_is_an_incident_of_its_own(server):
    model = await server.deploy("listeners")
    instance = await model.create()
    before = await server.poll_one(model.job_type("before"))
    await server.fail(before, 0, "deaf")

    found = await incident(instance)
    assert (found["errorType"], found["errorMessage"]) == ("EXECUTION_LISTENER_NO_RETRIES", "deaf")

    await server.update_retries(before, 1)
    await server.resolve(found["key"])
    await server.complete(await server.poll_one(model.job_type("before")))
    await server.poll_one(model.job_type("work"))


async def test_a_user_task_waits_for_its_listeners(server):
    model = await server.deploy("task-listeners")
    instance = await model.create()
    creating = await server.poll_one(model.job_type("creating"))
    assert creating.process_instance_key == instance
    await server.complete(creating)

    await server.client.cancel_process_instance(instance)

    canceling = await server.poll_one(model.job_type("canceling"))
    await server.complete(canceling)
    await refused(StatusCode.NOT_FOUND, server.complete(canceling), JobNotFoundError)

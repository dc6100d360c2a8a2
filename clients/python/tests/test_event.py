"""Timers and errors, and what calls and repeats other elements."""

import asyncio
import time

import pytest
from grpc import StatusCode
from status import refused


async def test_a_pause_holds_the_instance_back_and_reminders_come_during_the_task(server):
    model = await server.deploy("timers")
    start = time.monotonic()
    instance = await model.create({"pause": "PT1S", "reminders": "R1/PT0.5S", "limit": "PT1H"})

    work = await server.poll_one(model.job_type("work"))
    assert time.monotonic() - start >= 0.998
    await server.complete(await server.poll_one(model.job_type("remind")))

    await server.complete(work)
    await refused(StatusCode.NOT_FOUND, server.client.cancel_process_instance(instance))


async def test_a_limit_ends_the_task(server):
    model = await server.deploy("timers")
    instance = await model.create({"pause": "PT0S", "reminders": "R1/PT1H", "limit": "PT1S"})
    # On a slow machine the limit may come before anybody has the job.
    work = await server.activate(model.job_type("work"))

    escalate = await server.poll_one(model.job_type("escalate"))

    assert escalate.process_instance_key == instance
    for job in work:
        await refused(StatusCode.NOT_FOUND, server.complete(job))
    await server.complete(escalate)
    await refused(StatusCode.NOT_FOUND, server.client.cancel_process_instance(instance))


async def test_time_starts_instances(server):
    model = await server.deploy("timer-start")

    jobs = await server.poll(model.job_type("work"), 2)

    assert len({job.process_instance_key for job in jobs}) == 2


@pytest.mark.parametrize(
    ("code", "handler", "seen"),
    [("OUT_OF_STOCK", "reorder", {"a": 1, "missing": "honey"}), ("STUNG", "apologise", {"a": 1})],
)
async def test_an_error_is_caught_by_its_event(server, code, handler, seen):
    model = await server.deploy("error-boundary")
    result = asyncio.create_task(model.create_with_result({"a": 1}))
    work = await server.poll_one(model.job_type("work"))

    await server.jobs.throw_error(work.key, "no bees left", {"item": "honey"}, code)

    handling = await server.poll_one(model.job_type(handler))
    assert handling.variables == seen
    await refused(StatusCode.NOT_FOUND, server.complete(work))
    await server.complete(handling)
    assert (await result).variables == seen


async def test_a_called_instance_gets_variables_and_gives_variables(server):
    called = await server.deploy("one-task")
    caller = await server.deploy("call-activity")
    result = asyncio.create_task(caller.create_with_result({"called": called.id, "a": 1}))

    work = await server.poll_one(called.job_type("work"))
    assert work.variables == {"called": called.id, "a": 1}
    await server.complete(work, {"b": 2})
    after = await server.poll_one(caller.job_type("after"))
    assert after.process_instance_key != work.process_instance_key
    await server.complete(after)

    assert (await result).variables == {"called": called.id, "a": 1, "b": 2}


async def test_cancelling_the_caller_cancels_the_called_which_cannot_be_cancelled_alone(server):
    called = await server.deploy("one-task")
    caller = await server.deploy("call-activity")
    instance = await caller.create({"called": called.id})
    work = await server.poll_one(called.job_type("work"))

    alone = server.client.cancel_process_instance(work.process_instance_key)
    assert str(instance) in await refused(StatusCode.FAILED_PRECONDITION, alone)
    await server.client.cancel_process_instance(instance)

    await refused(StatusCode.NOT_FOUND, server.complete(work))


async def test_items_are_worked_on_together_and_then_one_by_one_until_enough_are_done(server):
    model = await server.deploy("multi-instance")
    result = asyncio.create_task(model.create_with_result({"items": ["a", "b", "c"], "enough": 2}))

    for check in reversed(await server.poll(model.job_type("check"), 3)):
        await server.complete(check, {"verdict": check.variables["item"] + "!"})
    for n in (1, 2):
        pack = await server.poll_one(model.job_type("pack"))
        assert pack.variables["loopCounter"] == n
        await server.complete(pack)

    end = (await result).variables
    assert end["checked"] == ["a!", "b!", "c!"]
    assert end["packed"] == [1, 2, None]

"""Completing and failing jobs, and changing their retries and locks."""

import time

from grpc import StatusCode
from pyzeebe.errors import JobNotFoundError
from pyzeebe.proto import gateway_pb2
from server import UNKNOWN_KEY, needs_full_gateway
from status import refused


async def test_completion_variables_reach_the_next_task(server):
    model = await server.deploy("two-tasks")
    await model.create({"kept": "yes", "changed": 1})

    first = await server.poll_one(model.job_type("first"))
    await server.complete(first, {"changed": 2, "fresh": {"x": True}})

    second = await server.poll_one(model.job_type("second"))
    assert second.variables == {"kept": "yes", "changed": 2, "fresh": {"x": True}}
    assert second.retries == 5


async def test_completing_twice_is_not_found(server):
    model = await server.deploy("one-task")
    await model.create()
    job = await server.poll_one(model.job_type("work"))
    await server.complete(job)

    message = await refused(StatusCode.NOT_FOUND, server.complete(job), JobNotFoundError)

    assert str(job.key) in message


async def test_an_unknown_job_is_not_found_for_every_command(server):
    jobs = server.jobs
    for call in (
        jobs.complete_job(UNKNOWN_KEY, {}),
        jobs.fail_job(UNKNOWN_KEY, 1, "", 0, {}),
        jobs.throw_error(UNKNOWN_KEY, "", {}, "E"),
        jobs.update_job_timeout(UNKNOWN_KEY, 1000),
    ):
        await refused(StatusCode.NOT_FOUND, call, JobNotFoundError)
    await refused(
        StatusCode.NOT_FOUND,
        server.stub.UpdateJobRetries(gateway_pb2.UpdateJobRetriesRequest(jobKey=UNKNOWN_KEY, retries=1)),
    )


@needs_full_gateway
async def test_variables_that_are_no_object_are_invalid_and_change_nothing(server):
    model = await server.deploy("one-task")
    await model.create()
    job = await server.poll_one(model.job_type("work"))

    await refused(StatusCode.INVALID_ARGUMENT, server.jobs.complete_job(job.key, [1]))

    await server.complete(job)


async def test_a_failed_job_is_available_again_with_the_given_retries(server):
    model = await server.deploy("one-task")
    await model.create()
    first = await server.poll_one(model.job_type("work"))

    await server.fail(first, 7, "try again")

    again = await server.poll_one(model.job_type("work"))
    assert (again.key, again.retries) == (first.key, 7)


@needs_full_gateway
async def test_failure_variables_are_seen_by_the_next_attempt_only(server):
    model = await server.deploy("two-tasks")
    await model.create({"a": 1})

    await server.fail(await server.poll_one(model.job_type("first")), 1, variables={"attempt": "one"})

    again = await server.poll_one(model.job_type("first"))
    assert again.variables == {"a": 1, "attempt": "one"}
    await server.complete(again)
    assert (await server.poll_one(model.job_type("second"))).variables == {"a": 1}


async def test_a_failed_job_waits_for_its_backoff(server):
    model = await server.deploy("one-task")
    await model.create()
    first = await server.poll_one(model.job_type("work"))
    start = time.monotonic()

    await server.fail(first, 2, "later", backoff_ms=2000)

    again = await server.poll_one(model.job_type("work"))
    assert (again.key, again.retries) == (first.key, 2)
    assert time.monotonic() - start >= 1.99


async def test_a_shorter_lock_frees_the_job_earlier(server):
    model = await server.deploy("one-task")
    await model.create()
    first = await server.poll_one(model.job_type("work"))

    await server.jobs.update_job_timeout(first.key, 100)

    assert (await server.poll_one(model.job_type("work"))).key == first.key


async def test_retries_of_an_activated_job_can_be_updated(server):
    model = await server.deploy("one-task")
    await model.create()
    first = await server.poll_one(model.job_type("work"))

    await server.update_retries(first, 9)
    await server.jobs.update_job_timeout(first.key, 100)

    assert (await server.poll_one(model.job_type("work"))).retries == 9


async def test_retries_must_be_positive(server):
    model = await server.deploy("one-task")
    await model.create()
    job = await server.poll_one(model.job_type("work"))

    await refused(StatusCode.INVALID_ARGUMENT, server.update_retries(job, 0))

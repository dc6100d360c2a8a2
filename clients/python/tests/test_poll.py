import asyncio
import time

from grpc import StatusCode
from pyzeebe.errors import ActivateJobsRequestInvalidError
from server import PATIENCE_MS, needs_full_gateway, unique_id
from status import refused


async def test_a_job_carries_all_that_a_worker_needs(server):
    model = await server.deploy("one-task")
    instance = await model.create({"name": "Ada", "list": [1, 2]})
    before = time.time() * 1000

    job = await server.poll_one(model.job_type("work"))

    assert job.type == model.job_type("work")
    assert job.process_instance_key == instance
    assert job.bpmn_process_id == model.id
    assert job.process_definition_version == 1
    assert job.process_definition_key == model.metadata.process_definition_key
    assert job.element_id == "work"
    assert job.element_instance_key > instance
    assert job.worker == "suite"
    assert job.retries == 3
    assert job.custom_headers == {"color": "blue", "note": 'a "quoted" text'}
    assert job.variables == {"name": "Ada", "list": [1, 2]}
    # The lock of a minute began between the two looks at the clock.
    assert job.deadline - before >= 59_990
    assert job.deadline - time.time() * 1000 <= 60_010


async def test_only_the_asked_for_variables_are_fetched(server):
    model = await server.deploy("one-task")
    await model.create({"a": 1, "b": 2})

    [job] = await server.activate(model.job_type("work"), variables=["b", "missing"])

    assert job.variables == {"b": 2}


@needs_full_gateway
async def test_a_long_poll_wakes_for_a_job_that_comes_later(server):
    model = await server.deploy("one-task")
    poll = asyncio.create_task(server.poll_one(model.job_type("work")))
    await asyncio.sleep(0.5)

    instance = await model.create()
    job = await poll

    assert job.process_instance_key == instance


@needs_full_gateway
async def test_a_poll_without_jobs_ends_empty_at_its_timeout(server):
    start = time.monotonic()

    assert await server.activate(unique_id("nobody"), patience_ms=1000) == []

    assert time.monotonic() - start > 0.9


async def test_a_job_goes_to_one_worker_only_until_its_lock_ends(server):
    model = await server.deploy("one-task")
    await model.create()
    start = time.monotonic()

    [first] = await server.activate(model.job_type("work"), lock_ms=2000, patience_ms=PATIENCE_MS)
    again = await server.poll_one(model.job_type("work"))

    assert again.key == first.key
    assert again.retries == 3
    assert time.monotonic() - start >= 1.99


async def test_a_poll_that_makes_no_sense_is_invalid(server):
    await refused(
        StatusCode.INVALID_ARGUMENT,
        server.activate("some-type", lock_ms=0),
        ActivateJobsRequestInvalidError,
    )

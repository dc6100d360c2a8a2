"""Jobs pushed over a stream, without any poll."""

import asyncio
import contextlib
import time

import pytest
from server import LOCK_MS, PATIENCE_MS, needs_full_gateway

pytestmark = needs_full_gateway


@contextlib.asynccontextmanager
async def pushed(server, model, lock_ms=LOCK_MS):
    """A queue of the jobs that are pushed; the stream is known to push when the block begins."""
    queue = asyncio.Queue()
    given_up = set()

    async def receive():
        async for job in server.jobs.stream_activate_jobs(
            task_type=model.job_type("work"),
            worker="streaming-suite",
            timeout=lock_ms,
            variables_to_fetch=[],
            stream_request_timeout=1200,
            tenant_ids=["<default>"],
        ):
            if job.process_instance_key not in given_up:
                await queue.put(job)

    receiver = asyncio.create_task(receive())
    try:
        await _await_registration(server, model, queue, given_up)
        yield queue
    finally:
        receiver.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await receiver


async def _await_registration(server, model, queue, given_up):
    """Opening a stream is not acknowledged, so instances are created until one is pushed."""
    patience = 0.5
    while patience < PATIENCE_MS / 1000:
        instance = await model.create()
        try:
            await server.complete(await asyncio.wait_for(queue.get(), patience))
            return
        except TimeoutError:
            # Its job may still be on its way, or have come just now.
            given_up.add(instance)
            while not queue.empty():
                queue.get_nowait()
            await server.client.cancel_process_instance(instance)
        patience *= 2
    raise AssertionError("no job was pushed within 2 minutes after the stream was opened")


async def following(queue):
    return await asyncio.wait_for(queue.get(), PATIENCE_MS / 1000)


async def test_jobs_are_pushed_with_all_that_a_worker_needs(server):
    model = await server.deploy("one-task")
    async with pushed(server, model) as queue:
        instance = await model.create({"a": 1})

        job = await following(queue)

        assert job.process_instance_key == instance
        assert job.worker == "streaming-suite"
        assert job.custom_headers["color"] == "blue"
        assert job.variables == {"a": 1}
        await server.assert_none(model.job_type("work"))
        await server.complete(job)


async def test_every_job_is_pushed_once(server):
    model = await server.deploy("one-task")
    async with pushed(server, model) as queue:
        created = {await model.create() for _ in range(50)}

        jobs = [await following(queue) for _ in range(50)]

        assert {job.process_instance_key for job in jobs} == created
        assert queue.empty()


async def test_a_failed_job_is_pushed_again(server):
    model = await server.deploy("one-task")
    async with pushed(server, model) as queue:
        await model.create()
        first = await following(queue)

        await server.fail(first, 2, backoff_ms=300)

        again = await following(queue)
        assert (again.key, again.retries) == (first.key, 2)
        await server.complete(again)


async def test_what_nobody_streams_any_more_is_there_for_polling(server):
    model = await server.deploy("one-task")
    async with pushed(server, model):
        pass
    await asyncio.sleep(0.2)

    # What was pushed before the server knew that the stream is closed is lost until its lock ends.
    created = set()
    jobs = []
    end = time.monotonic() + PATIENCE_MS / 1000
    while not jobs and time.monotonic() < end:
        created.add(await model.create())
        jobs = await server.activate(model.job_type("work"))

    assert {job.process_instance_key for job in jobs} & created

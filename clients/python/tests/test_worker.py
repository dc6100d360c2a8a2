"""pyzeebe's own worker: decorators, results, failures and streams."""

import asyncio
import contextlib

import pytest
from pyzeebe import Job, JobController, ZeebeWorker
from server import PATIENCE_MS, needs_full_gateway, open_channel

pytestmark = needs_full_gateway


@contextlib.asynccontextmanager
async def working(worker):
    """Runs the worker until the block ends."""
    task = asyncio.create_task(worker.work())
    try:
        yield
    finally:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(worker.stop(), 5)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.fixture(params=["poll", "stream"])
async def worker(request):
    channel = open_channel()
    yield ZeebeWorker(
        channel,
        name="suite-worker",
        request_timeout=2000,
        poll_retry_delay=1,
        stream_enabled=request.param == "stream",
    )
    await channel.close()


async def test_results_of_a_task_become_variables(server, worker):
    model = await server.deploy("two-tasks")

    @worker.task(task_type=model.job_type("first"), timeout_ms=30_000)
    async def first(number: int) -> dict:
        return {"doubled": number * 2}

    @worker.task(task_type=model.job_type("second"), single_value=True, variable_name="text", timeout_ms=30_000)
    async def second(doubled: int) -> str:
        return f"got {doubled}"

    async with working(worker):
        answer = await model.create_with_result({"number": 21})

    assert answer.variables == {"number": 21, "doubled": 42, "text": "got 42"}


async def test_many_instances_are_each_done_once(server, worker):
    model = await server.deploy("one-task")
    backlog = {await model.create() for _ in range(20)}
    seen = []

    @worker.task(task_type=model.job_type("work"), timeout_ms=30_000)
    async def work(job: Job) -> None:
        seen.append(job.process_instance_key)

    async with working(worker):
        fresh = {await model.create() for _ in range(20)}
        async with asyncio.timeout(PATIENCE_MS / 1000):
            while set(seen) != backlog | fresh:
                await asyncio.sleep(0.05)

    assert len(seen) == 40


async def test_an_exception_fails_the_job_until_it_succeeds(server, worker):
    model = await server.deploy("one-task")
    attempts = []

    async def fail_with_backoff(exception: Exception, job: Job, controller: JobController) -> None:
        await controller.set_failure_status(f"attempt failed: {exception}", retry_back_off_ms=500)

    @worker.task(task_type=model.job_type("work"), exception_handler=fail_with_backoff, timeout_ms=30_000)
    async def work(job: Job) -> dict:
        attempts.append(job.retries)
        if len(attempts) < 3:
            raise ValueError("not yet")
        return {"attempts": len(attempts)}

    async with working(worker):
        answer = await model.create_with_result(timeout=PATIENCE_MS)

    assert attempts == [3, 2, 1]
    assert answer.variables == {"attempts": 3}

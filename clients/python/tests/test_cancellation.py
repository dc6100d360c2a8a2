from grpc import StatusCode
from pyzeebe.errors import JobNotFoundError, ProcessInstanceNotFoundError
from server import UNKNOWN_KEY
from status import refused


async def test_the_jobs_of_a_cancelled_instance_are_gone(server):
    model = await server.deploy("parallel-gateway")
    instance = await model.create()
    in_work = await server.poll_one(model.job_type("a"))

    await server.client.cancel_process_instance(instance)

    await server.assert_none(model.job_type("b"))
    await refused(StatusCode.NOT_FOUND, server.complete(in_work), JobNotFoundError)


async def test_cancelling_what_has_ended_is_not_found(server):
    model = await server.deploy("one-task")
    cancelled, completed = await model.create(), await model.create()
    for job in await server.poll(model.job_type("work"), 2):
        if job.process_instance_key == completed:
            await server.complete(job)
    await server.client.cancel_process_instance(cancelled)

    for key in (cancelled, completed, UNKNOWN_KEY):
        message = await refused(
            StatusCode.NOT_FOUND,
            server.client.cancel_process_instance(key),
            ProcessInstanceNotFoundError,
        )
        assert str(key) in message

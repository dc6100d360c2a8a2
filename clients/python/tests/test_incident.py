from grpc import StatusCode
from pyzeebe.errors import JobAlreadyDeactivatedError
from records import incident
from server import UNKNOWN_KEY
from status import refused


async def failed(server, model, message="no"):
    """The job of a new instance after it failed for good."""
    await model.create()
    job = await server.poll_one(model.job_type("work"))
    await server.fail(job, 0, message)
    return job


async def test_a_job_without_retries_waits_for_its_incident(server):
    model = await server.deploy("one-task")
    job = await failed(server, model, "the printer is on fire")
    await server.assert_none(model.job_type("work"))

    found = await incident(job.process_instance_key)
    assert found["errorType"] == "JOB_NO_RETRIES"
    assert found["errorMessage"] == "the printer is on fire"
    assert found["elementId"] == "work"
    assert found["jobKey"] == job.key

    await server.update_retries(job, 2)
    await server.resolve(found["key"])
    again = await server.poll_one(model.job_type("work"))
    assert (again.key, again.retries) == (job.key, 2)
    await server.complete(again)
    await refused(StatusCode.NOT_FOUND, server.resolve(found["key"]))


async def test_resolving_without_new_retries_is_refused(server):
    model = await server.deploy("one-task")
    job = await failed(server, model)
    found = await incident(job.process_instance_key)

    await refused(StatusCode.FAILED_PRECONDITION, server.resolve(found["key"]))


async def test_an_unknown_incident_is_not_found(server):
    message = await refused(StatusCode.NOT_FOUND, server.resolve(UNKNOWN_KEY))

    assert str(UNKNOWN_KEY) in message


async def test_an_error_that_nobody_catches_is_an_incident(server):
    model = await server.deploy("one-task")
    await model.create()
    job = await server.poll_one(model.job_type("work"))
    await server.jobs.throw_error(job.key, "no bees left", {}, "OUT_OF_STOCK")
    await server.assert_none(model.job_type("work"))
    await refused(StatusCode.FAILED_PRECONDITION, server.complete(job), JobAlreadyDeactivatedError)

    found = await incident(job.process_instance_key)
    assert found["errorType"] == "UNHANDLED_ERROR_EVENT"
    assert "OUT_OF_STOCK" in found["errorMessage"]

    await server.resolve(found["key"])
    again = await server.poll_one(model.job_type("work"))
    assert again.key == job.key
    await server.complete(again)


async def test_a_gateway_without_a_true_condition_waits_for_other_variables(server):
    model = await server.deploy("no-default-flow")
    instance = await model.create({"approved": "perhaps"})
    await server.assert_none(model.job_type("approved"))

    found = await incident(instance)
    assert found["elementId"] == "choose"
    await server.set_variables(instance, '{"approved": false}')
    await server.resolve(found["key"])

    assert (await server.poll_one(model.job_type("declined"))).process_instance_key == instance

"""The REST client of Camunda 8, which wants every field of an answer that the API has."""

import os

import camunda_orchestration_sdk as sdk
import pytest
import pytest_asyncio
from camunda_orchestration_sdk import errors
from camunda_orchestration_sdk.types import UNSET, File
from records import incident
from server import LOCK_MS, POLL_MS, SHARED, UNKNOWN_KEY, unique_id

pytestmark = pytest.mark.skipif("OSMIA_HTTP_ADDRESS" not in os.environ, reason="OSMIA_HTTP_ADDRESS is not set")


def given(kind, values):
    return UNSET if values is None else kind.from_dict(values)


class Rest:
    """What the tests need of the client."""

    def __init__(self, client):
        self.client = client

    async def deploy(self, name, process_id=None, kind="bpmn"):
        process_id = process_id or unique_id(name)
        text = (SHARED / f"{name}.{kind}").read_text(encoding="utf-8").replace("PROCESS_ID", process_id)
        file = File(payload=text.encode(), file_name=f"{process_id}.{kind}", mime_type="application/octet-stream")
        deployed = await self.client.create_deployment(data=sdk.CreateDeploymentData(resources=[file]))
        return process_id, deployed

    async def create(self, process_id, variables=None, **options):
        variables = given(sdk.ProcessInstanceCreationInstructionBaseVariables, variables)
        data = sdk.ProcessCreationById(process_definition_id=process_id, variables=variables, **options)
        return await self.client.create_process_instance(data=data)

    async def poll(self, job_type):
        data = sdk.JobActivationRequest(
            type_=job_type, timeout=LOCK_MS, max_jobs_to_activate=1, worker="suite", request_timeout=POLL_MS
        )
        for _ in range(40):
            jobs = (await self.client.activate_jobs(data=data)).jobs
            if jobs:
                return jobs[0]
        raise AssertionError(f"no job of type {job_type}")

    async def complete(self, job, variables=None):
        variables = given(sdk.JobCompletionRequestVariables, variables)
        await self.client.complete_job(job.job_key, data=sdk.JobCompletionRequest(variables=variables))


@pytest_asyncio.fixture
async def rest():
    address = os.environ["OSMIA_HTTP_ADDRESS"]
    configuration = {"CAMUNDA_REST_ADDRESS": f"http://{address}", "CAMUNDA_AUTH_STRATEGY": "NONE"}
    async with sdk.CamundaAsyncClient(configuration=configuration) as client:
        yield Rest(client)


async def refused(status, error, call):
    with pytest.raises(error) as raised:
        await call
    assert raised.value.status_code == status
    return str(raised.value.content)


async def test_the_cluster_says_who_it_is_and_who_one_is(rest):
    topology = await rest.client.get_topology()
    assert topology.brokers[0].partitions[0].role == "leader"
    await rest.client.get_status()
    assert (await rest.client.get_license()).is_commercial is False
    me = await rest.client.get_authentication()
    assert (me.username, me.tenants[0].tenant_id) == ("anonymous", "<default>")


async def test_an_instance_is_created_worked_on_and_ended(rest):
    process_id, deployed = await rest.deploy("one-task")
    process = deployed.deployments[0].process_definition
    created = await rest.create(process_id, {"a": 1}, tags=["t"])
    assert created.process_definition_key == process.process_definition_key
    assert (created.tags, created.tenant_id) == (["t"], "<default>")
    job = await rest.poll(f"{process_id}-work")
    assert job.variables.to_dict() == {"a": 1}
    assert (job.process_instance_key, job.tags) == (created.process_instance_key, ["t"])
    assert (job.user_task, job.business_id) == (None, None)
    await rest.complete(job, {"b": 2})
    content = await refused(404, errors.NotFoundError, rest.complete(job))
    assert "NOT_FOUND" in content


async def test_who_waits_for_the_end_gets_the_variables(rest):
    process_id, _ = await rest.deploy("straight-through")
    ended = await rest.create(process_id, {"a": "ä"}, await_completion=True, fetch_variables=["a"])
    assert ended.variables.to_dict() == {"a": "ä"}


async def test_who_asks_in_vain_gets_an_empty_list(rest):
    data = sdk.JobActivationRequest(type_=unique_id("none"), timeout=1, max_jobs_to_activate=1, request_timeout=-1)
    assert (await rest.client.activate_jobs(data=data)).jobs == []


async def test_a_job_fails_until_its_incident_is_resolved(rest):
    process_id, _ = await rest.deploy("one-task")
    created = await rest.create(process_id)
    job = await rest.poll(f"{process_id}-work")
    await rest.client.fail_job(job.job_key, data=sdk.JobFailRequest(retries=0, error_message="broken"))
    await refused(409, errors.ConflictError, rest.complete(job))
    found = await incident(int(created.process_instance_key))
    await refused(409, errors.ConflictError, rest.client.resolve_incident(str(found["key"])))
    changes = sdk.JobUpdateRequest(changeset=sdk.JobChangeset(retries=2))
    await rest.client.update_job(job.job_key, data=changes)
    await rest.client.resolve_incident(str(found["key"]))
    assert (await rest.poll(f"{process_id}-work")).retries == 2


async def test_an_error_is_caught_by_its_code(rest):
    process_id, _ = await rest.deploy("one-task")
    await rest.create(process_id)
    job = await rest.poll(f"{process_id}-work")
    await rest.client.throw_job_error(job.job_key, data=sdk.JobErrorRequest(error_code="nobody"))
    content = await refused(
        409,
        errors.ConflictError,
        rest.client.throw_job_error(job.job_key, data=sdk.JobErrorRequest(error_code="nobody")),
    )
    assert "ERROR_THROWN" in content


async def test_an_instance_is_changed_and_cancelled(rest):
    process_id, _ = await rest.deploy("two-tasks")
    instance = (await rest.create(process_id, {"a": 1})).process_instance_key
    first = await rest.poll(f"{process_id}-first")
    change = sdk.SetVariableRequest(variables=sdk.SetVariableRequestVariables.from_dict({"a": 2}))
    await rest.client.create_element_instance_variables(instance, data=change)
    await refused(
        404, errors.ApiError, rest.client.create_element_instance_variables(str(UNKNOWN_KEY), data=change)
    )
    await rest.client.modify_process_instance(
        instance,
        data=sdk.ProcessInstanceModificationInstruction(
            activate_instructions=[sdk.ProcessInstanceModificationActivateInstruction(element_id="second")],
            terminate_instructions=[
                sdk.ProcessInstanceModificationTerminateByKeyInstruction(
                    element_instance_key=first.element_instance_key
                )
            ],
        ),
    )
    second = await rest.poll(f"{process_id}-second")
    assert second.variables.to_dict() == {"a": 2}
    _, target = await rest.deploy("two-tasks")
    mapping = sdk.MigrateProcessInstanceMappingInstruction(source_element_id="second", target_element_id="second")
    await rest.client.migrate_process_instance(
        instance,
        data=sdk.ProcessInstanceMigrationInstruction(
            target_process_definition_key=target.deployments[0].process_definition.process_definition_key,
            mapping_instructions=[mapping],
        ),
    )
    # Without data the client fails before it sends anything.
    data = sdk.CancelProcessInstanceRequest()
    await rest.client.cancel_process_instance(instance, data=data)
    await refused(404, errors.NotFoundError, rest.client.cancel_process_instance(instance, data=data))


async def test_decisions_are_evaluated(rest):
    decision_id, deployed = await rest.deploy("decision", kind="dmn")
    assert len(deployed.deployments) == 3
    variables = sdk.DecisionEvaluationByIdVariables.from_dict({"orders": 20})
    data = sdk.DecisionEvaluationByID(decision_definition_id=f"{decision_id}-discount", variables=variables)
    found = await rest.client.evaluate_decision(data=data)
    assert (found.output, found.failure_message) == ("10", None)
    assert found.evaluated_decisions[-1].matched_rules[0].rule_id == "gold"


async def test_messages_are_published_once(rest):
    data = sdk.MessagePublicationRequest(
        name=unique_id("message"), correlation_key="k", time_to_live=60_000, message_id="1"
    )
    assert int((await rest.client.publish_message(data=data)).message_key) > 0
    await refused(409, errors.ApiError, rest.client.publish_message(data=data))


async def test_a_resource_is_deleted(rest):
    process_id, deployed = await rest.deploy("one-task")
    key = deployed.deployments[0].process_definition.process_definition_key
    data = sdk.DeleteResourceRequest(delete_history=False)
    deleted = await rest.client.delete_resource(key, data=data)
    assert (deleted.resource_key, deleted.batch_operation) == (key, None)
    await refused(404, errors.NotFoundError, rest.client.delete_resource(key, data=data))
    await refused(404, errors.ApiError, rest.create(process_id))


async def test_what_cannot_be_deployed_says_why(rest):
    content = await refused(400, errors.BadRequestError, rest.deploy("broken"))
    assert "INVALID_ARGUMENT" in content


async def test_a_signal_is_broadcast(rest):
    data = sdk.SignalBroadcastRequest(signal_name="s")
    broadcast = await rest.client.broadcast_signal(data=data)
    assert int(broadcast.signal_key) > 0

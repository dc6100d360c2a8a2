"""Jobs that listen to elements and user tasks, and conditions, over the REST client of Camunda 8."""

import asyncio
import datetime
import os

import camunda_orchestration_sdk as sdk
import pytest
from camunda_orchestration_sdk import errors
from server import UNKNOWN_KEY
from test_rest import given, refused, rest  # noqa: F401

pytestmark = pytest.mark.skipif("OSMIA_HTTP_ADDRESS" not in os.environ, reason="OSMIA_HTTP_ADDRESS is not set")

DENIAL = {"denied": True, "denied_reason": "not now"}


async def jobs(rest, **conditions):  # noqa: F811
    data = sdk.JobSearchQuery.from_dict({"filter": conditions})
    return (await rest.client.search_jobs(data=data)).items


async def test_jobs_of_listeners_say_what_they_are(rest):  # noqa: F811
    process_id, _ = await rest.deploy("listeners")
    instance = (await rest.create(process_id)).process_instance_key
    before = await rest.poll(f"{process_id}-before")
    assert (before.kind, before.listener_event_type, before.retries) == ("EXECUTION_LISTENER", "START", 2)
    error = sdk.JobErrorRequest(error_code="E")
    await refused(409, errors.ConflictError, rest.client.throw_job_error(before.job_key, data=error))
    await rest.complete(before, {"own": 1})
    work = await rest.poll(f"{process_id}-work")
    assert (work.kind, work.listener_event_type) == ("BPMN_ELEMENT", "UNSPECIFIED")
    assert work.variables.to_dict() == {"own": 1}
    await rest.complete(work)
    after = await rest.poll(f"{process_id}-after")
    found = await jobs(rest, processInstanceKey=instance, kind="EXECUTION_LISTENER")
    assert {job.job_key for job in found} == {before.job_key, after.job_key}
    await rest.complete(after)
    assert (await rest.client.get_process_instance(instance)).state == "COMPLETED"


class Task:
    """A user task whose listeners have let it begin."""

    def __init__(self, rest, process_id, instance, key):  # noqa: F811
        self.rest, self.process_id, self.instance, self.key = rest, process_id, instance, key

    @classmethod
    async def start(cls, rest):  # noqa: F811
        process_id, _ = await rest.deploy("task-listeners")
        instance = (await rest.create(process_id)).process_instance_key
        await rest.complete(await rest.poll(f"{process_id}-creating"))
        data = sdk.UserTaskSearchQuery.from_dict({"filter": {"processInstanceKey": instance}})
        [task] = (await rest.client.search_user_tasks(data=data)).items
        assert task.state == "CREATED"
        return cls(rest, process_id, instance, task.user_task_key)

    async def now(self):
        return await self.rest.client.get_user_task(self.key)

    async def hear(self, event, **result):
        """What a listener answers to what is asked."""
        job = await self.rest.poll(f"{self.process_id}-{event}")
        assert (job.kind, job.listener_event_type) == ("TASK_LISTENER", event.upper())
        says = sdk.JobResultUserTask(type_="userTask", **result)
        await self.rest.client.complete_job(job.job_key, data=sdk.JobCompletionRequest(result=says))
        return job

    async def denied(self, event, asked):
        job, content = await asyncio.gather(self.hear(event, **DENIAL), refused(409, errors.ConflictError, asked))
        assert "denied by a task listener" in content and "not now" in content
        return job

    def assign(self, assignee):
        data = sdk.UserTaskAssignmentRequest(assignee=assignee, action="claim")
        return self.rest.client.assign_user_task(self.key, data=data)

    def update(self, priority):
        data = sdk.UserTaskUpdateRequest(changeset=sdk.Changeset(priority=priority))
        return self.rest.client.update_user_task(self.key, data=data)

    def complete(self, **variables):
        data = sdk.UserTaskCompletionRequest(variables=given(sdk.UserTaskCompletionRequestVariables, variables))
        return self.rest.client.complete_user_task(self.key, data=data)


async def test_an_assignment_is_denied_and_corrected(rest):  # noqa: F811
    task = await Task.start(rest)
    job = await task.denied("assigning", task.assign("ann"))
    assert (job.user_task.assignee, job.user_task.action) == ("ann", "claim")
    assert job.user_task.changed_attributes == ["assignee"]
    assert (await task.now()).assignee is None

    due = datetime.datetime(2098, 1, 31, 9, tzinfo=datetime.timezone.utc)
    corrections = sdk.JobResultCorrections(
        assignee="bob", candidate_users=["eve"], candidate_groups=["legal"], due_date=due, priority=70
    )
    await asyncio.gather(task.assign("ann"), task.hear("assigning", corrections=corrections))
    now = await task.now()
    assert (now.assignee, now.due_date, now.priority, now.state) == ("bob", due, 70, "CREATED")
    assert (now.candidate_users, now.candidate_groups) == (["eve"], ["legal"])


async def test_an_update_and_a_completion_are_denied_and_accepted(rest):  # noqa: F811
    task = await Task.start(rest)
    await task.denied("updating", task.update(80))
    assert (await task.now()).priority == 50
    corrections = sdk.JobResultCorrections(priority=81)
    await asyncio.gather(task.update(80), task.hear("updating", corrections=corrections))
    assert (await task.now()).priority == 81

    job = await task.denied("completing", task.complete(answer="yes"))
    assert job.variables.to_dict() == {"answer": "yes"}
    assert (await task.now()).state == "CREATED"
    await asyncio.gather(task.complete(answer="yes"), task.hear("completing", denied=False))
    assert (await task.now()).state == "COMPLETED"
    assert len(await jobs(rest, processInstanceKey=task.instance, isDenied=True, deniedReason="not now")) == 2


async def test_a_listener_cannot_deny_and_correct_at_once(rest):  # noqa: F811
    task = await Task.start(rest)
    asked = asyncio.ensure_future(task.assign("ann"))
    wrong = task.hear("assigning", **DENIAL, corrections=sdk.JobResultCorrections(priority=3))
    assert "give one of the two" in await refused(400, errors.BadRequestError, wrong)
    [job] = await jobs(rest, processInstanceKey=task.instance, listenerEventType="ASSIGNING")
    await rest.complete(job)
    await asked
    assert (await task.now()).assignee == "ann"


async def test_conditions_start_instances_and_are_waited_for(rest):  # noqa: F811
    process_id, deployed = await rest.deploy("conditions")
    key = deployed.deployments[0].process_definition.process_definition_key

    async def evaluate(stock, **options):
        variables = given(sdk.ConditionalEvaluationInstructionVariables, {"place": process_id, "stock": stock})
        data = sdk.ConditionalEvaluationInstruction(variables=variables, **options)
        return (await rest.client.evaluate_conditionals(data=data)).process_instances

    async def change(**variables):
        data = sdk.SetVariableRequest(variables=sdk.SetVariableRequestVariables.from_dict(variables))
        await rest.client.create_element_instance_variables(started.process_instance_key, data=data)

    assert await evaluate(10) == []
    [started] = await evaluate(11)
    assert started.process_definition_key == key
    await change(weight=6)
    send = await rest.poll(f"{process_id}-send")
    assert send.variables.to_dict() == {"place": process_id, "stock": 11, "weight": 6}
    await change(address="elsewhere")
    await rest.complete(await rest.poll(f"{process_id}-redirect"))
    assert (await rest.client.get_process_instance(started.process_instance_key)).state == "COMPLETED"
    await refused(404, errors.NotFoundError, evaluate(11, process_definition_key=str(UNKNOWN_KEY)))

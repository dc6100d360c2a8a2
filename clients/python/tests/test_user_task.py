"""Work for people, over the REST client of Camunda 8, which wants every field of an answer that the API has."""

import datetime
import os

import camunda_orchestration_sdk as sdk
import pytest
from camunda_orchestration_sdk import errors
from camunda_orchestration_sdk.types import File
from server import SHARED, unique_id
from test_rest import refused, rest  # noqa: F401

pytestmark = pytest.mark.skipif("OSMIA_HTTP_ADDRESS" not in os.environ, reason="OSMIA_HTTP_ADDRESS is not set")


async def deploy(rest):  # noqa: F811
    process_id = unique_id("user-task")
    files = []
    for kind in ["bpmn", "form"]:
        text = (SHARED / f"user-task.{kind}").read_text(encoding="utf-8").replace("PROCESS_ID", process_id)
        files.append(File(payload=text.encode(), file_name=f"{process_id}.{kind}", mime_type="application/octet-stream"))
    deployed = await rest.client.create_deployment(data=sdk.CreateDeploymentData(resources=files))
    return process_id, deployed.deployments


async def search(rest, **conditions):  # noqa: F811
    data = sdk.UserTaskSearchQuery.from_dict({"filter": conditions})
    return (await rest.client.search_user_tasks(data=data)).items


async def start(rest, process_id, person):  # noqa: F811
    created = await rest.create(process_id, {"person": person})
    [task] = await search(rest, processInstanceKey=created.process_instance_key)
    return task


async def test_a_task_is_found_by_who_is_to_do_it(rest):  # noqa: F811
    process_id, _ = await deploy(rest)
    task = await start(rest, process_id, person := unique_id("ann"))
    [found] = await search(rest, assignee=person, state="CREATED")
    assert (found.user_task_key, found.name, found.priority) == (task.user_task_key, "Decide", 60)
    assert (found.candidate_groups, found.custom_headers.to_dict()) == (["sales", "support"], {"kind": "decision"})
    assert found.due_date.year == 2099
    assert await search(rest, assignee=person, state="COMPLETED") == []


async def test_a_task_is_given_taken_and_given_back(rest):  # noqa: F811
    process_id, _ = await deploy(rest)
    task = await start(rest, process_id, "ann")
    taken = sdk.UserTaskAssignmentRequest(assignee="bob", allow_override=False)
    await refused(409, errors.ConflictError, rest.client.assign_user_task(task.user_task_key, data=taken))
    given = sdk.UserTaskAssignmentRequest(assignee="bob")
    await rest.client.assign_user_task(task.user_task_key, data=given)
    assert (await rest.client.get_user_task(task.user_task_key)).assignee == "bob"
    await rest.client.unassign_user_task(task.user_task_key)
    assert (await rest.client.get_user_task(task.user_task_key)).assignee is None


async def test_attributes_change(rest):  # noqa: F811
    process_id, _ = await deploy(rest)
    task = await start(rest, process_id, "ann")
    due = datetime.datetime(2098, 1, 31, 9, tzinfo=datetime.timezone.utc)
    changes = sdk.Changeset(due_date=due, candidate_groups=[], candidate_users=["eve"], priority=90)
    await rest.client.update_user_task(task.user_task_key, data=sdk.UserTaskUpdateRequest(changeset=changes))
    found = await rest.client.get_user_task(task.user_task_key)
    assert (found.candidate_groups, found.candidate_users, found.priority) == ([], ["eve"], 90)
    assert found.due_date == due


async def test_a_completed_task_ends_the_instance(rest):  # noqa: F811
    process_id, _ = await deploy(rest)
    task = await start(rest, process_id, "ann")
    variables = sdk.UserTaskCompletionRequestVariables.from_dict({"answer": "yes"})
    data = sdk.UserTaskCompletionRequest(variables=variables, action="approve")
    await rest.client.complete_user_task(task.user_task_key, data=data)
    assert (await rest.client.get_user_task(task.user_task_key)).state == "COMPLETED"
    instance = await rest.client.get_process_instance(task.process_instance_key)
    assert instance.state == "COMPLETED"
    await refused(404, errors.NotFoundError, rest.client.complete_user_task(task.user_task_key, data=data))


async def test_forms_are_given_for_tasks_and_processes(rest):  # noqa: F811
    process_id, deployments = await deploy(rest)
    form = next(found.form for found in deployments if found.form)
    task = await start(rest, process_id, "ann")
    of_task = await rest.client.get_user_task_form(task.user_task_key)
    assert (of_task.form_key, of_task.form_id, of_task.version) == (form.form_key, process_id, 1)
    assert "textfield" in of_task.schema
    assert (await rest.client.get_start_process_form(task.process_definition_key)).form_key == form.form_key


async def test_a_resource_is_kept_as_it_was_deployed(rest):  # noqa: F811
    text = f'{{"id": "{unique_id("robot")}", "script": "*** Tasks ***"}}'
    file = File(payload=text.encode(), file_name="robot.rpa", mime_type="application/octet-stream")
    deployed = await rest.client.create_deployment(data=sdk.CreateDeploymentData(resources=[file]))
    key = deployed.deployments[0].resource.resource_key
    assert (await rest.client.get_resource(key)).resource_name == "robot.rpa"
    await rest.client.delete_resource(key, data=sdk.DeleteResourceRequest())
    await refused(404, errors.NotFoundError, rest.client.get_resource(key))

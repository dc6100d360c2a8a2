"""Everything that only reads, over the REST client of Camunda 8, whose models miss no field of an answer."""

import asyncio
import datetime
import os

import camunda_orchestration_sdk as sdk
import pytest
from camunda_orchestration_sdk import errors
from server import SHARED, UNKNOWN_KEY, unique_id
from test_rest import refused, rest  # noqa: F401

pytestmark = pytest.mark.skipif("OSMIA_HTTP_ADDRESS" not in os.environ, reason="OSMIA_HTTP_ADDRESS is not set")

UNKNOWN = str(UNKNOWN_KEY)
FROM = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
TO = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)
PERIOD = {"from": FROM.isoformat(), "to": TO.isoformat()}
made = {}


async def scene(rest):  # noqa: F811
    """An instance that has ended and one with an incident, once for all tests."""
    if made:
        return made
    process_id, deployed = await rest.deploy("two-tasks")
    made["definition"] = deployed.deployments[0].process_definition.process_definition_key
    made["id"] = process_id
    made["done"] = (await rest.create(process_id, {"a": "one", "n": 5})).process_instance_key
    made["failed"] = (await rest.create(process_id, {"n": 7})).process_instance_key
    for job in [await rest.poll(f"{process_id}-first"), await rest.poll(f"{process_id}-first")]:
        if job.process_instance_key == made["done"]:
            await rest.complete(job, {"b": True})
        else:
            made["job"] = job.job_key
            await rest.client.fail_job(job.job_key, data=sdk.JobFailRequest(retries=0, error_message="no paper"))
    await rest.complete(await rest.poll(f"{process_id}-second"))
    return made


async def search(call, query, sort=None, page=None, **conditions):
    """The answer to a search with these conditions."""
    given = {"filter": conditions, "sort": sort, "page": page}
    return await call(data=query.from_dict({name: value for name, value in given.items() if value}))


async def found_soon(call, query, **conditions):
    """The same, once what other partitions do for it can be found."""
    for _ in range(2_400):
        found = (await search(call, query, **conditions)).items
        if found:
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(f"nothing was found of {conditions}")


async def instances(rest, **conditions):  # noqa: F811
    found = await search(rest.client.search_process_instances, sdk.ProcessInstanceSearchQuery, **conditions)
    return [item.process_instance_key for item in found.items]


@pytest.mark.parametrize(
    "conditions",
    [
        {"state": "COMPLETED"},
        {"state": {"$in": ["COMPLETED", "TERMINATED"]}},
        {"state": {"$neq": "ACTIVE"}},
        {"endDate": {"$exists": True}},
        {"hasIncident": False},
        {"variables": [{"name": "a", "value": '"one"'}]},
        {"variables": [{"name": "n", "value": "5"}]},
        {"$or": [{"state": "TERMINATED"}, {"state": "COMPLETED"}]},
    ],
)
async def test_instances_are_found_by(rest, conditions):  # noqa: F811
    of = await scene(rest)
    assert await instances(rest, processDefinitionId=of["id"], **conditions) == [of["done"]]


async def test_instances_are_found_by_a_pattern_and_a_date(rest):  # noqa: F811
    of = await scene(rest)
    both = [of["done"], of["failed"]]
    assert sorted(await instances(rest, processDefinitionId={"$like": f"{of['id']}*"})) == sorted(both)
    since = {"$gte": FROM.isoformat(), "$lt": TO.isoformat()}
    assert sorted(await instances(rest, processDefinitionId=of["id"], startDate=since)) == sorted(both)
    assert await instances(rest, processDefinitionId=of["id"], startDate={"$gt": TO.isoformat()}) == []


async def elements(rest, page=None, order="ASC", **conditions):  # noqa: F811
    sort = [{"field": "elementInstanceKey", "order": order}]
    call, query = rest.client.search_element_instances, sdk.ElementInstanceSearchQuery
    return await search(call, query, sort=sort, page=page, **conditions)


async def test_pages_follow_each_other_by_cursor(rest):  # noqa: F811
    of = await scene(rest)
    whole = (await elements(rest, processInstanceKey=of["done"])).items
    assert [item.element_id for item in whole] == ["start", "first", "second", "end"]
    first = await elements(rest, page={"limit": 3}, processInstanceKey=of["done"])
    after = {"limit": 3, "after": first.page.end_cursor}
    second = await elements(rest, page=after, processInstanceKey=of["done"])
    assert first.items + second.items == whole
    before = {"limit": 2, "before": second.page.start_cursor}
    assert (await elements(rest, page=before, processInstanceKey=of["done"])).items == whole[1:3]


async def test_pages_follow_each_other_by_offset(rest):  # noqa: F811
    of = await scene(rest)
    whole = (await elements(rest, order="DESC", processInstanceKey=of["done"])).items
    assert [item.element_id for item in whole] == ["end", "second", "first", "start"]
    part = await elements(rest, page={"from": 1, "limit": 2}, order="DESC", processInstanceKey=of["done"])
    assert (part.items, part.page.total_items) == (whole[1:3], 4)
    behind = await elements(rest, page={"from": 4, "limit": 2}, processInstanceKey=of["done"])
    assert (behind.items, behind.page.end_cursor) == ([], None)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"page": {"after": "colour"}}, "cursor"),
        ({"page": {"limit": 10_001}}, "limit"),
        ({"filter": {"startDate": "soon"}}, "startDate"),
    ],
)
async def test_a_search_is_refused_that_makes_no_sense(rest, body, words):  # noqa: F811
    class Raw(sdk.ProcessInstanceSearchQuery):
        def to_dict(self):
            return body

    call = rest.client.search_process_instances(data=Raw())
    assert words in await refused(400, errors.BadRequestError, call)


async def test_an_instance_is_read_with_its_flows_and_counts(rest):  # noqa: F811
    of = await scene(rest)
    found = await rest.client.get_process_instance(of["done"])
    assert (found.state, found.process_definition_id, found.end_date >= found.start_date) == ("COMPLETED", of["id"], True)
    flows = await rest.client.get_process_instance_sequence_flows(of["done"])
    assert len(flows.items) == 3
    counts = await rest.client.get_process_instance_statistics(of["done"])
    assert {item.element_id: item.completed for item in counts.items} == dict.fromkeys(["start", "first", "second", "end"], 1)
    await refused(404, errors.NotFoundError, rest.client.get_process_instance(UNKNOWN))


async def test_a_called_instance_knows_who_called_it(rest):  # noqa: F811
    caller_id, _ = await rest.deploy("call-activity")
    called_id, _ = await rest.deploy("one-task")
    caller = (await rest.create(caller_id, {"called": called_id})).process_instance_key
    [called] = await instances(rest, parentProcessInstanceKey=caller)
    hierarchy = await rest.client.get_process_instance_call_hierarchy(called)
    assert [item.process_instance_key for item in hierarchy] == [caller, called]
    await rest.client.cancel_process_instance(caller, data=sdk.CancelProcessInstanceRequest())
    assert (await rest.client.get_process_instance(called)).state == "TERMINATED"


async def test_an_element_instance_is_found_and_read(rest):  # noqa: F811
    of = await scene(rest)
    [found] = (await elements(rest, processInstanceKey=of["failed"], state="ACTIVE", type="SERVICE_TASK")).items
    assert (found.element_id, found.has_incident) == ("first", True)
    assert await rest.client.get_element_instance(found.element_instance_key) == found
    await refused(404, errors.NotFoundError, rest.client.get_element_instance(UNKNOWN))


async def test_what_waits_is_told(rest):  # noqa: F811
    process_id, _ = await rest.deploy("one-task")
    instance = (await rest.create(process_id)).process_instance_key
    call, query = rest.client.search_element_instance_wait_states, sdk.ElementInstanceWaitStateQuery
    [found] = (await search(call, query, processInstanceKey=instance)).items
    assert (found.element_id, found.details.job_type) == ("work", f"{process_id}-work")
    counts = await rest.client.get_process_instance_wait_state_statistics(instance)
    assert [item.element_id for item in counts.items] == ["work"]


async def incidents(rest, **conditions):  # noqa: F811
    return (await search(rest.client.search_incidents, sdk.IncidentSearchQuery, **conditions)).items


async def test_an_incident_is_found_and_read(rest):  # noqa: F811
    of = await scene(rest)
    [found] = await incidents(rest, processInstanceKey=of["failed"], errorType="JOB_NO_RETRIES")
    assert (found.error_message, found.job_key, found.state) == ("no paper", of["job"], "ACTIVE")
    assert await rest.client.get_incident(found.incident_key) == found
    query = sdk.IncidentSearchQuery()
    of_element = await rest.client.search_element_instance_incidents(found.element_instance_key, data=query)
    of_instance = await rest.client.search_process_instance_incidents(of["failed"], data=query)
    assert of_element.items == of_instance.items == [found]
    await refused(404, errors.NotFoundError, rest.client.get_incident(UNKNOWN))


async def test_incidents_are_counted_by_error_and_by_definition(rest):  # noqa: F811
    of = await scene(rest)
    query = sdk.IncidentProcessInstanceStatisticsByErrorQuery.from_dict({"page": {"limit": 1000}})
    by_error = (await rest.client.get_process_instance_statistics_by_error(data=query)).items
    [error] = [item for item in by_error if item.error_message == "no paper"]
    query = sdk.IncidentProcessInstanceStatisticsByDefinitionQuery.from_dict(
        {"filter": {"errorHashCode": error.error_hash_code}, "page": {"limit": 1000}}
    )
    by_definition = (await rest.client.get_process_instance_statistics_by_definition(data=query)).items
    assert of["id"] in [item.process_definition_id for item in by_definition]


async def test_jobs_are_found(rest):  # noqa: F811
    of = await scene(rest)
    call, query = rest.client.search_jobs, sdk.JobSearchQuery
    [failed] = (await search(call, query, type=f"{of['id']}-first", state="FAILED")).items
    assert (failed.job_key, failed.error_message, failed.worker, failed.end_time) == (of["job"], "no paper", "suite", None)
    done = (await search(call, query, processInstanceKey=of["done"], state="COMPLETED")).items
    assert [item.element_id for item in done] == ["first", "second"]


async def test_jobs_are_counted(rest):  # noqa: F811
    of = await scene(rest)
    job_type = f"{of['id']}-first"
    whole = await rest.client.get_global_job_statistics(from_=FROM, to=TO, job_type=job_type)
    assert (whole.created.count, whole.completed.count, whole.failed.count) == (2, 1, 1)
    body = {"filter": {**PERIOD, "jobType": job_type}}
    types = await rest.client.get_job_type_statistics(data=sdk.JobTypeStatisticsQuery.from_dict(body))
    assert [(item.job_type, item.completed.count) for item in types.items] == [(job_type, 1)]
    workers = await rest.client.get_job_worker_statistics(data=sdk.JobWorkerStatisticsQuery.from_dict(body))
    assert [item.worker for item in workers.items] == ["suite"]
    mistakes = await rest.client.get_job_error_statistics(data=sdk.JobErrorStatisticsQuery.from_dict(body))
    assert [item.error_message for item in mistakes.items] == ["no paper"]
    series = await rest.client.get_job_time_series_statistics(data=sdk.JobTimeSeriesStatisticsQuery.from_dict(body))
    assert sum(item.created.count for item in series.items) == 2


async def test_variables_are_found_and_read(rest):  # noqa: F811
    of = await scene(rest)
    call, query = rest.client.search_variables, sdk.VariableSearchQuery
    found = (await search(call, query, processInstanceKey=of["done"], name={"$in": ["a", "n"]})).items
    assert sorted((item.name, item.value) for item in found) == [("a", '"one"'), ("n", "5")]
    assert (await rest.client.get_variable(found[0].variable_key)).scope_key == of["done"]
    [by_value] = (await search(call, query, processInstanceKey=of["failed"], value="7")).items
    assert by_value.name == "n"
    await refused(404, errors.NotFoundError, rest.client.get_variable(UNKNOWN))


async def test_process_definitions_are_found_and_read(rest):  # noqa: F811
    of = await scene(rest)
    call, query = rest.client.search_process_definitions, sdk.ProcessDefinitionSearchQuery
    [found] = (await search(call, query, processDefinitionId=of["id"], isLatestVersion=True)).items
    assert await rest.client.get_process_definition(of["definition"]) == found
    text = (SHARED / "two-tasks.bpmn").read_text(encoding="utf-8").replace("PROCESS_ID", of["id"])
    assert await rest.client.get_process_definition_xml(of["definition"]) == text
    await refused(404, errors.NotFoundError, rest.client.get_process_definition(UNKNOWN))


async def test_instances_of_definitions_are_counted(rest):  # noqa: F811
    of = await scene(rest)
    by_element = await rest.client.get_process_definition_statistics(of["definition"])
    [first] = [item for item in by_element.items if item.element_id == "first"]
    assert (first.completed, first.incidents) == (1, 1)
    query = sdk.ProcessDefinitionInstanceVersionStatisticsQuery.from_dict({"filter": {"processDefinitionId": of["id"]}})
    versions = await rest.client.get_process_definition_instance_version_statistics(data=query)
    assert [item.active_instances_with_incident_count for item in versions.items] == [1]
    query = sdk.ProcessDefinitionInstanceStatisticsQuery.from_dict({"page": {"limit": 1000}})
    every = await rest.client.get_process_definition_instance_statistics(data=query)
    assert of["id"] in [item.process_definition_id for item in every.items]


async def test_decisions_are_found_and_read(rest):  # noqa: F811
    graph, _ = await rest.deploy("decision", kind="dmn")
    call, query = rest.client.search_decision_definitions, sdk.DecisionDefinitionSearchQuery
    [found] = (await search(call, query, decisionDefinitionId=f"{graph}-discount")).items
    assert await rest.client.get_decision_definition(found.decision_definition_key) == found
    requirements = await rest.client.get_decision_requirements(found.decision_requirements_key)
    assert requirements.decision_requirements_id == found.decision_requirements_id
    text = await rest.client.get_decision_requirements_xml(found.decision_requirements_key)
    assert text == await rest.client.get_decision_definition_xml(found.decision_definition_key)
    await refused(404, errors.NotFoundError, rest.client.get_decision_definition(UNKNOWN))


async def test_what_was_decided_is_found_and_read(rest):  # noqa: F811
    graph, _ = await rest.deploy("decision", kind="dmn")
    variables = sdk.DecisionEvaluationByIdVariables.from_dict({"orders": 20})
    data = sdk.DecisionEvaluationByID(decision_definition_id=f"{graph}-discount", variables=variables)
    evaluation = (await rest.client.evaluate_decision(data=data)).decision_evaluation_key
    call, query = rest.client.search_decision_instances, sdk.DecisionInstanceSearchQuery
    found = (await search(call, query, decisionEvaluationKey=evaluation)).items
    [discount] = [item for item in found if item.decision_definition_id == f"{graph}-discount"]
    read = await rest.client.get_decision_instance(discount.decision_evaluation_instance_key)
    [rule] = read.matched_rules
    assert (read.result, rule.rule_id, rule.evaluated_outputs[0].rule_id) == ("10", "gold", "gold")


async def test_message_subscriptions_are_found_and_what_they_correlated(rest):  # noqa: F811
    process_id, _ = await rest.deploy("messages")
    instance = (await rest.create(process_id, {"orderId": "k"})).process_instance_key
    call, query = rest.client.search_message_subscriptions, sdk.MessageSubscriptionSearchQuery
    [found] = await found_soon(call, query, processInstanceKey=instance)
    assert (found.element_id, found.correlation_key) == ("paid", "k")
    data = sdk.MessageCorrelationRequest(name=f"{process_id}-paid", correlation_key="k")
    message = await rest.client.correlate_message(data=data)
    assert message.process_instance_key == instance
    call, query = rest.client.search_correlated_message_subscriptions, sdk.CorrelatedMessageSubscriptionSearchQuery
    [correlated] = await found_soon(call, query, processInstanceKey=instance)
    assert correlated.message_key == message.message_key
    await refused(404, errors.NotFoundError, rest.client.correlate_message(data=data))


async def test_a_signal_starts_an_instance_and_reaches_who_waits(rest):  # noqa: F811
    process_id, _ = await rest.deploy("signals")
    for name in ["open", "close"]:
        await rest.client.broadcast_signal(data=sdk.SignalBroadcastRequest(signal_name=f"{process_id}-{name}"))
        assert len(await instances(rest, processDefinitionId=process_id)) == 1
    await rest.complete(await rest.poll(f"{process_id}-tidy"))


async def test_the_tasks_of_an_ad_hoc_sub_process_are_begun_when_asked_for(rest):  # noqa: F811
    process_id, _ = await rest.deploy("ad-hoc")
    instance = (await rest.create(process_id, {"done": False})).process_instance_key
    [scope] = (await elements(rest, processInstanceKey=instance, type="AD_HOC_SUB_PROCESS")).items

    async def begin(*ids):
        body = {"elements": [{"elementId": of} for of in ids]}
        data = sdk.AdHocSubProcessActivateActivitiesInstruction.from_dict(body)
        await rest.client.activate_ad_hoc_sub_process_activities(scope.element_instance_key, data=data)

    await begin("wash")
    await refused(404, errors.NotFoundError, begin("iron"))
    await rest.complete(await rest.poll(f"{process_id}-wash"), {"done": True})
    assert (await rest.client.get_process_instance(instance)).state == "COMPLETED"


async def test_all_incidents_of_an_instance_are_resolved(rest):  # noqa: F811
    process_id, _ = await rest.deploy("one-task")
    instance = (await rest.create(process_id)).process_instance_key
    job = await rest.poll(f"{process_id}-work")
    await rest.client.fail_job(job.job_key, data=sdk.JobFailRequest(retries=0))
    resolved = await rest.client.resolve_process_instance_incidents(instance)
    assert resolved.batch_operation_type == "RESOLVE_INCIDENT"
    assert await incidents(rest, processInstanceKey=instance, state="ACTIVE") == []
    assert (await rest.poll(f"{process_id}-work")).job_key == job.job_key


async def test_an_expression_is_evaluated(rest):  # noqa: F811
    variables = sdk.ExpressionEvaluationRequestVariables.from_dict({"a": 2})
    data = sdk.ExpressionEvaluationRequest(expression="=a + 1", variables=variables)
    found = await rest.client.evaluate_expression(data=data)
    assert (found.expression, found.result) == ("=a + 1", 3)
    wrong = sdk.ExpressionEvaluationRequest(expression="=a +")
    await refused(400, errors.BadRequestError, rest.client.evaluate_expression(data=wrong))


async def test_an_instance_begins_in_its_middle_and_ends_after_an_element(rest):  # noqa: F811
    process_id, _ = await rest.deploy("two-tasks")
    data = sdk.ProcessCreationById.from_dict(
        {
            "processDefinitionId": process_id,
            "startInstructions": [{"elementId": "second"}],
            "runtimeInstructions": [{"type": "TERMINATE_PROCESS_INSTANCE", "afterElementId": "second"}],
        }
    )
    instance = (await rest.client.create_process_instance(data=data)).process_instance_key
    await rest.complete(await rest.poll(f"{process_id}-second"))
    assert (await rest.client.get_process_instance(instance)).state == "TERMINATED"


async def test_what_is_not_there_yet_says_so(rest):  # noqa: F811
    call = rest.client.search_users(data=sdk.UserSearchQueryRequest.from_dict({}))
    assert "searchUsers" in await refused(501, errors.ApiError, call)


async def test_nothing_has_this_name(rest):  # noqa: F811
    call = rest.client.broadcast_signal(data=sdk.SignalBroadcastRequest(signal_name=""))
    assert "signalName" in await refused(400, errors.BadRequestError, call)
    await refused(404, errors.ApiError, rest.create(unique_id("none")))

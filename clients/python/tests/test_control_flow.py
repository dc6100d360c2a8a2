"""Gateways, sub-processes and every kind of task."""

import asyncio

import pytest


@pytest.mark.parametrize(
    ("task", "variables"),
    [
        ("review", {"amount": 1000, "region": "EU"}),
        ("automatic", {"amount": 99.5, "region": "EU"}),
        ("manual-entry", {"amount": 1000, "region": "US"}),
        ("manual-entry", {"amount": 100, "region": "EU"}),
    ],
)
async def test_an_exclusive_gateway_takes_the_flow_whose_condition_holds(server, task, variables):
    model = await server.deploy("exclusive-gateway")
    result = asyncio.create_task(model.create_with_result(variables))

    await server.complete(await server.poll_one(model.job_type(task)), {"by": task})

    assert (await result).variables == {**variables, "by": task}


async def test_a_parallel_gateway_waits_for_all_branches(server):
    model = await server.deploy("parallel-gateway")
    result = asyncio.create_task(model.create_with_result())
    a, b, c = [await server.poll_one(model.job_type(task)) for task in "abc"]

    await server.complete(c, {"c": 3})
    await server.complete(a, {"a": 1})
    await server.assert_none(model.job_type("after"))
    await server.complete(b, {"b": 2})
    after = await server.poll_one(model.job_type("after"))

    assert after.variables == {"a": 1, "b": 2, "c": 3}
    assert not result.done()
    await server.complete(after)
    assert (await result).process_instance_key == a.process_instance_key


@pytest.mark.parametrize(("items", "task"), [(["a", "b", "c"], "box"), (["a"], "envelope")])
async def test_a_sub_process_decides_on_and_keeps_its_own_variables(server, items, task):
    model = await server.deploy("sub-process")
    order = {"items": items}
    result = asyncio.create_task(model.create_with_result({"order": order}))

    job = await server.poll_one(model.job_type(task))
    assert job.variables == {"order": order, "parcel": order}
    await server.complete(job, {"parcel": {"weight": 12}, "order": "closed"})
    await server.complete(await server.poll_one(model.job_type("ship")))

    assert (await result).variables == {"order": "closed", "parcelWeight": 12}


async def test_tasks_of_all_kinds_are_done_by_workers_or_pass(server):
    model = await server.deploy("task-kinds")
    result = asyncio.create_task(model.create_with_result())

    for task in ("service", "send", "rule", "script"):
        job = await server.poll_one(model.job_type(task))
        assert job.element_id == task
        await server.complete(job, {task: True})

    assert (await result).variables == dict.fromkeys(("service", "send", "rule", "script"), True)

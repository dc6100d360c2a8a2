import asyncio

from grpc import StatusCode
from server import UNKNOWN_KEY, needs_full_gateway
from status import refused


async def test_every_kind_of_json_value_comes_back_as_it_went(server):
    model = await server.deploy("straight-through")
    variables = {
        "text": "quote \" backslash \\ newline \n bee \U0001f41d",
        "integer": 42,
        "large": 9_007_199_254_740_993,
        "negative": -1,
        "decimal": 0.25,
        "yes": True,
        "nothing": None,
        "list": [1, "two", None, []],
        "object": {"a": {"b": [{}]}},
        "a name with spaces": "x",
    }

    assert (await model.create_with_result(variables)).variables == variables


async def test_set_on_the_instance_changes_what_tasks_see(server):
    model = await server.deploy("two-tasks")
    instance = await model.create({"a": 1, "b": 1})
    first = await server.poll_one(model.job_type("first"))

    answer = await server.set_variables(instance, '{"b": 2, "c": 3}')
    assert answer.key > 0
    await server.complete(first)

    second = await server.poll_one(model.job_type("second"))
    assert second.variables == {"a": 1, "b": 2, "c": 3}


async def test_local_variables_stay_with_their_element(server):
    model = await server.deploy("two-tasks")
    await model.create({"a": 1})
    first = await server.poll_one(model.job_type("first"))

    await server.set_variables(first.element_instance_key, '{"a": 2, "b": 2}', local=True)
    await server.fail(first, 1)
    again = await server.poll_one(model.job_type("first"))
    assert again.variables == {"a": 2, "b": 2}
    await server.complete(again)

    assert (await server.poll_one(model.job_type("second"))).variables == {"a": 1}


async def test_an_unknown_scope_is_not_found(server):
    await refused(StatusCode.NOT_FOUND, server.set_variables(UNKNOWN_KEY, '{"a": 1}'))


@needs_full_gateway
async def test_variables_that_are_no_object_are_invalid(server):
    model = await server.deploy("one-task")
    instance = await model.create()

    await refused(StatusCode.INVALID_ARGUMENT, server.set_variables(instance, "[1]"))


async def test_mappings_compute_what_a_task_sees_and_what_leaves_it(server):
    model = await server.deploy("mappings")
    order = {"customer": "Ada", "quantity": 3, "unitPrice": 7}
    result = asyncio.create_task(model.create_with_result({"order": order}))

    job = await server.poll_one(model.job_type("price"))
    assert job.variables == {"order": order, "customer": "Ada", "total": 21, "text": "order of Ada"}
    await server.complete(job, {"discounted": 20, "internal": "stays here"})

    assert (await result).variables == {"order": order, "result": {"price": 20}}

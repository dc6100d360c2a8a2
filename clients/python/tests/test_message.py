"""Messages that instances wait for and that start instances."""

import asyncio

from grpc import StatusCode
from pyzeebe.errors import MessageAlreadyExistsError
from pyzeebe.proto import gateway_pb2
from server import FULL_GATEWAY, needs_full_gateway
from status import refused

KEPT_MS = 300_000


async def publish(server, model, message, key, variables=None, kept_ms=KEPT_MS, message_id=None):
    return await server.client.publish_message(
        model.job_type(message), key, variables, time_to_live_in_milliseconds=kept_ms, message_id=message_id
    )


async def test_a_message_reaches_the_instance_that_waits_for_it(server):
    model = await server.deploy("messages")
    instance = await model.create({"orderId": "bee"})
    await model.create({"orderId": "wasp"})

    published = await publish(server, model, "paid", "bee", {"amount": 12})

    job = await server.poll_one(model.job_type("ship"))
    assert job.process_instance_key == instance
    assert job.variables == {"orderId": "bee", "amount": 12}
    assert published.key > 0
    if FULL_GATEWAY:
        assert published.tenant_id == "<default>"


async def test_kept_messages_wait_for_their_instances_in_the_order_of_their_publication(server):
    model = await server.deploy("messages")
    for n in (1, 2):
        await publish(server, model, "paid", "bee", {"n": n})

    for n in (1, 2):
        instance = await model.create({"orderId": "bee"})
        job = await server.poll_one(model.job_type("ship"))
        assert (job.process_instance_key, job.variables["n"]) == (instance, n)


async def test_a_message_without_time_to_live_is_not_kept(server):
    model = await server.deploy("messages")
    await publish(server, model, "paid", "bee", kept_ms=0)
    await model.create({"orderId": "bee"})

    await server.assert_none(model.job_type("ship"))


async def test_an_id_is_taken_once_for_a_name_and_key(server):
    model = await server.deploy("messages")
    await publish(server, model, "paid", "bee", message_id="once")

    again = publish(server, model, "paid", "bee", message_id="once")
    assert "once" in await refused(StatusCode.ALREADY_EXISTS, again, MessageAlreadyExistsError)

    await publish(server, model, "paid", "wasp", message_id="once")
    await publish(server, model, "note", "bee", message_id="once")


async def test_keys_of_all_partitions_find_their_instances(server):
    model = await server.deploy("messages")
    orders = [f"order-{n}" for n in range(20)]
    instances = await asyncio.gather(*(model.create({"orderId": order}) for order in orders))

    await asyncio.gather(*(publish(server, model, "paid", order, {"paid": order}) for order in orders))

    jobs = await server.poll(model.job_type("ship"), len(orders))
    assert all(job.variables["orderId"] == job.variables["paid"] for job in jobs)
    assert {job.process_instance_key for job in jobs} == set(instances)


async def test_an_event_that_does_not_interrupt_takes_every_message(server):
    model = await server.deploy("messages")
    await publish(server, model, "paid", "bee")
    instance = await model.create({"orderId": "bee"})
    ship = await server.poll_one(model.job_type("ship"))

    for text in ("hurry", "please"):
        await publish(server, model, "note", "bee", {"text": text})

    reads = await server.poll(model.job_type("read"), 2)
    assert [read.process_instance_key for read in reads] == [instance, instance]
    await server.complete(ship)


async def test_messages_with_the_same_key_start_one_instance_after_the_other(server):
    model = await server.deploy("message-start")
    for n in (1, 2):
        await publish(server, model, "ordered", "bee", {"n": n})

    first = await server.poll_one(model.job_type("work"))
    assert first.variables == {"n": 1}
    await server.assert_none(model.job_type("work"))
    await server.complete(first)

    assert (await server.poll_one(model.job_type("work"))).variables == {"n": 2}


async def test_every_message_without_a_key_starts_an_instance(server):
    model = await server.deploy("message-start")
    for n in (1, 2):
        await publish(server, model, "ordered", "", {"n": n}, kept_ms=0)

    jobs = await server.poll(model.job_type("work"), 2)

    assert len({job.process_instance_key for job in jobs}) == 2


@needs_full_gateway
async def test_variables_that_are_no_object_are_invalid(server):
    request = gateway_pb2.PublishMessageRequest(name="paid", correlationKey="bee", variables="[1]")

    await refused(StatusCode.INVALID_ARGUMENT, server.stub.PublishMessage(request))

"""The server under test, reached only through pyzeebe."""

import itertools
import os
import time
from pathlib import Path

import pytest
from pyzeebe import ZeebeClient, create_insecure_channel
from pyzeebe.proto import gateway_pb2
from pyzeebe.proto.gateway_pb2_grpc import GatewayStub

SHARED = Path(__file__).resolve().parents[2] / "shared"
LOCK_MS = 60_000
PATIENCE_MS = 120_000
POLL_MS = 3_000
A_MOMENT_MS = 1000
UNKNOWN_KEY = (1 << 51) + 4_000_000_000

_RUN = format(int(time.time() * 1000), "x")
_IDS = itertools.count(1)

FULL_GATEWAY = "OSMIA_NO_STREAM" not in os.environ
"""False for an engine behind a reduced gateway: no job streams, no long polls, no status details."""

needs_full_gateway = pytest.mark.skipif(not FULL_GATEWAY, reason="OSMIA_NO_STREAM is set")


def address():
    try:
        return os.environ["OSMIA_GRPC_ADDRESS"]
    except KeyError:
        raise RuntimeError(
            "OSMIA_GRPC_ADDRESS is not set: name the gRPC address of the server, for example 127.0.0.1:26500."
        ) from None


def open_channel():
    return create_insecure_channel(grpc_address=address())


def unique_id(name):
    """A process id that no other test and no earlier run has used."""
    return f"{name}-python-{_RUN}-{next(_IDS)}"


def model_text(name, process_id):
    """The shared model with PROCESS_ID replaced, so that job types are unique too."""
    return (SHARED / f"{name}.bpmn").read_text(encoding="utf-8").replace("PROCESS_ID", process_id)


class Model:
    """A shared model deployed under a process id of its own."""

    def __init__(self, server, process_id, metadata):
        self.server = server
        self.id = process_id
        self.metadata = metadata

    def job_type(self, element_id):
        return f"{self.id}-{element_id}"

    async def create(self, variables=None):
        created = await self.server.client.run_process(self.id, variables)
        return created.process_instance_key

    async def create_with_result(self, variables=None, **options):
        return await self.server.client.run_process_with_result(self.id, variables, **options)


class Server:
    """One connection: the public client, its job commands, and its generated stub for what it does not wrap."""

    def __init__(self, channel, directory):
        self.channel = channel
        self.directory = directory
        self.client = ZeebeClient(channel, max_connection_retries=-1)
        self.jobs = self.client.zeebe_adapter
        self.stub = GatewayStub(channel)

    async def deploy_text(self, file_name, text):
        path = self.directory / file_name
        path.write_text(text, encoding="utf-8")
        return await self.client.deploy_resource(path)

    async def deploy(self, name):
        process_id = unique_id(name)
        deployed = await self.deploy_text(f"{process_id}.bpmn", model_text(name, process_id))
        return Model(self, process_id, deployed.deployments[0])

    async def activate(self, job_type, count=1, lock_ms=LOCK_MS, patience_ms=POLL_MS, variables=()):
        """One poll, which may come back empty."""
        return [
            job
            async for job in self.jobs.activate_jobs(
                task_type=job_type,
                worker="suite",
                timeout=lock_ms,
                max_jobs_to_activate=count,
                variables_to_fetch=variables,
                request_timeout=patience_ms,
                tenant_ids=["<default>"],
            )
        ]

    async def poll(self, job_type, count):
        """Waits for exactly this many jobs of the type; several polls may be needed."""
        jobs = []
        end = time.monotonic() + PATIENCE_MS / 1000
        while len(jobs) < count and time.monotonic() < end:
            jobs += await self.activate(job_type, count - len(jobs))
        assert len(jobs) == count, f"jobs of type {job_type} activated"
        return jobs

    async def poll_one(self, job_type):
        return (await self.poll(job_type, 1))[0]

    async def assert_none(self, job_type):
        """No job of the type is available now or in the next moment."""
        assert await self.activate(job_type, patience_ms=A_MOMENT_MS) == []

    async def complete(self, job, variables=None):
        await self.jobs.complete_job(job.key, variables or {})

    async def fail(self, job, retries, message="", backoff_ms=0, variables=None):
        await self.jobs.fail_job(job.key, retries, message, backoff_ms, variables or {})

    async def resolve(self, incident_key):
        await self.stub.ResolveIncident(gateway_pb2.ResolveIncidentRequest(incidentKey=incident_key))

    async def update_retries(self, job, retries):
        await self.stub.UpdateJobRetries(gateway_pb2.UpdateJobRetriesRequest(jobKey=job.key, retries=retries))

    async def set_variables(self, element_instance_key, text, local=False):
        return await self.stub.SetVariables(
            gateway_pb2.SetVariablesRequest(
                elementInstanceKey=element_instance_key, variables=text, local=local
            )
        )

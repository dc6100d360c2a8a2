"""The server's exported records, one JSON object per line.

Incident keys are not visible over gRPC, so they are read here; a test that needs one is skipped when OSMIA_RECORDS
is not set.
"""

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

PATIENCE_SECONDS = 120


async def incident(process_instance_key, count=1):
    """The value of the instance's incident number `count` with its key added; waits until it is exported."""
    file = os.environ.get("OSMIA_RECORDS")
    if file is None:
        pytest.skip("OSMIA_RECORDS is not set: incident keys are unknown")
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        found = list(_incidents(Path(file), process_instance_key))
        if len(found) >= count:
            return found[count - 1]
        await asyncio.sleep(0.05)
    raise AssertionError(f"Incident number {count} of instance {process_instance_key} was not exported.")


def _incidents(file, process_instance_key):
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if '"INCIDENT"' not in line or str(process_instance_key) not in line:
                continue
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue  # The last line may still be in the middle of being written.
            if (
                record["valueType"] == "INCIDENT"
                and record["recordType"] == "EVENT"
                and record["intent"] == "CREATED"
                and record["value"]["processInstanceKey"] == process_instance_key
            ):
                yield {"key": record["key"], **record["value"]}

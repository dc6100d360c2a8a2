"""What a refused command looks like to a caller."""

import grpc
import pytest


def status_of(error):
    """The gRPC error that pyzeebe wrapped in one of its own, or that the stub raised."""
    while error is not None:
        if isinstance(error, grpc.aio.AioRpcError):
            return error
        error = getattr(error, "grpc_error", None) or error.__cause__
    raise AssertionError("the error was not made from a gRPC status")


async def refused(code, call, error=Exception):
    """Asserts that the call is refused with this code and this error of pyzeebe; answers the message."""
    with pytest.raises(error) as raised:
        await call
    status = status_of(raised.value)
    assert status.code() == code, status.details()
    return status.details()

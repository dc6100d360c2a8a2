import pytest_asyncio
from server import Server, open_channel


@pytest_asyncio.fixture
async def server(tmp_path):
    channel = open_channel()
    yield Server(channel, tmp_path)
    await channel.close()

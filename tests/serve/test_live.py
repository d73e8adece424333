"""The stream of names: what readers get, those who do not keep up, and how it ends."""

import asyncio

import pytest

pytest.importorskip("starlette")

from fourrates.serve import live
from fourrates.serve.live import Hub


def changed(*names):
    listed = ",".join(f'"{name}"' for name in names)
    return f"event: changed\ndata: [{listed}]\n\n".encode()


def run(story, monitor=None, allowed=lambda: True):
    """A story about a hub and a connected reader of it."""

    async def told():
        hub = Hub()
        stream = hub.stream(monitor, allowed)
        try:
            assert await anext(stream) == b": connected\n\n"
            return await asyncio.wait_for(story(hub, stream), 20)
        finally:
            await stream.aclose()
            assert not hub.readers

    return asyncio.run(told())


def test_a_monitor_that_changed_often_is_named_once():
    async def story(hub, stream):
        for name in ("b", "a", "b"):
            hub.publish([name])
        first = await anext(stream)
        for _ in range(1_000):  # while nobody reads
            hub.publish(["a"])
        return first, await anext(stream)

    assert run(story) == (changed("a", "b"), changed("a"))


def test_a_reader_hears_of_its_monitor_alone():
    async def story(hub, stream):
        hub.publish(["other"])
        hub.publish(["mine", "other"])
        return await anext(stream)

    assert run(story, monitor="mine") == changed("mine")


def test_a_silent_stream_says_that_it_is_still_there(monkeypatch):
    monkeypatch.setattr(live, "HEARTBEAT", 0.02)

    async def story(hub, stream):
        return await anext(stream), await anext(stream)

    assert run(story) == (b": still here\n\n",) * 2


def test_a_stream_ends_with_its_permission_though_nothing_happens(monkeypatch):
    monkeypatch.setattr(live, "HEARTBEAT", 0.02)
    permitted = [True, True, False]

    async def story(hub, stream):
        return [body async for body in stream]

    assert run(story, allowed=lambda: permitted.pop(0)) == [b": still here\n\n"] * 2
    assert permitted == []


def test_all_streams_end_when_the_server_does():
    async def story(hub, stream):
        hub.close()
        return [body async for body in stream]

    assert run(story) == []

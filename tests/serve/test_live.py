"""The stream of what happens: what readers get, and what those get who do not keep up or come back."""

import asyncio
import re

import pytest

pytest.importorskip("starlette")

from fourrates.serve import live
from fourrates.serve.live import WAITING, Hub


def kinds(body):
    return re.findall(r"event: (\w+)", body.decode())


def run(story, **options):
    """A story about a hub and a reader of it that has been greeted."""

    async def told():
        hub = Hub()
        beat = asyncio.create_task(hub.beat())
        stream = hub.stream(options.get("monitor"), options.get("last"), options.get("allowed"))
        try:
            assert kinds(await anext(stream)) == ["hello"]
            return await asyncio.wait_for(story(hub, stream), 20)
        finally:
            await stream.aclose()
            beat.cancel()
            assert not hub.readers

    return asyncio.run(told())


def test_what_happens_together_is_sent_in_one_piece():
    async def story(hub, stream):
        for number in range(3):
            hub.publish("summary", "m", {"number": number})
        return kinds(await anext(stream))

    assert run(story) == ["summary"] * 3


def test_a_reader_gets_the_events_of_its_monitor_alone():
    async def story(hub, stream):
        hub.publish("summary", "other", {})
        hub.publish("finding", "mine", {})
        return kinds(await anext(stream))

    assert run(story, monitor="mine") == ["finding"]


def test_a_reader_that_does_not_keep_up_is_told_to_load_everything_and_goes_on():
    async def story(hub, stream):
        for _ in range(WAITING + 5):
            hub.publish("point", "m", {})
        (reader,) = hub.readers
        assert not reader.waiting
        assert hub.dropped == 1
        first = kinds(await anext(stream))
        hub.publish("finding", "m", {})
        return first, kinds(await anext(stream))

    assert run(story) == (["resync"], ["finding"])


def test_a_reader_that_comes_back_gets_what_it_missed_once():
    async def story(hub, stream):
        hub.publish("point", "m", {})
        seen = re.search(r"id: (\S+)", (await anext(stream)).decode())[1]
        hub.publish("finding", "m", {})
        hub.publish("summary", "m", {})
        again = hub.stream(None, seen)
        assert kinds(await anext(again)) == ["hello"]
        missed = kinds(await anext(again))
        hub.publish("removed", "m", {})
        after = kinds(await anext(again))
        await again.aclose()
        return missed, after

    assert run(story) == (["finding", "summary"], ["removed"])


def test_a_reader_of_another_server_is_told_to_load_everything():
    async def story(hub, stream):
        return kinds(await anext(stream))

    assert run(story, last="0123456789abcdef-7") == ["resync"]


def test_a_silent_stream_says_that_it_is_still_there(monkeypatch):
    monkeypatch.setattr(live, "CHECK", 0.02)
    monkeypatch.setattr(live, "HEARTBEAT", 0.1)

    async def story(hub, stream):
        return await anext(stream), await anext(stream)

    assert run(story) == (b": still here\n\n",) * 2


def test_a_stream_ends_with_its_permission_though_nothing_happens(monkeypatch):
    monkeypatch.setattr(live, "CHECK", 0.02)
    permitted = [True, True, False]

    async def story(hub, stream):
        return [body async for body in stream]

    assert run(story, allowed=lambda: permitted.pop(0)) == []
    assert permitted == []


def test_all_streams_end_when_the_server_does():
    async def story(hub, stream):
        hub.close()
        return [body async for body in stream]

    assert run(story) == []

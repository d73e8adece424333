"""A broker for each module of tests, a topic for each test."""

import zlib

import pytest
from kafka_broker import started


@pytest.fixture(scope="module")
def broker():
    made = started()
    yield made
    made.close()


@pytest.fixture
def topic(request):
    """A topic of its own for each test: the mock keeps them all."""
    return f"t-{zlib.crc32(request.node.name.encode())}"

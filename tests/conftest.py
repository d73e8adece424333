"""Tables and alerts go to folders of the tests' own, so that no test depends on what a user's machine holds."""

import pytest
from receiver import Receiver


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOURRATES_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("FOURRATES_STATE", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def receiver():
    """A server on the loopback that takes alerts."""
    made = Receiver()
    yield made
    made.close()

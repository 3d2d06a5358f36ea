"""The fixtures of the tests of calls of libraries."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from support.stand_in_library import Client, StandIn
from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> StandIn:
    """The library that stands in for NVIDIA's libraries."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    return StandIn(tmp_path_factory.mktemp("standin"))


@pytest.fixture(scope="session")
def make_client(stand_in: StandIn) -> Callable[..., Client]:
    """Build and load a module that calls the library: ``make_client(name, *flags)``."""
    return lambda name, *flags: Client(stand_in, stand_in.client(name, *flags))


@pytest.fixture(scope="session")
def shared_client(make_client: Callable[..., Client]) -> Client:
    """A module that most tests use."""
    return make_client("usual_client")


@pytest.fixture
def client(shared_client: Client) -> Iterator[Client]:
    """A module whose calls are noted during the test."""
    _core.begin_library_calls([str(shared_client.path)])
    yield shared_client
    _core.end_library_calls()

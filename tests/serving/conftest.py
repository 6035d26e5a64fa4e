"""Servers around the stub application, on each of the listeners."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.listeners import LISTENERS, MakeServer, client_tls
from tests.support.server import STUB_START, ServerProcess


@pytest.fixture(params=list(LISTENERS))
def listener(request: pytest.FixtureRequest) -> str:
    """Tests that ask for it run on every listener: they all behave the same."""
    name: str = request.param
    return name


@pytest.fixture
def make_server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[MakeServer]:
    """Make servers with options, and a behaviour at the start; the test starts them."""
    made: list[ServerProcess] = []
    is_for_all = "listener" in request.fixturenames
    usual = request.getfixturevalue("listener") if is_for_all else "http"

    def make(
        *options: str, start: str = "", root: str = "root", listener: str = usual
    ) -> ServerProcess:
        server = ServerProcess(
            root=tmp_path / root,
            options=(*LISTENERS[listener], *options),
            command=STUB_START,
            environment={"STUB_FOLDER": str(tmp_path), "STUB_START": start},
            tls=None if listener == "http" else client_tls(),
        )
        made.append(server)
        return server

    yield make
    for server in made:
        server.close()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool

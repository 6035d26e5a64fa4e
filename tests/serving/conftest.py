"""Servers around the stub application."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.server import STUB_START, ServerProcess

MakeServer = Callable[..., ServerProcess]


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[MakeServer]:
    """Make servers with options, and a behaviour at the start; the test starts them."""
    made: list[ServerProcess] = []

    def make(*options: str, start: str = "", root: str = "root") -> ServerProcess:
        server = ServerProcess(
            root=tmp_path / root,
            options=options,
            command=STUB_START,
            environment={"STUB_FOLDER": str(tmp_path), "STUB_START": start},
        )
        made.append(server)
        return server

    yield make
    for server in made:
        server.close()

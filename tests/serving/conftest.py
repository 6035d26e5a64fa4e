"""Servers around the stub application, on each of the listeners."""

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.server import STUB_START, ServerProcess

MakeServer = Callable[..., ServerProcess]

TLS = Path(__file__).parent / "tls"
CERTIFICATE, KEY = TLS / "certificate.pem", TLS / "key.pem"
"""Self-signed for ``localhost`` and of no use elsewhere."""

_SSL = ("--ssl-cert", str(CERTIFICATE), "--ssl-key", str(KEY))
LISTENERS = {"http": (), "https": _SSL, "webid-tls": (*_SSL, "--webid-tls")}
"""The options of each."""


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


def client_tls(certificate: Path = CERTIFICATE) -> ssl.SSLContext:
    """What a client needs to trust a server with that certificate."""
    return ssl.create_default_context(cafile=str(certificate))

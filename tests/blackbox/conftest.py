"""One server for the tests of a module, with limits small enough to reach; each test its own pod.

Whatever a test sends, the server logs nothing and still answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.client import Client, Pod, create_pod
from tests.support.server import ServerProcess, running_server
from tests.support.waiting import wait_until
from tests.support.wire import Wire, WireAnswer, compose

MAX_BODY_BYTES = 200_000
MAX_RDF_BYTES = 20_000
MAX_TARGET_BYTES = 1024
MAX_HEADER_BYTES = 8192
LARGE_BYTES = 100_000
"""More than is kept in the database, so such a body goes to a file of its own."""

OPTIONS = (
    *("--max-body-bytes", str(MAX_BODY_BYTES)),
    *("--max-rdf-bytes", str(MAX_RDF_BYTES)),
    *("--max-target-bytes", str(MAX_TARGET_BYTES)),
    *("--max-header-bytes", str(MAX_HEADER_BYTES)),
    *("--body-idle-timeout-s", "1"),
    *("--invalid-credentials-per-minute", "0"),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("blackbox") / "root"
    with running_server(ServerProcess(root=root, options=OPTIONS)) as server:
        yield server


@pytest.fixture(autouse=True)
def unmoved(server: ServerProcess) -> Iterator[None]:
    """The server has nothing to log about any test, and goes on serving."""
    before = server.errors
    yield
    assert server.get("/").status == 200
    assert server.errors == before


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a pod, who can also send what no ordinary client sends."""

    server: ServerProcess
    pod: Pod
    client: Client

    def compose(
        self,
        method: str,
        target: str | bytes,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        *,
        content_length: int | None = None,
    ) -> bytes:
        """A request with the owner's credential."""
        fields = {"Authorization": f"Bearer {self.pod.token}", **(headers or {})}
        return compose(
            *(method, target, fields, body), host=self.host, content_length=content_length
        )

    def exchange(self, request: bytes, method: str = "GET") -> WireAnswer:
        """The one answer to a request on a connection of its own."""
        with Wire(self.server) as wire:
            wire.send_what_is_taken(request)
            return wire.receive(method)

    @property
    def host(self) -> str:
        """The Host that the server is known by."""
        return f"localhost:{self.server.port}"

    @property
    def root(self) -> str:
        """The path of the pod's root container."""
        return self.pod.root

    def blobs(self) -> set[Path]:
        """The files of all large bodies that are stored."""
        drafts = self.server.root / "blobs/drafts"
        files = {path for path in (self.server.root / "blobs").rglob("*") if path.is_file()}
        return {path for path in files if drafts not in path.parents}

    def wait_until_no_draft_is_left(self) -> None:
        drafts = self.server.root / "blobs/drafts"
        wait_until(lambda: not any(drafts.iterdir()), "the removal of what was cut off")


@pytest.fixture
def owner(server: ServerProcess) -> Iterator[Owner]:
    pod = create_pod(server)
    with pod.owner() as client:
        yield Owner(server, pod, client)


@pytest.fixture
def leaves_nothing(owner: Owner) -> Iterator[Callable[[str], None]]:
    """At the end of the test the pod's root has the members it had, and no file is left over.

    Calling it with a target checks at once that nothing is there.
    """
    before = owner.client.members(owner.root)
    blobs = owner.blobs()

    def check(target: str) -> None:
        assert owner.client.get(target).status == 404

    yield check
    assert owner.client.members(owner.root) == before
    owner.wait_until_no_draft_is_left()
    assert owner.blobs() == blobs

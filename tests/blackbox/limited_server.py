"""The options of a server whose limits tests can reach, and a pod owner who sends raw requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from podstead.storage.blobs.body_store import DRAFTS
from podstead.storage.layout import RootLayout
from tests.support.client import Client, Pod
from tests.support.engine import bodies_in
from tests.support.server import ServerProcess
from tests.support.waiting import wait_until
from tests.support.wire import Wire, WireAnswer, compose
from tests.support.workers import open_files, processes_of

MAX_BODY_BYTES = 200_000
MAX_RDF_BYTES = 20_000
LARGE_BYTES = 100_000
"""More than is kept in the database, so such a body goes to a file of its own."""
OPTIONS = (
    *("--max-body-bytes", str(MAX_BODY_BYTES)),
    *("--max-rdf-bytes", str(MAX_RDF_BYTES)),
    *("--body-idle-timeout-s", "1"),
    *("--invalid-credentials-per-minute", "0"),
)


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

    def blobs(self) -> set[str]:
        """The names of all large bodies that are stored."""
        names = bodies_in(self.server.root).names()
        return {name for name in names if not name.startswith(f"{DRAFTS}/")}

    def wait_until_a_draft_is_there(self) -> None:
        wait_until(self._has_drafts, "a draft of what was sent")

    def wait_until_no_draft_is_left(self) -> None:
        wait_until(lambda: not self._has_drafts(), "the removal of what was cut off")

    def _has_drafts(self) -> bool:
        """Whether a large body is being received, into a file with a name or without one."""
        folder = RootLayout(self.server.root).received
        return any(folder.iterdir()) or any(
            folder in path.parents
            for process in processes_of(self.server)
            for path in open_files(process)
        )

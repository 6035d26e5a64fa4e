"""SIGKILL in the middle of uploads: what was acknowledged is there, and they can be continued."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit

import pytest

from tests.support import tus
from tests.support.client import Pod, create_pod
from tests.support.engine import bodies_in
from tests.support.server import DEADLINE_S, ServerProcess, running_server

PART_BYTES = 200_000
PARTS = 12
UPLOADS = 4


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with running_server(ServerProcess(root=tmp_path / "root", options=["--workers", "2"])) as made:
        yield made


def fields(pod: Pod, **further: str) -> dict[str, str]:
    return {
        **tus.VERSION,
        "Authorization": f"Bearer {pod.token}",
        **{name.replace("_", "-"): value for name, value in further.items()},
    }


class Upload:
    """The client of one upload, which sends until the server is gone."""

    def __init__(self, server: ServerProcess, pod: Pod, number: int) -> None:
        self.server = server
        self.pod = pod
        self.target = f"{pod.root}private/{number}.bin"
        self.content = os.urandom(PART_BYTES * PARTS)
        self.acknowledged = 0
        self.milestone = 0
        self.reached = Event()
        """Set once the milestone has been acknowledged."""
        headers = fields(
            pod,
            Upload_Length=str(len(self.content)),
            Upload_Metadata=tus.metadata(target=self.target, if_none_match="*"),
        )
        answer = server.request("POST", tus.PLACE, headers=headers)
        assert answer.status == 201, answer.text
        self.path = urlsplit(answer.headers["location"]).path

    def offset(self) -> int:
        answer = self.server.request("HEAD", self.path, headers=fields(self.pod))
        assert answer.status == 200
        return int(answer.headers["upload-offset"])

    def send(self) -> None:
        """Send part after part, until the end or until the server is gone."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            offset = self.offset()
            assert offset >= self.acknowledged, "what was acknowledged is missing"
            while offset < len(self.content):
                part = self.content[offset : offset + PART_BYTES]
                headers = fields(self.pod, Upload_Offset=str(offset), Content_Type=tus.OCTETS)
                answer = self.server.request("PATCH", self.path, part, headers)
                assert answer.status == 204, answer.text
                self.acknowledged = offset = int(answer.headers["upload-offset"])
                if offset >= self.milestone:
                    self.reached.set()
        self.reached.set()


def test_a_killed_server_continues_every_upload_where_it_was_acknowledged(
    server: ServerProcess,
) -> None:
    pod = create_pod(server)
    uploads = [Upload(server, pod, number) for number in range(UPLOADS)]
    for parts in (random.randrange(1, 6), random.randrange(6, 11)):
        uploads[0].milestone = parts * PART_BYTES
        uploads[0].reached.clear()
        with ThreadPoolExecutor(UPLOADS) as threads:
            sending = [threads.submit(upload.send) for upload in uploads]
            assert uploads[0].reached.wait(DEADLINE_S)
            server.kill()
            for each in sending:
                each.result()
        server.start()
    for upload in uploads:
        upload.send()
        assert upload.offset() == len(upload.content)
        answer = server.get(upload.target, {"Authorization": f"Bearer {pod.token}"})
        assert hashlib.sha256(answer.body).digest() == hashlib.sha256(upload.content).digest()
    assert [name for name in bodies_in(server.root).names() if name.startswith("uploads/")] == []

"""The quota of pods, from outside."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client import Pod, create_pod
from tests.support.curl import curl_command
from tests.support.engine import bodies_in
from tests.support.server import DEADLINE_S, ServerProcess, running_server

#
# A real client that waits for 100 Continue sends nothing of a body that exceeds the quota.


QUOTA_BYTES = 1_000_000


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Pod]:
    options = ("--quota-bytes", str(QUOTA_BYTES))
    with running_server(ServerProcess(tmp_path / "root", options)) as server:
        yield create_pod(server)


def upload(pod: Pod, file: Path, *options: str) -> tuple[int, int]:
    """The status that curl got, and how many bytes of the body it sent."""
    done = subprocess.run(
        [
            *curl_command(),
            *("--header", f"Authorization: Bearer {pod.token}"),
            *("--header", "Content-Type: application/octet-stream"),
            *("--header", "Expect: 100-continue", "--expect100-timeout", str(DEADLINE_S)),
            *("--upload-file", str(file), "--output", "/dev/null"),
            *("--write-out", "%{http_code} %{size_upload}"),
            *options,
            f"{pod.server.base_url}{pod.root}private/file",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * DEADLINE_S,
    )
    status, sent_bytes = done.stdout.split()
    return int(status), int(sent_bytes)


def test_curl_sends_nothing_of_a_body_that_passes_the_quota(pod: Pod, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * (2 * QUOTA_BYTES))
    assert upload(pod, file) == (507, 0)
    file.write_bytes(b"x" * (QUOTA_BYTES // 2))
    assert upload(pod, file) == (201, QUOTA_BYTES // 2)


def test_curl_without_a_length_is_stopped_where_the_quota_ends(pod: Pod, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * (2 * QUOTA_BYTES))
    before = set(bodies_in(pod.server.root).names())
    status, _ = upload(pod, file, "--header", "Transfer-Encoding: chunked")
    assert status == 507
    assert set(bodies_in(pod.server.root).names()) == before

"""A read log on a server with several workers, each of which records what it answers."""

from __future__ import annotations

import re
import time
from pathlib import Path

from podstead.features.read_log.pages import LOOK_S
from tests.features.links.test_processes import WebBrowser, signed_in, token_of
from tests.support.client import Pod, create_pod
from tests.support.server import ServerProcess, running_server

READS = 30
DEADLINE_S = 60


def test_the_reads_of_all_workers_are_in_one_log(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "root", ["--workers", "2", "--pod-creations-per-hour", "0"])
    with running_server(server):
        pod = create_pod(server)
        document, log = f"{pod.root}notes/a.txt", f"/.pages/read-log{pod.root}notes/"
        with pod.owner() as client:
            headers = {"Content-Type": "text/plain"}
            assert client.request("PUT", document, "one", headers).status == 201
        read(pod, document)  # which each worker now has in its cache
        owner = signed_in(server.base_url, pod)
        token = token_of(owner.ask(log)[1])
        assert owner.ask(log, csrf_token=token, log="on")[0] == 200
        time.sleep(2 * LOOK_S)
        read(pod, document)
        deadline = time.monotonic() + DEADLINE_S
        while (found := counted(owner, log)) < READS and time.monotonic() < deadline:
            time.sleep(0.2)
        assert found == READS


def read(pod: Pod, document: str) -> None:
    """On connections of their own, which the workers share."""
    for _ in range(READS):
        with pod.owner() as client:
            assert client.request("GET", document).status == 200


def counted(owner: WebBrowser, log: str) -> int:
    """The number of reads in the log; the worker that is asked stores its own before."""
    status, page = owner.ask(log)
    assert status == 200
    return sum(map(int, re.findall(r'<td class="wide-only number">(\d+)</td>', page)))

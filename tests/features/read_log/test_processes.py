"""Read logs on servers with several workers, and on nodes: each records what it answers."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from podstead.features.read_log.pages import LOOK_S
from tests.support.client import Client, create_pod
from tests.support.nodes import running_nodes
from tests.support.server import ServerProcess, running_server
from tests.support.web_browser import WebBrowser, signed_in, token_of

READS = 30
DEADLINE_S = 60


def check(servers: Sequence[ServerProcess]) -> None:
    """Read on connections of their own, which the workers share, before and while a log is on."""
    pod = create_pod(servers[0])
    document, log = f"{pod.root}notes/a.txt", f"/.pages/read-log{pod.root}notes/"
    owner = signed_in(servers[0].base_url, pod)
    with ExitStack() as stack:
        clients = [Client(each, token=pod.token) for each in servers for _ in range(READS)]
        readers = [stack.enter_context(each) for each in clients]
        assert readers[0].put(document, "one").status == 201
        assert {each.get(document).status for each in readers} == {200}  # now in each cache
        assert owner.ask(log, csrf_token=token_of(owner.ask(log)[1]), log="on")[0] == 200
        time.sleep(2 * LOOK_S)
        assert {each.get(document).status for each in readers} == {200}
    places = [owner.at(each.base_url) for each in servers]
    deadline = time.monotonic() + DEADLINE_S
    while True:
        found = [counted(each, log) for each in places]
        if found == [len(readers)] * len(places) or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    assert found == [len(readers)] * len(places)


def test_the_reads_of_all_workers_are_in_one_log(tmp_path: Path) -> None:
    options = ["--workers", "2", "--pod-creations-per-hour", "0"]
    with running_server(ServerProcess(tmp_path / "root", options)) as server:
        check([server])


def test_the_reads_of_all_nodes_are_in_one_log(tmp_path: Path) -> None:
    with running_nodes(tmp_path, nodes=2, options=("--pod-creations-per-hour", "0")) as nodes:
        check(nodes)


def counted(owner: WebBrowser, log: str) -> int:
    """The number of reads in the log; the worker that is asked stores its own before."""
    status, page = owner.ask(log)
    assert status == 200
    return sum(map(int, re.findall(r'<td class="wide-only number">(\d+)</td>', page)))

"""Read logs on servers with several workers, and on nodes: each records what it answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.support.client import create_pod
from tests.support.nodes import running_nodes
from tests.support.server import ServerProcess, running_server
from tests.support.waiting import wait_until
from tests.support.web_browser import WebBrowser, signed_in, token_of
from tests.support.workers import clients_of

READS = 15
WORKERS = 2


def check(servers: Sequence[ServerProcess]) -> None:
    """Read by way of each worker, before and while a log is on."""
    pod = create_pod(servers[0])
    folder, log = f"{pod.root}notes/", f"/.pages/read-log{pod.root}notes/"
    owner = signed_in(servers[0].base_url, pod)
    places = [owner.at(each.base_url) for each in servers]
    with clients_of(servers, WORKERS, each=READS, token=pod.token) as readers:
        probes = {f"probe-{number}": readers[number] for number in range(WORKERS)}
        for name in ("read.txt", *probes):
            assert readers[0].put(f"{folder}{name}", name).status == 201
        assert {each.get(f"{folder}read.txt").status for each in readers} == {200}  # now cached
        assert owner.ask(log, csrf_token=token_of(owner.ask(log)[1]), log="on")[0] == 200

        def each_records() -> bool:
            for name, reader in probes.items():
                assert reader.get(f"{folder}{name}").status == 200
            return counted(owner, log).keys() >= probes.keys()

        wait_until(each_records, "every worker knows of the log")
        assert {each.get(f"{folder}read.txt").status for each in readers} == {200}

    def each_shows_all() -> bool:
        return all(counted(each, log)["read.txt"] == len(readers) for each in places)

    wait_until(each_shows_all, "the reads are in the log")


def test_the_reads_of_all_workers_are_in_one_log(tmp_path: Path) -> None:
    options = ["--workers", str(WORKERS), "--pod-creations-per-hour", "0"]
    with running_server(ServerProcess(tmp_path / "root", options)) as server:
        check([server])


def test_the_reads_of_all_nodes_are_in_one_log(tmp_path: Path) -> None:
    options = ("--pod-creations-per-hour", "0")
    with running_nodes(tmp_path, nodes=WORKERS, options=options) as nodes:
        check(nodes)


def counted(owner: WebBrowser, log: str) -> Counter[str]:
    """The reads in the log, by name; the worker that is asked stores its own before."""
    status, page = owner.ask(log)
    assert status == 200
    row = r'<td><a href="[^"]*"><bdi>([^<]*)</bdi></a>.*?<td class="wide-only number">([\d,]+)</td>'
    reads = Counter[str]()
    for name, number in re.findall(row, page, re.DOTALL):
        reads[name] += int(number.replace(",", ""))
    return reads

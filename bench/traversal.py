"""What does a question over the documents of a pod cost, by link traversal and by SPARQL?

``python -m bench.traversal [DOCUMENTS] [REPETITIONS]`` stores the same public documents here and in
the Community Solid Server, and asks all of them the same question in turn: by Comunica's link
traversal of both, and at the SPARQL endpoint. It prints the medians of the time, and of the
processor time of the client and of the server, after one answer of each that does not count.
"""

from __future__ import annotations

import contextlib
import http.client
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import quote

from bench.processes import tree_cpu_s
from tests.support.client import create_pod
from tests.support.client_process import running_client
from tests.support.community_server import CommunityServer
from tests.support.node import CLIENTS, TRAVERSAL, install_packages
from tests.support.server import DEADLINE_S, ServerProcess, running_server

_IN_CONTAINER: Final = 20
_FOLDER: Final = "traversed/"
_QUERY: Final = """PREFIX foaf: <http://xmlns.com/foaf/0.1/>
SELECT ?name ?friend { ?person foaf:name ?name; foaf:knows ?other. ?other foaf:name ?friend }"""

Ask = Callable[[], int]
"""Asks the question, and returns the number of results."""


def _documents(count: int) -> dict[str, str]:
    """Documents by their paths, each of somebody who knows the person in the next one."""
    paths = [f"{n // _IN_CONTAINER}/{n}" for n in range(count)]
    return {
        path: "@prefix foaf: <http://xmlns.com/foaf/0.1/>. "
        f'<#it> foaf:name "Person {path}"; foaf:knows <../{paths[(n + 1) % count]}#it>.'
        for n, path in enumerate(paths)
    }


def _put_all(netloc: str, root: str, documents: dict[str, str], headers: dict[str, str]) -> None:
    connection = http.client.HTTPConnection(netloc, timeout=DEADLINE_S)
    with contextlib.closing(connection):
        for path, content in documents.items():
            fields = {"Content-Type": "text/turtle", **headers}
            connection.request("PUT", root + path, content, fields)
            response = connection.getresponse()
            response.read()
            assert response.status == 201, response.status


def _at_endpoint(netloc: str, root: str) -> int:
    connection = http.client.HTTPConnection(netloc, timeout=DEADLINE_S)
    with contextlib.closing(connection):
        target = f"/.sparql/query{root}?query={quote(_QUERY)}"
        connection.request("GET", target, headers={"Accept": "text/csv"})
        return len(connection.getresponse().read().splitlines()) - 1


def _measured(ask: Ask, client: int, server: int, count: int) -> tuple[float, float, float]:
    """The time of an answer, and the processor times of the client and the server, in seconds."""
    began = time.perf_counter(), tree_cpu_s(client), tree_cpu_s(server)
    found = ask()
    assert found == count, f"{found} results"
    wall, at_client, at_server = time.perf_counter(), tree_cpu_s(client), tree_cpu_s(server)
    return wall - began[0], at_client - began[1], at_server - began[2]


def main(count: int = 200, repetitions: int = 5) -> None:
    """Measure and print."""
    install_packages(CLIENTS)
    install_packages(TRAVERSAL)
    documents = _documents(count)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        here = stack.enter_context(running_server(ServerProcess(folder / "root", [])))
        there = CommunityServer(folder)
        there.start()
        stack.callback(there.close)
        client = stack.enter_context(
            running_client(TRAVERSAL / "traversal.mjs", folder / "client.log")
        )
        pod = create_pod(here)
        root = f"{pod.root}public/{_FOLDER}"
        netloc = here.base_url.removeprefix("http://")
        _put_all(netloc, root, documents, {"Authorization": f"Bearer {pod.token}"})
        _put_all(f"localhost:{there.port}", f"/{_FOLDER}", documents, {})

        def traversed(url: str) -> Ask:
            return lambda: len(client.run("select", query=_QUERY, sources=[url]).value)

        asked = {
            "Community Solid Server, link traversal": (
                traversed(f"{there.base_url}{_FOLDER}"),
                there.process_id,
            ),
            "Podstead, link traversal": (traversed(f"{here.base_url}{root}"), here.pid),
            "Podstead, SPARQL endpoint": (lambda: _at_endpoint(netloc, root), here.pid),
        }
        times: dict[str, list[tuple[float, float, float]]] = {each: [] for each in asked}
        for repetition in range(1 + repetitions):
            for name, (ask, server) in asked.items():
                measured = _measured(ask, client.pid, server, count)
                if repetition:
                    times[name].append(measured)
        print("| | time | processor: client | processor: server |\n| --- | ---: | ---: | ---: |")
        for name, all_ in times.items():
            shown = (f"{statistics.median(each):.2f} s" for each in zip(*all_, strict=True))
            print(f"| {name} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

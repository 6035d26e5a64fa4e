"""The command `python -m bench.many_pods`: what does a request cost among a million pods?

Two databases on one PostgreSQL server, one with a thousand pods and one with many, each with ten
resources in a pod. Requests go to pods that the node has not served before, and then to the same
pods again, one request at a time; the two databases are measured in turn. A request among many pods
should cost at most `MOST_RATIO` times that among a thousand. Nothing else in the database is as
large as the resources: it takes about 15 GB for a million pods.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from typing import Final

from bench.databases import MeasuredDatabase, running_postgresql
from bench.installation import scratch_folder
from bench.messages import N3, TURTLE, Request
from bench.nodes import Nodes
from bench.pods_by_sql import (
    AGENT_POD,
    PRIVATE,
    PRIVATE_NOTE,
    PUBLIC_NOTE,
    RESOURCES_OF_A_POD,
    create_pods,
    pod_name,
)
from bench.provider import Provider, running_provider
from bench.report import SCALE_PAGE, write_page
from bench.rounds import progress
from bench.servers import created_pod
from bench.site import Site
from podstead.storage.postgresql import migrate

FEW: Final = 1_000
MANY: Final = 1_000_000
MOST_RATIO: Final = 1.5
ROUNDS: Final = 5
PODS_OF_A_ROUND: Final = FEW // ROUNDS
_PATCH: Final = (
    "@prefix solid: <http://www.w3.org/ns/solid/terms#>.\n"
    '_:p a solid:InsertDeletePatch; solid:inserts { <#new> <http://schema.org/text> "%d". }.'
)


class NodeAmongPods(Nodes):
    """A node whose database has pods already, and whose owner of one may read and write in all."""

    def open_site(self) -> Site:
        owner = created_pod(Site(self.port), {"name": AGENT_POD})
        credentials = {"Authorization": f"Bearer {owner['token']}"}
        return Site(self.port, "/", lambda: credentials)


@dataclass(slots=True)
class Cost:
    """What requests of one kind took, by round, for each request."""

    node_us: list[float] = field(default_factory=list)
    database_us: list[float] = field(default_factory=list)
    took_us: list[float] = field(default_factory=list)
    """From sending to the answer, the median of the round."""

    @property
    def least(self) -> tuple[float, float, float]:
        """The least of the rounds: what else runs on the machine only adds."""
        return min(self.node_us), min(self.database_us), min(self.took_us)


@dataclass(slots=True)
class Size:
    """One database with its node."""

    pods: int
    node: NodeAmongPods
    order: list[str]
    costs: dict[str, Cost] = field(default_factory=dict)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if a request costs too much among many pods."""
    options = _parser().parse_args(arguments)
    with ExitStack() as cleanup:
        place = cleanup.enter_context(scratch_folder("many-pods"))
        provider = cleanup.enter_context(running_provider())
        database = cleanup.enter_context(running_postgresql())
        sizes = []
        for pods in (FEW, options.pods):
            url = _filled(database, pods)
            sizes.append(cleanup.enter_context(_running(place, provider, url, pods)))
        _measure(sizes, database)
    rows = list(_rows(sizes))
    text = "\n".join(text for text, _ in rows)
    sys.stdout.write(text + "\n")
    if options.write_docs:
        write_page(text, SCALE_PAGE, "many-pods")
    return 0 if all(is_met for _, is_met in rows) else 1


def _filled(database: MeasuredDatabase, pods: int) -> str:
    url = database.create_database()
    migrate(url)
    began_s = time.monotonic()

    def on_progress(done: int) -> None:
        took_s = time.monotonic() - began_s
        progress(f"{done:,} pods, {done * RESOURCES_OF_A_POD:,} resources in {took_s:.0f} s")

    create_pods(url, pods, on_progress=on_progress)
    return url


@contextmanager
def _running(place: Path, provider: Provider, url: str, pods: int) -> Iterator[Size]:
    node = NodeAmongPods(place / f"pods-{pods}", provider, url)
    chosen = Random(5).sample(range(pods), ROUNDS * PODS_OF_A_ROUND)
    node.start()
    try:
        yield Size(pods, node, [pod_name(number) for number in chosen])
    finally:
        node.stop()


def _measure(sizes: Sequence[Size], database: MeasuredDatabase) -> None:
    for number in range(ROUNDS):
        for kind, make in _KINDS.items():
            for again in (False, True):
                for size in sizes:
                    first = number * PODS_OF_A_ROUND
                    names = size.order[first : first + PODS_OF_A_ROUND]
                    title = f"{kind}, {'again' if again else 'first'}"
                    requests = [make(size.node.site, name, again) for name in names]
                    cost = size.costs.setdefault(title, Cost())
                    _send(size.node, database, requests, cost)
        progress(f"round {number}")


def _send(
    node: NodeAmongPods, database: MeasuredDatabase, requests: Sequence[Request], cost: Cost
) -> None:
    took_us = []
    connection: HTTPConnection = node.site.connect()
    node_s, database_s = node.cpu_s(), database.cpu_s()
    for request in requests:
        began_s = time.perf_counter()
        node.site.send(request, connection).require(200, 201, 204, 205)
        took_us.append((time.perf_counter() - began_s) * 1e6)
    cost.node_us.append((node.cpu_s() - node_s) * 1e6 / len(requests))
    cost.database_us.append((database.cpu_s() - database_s) * 1e6 / len(requests))
    cost.took_us.append(statistics.median(took_us))
    connection.close()


def _get_public(site: Site, pod: str, _: bool) -> Request:  # noqa: FBT001 - as the others
    return site.request("GET", f"{pod}/{PUBLIC_NOTE}")


def _get_private(site: Site, pod: str, _: bool) -> Request:  # noqa: FBT001
    return site.request("GET", f"{pod}/{PRIVATE_NOTE}", authorized=True)


def _get_listing(site: Site, pod: str, _: bool) -> Request:  # noqa: FBT001
    return site.request("GET", f"{pod}/{PRIVATE}", authorized=True)


def _put(site: Site, pod: str, again: bool) -> Request:  # noqa: FBT001
    headers, body = {"Content-Type": TURTLE}, f"<#a> <#b> {int(again)} ."
    path = f"{pod}/{PRIVATE}third.ttl"
    return site.request("PUT", path, headers=headers, body=body, authorized=True)


def _patch(site: Site, pod: str, again: bool) -> Request:  # noqa: FBT001
    headers, body = {"Content-Type": N3}, _PATCH % again
    path = f"{pod}/{PRIVATE}other.ttl"
    return site.request("PATCH", path, headers=headers, body=body, authorized=True)


_KINDS: Final[dict[str, Callable[[Site, str, bool], Request]]] = {
    "GET, public": _get_public,
    "GET, private": _get_private,
    "GET, listing": _get_listing,
    "PUT, replacing": _put,
    "PATCH": _patch,
}


def _rows(sizes: Sequence[Size]) -> Iterator[tuple[str, bool]]:
    few, many = sizes
    yield f"| request | {few.pods:,} pods | {many.pods:,} pods | ratio |", True
    yield "| --- | ---: | ---: | ---: |", True
    for title, cost in few.costs.items():
        costs = cost.least, many.costs[title].least
        ratio = sum(costs[1][:2]) / sum(costs[0][:2])
        told = [f"{node:.0f} + {data:.0f} µs; {took:.0f} µs" for node, data, took in costs]
        yield f"| {title} | {told[0]} | {told[1]} | {ratio:.2f} |", ratio <= MOST_RATIO


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m bench.many_pods", description=__doc__)
    parser.add_argument(
        "--pods", type=int, default=MANY, help=f"how many pods are many (default {MANY:,})"
    )
    parser.add_argument(
        "--write-docs", action="store_true", help="write the table into docs/operate/scale.md"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

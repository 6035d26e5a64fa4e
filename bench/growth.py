"""The command `python -m bench.growth`: what does a request cost when much is stored?

Processor time of one worker's handling, in this process and without the HTTP server, for states of
growing size. The sizes are measured in turn, round by round, and each figure is the least of the
rounds: what else runs on the machine only adds. A request of the largest state should cost at most
`MOST_RATIO` times that of the smallest. Every request is new to the worker: a kept response would
hide what the state costs.

Then, for a server as `podstead start` runs it: the time from its start to its first response, the
memory of an idle worker, and that memory under load.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from typing import Final

import uvloop

from bench.documents import card
from bench.idle import idle_rows
from bench.inprocess import BASE, Asked, Exchange, Worker, root_settings, running_worker
from bench.installation import scratch_folder
from bench.messages import JSON_LD, TURTLE, sequence_text
from bench.rounds import progress
from bench.states import RESOURCES_OF_A_POD, Builder, Pods, group_turtle, rules_turtle
from podstead.app.adapters.root import prepared_root
from podstead.config import Settings
from podstead.storage.sqlite import SqliteStore
from podstead.web.asgi import Message

MOST_RATIO: Final = 1.5
PODS: Final = (10, 1_000, 100_000)
MEMBERS: Final = (10, 1_000, 100_000)
RULES: Final = (10, 10_000)
GROUP_MEMBERS: Final = (10, 10_000)
ROUNDS: Final = 5
REQUESTS: Final = 48
MOST_PIECE_BYTES: Final = 1024 * 1024
"""No piece of a listing is larger when it is sent as it is made."""


@dataclass(slots=True)
class State:
    """One size of one thing: how its requests are made, and what they took."""

    size: int
    worker: Worker
    ask: Callable[[str, int], Asked]
    """Makes a request of a kind and a running number."""
    least_us: dict[str, float] = field(default_factory=dict)

    async def measure(self, kind: str, number: int) -> None:
        """Send `REQUESTS` of a kind, numbered from `number` on, and keep the least."""
        every = [Exchange(self.ask(kind, number + index)) for index in range(REQUESTS)]
        began_s = time.process_time()
        await self.worker.carry_out(every)
        took_us = (time.process_time() - began_s) * 1e6 / REQUESTS
        for exchange in every:
            exchange.require()
        self.least_us[kind] = min(took_us, self.least_us.get(kind, took_us))


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the report."""

    title: str
    figures: str
    is_met: bool

    def __str__(self) -> str:
        return f"{self.title:46} {self.figures:60} {'met' if self.is_met else 'MISSED'}"


def growth_row(title: str, costs_us: Sequence[tuple[int, float]]) -> Row:
    """Compare what a request costs in each size with what it costs in the first."""
    least = costs_us[0][1]
    worst = max(cost / least for _, cost in costs_us)
    told = ", ".join(f"{size:,}: {cost:,.0f} µs" for size, cost in costs_us)
    return Row(title, f"{told}; {worst:.2f} (at most {MOST_RATIO})", worst <= MOST_RATIO)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 when a target is missed."""
    options = _parser().parse_args(arguments)
    with scratch_folder("growth") as place:
        sizes = [size for size in PODS if size <= options.pods]
        roots = [root_settings(place / f"pods-{size}") for size in sizes]
        rows = uvloop.run(_requests(sizes, roots))
        for size, settings in zip(sizes, roots, strict=True):
            if size in {sizes[0], sizes[-1]}:
                load_s = options.load_seconds if size == sizes[0] else 0
                for title, figures, is_met in idle_rows(settings, load_s):
                    rows.append(Row(f"{title}, {size:,} pods", figures, is_met))
    sys.stdout.write("\n".join(map(str, rows)) + "\n")
    return 0 if all(row.is_met for row in rows) else 1


async def _requests(sizes: Sequence[int], roots: Sequence[Settings]) -> list[Row]:
    with ExitStack() as held:
        for settings in roots:
            held.enter_context(prepared_root(settings))
        every: list[Pods] = []
        for size, settings in zip(sizes, roots, strict=True):
            progress(f"creating {size:,} pods, {size * RESOURCES_OF_A_POD:,} resources")
            every.append(await _fill(settings, size, with_containers=size == sizes[0]))
        async with AsyncExitStack() as running:
            workers = [
                await running.enter_async_context(running_worker(settings, seed=5))
                for settings in roots
            ]
            gc.disable()
            rows = await _measured(
                "pods",
                [
                    State(size, worker, _ask_pods(pods))
                    for size, worker, pods in zip(sizes, workers, every, strict=True)
                ],
            )
            first, pods = workers[0], every[0]
            first.token = pods.tokens[0]
            members = [
                State(size, first, _ask_as(f"/{pods.names[0]}/c{size}/", first.token))
                for size in MEMBERS
            ]
            rows += await _measured("members", members)
            rows += await _listings(first, pods.names[0])
            rows += await _rules(first, pods)
            rows += await _groups(first, pods)
            gc.enable()
    return rows


async def _fill(settings: Settings, size: int, *, with_containers: bool) -> Pods:
    store = SqliteStore(settings.root)
    await store.open()
    try:
        builder = Builder(settings, store)
        pods = await builder.pods(size, asked=REQUESTS)
        for name in pods.names:
            await builder.container(f"/{name}/data/", REQUESTS)
        if with_containers:
            for members in MEMBERS:
                progress(f"creating a container of {members:,}")
                await builder.container(f"/{pods.names[0]}/c{members}/", members)
    finally:
        await store.close()
    return pods


async def _measured(what: str, states: Sequence[State]) -> list[Row]:
    """Measure each kind of request, the states in turn."""
    for turn in range(ROUNDS + 1):
        progress(f"{what}: round {turn}")
        for kind in _KINDS:
            for state in states:
                await state.measure(kind, turn * REQUESTS)
                if turn == 0:
                    state.least_us.clear()
    return [
        growth_row(f"{kind}, {what}", [(state.size, state.least_us[kind]) for state in states])
        for kind in _KINDS
    ]


_KINDS: Final = ("PUT replacing", "PUT creating", "GET first", "DELETE")


def _request(kind: str, place: str, number: int, token: str) -> Asked:
    """Return a request below a container whose members are `m-000000.jsonld` and so on."""
    headers = {"authorization": f"Bearer {token}"}
    typed = {**headers, "content-type": JSON_LD}
    body = card(sequence_text(number)).encode()
    old, new = f"{place}m-{number % 10:06d}.jsonld", f"{place}new-{number}.jsonld"
    match kind:
        case "PUT replacing":
            return Asked("PUT", old, typed, body, 204)
        case "PUT creating":
            return Asked("PUT", new, typed, body, 201)
        case "GET first":
            return Asked("GET", new, {**headers, "accept": JSON_LD})
        case _:
            return Asked("DELETE", new, headers, status=204)


def _ask_pods(pods: Pods) -> Callable[[str, int], Asked]:
    def ask(kind: str, number: int) -> Asked:
        chosen = number % len(pods.names)
        return _request(kind, f"/{pods.names[chosen]}/data/", number, pods.tokens[chosen])

    return ask


async def _listings(worker: Worker, pod: str) -> list[Row]:
    """List the containers; each time after a write, so that none is kept."""
    costs: dict[int, float] = {}
    pieces: list[_Piece] = []
    for turn in range(3):
        for size in MEMBERS:
            container = f"/{pod}/c{size}/"
            await worker.ask(_request("PUT creating", container, 10**6 + turn, worker.token))
            took_us, pieces = await _listing(worker, container)
            costs[size] = min(took_us, costs.get(size, took_us))
    each_us = [costs[size] / size for size in MEMBERS[1:]]
    told = ", ".join(f"{size:,}: {costs[size] / 1000:,.1f} ms" for size in MEMBERS)
    ratio = each_us[1] / each_us[0]
    largest = max(piece.size_bytes for piece in pieces)
    streamed = f"{len(pieces)} pieces of at most {largest / 1024:,.0f} KiB"
    first = f"the first after {pieces[0].at_us / 1000:,.1f} ms of processor time"
    return [
        Row(
            f"listing, a member at {MEMBERS[2]:,} to {MEMBERS[1]:,}",
            f"{told}; {ratio:.2f} (at most {MOST_RATIO})",
            ratio <= MOST_RATIO,
        ),
        Row(
            f"listing of {MEMBERS[2]:,}, streamed",
            f"{streamed}, {first}",
            largest <= MOST_PIECE_BYTES,
        ),
    ]


@dataclass(frozen=True, slots=True)
class _Piece:
    """One piece of a response's body, and the processor time when it came."""

    size_bytes: int
    at_us: float


async def _listing(worker: Worker, container: str) -> tuple[float, list[_Piece]]:
    asked = Asked("GET", container, worker.authorized({"accept": JSON_LD}))
    exchange, pieces = Exchange(asked), list[_Piece]()
    began_s = time.process_time()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            at_us = (time.process_time() - began_s) * 1e6
            pieces.append(_Piece(len(message.get("body", b"")), at_us))
        await exchange.send(message)

    await worker.call(exchange.scope, exchange.receive, send)
    took_us = (time.process_time() - began_s) * 1e6
    exchange.require()
    return took_us, pieces


async def _rules(worker: Worker, pods: Pods) -> list[Row]:
    """A container of its own for each size, with an ACL of so many rules."""
    states: list[State] = []
    firsts: list[str] = []
    for size in RULES:
        place = f"/{pods.names[0]}/rules-{size}/"
        acl = rules_turtle(place, pods.web_id(0), size)
        firsts.append(f"{size:,}: {await _ruled(worker, place, acl, worker.token):,.1f} ms")
        states.append(State(size, worker, _ask_as(place, worker.token)))
    rows = await _measured("rules in the ACL", states)
    return [*rows, Row("GET after the ACL changed", ", ".join(firsts), is_met=True)]


async def _groups(worker: Worker, pods: Pods) -> list[Row]:
    """The same with an ACL that names a group; another pod's owner is its last member."""
    states: list[State] = []
    firsts: list[str] = []
    owner, other = pods.web_id(0), pods.tokens[1]
    typed = worker.authorized({"content-type": TURTLE})
    for size in GROUP_MEMBERS:
        place, group = (f"/{pods.names[0]}/groups-{size}{end}" for end in ("/", ".ttl"))
        text = group_turtle(pods.web_id(1), size)
        await worker.ask(Asked("PUT", group, typed, text.encode(), 201))
        everyone = "acl:agentClass <http://xmlns.com/foaf/0.1/Agent>; acl:mode acl:Read"
        readable = rules_turtle(group, owner, 0, last=everyone)
        await worker.ask(Asked("PUT", f"{group}.acl", typed, readable.encode(), 201))
        members = f"acl:agentGroup <{BASE}{group}#group>; acl:mode acl:Read, acl:Write"
        acl = rules_turtle(place, owner, 0, last=members)
        firsts.append(f"{size:,}: {await _ruled(worker, place, acl, other):,.1f} ms")
        states.append(State(size, worker, _ask_as(place, other)))
    rows = await _measured("members of the group", states)
    return [*rows, Row("GET after the group changed", ", ".join(firsts), is_met=True)]


async def _ruled(worker: Worker, place: str, acl: str, token: str) -> float:
    """Create a container of ten documents with this ACL, and return what the first GET takes in
    milliseconds of processor time."""
    typed = worker.authorized({"content-type": JSON_LD})
    for number in range(10):
        path = f"{place}m-{number:06d}.jsonld"
        await worker.ask(Asked("PUT", path, typed, card("0").encode(), 201))
    headers = worker.authorized({"content-type": TURTLE})
    await worker.ask(Asked("PUT", f"{place}.acl", headers, acl.encode(), 201))
    headers = {"authorization": f"Bearer {token}", "accept": JSON_LD}
    began_s = time.process_time()
    await worker.ask(Asked("GET", f"{place}m-000000.jsonld", headers))
    return (time.process_time() - began_s) * 1000


def _ask_as(place: str, token: str) -> Callable[[str, int], Asked]:
    return lambda kind, number: _request(kind, place, number, token)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m bench.growth", description=__doc__)
    parser.add_argument(
        "--pods", type=int, default=PODS[-1], help=f"the most pods (default {PODS[-1]:,})"
    )
    parser.add_argument(
        "--load-seconds",
        type=int,
        default=60,
        help="how long the server is under load whose memory is watched (default 60)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

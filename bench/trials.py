"""What is tested on this server alone: a large container, and many connections at once.

Neither is compared with peers; each reports what it measured and whether the goal was reached.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from bench import load
from bench.cases import CASES, Case
from bench.documents import HUNDRED, Container
from bench.load import Intensity, Outcome
from bench.messages import JSON_LD, TURTLE, WrongAnswer
from bench.pages import ReadContainerPage
from bench.rounds import FAILURES, progress
from bench.servers import Podstead
from bench.site import Site

MEMBERS: Final = 10_000
LISTINGS: Final = 5
LISTED_WITHIN_S: Final = 0.3
CONNECTIONS: Final = 64
CROWD_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a trial; `text` is one sentence for the report."""

    text: str
    reached: bool


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial; `key` is for `--only`."""

    key: str
    run: Callable[[Site], Verdict]

    def verdict(self, site: Site) -> Verdict:
        """Run it; any failure is a goal not reached."""
        progress(f"{self.key} ...")
        try:
            seen = self.run(site)
        except FAILURES as failure:
            seen = Verdict(f"{self.key}: failed: {failure}", reached=False)
        progress(seen.text)
        return seen


def list_large_container(site: Site) -> Verdict:
    """List a container of `MEMBERS`, each time first after a write and then again."""
    container = Container("public/large/", MEMBERS - 2 * LISTINGS)
    container.furnish(site)
    parts, slowest_s = [], 0.0
    for media_type in (JSON_LD, TURTLE):
        first_s, again_s = [], []
        for _ in range(LISTINGS):
            container = replace(container, size=container.size + 1)
            site.store([container.member(container.size - 1)])
            first_s.append(_listing_s(site, container, media_type))
            again_s.append(_listing_s(site, container, media_type))
        slowest_s = max(slowest_s, statistics.median(first_s))
        first, again = statistics.median(first_s), statistics.median(again_s)
        parts.append(f"{media_type} {first:.3f} s after a write, {again:.3f} s when repeated")
    text = f"listing a container of {container.size:,} members: {'; '.join(parts)}"
    reached = slowest_s < LISTED_WITHIN_S
    return Verdict(f"{text} (goal: under {LISTED_WITHIN_S} s)", reached)


def weigh_page(site: Site) -> Verdict:
    """What a browser loads for the page about a container."""
    page = ReadContainerPage(HUNDRED)
    page.furnish(site)
    weight = page.weight(site)
    listing = len(site.get(HUNDRED.path, TURTLE).require(200).body)
    text = (
        f"page about a container of {HUNDRED.size} members: {weight}; "
        f"the listing as Turtle has {listing / 1000:.0f} kB"
    )
    return Verdict(text, reached=True)


def crowd(site: Site) -> Verdict:
    """Do all cases of a server without TLS at the same time over `CONNECTIONS` together, each with
    its own checks."""
    cases = [case for case in CASES if case.needs <= Podstead.features]
    for case in cases:
        case.exercise.furnish(site)
    share, left = divmod(CONNECTIONS, len(cases))
    intensities = [
        Intensity(CROWD_SECONDS, share + (number < left)) for number in range(len(cases))
    ]
    label = "crowd"
    loads = [case.exercise.load(site, label) for case in cases]
    with ThreadPoolExecutor(len(cases)) as pool:
        ports = [site.port] * len(cases)
        outcomes = list(pool.map(load.run, loads, ports, intensities))
    for case, made, outcome in zip(cases, loads, outcomes, strict=True):
        effect = case.exercise.verify(site, label, made, outcome)
        if effect is not None and not effect.is_whole:
            raise WrongAnswer(f"{case.key}: {effect}")
    return _crowd_verdict(cases, outcomes)


def _crowd_verdict(cases: Sequence[Case], outcomes: Sequence[Outcome]) -> Verdict:
    answered = sum(outcome.answered for outcome in outcomes)
    slowest, case = max(
        (outcome.p99_ms, case.key) for outcome, case in zip(outcomes, cases, strict=True)
    )
    text = (
        f"all cases at once over {CONNECTIONS} connections for {CROWD_SECONDS} s: "
        f"{answered:,} responses, no errors, no write lost; "
        f"slowest p99 {slowest:.0f} ms ({case})"
    )
    return Verdict(text, reached=True)


def _listing_s(site: Site, container: Container, media_type: str) -> float:
    began_s = time.perf_counter()
    answer = site.get(container.path, media_type)
    took_s = time.perf_counter() - began_s
    container.judge(site, answer.require(200), media_type)
    return took_s


TRIALS: Final = (
    Trial("container-10000", list_large_container),
    Trial("page-weight", weigh_page),
    Trial("connections-64", crowd),
)

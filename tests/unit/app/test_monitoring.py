"""The main process answers a few requests itself, whatever others send to the same port."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from email.utils import formatdate
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from podstead.app.monitoring import diagnosis, families
from podstead.app.monitoring.checks import check_clock, check_disk
from podstead.app.monitoring.diagnosis import (
    FRESH_S,
    Diagnosis,
    FeatureHealth,
    Severity,
    good,
)
from podstead.app.monitoring.exposition import exposition
from podstead.app.monitoring.families import FAMILIES, MetricKind
from podstead.app.monitoring.readings import Reading, Readings, Total, added, single
from podstead.app.operator.doctor import diagnose
from podstead.app.operator.doctor_network import SOON_DAYS, ClientChecks
from podstead.app.process.admin import is_private_host
from podstead.config import Settings
from podstead.config.value_types import ListenAddress
from podstead.core.errors import StorageError
from podstead.features import Feature
from podstead.outbound import probing
from podstead.outbound.probing import NotReached, ProbeReply
from podstead.storage.disk_space import DiskSpace
from podstead.storage.record_store import RecordStore
from podstead.web.probe_endpoint import PREFIX


@pytest.mark.parametrize(
    ("listen", "host", "accepted"),
    [
        ("127.0.0.1", "localhost:9090", True),
        ("127.0.0.1", "[::1]:9090", True),
        ("127.0.0.1", "", True),
        ("127.0.0.1", "evil.example", False),
        ("127.0.0.1", "evil", False),
        ("127.0.0.2", "evil.local", False),
        ("::1", "evil.example:9090", False),
        ("10.0.0.5", "evil.example", False),
        ("10.0.0.5", "evil.example:9090", False),
        ("10.0.0.5", "10.0.0.5:9090", True),
        ("10.0.0.5", "10.0.0.5.evil.example", False),
        ("0.0.0.0", "localhost.evil.example", False),
        ("0.0.0.0", "podstead:9090", True),
        ("0.0.0.0", "pods.ns.svc.cluster.local", True),
        ("0.0.0.0", "a@evil.example", False),
        ("0.0.0.0", "evil.example#.local", False),
        ("::", "[fd00::1]:9090", True),
        ("metrics.pods.example", "Metrics.pods.example:9090", True),
        ("metrics.pods.example", "pods.example", False),
    ],
)
def test_no_name_of_somebody_else_reaches_the_private_address(
    listen: str, host: str, accepted: bool
) -> None:
    """A page could read the metrics otherwise (DNS rebinding)."""
    assert is_private_host(host, ListenAddress(listen, 9090)) is accepted


# --- checks ------------------------------------------------------------------------------------
#
# Is a server ready? Not if its clock has been set back, and not if the disk is full.


NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("newest_ms", "ok"),
    [(None, True), (NOW_MS, True), (NOW_MS + 60_000, True), (NOW_MS + 61_000, False)],
)
def test_the_clock_must_not_be_behind_what_is_stored(newest_ms: int | None, ok: bool) -> None:
    check = check_clock(NOW_MS, newest_ms)
    assert check.ok == ok
    assert ok or "61 seconds behind" in check.detail


def test_the_disk_must_have_room(tmp_path: Path) -> None:
    assert check_disk(DiskSpace(tmp_path)).ok
    assert not check_disk(DiskSpace(tmp_path, min_free_bytes=2**62)).ok


# --- readings ----------------------------------------------------------------------------------
#
# Sums of what workers count never fall, and are written so that Prometheus understands them.


_LINE = re.compile(
    r'(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*"'
    r'(,[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*")*\})? [0-9.e+-]+'
)
"""A sample as the documentation of the text format describes it."""


def counted(value: float) -> Readings:
    return {
        **single(families.DELIVERED, value),
        **single(families.SOCKETS, value),
        families.BATCHES.name: [Reading((), value, (int(value), *[0] * 8))],
    }


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 5), st.booleans()), max_size=30))
def test_counters_never_fall_whatever_workers_end(steps: list[tuple[int, int, bool]]) -> None:
    """Prometheus takes a counter that falls for one that began again at 0."""
    total = Total()
    running: dict[int, int] = {}
    before = 0.0
    in_all = 0
    for worker, more, ends in steps:
        running[worker] = running.get(worker, 0) + more
        in_all += more
        total.note(worker, counted(running[worker]))
        if ends:
            del running[worker]
        total.forget_all_but(running)
        readings = total.readings()
        (delivered,) = readings[families.DELIVERED.name]
        assert delivered.value == in_all >= before
        (sizes,) = readings[families.BATCHES.name]
        assert (sizes.value, sizes.buckets[0]) == (in_all, in_all)
        open_sockets = readings.get(families.SOCKETS.name, [])
        assert sum(each.value for each in open_sockets) == sum(running.values())
        before = delivered.value


def test_series_with_other_labels_are_not_added() -> None:
    one = {"x": [Reading(("a",), 1), Reading(("b",), 2)]}
    other = {"x": [Reading(("b",), 3)]}
    assert added([one, other]) == {"x": [Reading(("a",), 1), Reading(("b",), 5)]}


def test_all_metrics_are_written_as_the_format_says() -> None:
    readings: Readings = {}
    for family in FAMILIES:
        labels = tuple(f'a "{name}" \\ \n' for name in family.labels)
        buckets = (1, *[2] * len(family.bounds)) if family.bounds else ()
        readings[family.name] = [Reading(labels, 1.5, buckets)]
    text = exposition(readings).decode()
    for line in text.splitlines():
        assert line.startswith(("# HELP podstead_", "# TYPE podstead_")) or _LINE.fullmatch(line)
    parsed = {family.name: family for family in text_string_to_metric_families(text)}
    for family in FAMILIES:
        found = parsed[family.name.removesuffix("_total")]
        assert found.type == family.kind.value
        assert found.documentation == family.meaning
        if family.kind is MetricKind.HISTOGRAM:
            values = {sample.labels.get("le"): sample.value for sample in found.samples}
            bounds = [*map(str, map(float, family.bounds)), "+Inf"]
            counts = [values[bound] for bound in bounds]
            assert counts == sorted(counts)
            assert counts[-1] == 1 + 2 * len(family.bounds)


class _Feature(Feature):
    def __init__(self, health: Callable[[], Awaitable[Sequence[Diagnosis]]]) -> None:
        self._health = health

    async def health(self, settings: Settings, records: RecordStore) -> Sequence[Diagnosis]:  # noqa: ARG002
        return await self._health()


async def test_features_are_asked_once_in_a_while_and_nobody_waits_long_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, answered = 0, asyncio.Event()

    async def slow() -> Sequence[Diagnosis]:
        nonlocal asked
        asked += 1
        await answered.wait()
        return [good("mail", "It works.")]

    async def broken() -> Sequence[Diagnosis]:
        raise StorageError("The database is locked")

    monkeypatch.setattr(diagnosis, "features", lambda: [_Feature(slow), _Feature(broken)])
    monkeypatch.setattr(diagnosis, "WAIT_S", 0.001)
    health = FeatureHealth(Settings, cast("RecordStore", None))
    assert await health.findings() == await health.findings() == ()
    answered.set()
    monkeypatch.setattr(diagnosis, "WAIT_S", 10)
    found = await health.findings()
    assert [(each.check, each.severity) for each in found] == [
        ("mail", Severity.GOOD),
        ("features", Severity.PROBLEM),
    ]
    assert asked == 1
    readings = (await health.readings())["podstead_feature_findings"]
    counted = {each.labels: each.value for each in readings}
    assert counted == {("good",): 1, ("skipped",): 0, ("warning",): 0, ("problem",): 1}
    monkeypatch.setattr(diagnosis, "monotonic", lambda: time.monotonic() + FRESH_S)
    await health.findings()
    assert asked == 2


def test_names_follow_the_conventions() -> None:
    """Of Prometheus: base units, and _total for counters."""
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    for family in FAMILIES:
        assert family.name.endswith("_total") == (family.kind is MetricKind.COUNTER)
        assert not re.search(r"_(ms|milliseconds|kib|mib|percent)\b", family.name)
        assert (family.kind is MetricKind.HISTOGRAM) == bool(family.bounds)
        assert family.meaning.endswith(".")


# --- doctor ------------------------------------------------------------------------------------
#
# What ``podstead doctor`` finds about names, certificates, dates, the provider, the database.


BASE = "https://pods.example"
NOW_S = 1_800_000_000
DISCOVERY = f"{BASE}/.well-known/openid-configuration"
KEYS = f"{BASE}/keys"


class World:
    """What answers at which URL, and where names lead."""

    def __init__(self) -> None:
        self.date = formatdate(NOW_S, usegmt=True)
        self.certificate_days: float = 60
        self.addresses: Sequence[str] = ("93.184.215.14",)
        self.documents: dict[str, object] = {
            DISCOVERY: {"issuer": BASE, "jwks_uri": KEYS},
            KEYS: {"keys": [{"kty": "EC"}]},
        }

    def probe(self, url: str, **_options: object) -> ProbeReply:
        content = self.documents.get(url)
        if url == f"{BASE}/":
            content = {}
        elif url.startswith(BASE + PREFIX):
            content = "the probe is tested with proxies"
        if content is None:
            raise NotReached("refused")
        answered = {"date": self.date} if self.date else {}
        return ProbeReply(200, answered, json.dumps(content).encode(), self.certificate_days)

    def look_up(self, *_arguments: object, **_options: object) -> list[object]:
        if not self.addresses:
            raise socket.gaierror(-2, "Name or service not known")
        return [(0, 0, 0, "", (address, 0)) for address in self.addresses]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(probing, "probe", world.probe)
    monkeypatch.setattr(socket, "getaddrinfo", world.look_up)
    monkeypatch.setattr(time, "time", lambda: NOW_S)
    return world


def found(check: str, probe_key: str | None = "0" * 32) -> Diagnosis:
    outside = ClientChecks(Settings(base_url=BASE, idp=True), probe_key)
    [finding] = [each for each in outside.findings() if each.check == check]
    assert bool(finding.remedy) == (finding.severity in (Severity.WARNING, Severity.PROBLEM))
    return finding


@pytest.mark.parametrize("check", ["dns", "tls", "date", "issuer"])
def test_what_is_well(world: World, check: str) -> None:
    assert found(check).severity is Severity.GOOD


def test_a_name_without_an_address(world: World) -> None:
    world.addresses = ()
    assert found("dns").severity is Severity.PROBLEM
    assert "pods.example has no address" in found("dns").detail


def test_a_name_that_leads_to_a_private_address(world: World) -> None:
    world.addresses = ("10.0.0.5",)
    assert found("dns").severity is Severity.WARNING


def test_a_certificate_that_expires_soon(world: World) -> None:
    world.certificate_days = SOON_DAYS - 1
    assert found("tls").severity is Severity.WARNING
    assert "13 days" in found("tls").detail


@pytest.mark.parametrize(
    ("date", "severity"),
    [
        (formatdate(NOW_S + 50, usegmt=True), Severity.GOOD),
        (formatdate(NOW_S + 90, usegmt=True), Severity.PROBLEM),
        (formatdate(NOW_S - 90, usegmt=True), Severity.PROBLEM),
        ("", Severity.WARNING),
        ("yesterday", Severity.WARNING),
    ],
)
def test_the_date_of_an_answer(world: World, date: str, severity: Severity) -> None:
    world.date = date
    assert found("date").severity is severity


@pytest.mark.parametrize(
    ("url", "document"),
    [
        (DISCOVERY, None),
        (DISCOVERY, {"issuer": "https://other.example", "jwks_uri": KEYS}),
        (KEYS, None),
        (KEYS, {"keys": []}),
        (KEYS, "text"),
    ],
)
def test_a_provider_that_applications_cannot_read(world: World, url: str, document: object) -> None:
    world.documents[url] = document
    assert found("issuer").severity is Severity.PROBLEM


def test_without_the_records_the_rest_is_looked_at(world: World) -> None:
    assert found("proxy", None).severity is Severity.SKIPPED
    assert found("tls", None).severity is Severity.GOOD


async def test_a_database_that_does_not_answer(world: World, tmp_path: Path) -> None:
    url = "postgresql://podstead:secret@127.0.0.1:1/podstead"
    settings = Settings(root=tmp_path, base_url=BASE, database=url, admin_listen=None)
    findings = {each.check: each for each in await diagnose(settings)}
    assert findings["database"].severity is Severity.PROBLEM
    assert "Start PostgreSQL" in findings["database"].remedy
    assert "\n" not in findings["database"].detail
    assert not [each for each in findings.values() if "secret" in each.detail]
    assert findings["tls"].severity is Severity.GOOD, "what can be looked at is"

"""What ``podstead doctor`` finds about names, certificates, dates, the provider, the database."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Sequence
from email.utils import formatdate
from pathlib import Path

import pytest

from podstead.app.operator import doctor_network
from podstead.app.operator.doctor import _destination, diagnose
from podstead.app.operator.doctor_network import SOON_DAYS, Diagnosis, Outside, Severity
from podstead.config import Settings
from podstead.outbound.mail import parse_mail_destination
from podstead.outbound.probing import NotReached, ProbeReply
from podstead.web.probe_endpoint import PREFIX

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
    monkeypatch.setattr(doctor_network, "probe", world.probe)
    monkeypatch.setattr(socket, "getaddrinfo", world.look_up)
    monkeypatch.setattr(time, "time", lambda: NOW_S)
    return world


def found(check: str, probe_key: str | None = "0" * 32) -> Diagnosis:
    outside = Outside(Settings(base_url=BASE, idp=True), probe_key)
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


async def test_a_mail_server_that_does_not_answer() -> None:
    destination = parse_mail_destination("smtp://localhost:1?from=a@pods.example&tls=none")
    finding = await _destination(destination)
    assert finding.severity is Severity.PROBLEM
    assert "localhost, port 1" in finding.detail
    assert finding.remedy

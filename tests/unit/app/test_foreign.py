"""Whom does a deployment never ask? Itself, by whichever name (A-190), and its own network."""

from __future__ import annotations

import logging
import socket
from pathlib import Path

import pytest

from podstead.app.adapters.foreign import NOTED_AGAIN_AFTER_MS, ForeignDocuments
from podstead.config import Settings
from podstead.core.errors import OutboundError, OwnDocument
from podstead.outbound.documents import POLICIES
from podstead.outbound.foreign_documents import Purpose
from podstead.outbound.urls import parse_origin
from tests.support.clock import FakeClock

# Hosts that no URL can name do not keep the others from counting.
ALIASES = ("alias.example:8443", "no..host", "x:99999")
OWN = [
    ("https://pod.example", 3000, "https://pod.example/alice/"),
    ("https://pod.example", 3000, "http://pod.example:443/alice/"),
    ("https://pod.example", 3000, "https://alias.example:8443/alice/"),
    ("https://pod.example", 3000, "http://localhost:3000/alice/"),
    ("https://pod.example", 3000, "http://127.0.0.1:3000/alice/"),
    ("http://localhost:8080", 3000, "http://127.0.0.1:3000/alice/"),
    ("http://localhost:8080", 3000, "https://pod.localhost:8080/alice/"),
    ("http://localhost", 0, "http://[::1]/alice/"),
]


@pytest.mark.parametrize(("base_url", "port", "url"), OWN)
async def test_no_document_is_fetched_from_a_name_of_our_own(
    tmp_path: Path, base_url: str, port: int, url: str
) -> None:
    """Nor if the operator lists the place as a private origin by mistake."""
    listed = tuple(parse_origin(f"http://{host}:3000") for host in ("localhost", "127.0.0.1"))
    settings = Settings(
        root=tmp_path, base_url=base_url, port=port, host_aliases=ALIASES, private_origins=listed
    )
    foreign = ForeignDocuments(settings, FakeClock())
    try:
        for purpose in POLICIES:
            with pytest.raises(OwnDocument):
                await foreign.fetch(url, purpose)
        with pytest.raises(OwnDocument):
            await foreign.origin_of(url)
    finally:
        await foreign.close()


async def test_a_neighbour_on_this_machine_is_another_server(tmp_path: Path) -> None:
    """A-190"""
    settings = Settings(root=tmp_path, base_url="http://localhost:8080", port=3000)
    foreign = ForeignDocuments(settings, FakeClock())
    try:
        with pytest.raises(OutboundError) as caught:
            await foreign.fetch("http://localhost:1/", Purpose.WEB_ID)  # where nobody listens
        assert not isinstance(caught.value, OwnDocument)
    finally:
        await foreign.close()


BLOCKED = [
    ("https://10.0.0.1/x", "10.0.0.1", "address"),
    ("https://localhost/x", "localhost", "host"),
    ("https://2130706433/x", "2130706433", "host"),
    ("https://inside.example:22/x", "inside.example", "port"),
    ("https://inside.example/x?token=secret", "inside.example", "address"),
]


@pytest.mark.parametrize(("url", "host", "rule"), BLOCKED)
async def test_a_request_into_the_own_network_is_blocked_and_noted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    url: str,
    host: str,
    rule: str,
) -> None:
    """A-184, A-183: whichever document was asked for; once an hour, with the host and no more."""

    def look_up(_host: str, *_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.168.0.1", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    clock = FakeClock()
    foreign = ForeignDocuments(Settings(root=tmp_path, base_url="https://pod.example"), clock)
    try:
        for purpose in (Purpose.WEB_ID, Purpose.PROVIDER, Purpose.GROUP):
            with pytest.raises(OutboundError):
                await foreign.fetch(url, purpose)
        assert _noted(caplog) == [(host, rule)]
        clock.advance(NOTED_AGAIN_AFTER_MS / 1000)
        with pytest.raises(OutboundError):
            await foreign.fetch(url, Purpose.CLIENT)
        assert _noted(caplog) == [(host, rule)] * 2
    finally:
        await foreign.close()
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    "url", ["https://pod.example/alice/", "ftp://elsewhere.example/", "not a url", "https://a@b/"]
)
async def test_what_is_no_request_into_the_own_network_is_not_noted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, url: str
) -> None:
    settings = Settings(root=tmp_path, base_url="https://pod.example")
    foreign = ForeignDocuments(settings, FakeClock())
    try:
        with pytest.raises(OutboundError):
            await foreign.fetch(url, Purpose.WEB_ID)
    finally:
        await foreign.close()
    assert _noted(caplog) == []


def _noted(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Host and rule of each warning that the audit log has."""
    return [
        (vars(each)["host"], vars(each)["rule"])
        for each in caplog.records
        if (each.name, each.levelno) == ("podstead.audit", logging.WARNING)
    ]

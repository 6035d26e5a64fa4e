"""Whom does a deployment never ask? Itself, by whichever name (A-190)."""

from __future__ import annotations

from pathlib import Path

import pytest

from podstead.app.foreign import ForeignDocuments
from podstead.config import Settings
from podstead.core.errors import OutboundError, OwnDocument
from podstead.outbound.urls import parse_origin
from tests.unit.outbound.peer import MovedClock

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
    foreign = ForeignDocuments(settings, MovedClock())
    ways = [foreign.fetch_profile, foreign.fetch_client_document, foreign.fetch_provider_document]
    try:
        for fetch in ways:
            with pytest.raises(OwnDocument):
                await fetch(url)
        with pytest.raises(OwnDocument):
            await foreign.fetch_rdf_document(url)
    finally:
        await foreign.close()


async def test_a_neighbour_on_this_machine_is_another_server(tmp_path: Path) -> None:
    """D-8"""
    settings = Settings(root=tmp_path, base_url="http://localhost:8080", port=3000)
    foreign = ForeignDocuments(settings, MovedClock())
    try:
        with pytest.raises(OutboundError) as caught:
            await foreign.fetch_profile("http://localhost:1/")  # where nobody listens
        assert not isinstance(caught.value, OwnDocument)
    finally:
        await foreign.close()

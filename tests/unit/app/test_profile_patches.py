"""Requests of the server itself: what becomes of them before they reach a resource."""

from __future__ import annotations

import pytest

from podstead.app.adapters.own_resources import AccountProfiles
from podstead.core.errors import BodyTooLarge, Conflict
from podstead.core.operation import InMemoryBody
from podstead.resources.outcome import Outcome, ResourceRequest, Result
from podstead.resources.service import ResourceService

BASE = "https://pods.example"


class Resources(ResourceService):
    """Notes what is asked."""

    def __init__(self) -> None:
        self.asked: list[ResourceRequest] = []

    async def handle(self, exchange: ResourceRequest) -> Outcome:
        self.asked.append(exchange)
        return Outcome(Result.CHANGED)


@pytest.mark.parametrize(
    "web_id",
    [
        "https://elsewhere.example/alice/#me",
        "https://pods.example.org/alice/#me",
        "https://pods.example:8443/alice/#me",
        "http://pods.example/alice/#me",
        "https://pods.example#me",
        "https://pods.example/%zz/#me",
        "https://pods.example/\ud800/#me",
        "",
    ],
)
async def test_a_profile_that_is_not_here_cannot_be_changed(web_id: str) -> None:
    resources = Resources()
    profiles = AccountProfiles(base_url=BASE, resources=resources)
    for change in (profiles.add_name, profiles.remove_name):
        with pytest.raises(Conflict):
            await change(web_id, "did:nostr:x")
    assert resources.asked == []


async def test_a_profile_is_changed_as_its_owner_would() -> None:
    resources = Resources()
    web_id = f"{BASE}/alice/#me"
    await AccountProfiles(base_url=BASE, resources=resources).add_name(web_id, "did:nostr:x")
    [exchange] = resources.asked
    assert exchange.agent is not None
    assert (exchange.agent.iri, exchange.agent.aliases) == (web_id, frozenset())
    assert (exchange.operation.method, exchange.operation.target) == ("PATCH", "/alice/")


@pytest.mark.parametrize("content", [b"", b"content"])
async def test_a_given_body_is_one_like_any_other(content: bytes) -> None:
    body = InMemoryBody(content)
    assert (body.announced, body.size_bytes) == (bool(content), len(content))
    assert await body.read(limit_bytes=7) == content
    assert b"".join([piece async for piece in body.chunks(limit_bytes=7)]) == content


async def test_a_given_body_minds_the_limit() -> None:
    body = InMemoryBody(b"content")
    with pytest.raises(BodyTooLarge):
        await body.read(limit_bytes=6)
    with pytest.raises(BodyTooLarge):
        _ = [piece async for piece in body.chunks(limit_bytes=6)]

"""A feature may bring credentials of its own: here, a secret in the query."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import podstead.app.services
from podstead.app.services import Services
from podstead.authn.authenticate import CredentialScheme, RequestCredentials
from podstead.core.errors import NotAuthenticated
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.features import Feature, WorkerFeature
from tests.support.application import Server, Start

AGENT = "urn:link:1"
DOC = "/alice/private/doc"


class Links(CredentialScheme):
    """Who knows the secret is the agent of the link."""

    def __init__(self) -> None:
        self.secrets = {"s1"}

    def applies_to(self, credentials: RequestCredentials) -> bool:
        return "?key=" in credentials.url

    async def verify(self, credentials: RequestCredentials) -> Identity:
        if credentials.url.partition("?key=")[2] not in self.secrets:
            raise NotAuthenticated("Unknown link", invalid=True, scheme="Link")
        return Identity(iri=AGENT, method=AuthenticationMethod.FEATURE)

    async def check_again(self, credentials: RequestCredentials, identity: Identity) -> None:
        assert identity == await self.verify(credentials)

    def challenges(self, *, realm: str, claimed: bool) -> Mapping[str, str]:
        return {} if claimed else {"Link": f'Link realm="{realm}"'}


class LinkFeature(Feature):
    def in_worker(self, services: Services) -> WorkerFeature:  # noqa: ARG002
        offered = WorkerFeature()
        offered.credentials = (Links(),)
        return offered


@pytest.fixture
async def shared(start: Start, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(podstead.app.services, "features", lambda: (LinkFeature(),))
    server = await start()
    await server.alice.put(DOC, "text", "text/plain")
    await server.put_acl(DOC, (f"acl:agent <{AGENT}>", "Read"))
    return server


async def test_credentials_of_a_feature_identify_an_agent(shared: Server) -> None:
    assert (await shared.public.get(f"{DOC}?key=s1")).text == "text"
    assert (await shared.alice.get(DOC)).text == "text"
    refused = await shared.public.put(f"{DOC}?key=s1", "changed", "text/plain")
    assert refused.status == 403


async def test_credentials_of_a_feature_that_prove_nothing_are_refused(shared: Server) -> None:
    refused = await shared.public.get(f"{DOC}?key=s2")
    assert refused.status == 401
    [challenge] = [
        each for each in refused.header_lines("www-authenticate") if each.startswith("Link ")
    ]
    assert "error=" in challenge
    assert (await shared.public.get(DOC)).status == 401

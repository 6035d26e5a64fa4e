"""People of the Community Solid Server use resources here, signed in at home (K-6, A-109)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.conftest import Home, StartClient
from tests.clients.process import ClientProcess
from tests.support.community_server import CommunityServer, ForeignAgent, running_community_server

ACL = "http://www.w3.org/ns/auth/acl#"


@pytest.fixture(scope="module")
def community(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommunityServer]:
    with running_community_server(tmp_path_factory.mktemp("community")) as server:
        yield server


@pytest.fixture(scope="module")
def carol(community: CommunityServer) -> ForeignAgent:
    return community.create_agent("carol")


@pytest.fixture(scope="module")
def application(start_client: StartClient) -> ClientProcess:
    return start_client("signed-in.mjs")


def ask(
    application: ClientProcess,
    community: CommunityServer,
    agent: ForeignAgent,
    *asked: dict[str, str],
) -> Any:  # noqa: ANN401 - what the scenario returns
    return application.run(
        "asks",
        None,
        issuer=community.base_url,
        clientId=agent.client_id,
        clientSecret=agent.client_secret,
        asked=list(asked),
    ).value


def let_in(home: Home, web_id: str, *modes: str) -> None:
    granted = ", ".join(f"<{ACL}{mode}>" for mode in modes)
    rules = (
        f"<#owner> a <{ACL}Authorization>; <{ACL}agent> <{home.pod.web_id}>;"
        f" <{ACL}accessTo> <./>; <{ACL}default> <./>;"
        f" <{ACL}mode> <{ACL}Read>, <{ACL}Write>, <{ACL}Control>.\n"
        f"<#guest> a <{ACL}Authorization>; <{ACL}agent> <{web_id}>;"
        f" <{ACL}accessTo> <./>; <{ACL}default> <./>; <{ACL}mode> {granted}.\n"
    )
    home.put(".acl", rules)


def test_a_guest_reads_and_writes_what_they_may(
    application: ClientProcess, community: CommunityServer, carol: ForeignAgent, home: Home
) -> None:
    """K-6: one sign-in, a fresh proof for each request."""
    home.put("doc", "hello", "text/plain")
    let_in(home, carol.web_id, "Read", "Write")
    result = ask(
        application,
        community,
        carol,
        {"url": f"{home.url}doc"},
        {"url": f"{home.url}new", "method": "PUT", "body": "by Carol", "type": "text/plain"},
        {"url": f"{home.url}doc"},
        {"url": f"{home.url}doc", "method": "DELETE"},
        {"url": f"{home.url}.acl"},
    )
    assert result["webId"] == carol.web_id
    answers = result["answers"]
    assert [answer["status"] for answer in answers] == [200, 201, 200, 204, 403]
    assert answers[0]["text"] == answers[2]["text"] == "hello"
    assert home.get("new").text == "by Carol"
    assert home.members() == {"new"}


def test_a_guest_who_is_not_named_is_known_and_not_let_in(
    application: ClientProcess, community: CommunityServer, carol: ForeignAgent, home: Home
) -> None:
    """A-5: 403, since the token is good; to the public it is 401."""
    home.put("doc", "hello", "text/plain")
    [answer] = ask(application, community, carol, {"url": f"{home.url}doc"})["answers"]
    assert answer["status"] == 403
    assert home.pod.server.get(home.path + "doc").status == 401


def test_a_guest_whose_webid_names_another_provider_is_nobody(
    application: ClientProcess, community: CommunityServer, home: Home
) -> None:
    """A-109, W-3: what counts is the WebID's document, in the pod of the Community Solid Server."""
    dave = community.create_agent("dave")
    home.put("doc", "hello", "text/plain")
    let_in(home, dave.web_id, "Read")
    changed = ask(
        application,
        community,
        dave,
        {
            "url": dave.web_id.partition("#")[0],
            "method": "PUT",
            "body": "<#me> <http://www.w3.org/ns/solid/terms#oidcIssuer> <https://idp.example/>.",
            "type": "text/turtle",
        },
        {"url": f"{home.url}doc"},
    )
    assert [answer["status"] for answer in changed["answers"]] == [205, 401]
    assert "does not name" in changed["answers"][1]["text"]

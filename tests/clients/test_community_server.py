"""People of the Community Solid Server use resources here, signed in at home, and ours use theirs
(A-109)."""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.clients.client_home import Home, StartClient
from tests.support.client_process import ClientProcess
from tests.support.community_server import CommunityServer, ForeignAgent, shared_community_server
from tests.support.provider import App
from tests.support.server import Answer, ServerProcess, request_to, server_fixture
from tests.support.signing import Signer, proof_claims

ACL = "http://www.w3.org/ns/auth/acl#"


@pytest.fixture(scope="module")
def community() -> CommunityServer:
    return shared_community_server()


@pytest.fixture(scope="module")
def carol(community: CommunityServer) -> ForeignAgent:
    return community.create_agent(f"carol-{secrets.token_hex(8)}")


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
    """One sign-in, a fresh proof for each request."""
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


def test_a_guest_without_a_rule_is_authenticated_and_denied(
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
    dave = community.create_agent(f"dave-{secrets.token_hex(8)}")
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


# --- ours are guests there ---------------------------------------------------------------------


@dataclass(frozen=True)
class Person:
    """Somebody with an account here, and an application with a token of ours."""

    web_id: str
    app: App


provider = server_fixture(["--idp"])


@pytest.fixture(scope="module")
def alice(provider: ServerProcess) -> Person:
    """A-67: a token that is bound to a key, as scripts get it."""
    account = {"name": "alice", "email": "alice@example.com", "password": "password123"}
    typed = {"Content-Type": "application/json"}
    made = provider.request("POST", "/.pods", json.dumps(account), typed)
    assert made.status == 201, made.text
    key, now_s = Signer.new("ES256"), int(time.time())
    url = f"{provider.base_url}/idp/credentials"
    proof = key.proof(proof_claims("POST", url, now_s))
    asked = {"email": account["email"], "password": account["password"]}
    given = provider.request(
        "POST", "/idp/credentials", json.dumps(asked), {**typed, "DPoP": proof}
    )
    assert given.status == 200, given.text
    token = json.loads(given.body)
    assert token["token_type"] == "DPoP"
    return Person(token["webid"], App(key, token["access_token"], now_s))


def ask_there(person: Person, method: str, url: str, body: str | None = None) -> Answer:
    """A request of the person's application to another server, with a fresh proof."""
    typed = {} if body is None else {"Content-Type": "text/plain"}
    return request_to(method, url, body, {**person.app.fields(method, url), **typed})


def test_the_community_server_lets_our_people_in(
    application: ClientProcess, community: CommunityServer, carol: ForeignAgent, alice: Person
) -> None:
    """It reads our configuration, our keys and the WebID's document."""
    doc = f"{carol.pod_url}for-alice"
    rules = (
        f"<#owner> a <{ACL}Authorization>; <{ACL}agent> <{carol.web_id}>;"
        f" <{ACL}accessTo> <./for-alice>; <{ACL}mode> <{ACL}Read>, <{ACL}Write>, <{ACL}Control>.\n"
        f"<#guest> a <{ACL}Authorization>; <{ACL}agent> <{alice.web_id}>;"
        f" <{ACL}accessTo> <./for-alice>; <{ACL}mode> <{ACL}Read>, <{ACL}Write>.\n"
    )
    made = ask(
        application,
        community,
        carol,
        {"url": doc, "method": "PUT", "body": "hello", "type": "text/plain"},
        {"url": f"{doc}.acl", "method": "PUT", "body": rules, "type": "text/turtle"},
    )
    assert [answer["status"] for answer in made["answers"]] == [201, 201]

    assert request_to("GET", doc).status == 401
    answer = ask_there(alice, "GET", doc)
    assert (answer.status, answer.text) == (200, "hello")
    assert ask_there(alice, "PUT", doc, "by Alice").status == 205
    assert ask_there(alice, "GET", doc).text == "by Alice"
    assert ask_there(alice, "GET", f"{doc}.acl").status == 403


def test_what_the_community_server_accepts_is_accepted_at_home(
    provider: ServerProcess, alice: Person
) -> None:
    private = f"{provider.base_url}{urlsplit(alice.web_id).path}private/"
    assert ask_there(alice, "GET", private).status == 200
    assert request_to("GET", private).status == 401

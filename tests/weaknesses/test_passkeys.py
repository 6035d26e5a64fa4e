"""Weaknesses of passkeys. Two workers answer, so nothing may be known to one process only."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.asgi import Answer
from tests.support.passkeys import Json, SoftAuthenticator
from tests.support.people import Person, create_account
from tests.support.provider_clients import App, register
from tests.support.server import ServerProcess, server_fixture
from tests.support.signing import decoded

pytestmark = pytest.mark.feature("passkeys")

SCRIPT = {
    "Accept": "application/json",
    "Content-Type": "application/json",
    "Sec-Fetch-Site": "same-origin",
}


server = server_fixture(["--idp", "--workers", "2", "--passkey-requests-per-minute", "0"])
"""A provider with two workers, and no limit on how often this machine asks."""


def _ask(person: Person, path: str, sent: Json) -> Answer:
    url = f"{person.account.provider.base_url}/idp/passkey/{path}"
    return person._ask("POST", url, SCRIPT, json.dumps(sent))


def _signed_in(person: Person) -> Person:
    page = person.sign_in(person.open(f"{person.account.provider.base_url}/idp/login"))
    assert page.path == "/.pages/security"
    return person


def _add(person: Person, key: SoftAuthenticator) -> Answer:
    asked = _ask(person, "register/options", {})
    assert asked.status == 200, asked.text
    options: dict[str, Any] = asked.json()
    sent = {"challengeKey": options["challengeKey"], "credential": key.create(options)}
    return _ask(person, "register/verify", sent)


def _key(server: ServerProcess) -> SoftAuthenticator:
    return SoftAuthenticator(server.base_url)


def test_w_1_naming_an_account_signs_nobody_in(server: ServerProcess, alice: Person) -> None:
    """A-118: with the id of an account that has a passkey, as tokens tell it."""
    app: App = register(server)
    _signed_in(alice)
    assert _add(alice, _key(server)).status == 200
    subject = _subject(app, alice)
    eve = Person(create_account(server))
    page = eve.open(app.address())
    answer = eve.open(f"{server.base_url}{page.path}/passkey-complete?accountId={subject}")
    assert answer.status == 403
    assert urlsplit(eve.open(f"{server.base_url}/idp/account").url).path == "/idp/login"


def test_w_2_nobody_adds_a_passkey_to_anothers_account(server: ServerProcess) -> None:
    """A-117: without signing in, and signed in as somebody else."""
    app = register(server)
    alice, eve = Person(create_account(server)), Person(create_account(server))
    subject = _subject(app, alice)
    eve.open(f"{server.base_url}/idp/login")
    assert _ask(eve, "register/options", {"accountId": subject}).status == 401
    _signed_in(eve)
    assert _ask(eve, "register/options", {"accountId": subject}).status == 403
    options = _ask(eve, "register/options", {}).json()
    sent = {
        "challengeKey": options["challengeKey"],
        "credential": _key(server).create(options),
        "accountId": subject,
    }
    assert _ask(eve, "register/verify", sent).status == 403


def test_w_23_a_challenge_is_everybodys_once_and_the_servers(server: ServerProcess) -> None:
    """A-119: any worker takes it, no client names it, and it does not last."""
    alice, key = _signed_in(Person(create_account(server))), _key(server)
    assert _add(alice, key).status == 200
    keys = set()
    for _ in range(4):
        options = _ask(alice, "login/options", {"visitorId": "mine"}).json()
        keys.add(options["challengeKey"])
        wrong = {"challengeKey": options["challengeKey"], "credential": {"id": "eA"}}
        assert _ask(alice, "login/verify", wrong).json()["error"] == "Unknown credential"
        right = {"challengeKey": options["challengeKey"], "credential": key.get(options)}
        answer = _ask(alice, "login/verify", right)
        assert answer.json()["error"] == "Challenge expired or invalid"
    assert len(keys) == 4
    assert "mine" not in keys
    options = _ask(alice, "login/options", {}).json()
    sent = {"challengeKey": options["challengeKey"], "credential": key.get(options)}
    assert _ask(alice, "login/verify", sent).status == 200


def test_w_30_an_account_may_have_several_passkeys(server: ServerProcess) -> None:
    """A-120"""
    alice = _signed_in(Person(create_account(server)))
    keys = [_key(server) for _ in range(3)]
    assert [_add(alice, key).status for key in keys] == [200, 200, 200]
    options = _ask(alice, "register/options", {}).json()
    assert len(options["excludeCredentials"]) == 3
    options = _ask(alice, "login/options", {"username": alice.account.name}).json()
    assert options["allowCredentials"] == []


def _subject(app: App, person: Person) -> str:
    """The id of a person's account, as an application learns it."""
    return str(decoded(app.tokens(person)["id_token"].split(".")[1])["sub"])

"""A running server, its workers and its log, shown tokens that are bound to a key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.provider import App, Provider, running_provider
from tests.support.server import Answer, ServerProcess, running_server
from tests.support.signing import Signer, set_to, token_hash, with_other_signature

PRIVATE = "/alice/private/"
ISSUER_TERM = "http://www.w3.org/ns/solid/terms#oidcIssuer"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with running_provider() as provider:
        yield provider


def with_alice(server: ServerProcess, provider: Provider) -> tuple[str, str]:
    """A pod whose WebID names the provider; the WebID and the owner's simple token."""
    made = server.request(
        "POST", "/.pods", '{"name": "alice"}', {"Content-Type": "application/json"}
    )
    pod = json.loads(made.body)
    owner = {"Authorization": f"Bearer {pod['token']}", "Content-Type": "text/turtle"}
    named = f"<#me> <{ISSUER_TERM}> <{provider.issuer}>."
    assert server.request("PUT", "/alice/", named, owner).status == 204
    return pod["webId"], pod["token"]


def get(server: ServerProcess, fields: dict[str, str]) -> Answer:
    return server.get(PRIVATE, fields)


def test_of_many_concurrent_uses_of_a_proof_one_is_valid_in_any_worker(
    tmp_path: Path, provider: Provider
) -> None:
    """A-104."""
    options = ("--workers", "2", "--invalid-credentials-per-minute", "0")
    with running_server(ServerProcess(tmp_path / "root", options)) as server:
        web_id, _ = with_alice(server, provider)
        app = provider.app(web_id)
        url = f"{server.base_url}{PRIVATE}"
        for _ in range(3):
            fields = app.fields("GET", url)
            with ThreadPoolExecutor(8) as senders:
                answers = list(senders.map(lambda each: get(server, each), [fields] * 24))
            assert sorted(answer.status for answer in answers) == [200] + [401] * 23


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_part_of_a_credential_is_logged_whatever_is_wrong_with_it(
    tmp_path: Path, provider: Provider, log_format: str
) -> None:
    """A-183, A-15."""
    log = ("--log-level", "debug", "--log-format", log_format)
    options = (*log, "--invalid-credentials-per-minute", "0")
    with running_server(ServerProcess(tmp_path / "root", options)) as server:
        web_id, simple = with_alice(server, provider)
        url = f"{server.base_url}{PRIVATE}"
        shown = [{"Authorization": f"Bearer {simple}"}, {"Authorization": f"Bearer {simple}x"}]
        shown += [
            {"Authorization": "Basic bm9zdHI6c2VjcmV0"},
            {"Authorization": "Nostr c2VjcmV0ZXZlbnQ="},
            {"Authorization": "rawtokenwithoutscheme"},
            {"Authorization": "DPoP first, Bearer second"},
        ]
        for app in apps(provider, web_id):
            good = app.fields("GET", url)
            shown += [
                good,
                good,
                app.fields("POST", url),
                app.fields("GET", url, set_to("ath", token_hash("other"))),
                app.fields("GET", url, key=Signer.new("ES256")),
                {**app.fields("GET", url), "DPoP": with_other_signature(good["DPoP"])},
                {"Authorization": good["Authorization"]},
                {"Authorization": f"Bearer {app.token}"},
            ]
        statuses = {get(server, fields).status for fields in shown}
        assert statuses == {200, 400, 401, 503}  # one issuer does not answer at the moment
        assert server.stop() == 0
        logged = server.errors
    parts = {part for fields in shown for text in fields.values() for part in secrets_of(text)}
    assert len(parts) > 50
    assert {part for part in parts if part in logged} == set()


def apps(provider: Provider, web_id: str) -> list[App]:
    """One that is good, and some whose tokens are refused at different steps."""
    return [
        provider.app(web_id),
        provider.app(web_id, set_to("aud", "other")),
        provider.app(web_id, set_to("cnf", {"jkt": "é"})),
        provider.app(web_id, set_to("iss", "http://localhost:1")),
        provider.app(web_id, signed_by=Signer.new("ES256")),
        provider.app(provider.profile("/carol")),
        provider.app(f"{provider.issuer}/nobody#me"),
    ]


def secrets_of(text: str) -> set[str]:
    """The parts of a field that are worth something to who reads them."""
    return {part for part in text.replace(",", " ").replace(".", " ").split() if len(part) > 8}

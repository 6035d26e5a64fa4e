"""How do applications register, and how do their registrations end? (A-47 to A-50)"""

from __future__ import annotations

import json
from typing import Any

import pytest

from podstead.app.adapters.system import SystemRandomness
from podstead.idp.clients import COUNTED_MS, REGISTRATION_MS, ClientDirectory
from podstead.idp.records import CLIENTS
from podstead.outbound.foreign_documents import FetchedDocument
from podstead.rdf.graph import Graph
from podstead.storage.record_store import RecordStore
from podstead.storage.records import DropEntry, Entry, EntryId
from tests.support.application import BASE
from tests.support.provider_flows import (
    CALLBACK,
    App,
    Provider,
    StartProvider,
    assert_not_kept,
    assert_refused,
)

DAY_S = 24 * 3600
RFC_7591_DEFAULTS = {
    "grant_types": ["authorization_code", "refresh_token"],
    "response_types": ["code"],
    "token_endpoint_auth_method": "client_secret_basic",
    "id_token_signed_response_alg": "RS256",
    "application_type": "web",
    "subject_type": "public",
}

AS_SENT = {
    "Inrupt in node": {
        "redirect_uris": ["http://localhost:3001/redirect"],
        "client_name": "My app",
        "id_token_signed_response_alg": "ES256",
        "grant_types": ["authorization_code", "refresh_token"],
    },
    "Inrupt in browsers": {
        "redirect_uris": ["https://app.example/"],
        "client_name": None,
        "application_type": "web",
        "subject_type": "public",
        "token_endpoint_auth_method": "client_secret_basic",
        "id_token_signed_response_alg": "ES256",
        "grant_types": ["authorization_code", "refresh_token"],
    },
    "the conformance harness": {
        "application_type": "web",
        "redirect_uris": ["https://tester"],
        "token_endpoint_auth_method": "client_secret_basic",
    },
    "everything null": {
        "redirect_uris": [CALLBACK],
        **dict.fromkeys(("client_uri", "grant_types", "response_types", "application_type")),
        **dict.fromkeys(("token_endpoint_auth_method", "post_logout_redirect_uris")),
        "id_token_signed_response_alg": None,
    },
    "unknown members": {"redirect_uris": [CALLBACK], "contacts": ["x"], "jwks": {"keys": []}},
    "pairwise": {"redirect_uris": [CALLBACK], "subject_type": "pairwise"},
}


@pytest.mark.parametrize("sent", AS_SENT.values(), ids=AS_SENT)
async def test_clients_get_what_they_requested_and_defaults_for_the_rest(
    provider: Provider, sent: dict[str, Any]
) -> None:
    """A-47, A-48; RFC 7591 section 3.2.1"""
    answer = await provider.send_registration(sent, origin="https://app.example")
    assert answer.status == 201
    assert_not_kept(answer)
    assert answer.header("access-control-allow-origin") == "*"
    body = answer.json()
    known = (*RFC_7591_DEFAULTS, "redirect_uris", "client_name")
    chosen = {name: sent[name] for name in known if sent.get(name) is not None}
    expected = RFC_7591_DEFAULTS | chosen | {"subject_type": "public"}
    client_id = body.pop("client_id")
    given = {name: body.pop(name) for name in ("client_secret", "registration_access_token")}
    assert body == {
        **expected,
        "client_id_issued_at": provider.clock.now_s(),
        "client_secret_expires_at": provider.clock.now_s() + 10 * 365 * DAY_S,
        "registration_client_uri": f"{BASE}/idp/reg/{client_id}",
    }
    for secret in (client_id, *given.values()):
        assert secret.isalnum()  # in both encodings of Basic the same
    assert all(len(secret) >= 43 for secret in given.values())


async def test_a_secret_is_not_taken_for_an_expired_one(provider: Provider) -> None:
    """authn-browser 2.5 compares the date with the time now, also where it is 0 (RFC 7591 section
    3.2.1), and a client may keep it in 32 bits."""
    app = await provider.register()
    expires_s = app.metadata["client_secret_expires_at"]
    assert provider.clock.now_s() + 365 * DAY_S < expires_s < 2**31


async def test_a_client_without_a_secret_gets_none(provider: Provider) -> None:
    """A-47"""
    app = await provider.register(token_endpoint_auth_method="none")
    assert {"client_secret", "client_secret_expires_at"}.isdisjoint(app.metadata)


async def test_redirect_uris_come_back_byte_for_byte(provider: Provider) -> None:
    """A-47"""
    uris = ["https://b.example", "https://a.example/%7Ex?", "https://A.example/"]
    assert (await provider.register(redirect_uris=uris)).metadata["redirect_uris"] == uris


async def test_names_that_people_are_shown_are_plain_text(provider: Provider) -> None:
    app = await provider.register(client_name="A\u202epp\x00\n " + "x" * 300)
    assert app.metadata["client_name"] == "App " + "x" * 196


WRONG = {
    "no redirect": ({}, "invalid_redirect_uri"),
    "an empty list": ({"redirect_uris": []}, "invalid_redirect_uri"),
    "numbers": ({"redirect_uris": [1]}, "invalid_redirect_uri"),
    "an object": ({"redirect_uris": {"a": 1}}, "invalid_redirect_uri"),
    "a fragment": ({"redirect_uris": [CALLBACK, "https://a.example/#x"]}, "invalid_redirect_uri"),
    "a script": ({"redirect_uris": ["javascript:x"]}, "invalid_redirect_uri"),
    "too many": ({"redirect_uris": [CALLBACK] * 33}, "invalid_redirect_uri"),
    "a redirect after signing out": (
        {"redirect_uris": [CALLBACK], "post_logout_redirect_uris": ["x"]},
        "invalid_redirect_uri",
    ),
    "a method": (
        {"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "private_key_jwt"},
        "invalid_client_metadata",
    ),
    "a method of another type": (
        {"redirect_uris": [CALLBACK], "token_endpoint_auth_method": ["none"]},
        "invalid_client_metadata",
    ),
    "an algorithm": (
        {"redirect_uris": [CALLBACK], "id_token_signed_response_alg": "none"},
        "invalid_client_metadata",
    ),
    "a response type": (
        {"redirect_uris": [CALLBACK], "response_types": ["token"]},
        "invalid_client_metadata",
    ),
    "an application type": (
        {"redirect_uris": [CALLBACK], "application_type": "x"},
        "invalid_client_metadata",
    ),
    "a list": ([], "invalid_client_metadata"),
    "a text": ("x", "invalid_client_metadata"),
}


@pytest.mark.parametrize(("sent", "error"), WRONG.values(), ids=WRONG)
async def test_metadata_that_cannot_be_used_is_refused(
    provider: Provider, sent: object, error: str
) -> None:
    """A-49; RFC 7591 section 3.2.2"""
    assert_refused(await provider.send_registration(sent), error)
    assert await provider.count(CLIENTS) == 0


@pytest.mark.parametrize("body", ["", "{", '{"redirect_uris": [], "redirect_uris": []}', "\x00"])
async def test_invalid_json_is_refused(provider: Provider, body: str) -> None:
    answer = await provider.public.post("/idp/reg", body, "application/json")
    assert_refused(answer, "invalid_client_metadata")


async def test_only_json_of_some_size_is_taken(provider: Provider) -> None:
    body = json.dumps({"redirect_uris": [CALLBACK], "x": "y" * 70_000})
    assert (await provider.public.post("/idp/reg", body, "application/json")).status == 413
    assert (await provider.public.post("/idp/reg", "{}", "text/plain")).status == 415
    assert (await provider.public.get("/idp/reg")).status == 405


async def test_registrations_are_counted_for_each_address(start_provider: StartProvider) -> None:
    """A-181"""
    provider = await start_provider(registrations_per_hour=2)
    for _ in range(2):
        await provider.register()
    answer = await provider.send_registration({"redirect_uris": [CALLBACK]})
    assert answer.status == 429
    assert answer.header("retry-after")
    body = json.dumps({"redirect_uris": [CALLBACK]}).encode()
    headers = {"Content-Type": "application/json"}
    other = await provider.public.request(
        "POST", "/idp/reg", headers=headers, body=body, peer="192.0.2.1"
    )
    assert other.status == 201


async def registered_from(provider: Provider, peer: str) -> str:
    """The id of a client that an address has just registered."""
    body = json.dumps({"redirect_uris": [CALLBACK]}).encode()
    headers = {"Content-Type": "application/json"}
    answer = await provider.public.request(
        "POST", "/idp/reg", headers=headers, body=body, peer=peer
    )
    assert answer.status == 201, answer.text
    provider.clock.advance(1)
    client_id: str = answer.json()["client_id"]
    return client_id


async def kept_of(provider: Provider, client_ids: list[str]) -> list[bool]:
    """Which of the registrations are still there."""
    now_ms = provider.clock.now_ms()
    return [
        await CLIENTS.read(provider.store, each, now_ms=now_ms) is not None for each in client_ids
    ]


def directory_of(provider: Provider, store: Any = None) -> ClientDirectory:  # noqa: ANN401
    return ClientDirectory(
        records=RecordStore(store or provider.store, provider.clock, SystemRandomness()),
        documents=_NoDocuments(),
        parse=_NoDocuments().parse,
        allow_http=True,
    )


async def test_the_oldest_unused_registration_of_a_network_makes_room(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger with a whole network of addresses crowds out their own registrations only: none
    that somebody uses, and none of other networks."""
    monkeypatch.setattr("podstead.idp.clients.MAX_UNUSED_PER_NETWORK", 3)
    used = await registered_from(provider, "192.0.2.1")
    await directory_of(provider).note_use(used, "somebody")
    others = await registered_from(provider, "198.51.100.1")
    own = [await registered_from(provider, f"192.0.2.{last}") for last in range(1, 6)]
    assert await kept_of(provider, own) == [False, False, True, True, True]
    assert await kept_of(provider, [used, others]) == [True, True]
    wide = [await registered_from(provider, f"2001:db8:1:{last}::1") for last in range(4)]
    assert await kept_of(provider, wide) == [False, True, True, True]


async def test_registrations_that_one_account_uses_are_bounded(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An account crowds out the registrations that nobody else uses, those unused for longest
    first."""
    monkeypatch.setattr("podstead.idp.clients.MAX_PER_ACCOUNT", 2)
    directory = directory_of(provider)
    shared, *own = [await registered_from(provider, "192.0.2.1") for _ in range(5)]
    await directory.note_use(shared, "mallory")
    await directory.note_use(shared, "bob")
    for client_id in (own[0], own[1], own[0], own[2], own[3]):
        provider.clock.advance(2 * DAY_S)
        await directory.note_use(client_id, "mallory")
    assert await kept_of(provider, [shared, *own]) == [True, False, False, True, True]


async def test_strangers_cannot_use_up_all_registrations(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A-50: a server that is full makes room by what nobody has used, whoever asks."""
    monkeypatch.setattr("podstead.idp.clients.MAX_REGISTERED", 3)
    used = await registered_from(provider, "192.0.2.1")
    await directory_of(provider).note_use(used, "somebody")
    provider.clock.advance(COUNTED_MS // 1000)
    of_strangers = [await registered_from(provider, f"192.0.{net}.1") for net in (3, 4, 5, 6)]
    assert await kept_of(provider, [used, *of_strangers]) == [True, False, False, True, True]
    assert await provider.count(CLIENTS) == 3


async def manage(provider: Provider, method: str, app: App, token: str | None) -> Any:  # noqa: ANN401
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return await provider.public.request(method, f"/idp/reg/{app.client_id}", headers=headers)


async def test_a_client_reads_and_removes_its_registration(provider: Provider, app: App) -> None:
    """A-47; RFC 7592 sections 2.1 and 2.3"""
    token = app.metadata["registration_access_token"]
    answer = await manage(provider, "GET", app, token)
    assert answer.status == 200
    assert_not_kept(answer)
    hidden = {"client_secret", "client_secret_expires_at", "registration_access_token"}
    shown = {name: value for name, value in app.metadata.items() if name not in hidden}
    assert answer.json() == shown
    assert (await manage(provider, "DELETE", app, token)).status == 204
    for method in ("GET", "DELETE"):
        assert (await manage(provider, method, app, token)).status == 401
    assert await provider.count(CLIENTS) == 0


async def test_nobody_else_does(provider: Provider, app: App, public_app: App) -> None:
    """RFC 7592 section 2.1: 401 whether or not there is such a client"""
    other = public_app.metadata["registration_access_token"]
    for token in (None, "x", other, app.secret):
        for method in ("GET", "DELETE"):
            answer = await manage(provider, method, app, token)
            assert answer.status == 401
            assert answer.header_lines("www-authenticate")
    assert await provider.count(CLIENTS) == 2


async def test_a_registration_is_kept_for_ninety_days_after_its_last_use(
    provider: Provider, app: App
) -> None:
    """A-50"""
    unused = await provider.register()
    half_s = REGISTRATION_MS // 2000
    for _ in range(4):
        provider.clock.advance(half_s)
        await provider.code(app)
    assert (await manage(provider, "GET", unused, "x")).status == 401
    token = app.metadata["registration_access_token"]
    assert (await manage(provider, "GET", app, token)).status == 200
    provider.clock.advance(2 * half_s + DAY_S)
    assert (await manage(provider, "GET", app, token)).status == 401


async def test_with_a_registration_all_that_came_of_it_ends_at_once(
    provider: Provider, app: App
) -> None:
    """RFC 7592 section 2.3; other applications of the same person go on."""
    other = await provider.register()
    tokens, others = await provider.tokens(app), await provider.tokens(other)
    code = await provider.code(app)
    assert await provider.get(tokens["access_token"], app.key) == 200
    token = app.metadata["registration_access_token"]
    assert (await manage(provider, "DELETE", app, token)).status == 204
    for kind in ("access_token", "id_token"):
        assert await provider.get(tokens[kind], app.key) == 401
    assert await provider.get(tokens["access_token"], app.key, "/idp/me") == 401
    assert_refused(
        await provider.refresh(app, tokens["refresh_token"]), "invalid_client", status=401
    )
    assert_refused(await provider.redeem(app, code), "invalid_client", status=401)
    assert await provider.get(others["access_token"], other.key) == 200


class _RemovedMeanwhile:
    """The store, where a client is removed just after it was read."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self._provider.store, name)

    async def read_entry(self, entry: EntryId, *, now_ms: int) -> Entry | None:
        read = await self._provider.store.read_entry(entry, now_ms=now_ms)
        await self._provider.commit(DropEntry(entry))
        return read


async def test_a_client_that_is_removed_while_it_is_used_stays_removed(
    provider: Provider, app: App
) -> None:
    provider.clock.advance(2 * DAY_S)
    directory = directory_of(provider, _RemovedMeanwhile(provider))
    await directory.note_use(app.client_id, provider.account.account_id)
    assert await provider.count(CLIENTS) == 0


class _NoDocuments:
    async def origin_of(self, url: str) -> str:
        raise AssertionError(url)

    async def fetch(self, url: str, purpose: object) -> FetchedDocument:
        raise AssertionError((url, purpose))

    async def parse(self, content: bytes, content_type: str, base_iri: str) -> Graph:
        raise AssertionError((content, content_type, base_iri))


async def test_a_client_is_never_forgotten_before_its_grants(provider: Provider, app: App) -> None:
    """A-50: also if it was used within a day before"""
    await provider.code(app)
    provider.clock.advance(DAY_S - 1)
    tokens = await provider.tokens(app)
    for _ in range(6):
        provider.clock.advance(14 * DAY_S - 1)
        answer = await provider.refresh(app, tokens["refresh_token"])
        assert answer.status == 200, answer.text
        tokens = answer.json()
    provider.clock.advance(6 * DAY_S)
    assert (await provider.refresh(app, tokens["refresh_token"])).status == 200

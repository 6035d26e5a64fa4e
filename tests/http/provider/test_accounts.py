"""``POST /.pods`` at a provider, and what an account's tokens live by (A-90 to A-98, A-67)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from rdflib import URIRef

from podstead.app.accounts import AccountServices, build_accounts
from podstead.app.adapters.passwords import Argon2Passwords
from podstead.app.adapters.system import SystemRandomness
from podstead.pods.names import RESERVED_NAMES
from tests.support.application import BASE, CHEAP, Start
from tests.support.asgi import Answer
from tests.support.oauth import basic
from tests.support.provider_flows import (
    App,
    Provider,
    StartProvider,
    assert_refused,
    provider_settings,
)
from tests.support.rdf import TURTLE, said
from tests.support.signing import Signer

JSON = "application/json"
PASSWORD = "password of bob"
SOLID = "http://www.w3.org/ns/solid/terms#"


async def create(provider: Provider, **sent: object) -> Answer:
    body = {"name": "bob", "email": "bob@example.org", "password": PASSWORD, **sent}
    given = {name: value for name, value in body.items() if value is not ...}
    return await provider.public.post("/.pods", json.dumps(given), JSON)


@pytest.fixture
def services(provider: Provider) -> AccountServices:
    """What another worker does with the same accounts."""
    return build_accounts(
        provider_settings(provider.root),
        store=provider.store,
        clock=provider.clock,
        randomness=SystemRandomness(),
        passwords=Argon2Passwords(CHEAP),
    )


# --- making ------------------------------------------------------------------------------------


async def test_a_new_pod_is_answered_with_five_facts_and_no_token(provider: Provider) -> None:
    """A-90, A-34"""
    answer = await create(provider, name="Bob")
    assert answer.status == 201
    assert answer.header("location") == f"{BASE}/Bob/"
    assert answer.header("cache-control") == "no-store"
    assert list(answer.json().items()) == [
        ("name", "Bob"),
        ("webId", f"{BASE}/Bob/#me"),
        ("podUri", f"{BASE}/Bob/"),
        ("idpIssuer", BASE),
        ("loginUrl", f"{BASE}/idp/auth"),
    ]
    assert list(await provider.store.list_tokens()) == []


async def test_the_profile_names_the_provider_and_only_where_there_is_one(
    provider: Provider, start: Start, tmp_path: Path
) -> None:
    """A-98"""
    issuer = (URIRef(f"{BASE}/alice/#me"), URIRef(f"{SOLID}oidcIssuer"), URIRef(BASE))
    answer = await provider.public.get("/alice/", accept=TURTLE)
    assert issuer in said(answer, f"{BASE}/alice/")
    plain = await (await start(root=tmp_path / "plain")).public.get("/alice/", accept=TURTLE)
    assert "oidcIssuer" not in plain.text


@pytest.mark.parametrize(
    ("sent", "status", "error"),
    [
        ({"name": ...}, 400, "Pod name required"),
        ({"name": 5}, 400, "Pod name required"),
        ({"name": "a b"}, 400, "Invalid pod name. Use alphanumeric, dash, or underscore only."),
        ({"name": "b" * 65}, 400, "Reserved pod name"),
        ({"email": ...}, 400, "Email required for account creation"),
        ({"email": None}, 400, "Email required for account creation"),
        ({"email": ["bob@example.org"]}, 400, "Email required for account creation"),
        ({"email": "bob"}, 400, "Invalid email"),
        ({"email": "bob@example.org\n@"}, 400, "Invalid email"),
        ({"password": ...}, 400, "Password required"),
        ({"password": 12345678}, 400, "Password required"),
        ({"password": "1234567"}, 400, "Password must be at least 8 characters"),
        ({"password": "a" * 1025}, 400, "Password must be at most 1024 characters"),
        ({"name": "Alice"}, 409, "Pod already exists"),
        ({"email": "ALICE@Example.com "}, 409, "Email already registered"),
        ({"name": "alice", "email": "alice@example.com"}, 409, "Pod already exists"),
    ],
)
async def test_one_reason_is_given_and_nothing_is_created(
    provider: Provider, sent: dict[str, object], status: int, error: str
) -> None:
    """A-90, A-92, A-93: in the words that clients know."""
    answer = await create(provider, **sent)
    assert (answer.status, answer.json()["error"]) == (status, error)
    assert set(answer.json()) == {"error", "message"}
    assert answer.json()["message"]
    assert [pod.name for pod in await provider.store.list_pods(limit=10)] == ["alice"]
    assert (await create(provider)).status == 201


@pytest.mark.parametrize("name", sorted(RESERVED_NAMES - {"favicon.ico", "robots.txt"}))
async def test_reserved_names_make_no_account_in_any_case(provider: Provider, name: str) -> None:
    """A-91"""
    answer = await create(provider, name=name.upper())
    assert (answer.status, answer.json()["error"]) == (400, "Reserved pod name")


async def test_of_many_creations_of_one_name_one_succeeds(provider: Provider) -> None:
    """A-94: and its pod and password are the winner's."""
    answers = await asyncio.gather(
        *(
            create(provider, email=f"{index}@example.org", password=f"password {index}")
            for index in range(20)
        )
    )
    assert sorted(answer.status for answer in answers) == [201] + [409] * 19
    winner = [answer.status for answer in answers].index(201)
    for index in (winner, (winner + 1) % 20):
        body = json.dumps({"username": "bob", "password": f"password {index}"})
        answer = await provider.public.post("/idp/credentials", body, JSON)
        assert answer.status == (200 if index == winner else 401)
        if index == winner:
            assert await provider.get(answer.json()["access_token"], None, "/bob/private/") == 200


async def test_a_closed_server_makes_no_pods(start_provider: StartProvider) -> None:
    """A-96: with accounts or without."""
    for idp in (True, False):
        provider = await start_provider(registration="closed", idp=idp)
        answer = await create(provider)
        assert (answer.status, answer.json()["error"]) == (403, "Registration disabled")
        facts = (await provider.public.get("/", accept=JSON)).json()
        assert "createPod" not in facts
        page = (await provider.public.get("/", accept="text/html")).text
        assert "/idp/register" not in page
        assert "/.pods" not in page
        if idp:
            described = await provider.public.get("/.well-known/openid-configuration")
            assert "create" not in described.json()["prompt_values_supported"]
        assert [pod.name for pod in await provider.store.list_pods(limit=10)] == ["alice"]


async def test_an_address_makes_so_many_accounts_an_hour(start_provider: StartProvider) -> None:
    """A-181: tries count, since each tells whether a name is taken."""
    provider = await start_provider(base_url=BASE, pod_creations_per_hour=3)
    body = json.dumps({"name": "alice", "email": "a@example.org", "password": PASSWORD}).encode()
    statuses = [
        (
            await provider.public.request(
                "POST", "/.pods", headers={"Content-Type": JSON}, body=body, peer="192.0.2.1"
            )
        ).status
        for _ in range(4)
    ]
    assert statuses == [409, 409, 409, 429]


# --- what tokens live by -----------------------------------------------------------------------


async def test_a_new_password_ends_tokens_and_grants_in_the_same_second(
    provider: Provider, app: App, services: AccountServices
) -> None:
    """A-76: all happens while the clock stands still."""
    tokens = await provider.tokens(app)
    code = await provider.code(app)
    script = await provider.add_credential("secret")
    sent = {"username": "alice", "password": "password123"}
    answer = await provider.public.post("/idp/credentials", json.dumps(sent), JSON)
    direct = answer.json()["access_token"]
    assert await provider.get(tokens["access_token"], app.key) == 200
    assert await provider.get(direct, None) == 200
    account_id = provider.account.account_id
    provider.account = await services.accounts.set_password(account_id, "another password")
    assert await provider.get(tokens["access_token"], app.key) == 401
    assert await provider.get(direct, None) == 401
    assert_refused(await provider.refresh(app, tokens["refresh_token"]), "invalid_grant")
    assert_refused(await provider.redeem(app, code), "invalid_grant")
    answer = await provider.public.post("/idp/credentials", json.dumps(sent), JSON)
    assert answer.status == 401
    form = {"grant_type": "client_credentials"}
    answer = await provider.token(form, headers=basic(script, "secret"))
    assert await provider.get(answer.json()["access_token"], None) == 200
    sent["password"] = "another password"
    answer = await provider.public.post("/idp/credentials", json.dumps(sent), JSON)
    assert await provider.get(answer.json()["access_token"], None) == 200


async def test_tokens_of_a_disabled_account_do_not_count_nor_when_it_is_enabled_again(
    provider: Provider, app: App, services: AccountServices
) -> None:
    """A-76"""
    tokens = await provider.tokens(app)
    account_id = provider.account.account_id
    for change in (services.accounts.disable, services.accounts.enable):
        await change(account_id)
        assert await provider.get(tokens["access_token"], app.key) == 401
        assert_refused(await provider.refresh(app, tokens["refresh_token"]), "invalid_grant")


async def test_tokens_of_a_removed_account_open_nothing_also_of_its_successor(
    provider: Provider, app: App, services: AccountServices
) -> None:
    """A-97, A-109: whoever gets the name next has the WebID, and not the tokens."""
    tokens = await provider.tokens(app)
    await services.accounts.delete(provider.account.account_id)
    assert await provider.get(tokens["access_token"], app.key) == 401
    await services.accounts.free_name("alice")
    assert (await create(provider, name="alice")).status == 201
    assert await provider.get(tokens["access_token"], app.key) == 401
    assert_refused(await provider.refresh(app, tokens["refresh_token"]), "invalid_grant")


async def test_client_credentials_get_tokens_until_they_are_ended(
    provider: Provider, services: AccountServices
) -> None:
    """A-67, A-86: with a secret as it is, and bound to a key or not."""
    account = await services.accounts.read(provider.account.account_id)
    assert account is not None
    made = await services.credentials.create(account, name="script")
    header = basic(made.credential.credential_id, made.secret, encode=False)
    form = {"grant_type": "client_credentials"}
    key = Signer.new()
    plain = (await provider.token(form, headers=header)).json()["access_token"]
    bound = (await provider.token(form, headers=header, key=key)).json()["access_token"]
    claims = await provider.claims(bound)
    assert claims["webid"] == provider.account.web_id
    assert claims["client_id"] == made.credential.credential_id
    assert claims["sub"] == provider.account.account_id
    assert (await provider.get(plain, None), await provider.get(bound, key)) == (200, 200)
    wrong = basic(made.credential.credential_id, made.secret[:-1] + "x", encode=False)
    assert_refused(await provider.token(form, headers=wrong), "invalid_client", status=401)
    await services.credentials.delete(account.key, made.credential.credential_id)
    assert (await provider.get(plain, None), await provider.get(bound, key)) == (401, 401)
    assert_refused(await provider.token(form, headers=header), "invalid_client", status=401)

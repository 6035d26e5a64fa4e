"""Weaknesses of the way in: accounts, consent, sign-ins, clients and their tokens."""

from __future__ import annotations

import json
import math
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from podstead.app.adapters.passwords import Argon2Passwords
from podstead.idp.passwords import PasswordCheck
from podstead.idp.sign_in import SignInFailed
from tests.support.accounts import ADDRESS, CHEAP, office, password_of
from tests.support.browser import FORM
from tests.support.people import PASSWORD, Account, Person, answered
from tests.support.provider_clients import (
    CALLBACK,
    JSON,
    App,
    StartServer,
    private,
    register,
    script_token,
    sign_in_script,
)
from tests.support.server import Answer, ServerProcess, run_command
from tests.support.signing import decoded
from tests.support.websites import Website

EVIL = "https://evil.example"


def test_w_5_being_signed_in_gives_an_application_nothing(alice: Person) -> None:
    """A-56"""
    provider = alice.account.provider
    register(provider).tokens(alice)  # signs in, and lets another application in
    app = register(provider)
    asked = answered(alice.go_on(alice.open(app.address(prompt="none"))))
    assert asked["error"] == "consent_required"
    assert "code" not in asked
    page = alice.open(app.address())
    assert page.path.startswith("/idp/interaction/")
    assert "Allow this application?" in page.text


def test_w_8_guessing_passwords_ends_soon(start_server: StartServer) -> None:
    """A-180, A-181. With other addresses in headers, too (W-7). From the fifth failure on, the name
    waits for a second, then for two, four and so on, however fast or slow the machine is."""
    server = start_server("--idp")
    _make_pod(server, "alice")
    started_s = time.monotonic()
    guesses = [
        sign_in_script(
            server, "alice", f"guess {number}", **{"X-Forwarded-For": f"203.0.113.{number}"}
        )
        for number in range(12)
    ]
    waits = int(math.log2(time.monotonic() - started_s + 1))
    assert [each.status for each in guesses[:5]] == 5 * [401]
    verdicts = [each for each in guesses if each.status == 401]
    assert len(verdicts) <= 5 + waits
    refused = [each for each in guesses if each.status == 429]
    assert len(verdicts) + len(refused) == len(guesses)
    assert all(int(each.headers["retry-after"]) > 0 for each in refused)


def test_w_8_invalid_credentials_have_a_limit(start_server: StartServer) -> None:
    """A-181"""
    server = start_server("--idp", "--invalid-credentials-per-minute", "5")
    asked = [server.get("/", {"Authorization": "Bearer a.b"}).status for _ in range(12)]
    assert asked[:5] == 5 * [401]
    assert asked[-1] == 429


def test_w_14_one_of_many_that_make_the_same_pod_has_it_whole(server: ServerProcess) -> None:
    """A-94"""
    with ThreadPoolExecutor(8) as together:
        answers = list(together.map(lambda n: _try_pod(server, "contested", f"c{n}"), range(8)))
    assert sorted(each.status for each in answers) == [201] + 7 * [409]
    winner = [each.status for each in answers].index(201)
    for number in range(8):
        signed_in = sign_in_script(server, f"c{number}@example.org", PASSWORD)
        assert signed_in.status == (200 if number == winner else 401)
        if number == winner:
            token = json.loads(signed_in.body)["access_token"]
            headers = {"Authorization": f"Bearer {token}"}
            assert server.get("/contested/private/", headers).status == 200
    assert _try_pod(server, "other-name", f"c{winner}").status == 409
    assert _try_pod(server, "other-name", f"c{(winner + 1) % 8}").status == 201


@pytest.mark.parametrize("password", ["b", "1234567", "x" * 1025, 12345678, None, ["password"]])
def test_w_15_a_password_has_eight_characters_or_more(
    server: ServerProcess, password: object
) -> None:
    """A-93"""
    sent = {"name": "weak", "email": "weak@example.org", "password": password}
    assert server.request("POST", "/.pods", json.dumps(sent), JSON).status == 400
    assert server.get("/weak/").status == 401


def test_w_15_responses_do_not_reveal_which_accounts_exist(alice: Person) -> None:
    """A-182"""
    provider = alice.account.provider
    known = sign_in_script(provider, alice.account.name, "a wrong password")
    unknown = sign_in_script(provider, "nobody-here", "a wrong password")
    assert (known.status, known.body) == (401, unknown.body)
    assert known.headers.keys() == unknown.headers.keys()
    assert unknown.status == 401


async def test_w_15_a_password_is_hashed_for_an_unknown_account_as_well(tmp_path: Path) -> None:
    """A-182: what takes the time is done either way."""
    hasher = _Counted()
    async with office(tmp_path / "root", passwords=hasher) as desk:
        await desk.new_account("alice")
        for login in ("alice", "nobody"):
            with pytest.raises(SignInFailed):
                await desk.services.sign_in.verify(login, password_of("bob"), address=ADDRESS)
    assert hasher.compared == ["a hash", "no hash"]


class _Counted(Argon2Passwords):
    def __init__(self) -> None:
        super().__init__(CHEAP)
        self.compared: list[str] = []

    async def verify(
        self, password_hash: str | None, password: str, *, network: str
    ) -> PasswordCheck:
        self.compared.append("no hash" if password_hash is None else "a hash")
        return await super().verify(password_hash, password, network=network)


def test_w_17_a_client_that_names_no_method_can_use_the_secret_it_gets(alice: Person) -> None:
    """A-47: as the Inrupt library for node registers."""
    app = register(alice.account.provider)
    assert app.secret is not None
    assert app.tokens(alice)["access_token"]
    stolen = App(app.server, app.client_id, "another secret", key=app.key)
    assert stolen.ask("/idp/token", {"grant_type": "refresh_token"}).status == 401


def test_w_18_a_client_of_a_document_gets_id_tokens_by_es256(
    alice: Person, website: Website
) -> None:
    """A-51: what the Inrupt library for node takes then."""
    client_id = website.publish_client("/app", CALLBACK)
    app = App(alice.account.provider, client_id)
    assert decoded(app.tokens(alice)["id_token"].split(".")[0])["alg"] == "ES256"


def test_w_19_a_client_can_ask_about_its_tokens_and_revoke_them(alice: Person) -> None:
    """A-82, A-83"""
    app = register(alice.account.provider)
    token = app.tokens(alice)["access_token"]
    path = private(alice.account)
    about = app.ask("/idp/token/introspection", {"token": token})
    assert json.loads(about.body)["active"] is True
    claims = app.get("/idp/me", token)
    assert json.loads(claims.body)["webid"] == alice.account.web_id
    assert app.get(path, token).status == 200

    assert app.ask("/idp/token/revocation", {"token": token}).status == 200
    assert app.get(path, token).status == 401
    about = app.ask("/idp/token/introspection", {"token": token})
    assert json.loads(about.body) == {"active": False}


def test_w_21_a_sign_in_belongs_to_the_browser_that_began_it(alice: Person) -> None:
    """A-57: the address is known to the attacker, who began it for the victim to finish."""
    page = Person(alice.account).open(register(alice.account.provider).address())
    assert page.path.startswith("/idp/interaction/")
    for method in ("GET", "POST"):
        assert _send(alice, method, page.path, site="same-origin").status == 403
    assert _send(alice, "GET", page.path.replace("interaction", "auth"), site="none").status == 403


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/idp/login"),
        ("POST", "/idp/logout"),
        ("POST", "/idp/register"),
        ("POST", "/idp/session/end/confirm"),
        ("POST", "/idp/account/password"),
        ("POST", "/idp/account/email"),
        ("POST", "/idp/account/delete"),
        ("POST", "/idp/account/sessions"),
        ("POST", "/idp/account/client-credentials"),
        ("DELETE", "/idp/account/grants/x"),
        ("POST", "/idp/interaction/x/login"),
        ("POST", "/idp/interaction/x/confirm"),
        ("POST", "/idp/interaction/x/abort"),
    ],
)
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_w_21_forms_of_other_sites_change_nothing(
    alice: Person, method: str, path: str, site: str
) -> None:
    """A-60"""
    assert alice.open(f"{alice.account.provider.base_url}/idp/login").status == 200
    sent = _send(alice, method, path, site=site, body=f"username={alice.account.name}")
    assert sent.status == 403
    assert "set-cookie" not in sent.headers


@pytest.mark.parametrize(
    "path",
    ["auth", "login", "register", "account", "account/sessions", "interaction/x", "session/end"],
)
def test_w_22_no_other_origin_reads_the_pages(server: ServerProcess, path: str) -> None:
    """A-46"""
    headers = {"Origin": EVIL, "Access-Control-Request-Method": "GET"}
    for method in ("GET", "OPTIONS"):
        answer = server.request(method, f"/idp/{path}", headers=headers)
        assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/idp/me"), ("POST", "/idp/reg"), ("POST", "/idp/token")]
)
def test_w_22_what_applications_ask_is_shared_without_cookies(
    server: ServerProcess, method: str, path: str
) -> None:
    """A-46"""
    answer = server.request(method, path, headers={"Origin": EVIL})
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers


def test_w_24_keys_are_replaced_and_tokens_go_on_to_count(start_server: StartServer) -> None:
    """A-44"""
    server = start_server("--idp")
    account = _make_pod(server, "alice")
    headers = {"Authorization": f"Bearer {script_token(account)}"}
    before = _published(server)
    rotated = run_command("keys", "rotate", "--root", str(server.root))
    assert rotated.returncode == 0, rotated.stderr
    server.restart()  # which reads the keys again at once
    after = _published(server)
    assert before < after, "the new keys are published, and the old ones still are"
    assert server.get(private(account), headers).status == 200


def _published(server: ServerProcess) -> set[str]:
    answer = server.get("/.well-known/jwks.json")
    assert answer.headers["cache-control"] == "public, max-age=300"
    return {key["kid"] for key in json.loads(answer.body)["keys"]}


def _try_pod(server: ServerProcess, name: str, email: str) -> Answer:
    sent = {"name": name, "email": f"{email}@example.org", "password": PASSWORD}
    return server.request("POST", "/.pods", json.dumps(sent), JSON)


def _make_pod(server: ServerProcess, name: str) -> Account:
    made = _try_pod(server, name, name)
    assert made.status == 201, made.text
    answer = json.loads(made.body)
    return Account(server, name, answer["webId"], answer["podUri"])


def _send(person: Person, method: str, path: str, *, site: str, body: str = "") -> Answer:
    """A request with the person's cookies that comes from a page of some site."""
    cookies = "; ".join(f"{name}={value}" for name, value in person.cookies.items())
    headers = {"Sec-Fetch-Site": site, "Content-Type": FORM, "Cookie": cookies}
    return person.account.provider.request(method, path, body or None, headers)

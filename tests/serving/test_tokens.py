"""The operator makes, lists and revokes tokens beside a running server (A-31, A-33)."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyotp
import pytest
from click.testing import Result

from tests.support.client import Client
from tests.support.commands import invoke
from tests.support.nostr import NostrKey, basic, nostr, packed
from tests.support.people import PASSWORD, Person, create_account
from tests.support.provider import App, Provider, running_provider
from tests.support.server import Answer, ServerProcess, run_command, running_server
from tests.support.signing import Signer, set_to, token_hash, with_other_signature


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with running_server(ServerProcess(tmp_path / "root")) as server:
        yield server


@pytest.fixture
def first_token(server: ServerProcess) -> str:
    """The token that a new pod comes with."""
    answer = server.request(
        "POST", "/.pods", '{"name": "alice"}', {"Content-Type": "application/json"}
    )
    assert answer.status == 201
    token: str = json.loads(answer.body)["token"]
    return token


def run(root: Path, *arguments: str, **environment: str) -> Result:
    return invoke(root, "token", *arguments, **environment)


def token_command(server: ServerProcess, *arguments: str) -> str:
    result = run(server.root, *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def status_with(server: ServerProcess, token: str) -> int:
    return server.get("/alice/private/", {"Authorization": f"Bearer {token}"}).status


def id_of(token: str) -> str:
    """The id by which a token is listed: its ``jti`` (A-30)."""
    payload = token.partition(".")[0]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return str(claims["jti"])


def states(server: ServerProcess) -> dict[str, str]:
    """The state of each of Alice's tokens, by id."""
    lines = token_command(server, "list", "alice").splitlines()
    assert lines[0].split() == ["ID", "POD", "ISSUED", "EXPIRES", "STATE"]
    return {line.split()[0]: line.split()[4] for line in lines[1:]}


def test_a_further_token_is_accepted_by_the_running_server(
    server: ServerProcess, first_token: str
) -> None:
    """A-31"""
    token = token_command(server, "create", "alice").strip()
    assert token != first_token
    assert status_with(server, token) == status_with(server, first_token) == 200
    assert states(server) == {id_of(first_token): "valid", id_of(token): "valid"}


def test_a_revoked_token_is_refused_from_the_next_request_on_and_no_other_is(
    server: ServerProcess, first_token: str
) -> None:
    """A-33"""
    first_id = id_of(first_token)
    token = token_command(server, "create", "alice").strip()
    assert status_with(server, first_token) == 200
    assert token_command(server, "revoke", first_id) == f"Revoked {first_id}.\n"
    assert status_with(server, first_token) == 401
    assert status_with(server, token) == 200
    assert states(server) == {id_of(first_token): "revoked", id_of(token): "valid"}


def test_all_tokens_of_a_pod_are_revoked_together(server: ServerProcess, first_token: str) -> None:
    """A-33"""
    token = token_command(server, "create", "alice").strip()
    assert token_command(server, "revoke", "--pod", "alice") == "Revoked 2 tokens of alice.\n"
    assert status_with(server, token) == status_with(server, first_token) == 401
    assert token_command(server, "revoke", "--pod", "alice") == "Revoked 0 tokens of alice.\n"


def test_tokens_survive_a_restart_and_so_does_their_revocation(
    server: ServerProcess, first_token: str
) -> None:
    """A-32"""
    token = token_command(server, "create", "alice", "--token-lifetime-s", "0").strip()
    token_command(server, "revoke", id_of(first_token))
    server.restart()
    assert status_with(server, token) == 200
    assert status_with(server, first_token) == 401
    assert f"{id_of(token)}  alice" in token_command(server, "list")
    assert "never" in token_command(server, "list")


def test_tokens_outlive_a_change_of_the_key_while_it_is_the_previous_one(
    tmp_path: Path,
) -> None:
    """A-32"""
    old, new = bytes(range(32)).hex(), bytes(range(32, 64)).hex()
    secret = tmp_path / "secret"
    secret.write_text(old)
    server = ServerProcess(tmp_path / "root", options=("--token-secret-file", str(secret)))
    with running_server(server):
        answer = server.request(
            "POST", "/.pods", '{"name": "alice"}', {"Content-Type": "application/json"}
        )
        token: str = json.loads(answer.body)["token"]
        secret.write_text(f"{new}\n{old}\n")
        server.restart()
        assert status_with(server, token) == 200
        secret.write_text(new)
        server.restart()
        assert status_with(server, token) == 401


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("create", "bob"), "There is no pod 'bob'."),
        (("list", "bob"), "There is no pod 'bob'."),
        (("revoke", "--pod", "bob"), "There is no pod 'bob'."),
        (("revoke", "0123"), "There is no token with the id '0123'."),
    ],
)
def test_what_is_not_there_is_said_and_ends_with_1(
    server: ServerProcess, arguments: tuple[str, ...], sentence: str
) -> None:
    result = run(server.root, *arguments)
    assert (result.exit_code, result.stderr) == (1, f"Error: {sentence}\n")


def test_without_data_there_are_no_tokens(tmp_path: Path) -> None:
    result = run(tmp_path, "list")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: There is no data in {tmp_path}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [("revoke",), ("revoke", "0123", "--pod", "alice")])
def test_revoking_needs_one_of_an_id_and_a_pod(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert run(tmp_path, *arguments).exit_code == 2


def test_no_token_is_made_where_none_is_accepted(server: ServerProcess, first_token: str) -> None:
    """A-34"""
    result = run(server.root, "create", "alice", PODSTEAD_SIMPLE_TOKENS="false")
    assert result.exit_code == 2
    assert "Simple tokens are off" in result.stderr
    assert len(states(server)) == 1


# --- ``podstead account reset-two-factor``, beside a running server ----------------------------


FACTOR = "/idp/account/two-factor"


def token_status(server: ServerProcess, name: str) -> int:
    """The status of a sign-in with the password alone."""
    sent = json.dumps({"username": name, "password": PASSWORD})
    with Client(server) as client:
        json_type = {"Content-Type": "application/json"}
        return client.request("POST", "/idp/credentials", sent, json_type).status


@pytest.mark.feature("two_factor")
def test_an_operator_resets_a_second_factor_by_command(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with running_server(ServerProcess(root=root, options=["--idp"])) as server:
        account = create_account(server)
        person = Person(account)
        person.sign_in(person.open(f"{server.base_url}/idp/login"))
        page = person.open(server.base_url + FACTOR)
        secret = page.form(FACTOR).fields["secret"]
        person.fill_in(page, FACTOR, code=pyotp.TOTP(secret).at(int(time.time())))
        assert token_status(server, account.name) == 401
        ended = run_command("account", "reset-two-factor", account.name, "--root", str(root))
        assert ended.returncode == 0, ended.stderr
        assert token_status(server, account.name) == 200
        ended = run_command("account", "reset-two-factor", "nobody", "--root", str(root))
        assert ended.returncode == 1


# --- A running server, its workers and its log, shown tokens that are bound to a key -----------


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


# --- A running server and its workers, sent requests that are signed with a Nostr key ----------


PLACE = "/alice/private/"
DOC = f"{PLACE}doc"


def with_alice_and_a_key(server: ServerProcess, key: NostrKey) -> str:
    """A pod whose private container the key may use; its owner's simple token."""
    typed = {"Content-Type": "application/json"}
    pod = json.loads(server.request("POST", "/.pods", '{"name": "alice"}', typed).body)
    owner = {"Authorization": f"Bearer {pod['token']}", "Content-Type": "text/turtle"}
    rules = (
        "@prefix acl: <http://www.w3.org/ns/auth/acl#>.\n"
        f"[] a acl:Authorization; acl:agent <{pod['webId']}>, <{key.did}>;\n"
        "acl:accessTo <./>; acl:default <./>; acl:mode acl:Read, acl:Write, acl:Control.\n"
    )
    assert server.request("PUT", f"{PLACE}.acl", rules, owner).status in {201, 204}
    assert server.request("PUT", DOC, "<#a> <#b> 1 .", owner).status == 201
    return str(pod["token"])


@pytest.mark.feature("nostr")
def test_of_many_concurrent_uses_of_an_event_one_is_valid_in_any_worker(
    tmp_path: Path,
) -> None:
    """A-147."""
    key = NostrKey.new()
    options = ("--workers", "2", "--invalid-credentials-per-minute", "0")
    with running_server(ServerProcess(tmp_path / "root", options)) as server:
        with_alice_and_a_key(server, key)
        for _ in range(3):
            event = key.event("GET", f"{server.base_url}{DOC}", int(time.time()))
            with ThreadPoolExecutor(8) as senders:
                fields = [nostr(event), basic(event)] * 12
                answers = list(senders.map(lambda each: server.get(DOC, each), fields))
            assert sorted(answer.status for answer in answers) == [200] + [401] * 23


@pytest.mark.feature("nostr")
def test_a_large_body_is_hashed_on_its_way_to_the_disk(tmp_path: Path) -> None:
    """Over a socket, in one and in chunks."""
    key, body = NostrKey.new(), bytes(range(256)) * 16384
    with running_server(ServerProcess(tmp_path / "root")) as server:
        owner = {"Authorization": f"Bearer {with_alice_and_a_key(server, key)}"}
        url = f"{server.base_url}{PLACE}large"
        for signed, status in ((body + b"!", 401), (body, 201)):
            event = key.event("PUT", url, int(time.time()), payload=signed)
            fields = {**nostr(event), "Content-Type": "application/octet-stream"}
            assert server.request("PUT", f"{PLACE}large", body, fields).status == status
        stored = server.get(f"{PLACE}large", owner).body
        assert hashlib.sha256(stored).digest() == hashlib.sha256(body).digest()


@pytest.mark.feature("nostr")
def test_no_part_of_an_event_is_logged_whatever_is_wrong_with_it(tmp_path: Path) -> None:
    """A-183, A-15."""
    key = NostrKey.new()
    options = ("--log-level", "debug", "--invalid-credentials-per-minute", "0")
    with running_server(ServerProcess(tmp_path / "root", options)) as server:
        with_alice_and_a_key(server, key)
        url, now_s = f"{server.base_url}{DOC}", int(time.time())
        event = key.event("GET", url, now_s)
        other = key.event("PUT", url, now_s)
        shown = [nostr(event), nostr(event), basic(other), nostr({**event, "sig": other["sig"]})]
        assert [server.get(DOC, each).status for each in shown] == [200, 401, 401, 401]
        assert server.stop() == 0
        logged = server.errors
    parts = [packed(event), packed(other), event["sig"], other["sig"], event["id"], other["id"]]
    parts += [base64.b64encode(f"nostr:{packed(other)}".encode()).decode()]
    assert not [part for part in parts if part[:24] in logged]

"""Weaknesses of the server around the tokens: routes, headers, secrets, requests of its own."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlencode

import pytest

from podstead.app.adapters.keys import ensure_token_key
from podstead.config import Settings
from podstead.outbound.urls import AddressScope, may_be_reached
from podstead.storage.keys import KeyFiles
from podstead.storage.root import prepare_root
from tests.support.application import running
from tests.support.asgi import Client as AsgiClient
from tests.support.client import Client
from tests.support.people import PASSWORD, Account, Person, create_account
from tests.support.provider import CONFIGURATION, Page, Provider
from tests.support.provider_clients import (
    JSON,
    StartServer,
    acl,
    listening,
    private,
    public,
    register,
    script_token,
    sign_in_script,
)
from tests.support.server import Answer, ServerProcess
from tests.support.signing import set_to
from tests.support.wire import Wire, compose

OURS = ["idp/x", "idp/token/x", ".well-known/x", ".pods/x", ".notifications/x", "%69dp/x"]


@pytest.mark.parametrize("path", [*OURS, ".well-known/openid-configuration", "idp/login"])
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_w_4_nothing_is_stored_below_the_servers_own_addresses(
    server: ServerProcess, path: str, method: str
) -> None:
    """A-13"""
    before = server.get(f"/{path}")
    answer = server.request(method, f"/{path}", "content", {"Content-Type": "text/plain"})
    assert answer.status in {404, 405}
    assert server.get(f"/{path}").status == before.status != 201


@pytest.mark.parametrize("name", ["idp", "IDP", "Idp", "login", "well-known", "pods", "api"])
def test_w_4_no_pod_has_a_name_of_the_servers_own(server: ServerProcess, name: str) -> None:
    """A-91"""
    sent = {"name": name, "email": "someone@example.org", "password": PASSWORD}
    answer = server.request("POST", "/.pods", json.dumps(sent), JSON)
    assert (answer.status, json.loads(answer.body)["error"]) == (400, "Reserved pod name")


def test_w_7_only_a_listed_proxy_may_speak_for_another_address(alice: Person) -> None:
    """A-11, A-12: a proof for another host does not count by a header."""
    app = register(alice.account.provider)
    token = app.tokens(alice)["access_token"]
    path = private(alice.account)
    forwarded = {
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Proto": "https",
        "Forwarded": "host=evil.example;proto=https",
    }
    assert app.get(path, token, url=f"https://evil.example{path}", **forwarded).status == 401
    assert app.get(path, token, **forwarded).status == 200
    described = alice.account.provider.get("/.well-known/openid-configuration", forwarded)
    assert "evil.example" not in described.text
    assert alice.account.provider.get(path, {"Host": "evil.example"}).status == 421


def test_w_10_no_address_leads_to_what_the_server_keeps_for_itself(alice: Person) -> None:
    """A-43: not with the root open for everybody either."""
    server = alice.account.provider
    paths = [path.relative_to(server.root) for path in server.root.rglob("*") if path.is_file()]
    keys = [path for path in paths if path.parts[0] == "keys"]
    assert len(keys) >= 3, "the key of tokens, and two of the provider"
    with Wire(server) as wire:
        for target in [target for path in paths for target in _spellings(path, alice.account)]:
            wire.send(compose("GET", target, host=f"localhost:{server.port}"))
            assert wire.receive("GET").status in {400, 401, 403, 404}, target
    for path in [*keys, Path("keys")]:
        mode = stat.S_IMODE((server.root / path).stat().st_mode)
        assert mode & 0o077 == 0, f"{path} can be read by others: {mode:o}"


def _spellings(path: Path, account: Account) -> Iterator[str]:
    for dot in (".", "%2e", "%2E"):
        for slash in ("/", "%2f"):
            up = f"{dot}{dot}"
            yield f"/{slash.join(path.parts)}"
            yield f"/{dot}{slash.join(path.parts)}"
            yield f"/{account.name}/{up}{slash}{slash.join(path.parts)}"
            yield f"/{account.name}/public/{up}{slash}{up}{slash}{slash.join(path.parts)}"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "2130706433",
        "0x7f.1",
        "127.1",
        "localhost.",
    ],
)
async def test_w_11_a_server_for_the_public_connects_to_no_private_address(
    tmp_path: Path, stranger: Provider, host: str
) -> None:
    """A-187, A-188: as the issuer of a token, and as the document of a client."""
    settings = Settings(root=tmp_path / "root", base_url="https://pods.example", idp=True)
    ensure_token_key(KeyFiles(prepare_root(settings.root).keys))
    async with running(settings) as application:
        client = AsgiClient(application, host="pods.example")
        with listening() as (port, connections):
            issuer = f"https://{host}:{port}"
            app = stranger.app(f"{issuer}/#me", set_to("iss", issuer))
            fields = app.fields("GET", "https://pods.example/alice/")
            answer = await client.request("GET", "/alice/", headers=fields)
            assert (answer.status, "issuer" in answer.text) == (401, True), answer.text
            query = urlencode({"client_id": f"{issuer}/client", "redirect_uri": issuer})
            assert (await client.get(f"/idp/auth?{query}")).status == 400
    assert connections == []


@pytest.mark.parametrize(
    "address",
    [
        "198.18.0.1",
        "225.1.1.1",
        "239.255.255.255",
        "241.0.0.1",
        "255.255.255.255",
        "fd12::1",
        "fe90::1",
        "::ffff:a9fe:a9fe",
        "169.254.169.254",
        "::1",
        "100.64.0.1",
    ],
)
def test_w_11_addresses_that_were_missed_are_forbidden(address: str) -> None:
    """A-188"""
    assert not may_be_reached(ip_address(address), AddressScope.PUBLIC)


@pytest.mark.parametrize("jwks", ["http://169.254.169.254/", "http://10.0.0.1/", "/jwks", "file:"])
def test_w_11_where_the_keys_are_is_looked_at_as_well(
    alice: Person, stranger: Provider, jwks: str
) -> None:
    """A-108: the issuer can be reached, and says that its keys are elsewhere."""
    web_id = stranger.profile("/someone", stranger.issuer)
    described = {**stranger.configuration(), "jwks_uri": jwks}
    stranger.pages[CONFIGURATION] = Page.of(described)
    path = private(alice.account)
    fields = stranger.app(web_id).fields("GET", alice.account.provider.base_url + path)
    assert alice.account.provider.get(path, fields).status == 401
    assert stranger.count("/jwks") == 0


INSIDE = re.compile(
    r"Traceback|joserfc|authlib|msgspec|apsw|Error:|line \d|column \d|char \d|\.py\b"
)


def test_w_28_errors_reveal_no_internals_and_all_responses_have_security_headers(
    alice: Person,
) -> None:
    """A-186, A-192"""
    server = alice.account.provider
    answers = [
        *(server.request("POST", path, "{", JSON) for path in ("/.pods", "/idp/reg")),
        server.request("POST", "/idp/credentials", '{"username": 1, "password": [}', JSON),
        server.request("POST", "/idp/token", "%ff=%00&a", {"Content-Type": "text/plain"}),
        server.request("POST", "/idp/token", "%ff=%00&a", {"Content-Type": _FORM}),
        server.get("/idp/auth?client_id=%ff&client_id="),
        server.get(public(alice.account), {"Authorization": "Bearer e30.e30.e30"}),
        server.get(public(alice.account), {"Authorization": "DPoP \xff", "DPoP": "{}"}),
        server.get("/%zz"),
        server.get("/nobody/"),
        server.get("/idp/interaction/x", {"Accept": "text/html"}),
    ]
    for answer in answers:
        assert 400 <= answer.status < 500
        assert not INSIDE.search(answer.text), answer.text
    for answer in [*answers, server.get("/"), server.get(public(alice.account))]:
        _assert_guarded(answer)


_FORM = "application/x-www-form-urlencoded"


def _assert_guarded(answer: Answer) -> None:
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] in {"no-referrer", "strict-origin-when-cross-origin"}


def test_w_28_what_is_secret_or_personal_does_not_get_into_the_log(
    start_server: StartServer,
) -> None:
    """A-183"""
    server = start_server("--idp", "--log-level", "debug")
    person = Person(create_account(server))
    app = register(server)
    tokens = app.tokens(person)
    sign_in_script(server, person.account.email, "a wrong guess")
    token = script_token(person.account)
    server.get(private(person.account), {"Authorization": f"Bearer {token}"})
    server.get(private(person.account), {"Authorization": f"Bearer {token}x"})
    server.stop()
    assert "podstead.audit" in server.errors, "the log is written"
    secrets = [PASSWORD, "a wrong guess", person.account.email, token, app.secret, app.verifier]
    secrets += [*person.cookies.values(), *(str(each) for each in tokens.values() if each != 3600)]
    secrets = [each for each in secrets if each not in {None, "DPoP", tokens["scope"]}]
    assert [each for each in secrets if str(each) in server.errors] == []


def test_w_29_access_rules_are_guarded_themselves(alice: Person) -> None:
    server = alice.account.provider
    for path in (f"/{alice.account.name}/.acl", f"{private(alice.account)}.acl"):
        assert server.get(path).status == 401
        for method in ("PUT", "PATCH", "DELETE"):
            content_type = "text/n3" if method == "PATCH" else "text/turtle"
            sent = server.request(method, path, "", {"Content-Type": content_type})
            assert sent.status == 401
    known = {"Authorization": f"Bearer {script_token(create_account(server))}"}
    assert server.get(f"{private(alice.account)}.acl", known).status == 403


def test_w_29_no_spelling_climbs_out_of_a_public_container(alice: Person) -> None:
    server = alice.account.provider
    with alice.account.owner() as owner:
        assert owner.put(f"{private(alice.account)}secret", "secret").status == 201
    inside = f"/{alice.account.name}/public/"
    with Wire(server) as wire:
        for up in ("..", "%2e%2e", ".%2e", "%2E%2E", "..%2f..", "..%5c", "..;"):
            for slash in ("/", "%2f", "%5c", "\\", "//"):
                target = f"{inside}{up}{slash}private{slash}secret"
                wire.send(compose("GET", target, host=f"localhost:{server.port}"))
                answer = wire.receive("GET")
                assert answer.status in {400, 401, 404}, target
                assert answer.body != b"secret"


def test_w_29_huge_and_deep_json_is_refused(server: ServerProcess) -> None:
    huge = b'{"name": "' + 10_000_000 * b"x" + b'"}'
    deep = 100_000 * b"[" + 100_000 * b"]"
    for path in ("/.pods", "/idp/reg", "/idp/credentials"):
        for body in (huge, deep):
            with Wire(server) as wire:
                head = compose(
                    "POST",
                    path,
                    {"Content-Type": "application/json"},
                    host=f"localhost:{server.port}",
                    content_length=len(body),
                )
                wire.send_what_is_taken(head + body)
                assert wire.receive("POST").status in {400, 413}, path
    assert server.get("/").status == 200


def test_w_29_a_huge_profile_gets_nobody_in(alice: Person, stranger: Provider) -> None:
    web_id = stranger.profile("/someone", stranger.issuer)
    document = stranger.pages["/someone"]
    assert isinstance(document, Page)
    path = private(alice.account)
    url = alice.account.provider.base_url + path
    filler = b"".join(b"<#a> <#b> %d .\n" % number for number in range(100_000))
    stranger.pages["/someone"] = Page(document.body + filler, "text/turtle")
    assert alice.account.provider.get(path, stranger.app(web_id).fields("GET", url)).status == 401


def test_w_29_groups_count(alice: Person) -> None:
    """AgentGroup of access rules is not passed over."""
    server = alice.account.provider
    friend = create_account(server)
    token = {"Authorization": f"Bearer {script_token(friend)}"}
    path = f"{private(alice.account)}doc"
    base = server.base_url
    group = f"/{alice.account.name}/public/group"
    listed = f"<#g> <http://www.w3.org/2006/vcard/ns#hasMember> <{friend.web_id}>."
    rules = acl(
        base + path,
        f"acl:agent <{alice.account.web_id}>; acl:mode acl:Read, acl:Write, acl:Control",
        f"acl:agentGroup <{base}{group}#g>; acl:mode acl:Read",
    )
    with alice.account.owner() as owner:
        _put(owner, path, "text", "text/plain")
        _put(owner, f"{path}.acl", rules, "text/turtle")
        assert server.get(path, token).status == 403
        _put(owner, group, listed, "text/turtle")
    assert server.get(path, token).status == 200


def _put(owner: Client, path: str, body: str, content_type: str) -> None:
    assert owner.put(path, body, content_type).status in {201, 204}

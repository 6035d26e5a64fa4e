"""The provider at one name and the pods at another, both on loopback: a real server, as operators
have it, and what its data root remembers."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from click.testing import Result

from tests.support.commands import invoke
from tests.support.server import DEADLINE_S, ServerProcess, StartFailed, running_server

PASSWORD = "correct horse battery staple"
JSON = {"Content-Type": "application/json", "Accept": "application/json"}
PARTED = ("--idp", "--idp-base-url", "http://127.0.0.1:0")


def ask(
    server: ServerProcess,
    name: str,
    method: str,
    path: str,
    sent: object = None,
    headers: Mapping[str, str] = {},
) -> tuple[int, str]:
    """A request to the server by one of its names; the status and the text of the answer."""
    connection = http.client.HTTPConnection(name, server.port, timeout=DEADLINE_S)
    with closing(connection):
        body = None if sent is None else json.dumps(sent)
        connection.request(method, path, body, {**JSON, **headers})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def run(server: ServerProcess, *arguments: str, typed: str = "") -> Result:
    return invoke(server.root, "account", *arguments, typed=typed)


def test_the_provider_and_the_pods_are_parted_by_their_names(tmp_path: Path) -> None:
    with running_server(ServerProcess(tmp_path / "root", options=PARTED)) as server:
        provider = f"http://127.0.0.1:{server.port}"
        account = {"name": "alice", "email": "a@example.org", "password": PASSWORD}
        status, said = ask(server, "localhost", "POST", "/.pods", account)
        assert status == 201
        made = json.loads(said)
        assert made["webId"] == f"http://localhost:{server.port}/alice/#me"
        assert made["idpIssuer"] == provider
        login = {"username": "alice", "password": PASSWORD}
        assert ask(server, "localhost", "POST", "/idp/credentials", login)[0] == 404
        status, said = ask(server, "127.0.0.1", "POST", "/idp/credentials", login)
        assert status == 200
        token = {"Authorization": f"Bearer {json.loads(said)['access_token']}"}
        assert ask(server, "localhost", "GET", "/alice/private/", headers=token)[0] != 404
        private = {**token, "Accept": "text/turtle"}
        assert ask(server, "localhost", "GET", "/alice/private/", headers=private)[0] == 200
        assert ask(server, "127.0.0.1", "GET", "/alice/private/", headers=private)[0] == 404
        status, said = ask(server, "127.0.0.1", "GET", "/.well-known/openid-configuration")
        assert (status, json.loads(said)["issuer"]) == (200, provider)
        assert ask(server, "localhost", "GET", "/.well-known/openid-configuration")[0] == 404
        assert ask(server, "127.0.0.1", "GET", "/", headers={"Host": "other.example"})[0] == 421


def test_an_account_that_the_operator_makes_belongs_to_the_provider(tmp_path: Path) -> None:
    with running_server(ServerProcess(tmp_path / "root", options=PARTED)) as server:
        assert run(server, "create", "bob", typed=f"{PASSWORD}\n").exit_code == 0
        turtle = {"Accept": "text/turtle"}
        status, profile = ask(server, "localhost", "GET", "/bob/", headers=turtle)
        assert (status, f"oidcIssuer <http://127.0.0.1:{server.port}>" in profile) == (200, True)
        made = json.loads(run(server, "credentials", "bob", "--json").stdout)
        assert made["issuer"] == f"http://127.0.0.1:{server.port}"


@pytest.mark.parametrize("before", [PARTED, ("--idp",)], ids=["parted", "at one origin"])
def test_the_data_root_remembers_whose_the_accounts_are(
    tmp_path: Path, before: tuple[str, ...]
) -> None:
    """A provider of another name is no profile's; the operator decides whether it is a mistake."""
    server = ServerProcess(tmp_path / "root", options=before)
    with running_server(server):
        assert run(server, "create", "bob", typed=f"{PASSWORD}\n").exit_code == 0
    after = ("--idp",) if before == PARTED else PARTED
    names = {PARTED: f"http://127.0.0.1:{server.port}", ("--idp",): server.base_url}
    server.options = after
    with pytest.raises(StartFailed, match="exit code 2") as refused:
        server.start()
    assert f"belong to the identity provider {names[before]}" in str(refused.value)
    assert f"podstead account change-issuer {names[after]}" in str(refused.value)
    changed = run(server, "change-issuer", f"{names[after]}/")
    assert (changed.exit_code, names[before] in changed.stdout) == (0, True), changed.output
    with running_server(server):
        host = "127.0.0.1" if after == PARTED else "localhost"
        login = {"username": "bob", "password": PASSWORD}
        assert ask(server, host, "POST", "/idp/credentials", login)[0] == 200


@pytest.mark.embedded
def test_a_root_of_an_earlier_version_belongs_to_its_base_url(tmp_path: Path) -> None:
    """Which did not write the name of the provider down."""
    server = ServerProcess(tmp_path / "root", options=("--idp",))
    with running_server(server):
        pass
    connection = apsw.Connection(str(server.root / "podstead.db"))
    connection.execute("DELETE FROM facts WHERE name = 'issuer'")
    connection.close()
    server.options = PARTED
    with pytest.raises(StartFailed, match="belong to the identity provider"):
        server.start()
    server.options = ("--idp",)
    with running_server(server):
        assert ask(server, "localhost", "GET", "/.well-known/openid-configuration")[0] == 200


@pytest.mark.parametrize("url", ["nonsense", "ftp://a.example", "https://a.example/path"])
def test_a_url_that_cannot_be_a_provider_is_refused(tmp_path: Path, url: str) -> None:
    server = ServerProcess(tmp_path / "root")
    result = run(server, "change-issuer", url)
    assert result.exit_code == 2
    assert "without a path" in result.stderr

"""An upgrade replaces the installed package under a running server, which goes on as it was.

The server runs from a folder of its own, which holds a copy of the package and links to everything
that it depends on. Once it is ready the folder is taken away: whatever it loads later is missing.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.support.certificates import holder, key_turtle, rsa_key
from tests.support.curl import curl
from tests.support.features import GIT_OPTIONS
from tests.support.git import Git
from tests.support.listeners import CERTIFICATE, LISTENERS, client_tls
from tests.support.nostr import NostrKey, nostr
from tests.support.passkeys import SoftAuthenticator
from tests.support.processes import REPOSITORY
from tests.support.provider import Page, Provider, running_provider
from tests.support.server import Answer, ServerProcess, running_server
from tests.support.waiting import wait_until

PASSWORD = "correct horse battery staple"
JSON = {"Content-Type": "application/json", "Accept": "application/json"}
SCRIPT = {**JSON, "Sec-Fetch-Site": "same-origin"}
TURTLE = {"Content-Type": "text/turtle"}
ACL = "@prefix acl: <http://www.w3.org/ns/auth/acl#>.\n"
ISSUER = "http://www.w3.org/ns/solid/terms#oidcIssuer"


@pytest.fixture
def installation(tmp_path: Path) -> Path:
    """A folder for ``PYTHONPATH`` from which everything is imported that is not Python's own."""
    folder = tmp_path / "installed"
    folder.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.lower().startswith(("podstead", "_editable", "__pycache__")):
            (folder / entry.name).symlink_to(entry)
    shutil.copytree(REPOSITORY / "src/podstead", folder / "podstead")
    return folder


@pytest.fixture
def server(tmp_path: Path, installation: Path) -> Iterator[ServerProcess]:
    """Everything is on. The folder is gone as soon as the server is ready."""
    server = ServerProcess(
        tmp_path / "root",
        options=(*LISTENERS["webid-tls"], "--idp", *GIT_OPTIONS),
        command=(sys.executable, "-S", "-m", "podstead.cli", "start"),
        environment={"PYTHONPATH": str(installation), "PYTHONDONTWRITEBYTECODE": "1"},
        tls=client_tls(),
    )
    with running_server(server):
        installation.rename(installation.with_name("replaced"))
        # As of another version, which does not fit what is loaded.
        (installation / "podstead").mkdir(parents=True)
        (installation / "podstead/__init__.py").write_text("raise ImportError('another version')")
        yield server


@dataclass
class Person:
    """Somebody with an account, and a browser that is signed in."""

    server: ServerProcess
    name: str
    cookies: dict[str, str] = field(default_factory=dict)
    token: str = ""
    csrf_token: str = ""

    @property
    def pod(self) -> str:
        return f"{self.server.base_url}/{self.name}/"

    @property
    def web_id(self) -> str:
        return f"{self.pod}#me"

    def browse(self, method: str, path: str, body: str | None = None, **headers: str) -> Answer:
        """One request of the browser, which keeps the cookies that it is given."""
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        with contextlib.closing(self.server.connect()) as connection:
            connection.request(method, path, body, {"Cookie": cookies, **headers})
            response = connection.getresponse()
            for line in response.headers.get_all("Set-Cookie", []):
                name, _, value = line.partition(";")[0].partition("=")
                self.cookies[name] = value
            named = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, named, response.read())

    def post(self, path: str, sent: Mapping[str, object]) -> dict[str, object]:
        """What a script of a page sends, and gets."""
        answer = self.browse("POST", path, json.dumps(sent), **SCRIPT)
        said: dict[str, object] = json.loads(answer.body or b"{}")
        assert answer.status in {200, 201}, said
        return said

    def owned(self, method: str, path: str, body: str, fields: Mapping[str, str]) -> Answer:
        """A request of an application that the person uses."""
        credential = {"Authorization": f"Bearer {self.token}"}
        return self.server.request(method, f"/{self.name}/{path}", body, {**credential, **fields})


def signed_in(server: ServerProcess, name: str) -> Person:
    """A new account whose owner signs in, by a script and on the page."""
    person = Person(server, name)
    sent = {"name": name, "email": f"{name}@example.org", "password": PASSWORD}
    assert server.request("POST", "/.pods", json.dumps(sent), JSON).status == 201
    login = {"email": name, "password": PASSWORD}
    said = server.request("POST", "/idp/credentials", json.dumps(login), JSON)
    assert said.status == 200, said.text
    person.token = str(json.loads(said.body)["access_token"])
    page = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}
    assert "Sign in" in person.browse("GET", "/idp/login", **page).text
    form = {"Content-Type": "application/x-www-form-urlencoded", **page}
    typed = urlencode({"username": name, "password": PASSWORD})
    assert person.browse("POST", "/idp/login", typed, **form).status == 303
    account = person.browse("GET", "/.pages/security", **page).text
    token = re.search(r'name="csrf_token" value="([^"]+)"', account)
    assert token is not None, account
    person.csrf_token = token[1]
    return person


def use_passkey(person: Person) -> None:
    key = SoftAuthenticator(person.server.base_url)
    own = {"csrf_token": person.csrf_token}
    asked = person.post("/idp/passkey/register/options", own)
    made = {"challengeKey": asked["challengeKey"], "credential": key.create(asked), **own}
    person.post("/idp/passkey/register/verify", {**made, "name": "key"})
    asked = person.post("/idp/passkey/login/options", {})
    sent = {"challengeKey": asked["challengeKey"], "credential": key.get(asked)}
    person.post("/idp/passkey/login/verify", sent)


def use_resources(person: Person) -> None:
    """Every way of writing RDF, and of reading it."""
    assert person.owned("PUT", "private/a", "<#a> <#b> 1.", TURTLE).status == 201
    patch = "@prefix solid: <http://www.w3.org/ns/solid/terms#>. [] a solid:InsertDeletePatch; "
    changes = {
        "text/n3": f"{patch} solid:inserts {{ <#a> <#b> 2. }}.",
        "application/sparql-update": "INSERT DATA { <#a> <#b> 3 . }",
    }
    for media_type, change in changes.items():
        answer = person.owned("PATCH", "private/a", change, {"Content-Type": media_type})
        assert answer.status == 204, answer.text
    for media_type in ("application/ld+json", "text/turtle", "application/n-triples"):
        answer = person.owned("GET", "private/a", "", {"Accept": media_type})
        assert answer.status == 200, answer.text
    note = {"@context": "https://www.w3.org/ns/activitystreams", "type": "Note", "name": "n"}
    json_ld = {"Content-Type": "application/ld+json"}
    assert person.owned("PUT", "private/n", json.dumps(note), json_ld).status == 201
    answer = person.owned("GET", "private/n", "", {"Accept": "text/turtle"})
    assert "a as:Note" in answer.text
    for path in ("/", f"/{person.name}/private/", "/favicon.ico"):
        assert person.server.get(path, {"Accept": "text/html"}).status in {200, 303}
    for page in (f"/.pages/files/{person.name}/", f"/.pages/files/{person.name}/private/a"):
        asked = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin", "Accept-Language": "de"}
        answer = person.browse("GET", page, **asked)
        assert (answer.status, "Abmelden" in answer.text) == (200, True)


def use_git(person: Person, folder: Path) -> None:
    settings = (f"http.sslCAInfo={CERTIFICATE}",)
    owner = Git(folder, settings).with_token(person.token)
    work = owner.cloned(f"{person.pod}private/", "work")
    work.commit("pushed.txt", "pushed")
    work("push", "--quiet", "origin", "HEAD")
    assert owner.cloned(f"{person.pod}private/", "again").tip() == work.tip()


def use_certificate(person: Person, folder: Path) -> None:
    """One that the account page makes, and one that the person has."""
    own = {"csrf_token": person.csrf_token}
    assert "certificate" in str(person.post("/idp/account/certificates", own))
    stated = key_turtle(rsa_key(), who=f"{person.web_id}")
    assert (
        person.owned(
            "PUT", "", f"{stated}\n<#me> <{ISSUER}> <{person.server.base_url}>.", TURTLE
        ).status
        == 204
    )
    certificate, key = holder(person.web_id).write(folder)
    shown = ("--cert", str(certificate), "--key", str(key), "--cacert", str(CERTIFICATE))
    assert curl(*shown, f"{person.pod}private/a").status == 200


def use_others(person: Person, provider: Provider) -> None:
    """What needs documents of other servers, and keys that no account has."""
    friend = provider.profile("/friend", provider.issuer)
    key = NostrKey.new()
    agents = ", ".join(f"<{each}>" for each in (person.web_id, friend, key.did))
    rules = f"{ACL}[] a acl:Authorization; acl:agent {agents}; acl:accessTo <./shared>; "
    assert person.owned("PUT", "private/shared", "x", {"Content-Type": "text/plain"}).status == 201
    rules += "acl:mode acl:Read, acl:Control."
    assert person.owned("PUT", "private/shared.acl", rules, TURTLE).status == 201
    url, path = f"{person.pod}private/shared", f"/{person.name}/private/shared"
    fields = provider.app(friend).fields("GET", url)
    assert person.server.get(path, fields).status == 200
    event = key.event("GET", url, provider.app(friend).now_s)
    assert person.server.get(path, nostr(event)).status == 200
    redirect = f"{provider.issuer}/back"
    client_id = f"{provider.issuer}/client"
    provider.pages["/client"] = Page.of(
        {
            "@context": ["https://www.w3.org/ns/solid/oidc-context.jsonld"],
            "client_id": client_id,
            "client_name": "An application",
            "redirect_uris": [redirect],
        }
    )
    asked = {
        "client_id": client_id,
        "redirect_uri": redirect,
        "response_type": "code",
        "scope": "openid webid",
        "code_challenge": "a" * 43,
        "code_challenge_method": "S256",
    }
    led = person.browse("GET", f"/idp/auth?{urlencode(asked)}", Accept="text/html")
    assert led.status == 303
    page = person.browse("GET", led.headers["location"], Accept="text/html")
    assert "An application" in page.text


def worker_of(server: ServerProcess) -> int:
    """The process number of its only worker, 0 while there is none."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text(encoding="ascii")
    return int(next(iter(children.split()), 0))


def end_worker(server: ServerProcess) -> None:
    """Kill the worker, and wait until another answers: it has taken over, and no connection is left
    that the one before had taken up."""
    before = worker_of(server)
    os.kill(before, signal.SIGKILL)

    def another_answers() -> bool:
        if worker_of(server) in {before, 0}:
            return False
        with contextlib.suppress(OSError, HTTPException):
            return server.get("/favicon.ico").status == 200
        return False

    wait_until(another_answers, "another worker")


@pytest.mark.feature("nostr")
@pytest.mark.feature("passkeys")
@pytest.mark.needs("git")
@pytest.mark.needs("curl")
def test_a_server_whose_package_is_replaced_keeps_running_the_old_one(
    server: ServerProcess, tmp_path: Path
) -> None:
    """Also in a worker that takes over from one that died afterwards."""
    with running_provider() as provider:
        for name in ("first", "second"):
            folder = tmp_path / name
            folder.mkdir()
            person = signed_in(server, name)
            use_resources(person)
            use_git(person, folder)
            use_others(person, provider)
            use_certificate(person, folder)
            use_passkey(person)
            if name == "first":
                end_worker(server)
    for trouble in ("Traceback", "ImportError", "ModuleNotFoundError", "could not be handled"):
        assert trouble not in server.errors, server.errors

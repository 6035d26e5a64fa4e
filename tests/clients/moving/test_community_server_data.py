"""Pods that the Community Solid Server wrote, imported and compared with what it had answered."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import unquote

import pytest
import rdflib
from rdflib import DCTERMS, URIRef

from tests.clients.client_home import StartClient
from tests.clients.moving.reading_clients import LIBRARIES, SCENARIO, assert_read
from tests.support.client_process import Agent, ClientProcess
from tests.support.community_server import (
    PASSWORD,
    CommunityServer,
    ForeignAgent,
    running_community_server,
)
from tests.support.engine import stored_entries
from tests.support.oauth import basic
from tests.support.python_clients import FOLDER, PYTHON, install_clients
from tests.support.recorded_pod import (
    Asking,
    Recorded,
    assert_same,
    members,
    naming_issuer,
    record_all,
)
from tests.support.server import (
    DEADLINE_S,
    Answer,
    ServerProcess,
    request_to,
    run_command,
    running_server,
)
from tests.support.signing import Signer, proof_claims, token_hash

# A person at any Solid server, signed in with client credentials (Solid-OIDC, RFC 9449).


@dataclass
class SolidSession:
    """Sends requests with a token and a proof; without credentials, as the public."""

    issuer: str
    client_id: str = ""
    secret: str = ""
    _key: Signer = field(default_factory=Signer.new)
    _token: str = ""

    def request(
        self, method: str, url: str, body: bytes | str | None = None, **headers: str
    ) -> Answer:
        """One request; header fields by names with underscores."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.client_id:
            token = self._token = self._token or self._signed_in()
            claims = {**proof_claims(method, url, int(time.time())), "ath": token_hash(token)}
            fields |= {"Authorization": f"DPoP {token}", "DPoP": self._key.proof(claims)}
        return request_to(method, url, body, fields)

    def _signed_in(self) -> str:
        configuration = self.issuer.rstrip("/") + "/.well-known/openid-configuration"
        endpoint = json.loads(request_to("GET", configuration).body)["token_endpoint"]
        proof = self._key.proof(proof_claims("POST", endpoint, int(time.time())))
        answer = request_to(
            "POST",
            endpoint,
            "grant_type=client_credentials&scope=webid",
            {
                **basic(self.client_id, self.secret),
                "Content-Type": "application/x-www-form-urlencoded",
                "DPoP": proof,
            },
        )
        assert answer.status == 200, answer.text
        token: str = json.loads(answer.body)["access_token"]
        return token


pytestmark = pytest.mark.feature("importers")


PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452") + bytes(range(256))
NOTE = '<#note> <http://purl.org/dc/terms/title> "Café"; <http://xmlns.com/foaf/0.1/maker> <{}>.'
DOCUMENTS = {
    # As in URLs: names that are hard to keep, and types that their extensions do not say.
    "notes/plain.txt": ("text/plain", b"plain"),
    "notes/a%20b.txt": ("text/plain", b"a space"),
    "notes/%C3%BCn%C3%AFcode%20%E2%98%95.ttl": ("text/turtle", NOTE.encode()),
    "notes/100%25%20sure.txt": ("text/plain", b"percent"),
    "notes/50%2525.txt": ("text/plain", b"an escaped percent"),
    "notes/a%3Ab.txt": ("text/plain", b"a colon"),
    "notes/one%2Ftwo.txt": ("text/plain", b"a slash"),
    "notes/..dots..and.more": ("text/turtle", NOTE.encode()),
    "notes/it's%20(1)%2B%26%3D%3B%2C%40!.ttl": ("text/turtle", NOTE.encode()),
    "notes/without-extension": ("text/turtle", b"<#a> <#b> ( 1 [ <#c> <#d> ] )."),
    "notes/page.html": ("text/turtle", NOTE.encode()),
    "notes/data.jsonld": ("application/ld+json", b'{"@id": "#x", "http://e.example/y": "z"}'),
    "notes/picture": ("image/png", PNG),
    "notes/picture.png": ("image/png", PNG),
    "notes/strange": ("application/x-not-registered", b"\x00\xff\x01"),
    "notes/empty.txt": ("text/plain", b""),
    "notes/utf-8.txt": ("text/plain; charset=utf-8", "Café".encode()),
    "notes/latin-1": ("text/plain; charset=iso-8859-1", "Café".encode("latin-1")),
    "notes/parameters": ("application/x-foo; charset=utf-8; q=1", b"foo"),
    "shared/with-bob.ttl": ("text/turtle", NOTE.encode()),
    "open/for-all.txt": ("text/plain", b"hello"),
}
ACL = """
@prefix acl: <http://www.w3.org/ns/auth/acl#>.
<#owner> a acl:Authorization; acl:agent <{owner}>; acl:accessTo <./>; acl:default <./>;
    acl:mode acl:Read, acl:Write, acl:Control.
<#other> a acl:Authorization; {who}; acl:accessTo <./>; acl:default <./>; acl:mode {modes}.
"""


@dataclass
class Written:
    """What is known of the other server after its end."""

    data: Path
    base_url: str
    port: int
    alice: ForeignAgent
    bob: ForeignAgent
    documents: dict[str, Recorded]
    members: dict[str, set[str]]
    acls: dict[str, Recorded]
    description: Answer


def people(alice: SolidSession, bob: SolidSession, public: SolidSession) -> dict[str, Asking]:
    return {
        "alice": lambda url, accept: alice.request("GET", url, Accept=accept),
        "bob": lambda url, accept: bob.request("GET", url, Accept=accept),
        "public": lambda url, accept: public.request("GET", url, Accept=accept),
    }


def everybody(written: Written, issuer: str) -> dict[str, Asking]:
    return people(
        SolidSession(issuer, written.alice.client_id, written.alice.client_secret),
        SolidSession(issuer, written.bob.client_id, written.bob.client_secret),
        SolidSession(issuer),
    )


def write(server: CommunityServer, folder: Path) -> Written:
    alice, bob = server.create_agent("alice"), server.create_agent("bob")
    session = SolidSession(server.base_url, alice.client_id, alice.client_secret)
    others = SolidSession(server.base_url, bob.client_id, bob.client_secret)
    asking = people(session, others, SolidSession(server.base_url))
    urls = {}
    for name, (content_type, body) in DOCUMENTS.items():
        url = alice.pod_url + name
        content = body.replace(b"{}", alice.web_id.encode())
        answer = session.request("PUT", url, content, Content_Type=content_type)
        assert answer.status == 201, (name, answer.text)
        urls[url] = content_type
    for container, who, modes in (
        ("shared/", f"acl:agent <{bob.web_id}>", "acl:Read, acl:Append"),
        ("open/", "acl:agentClass <http://xmlns.com/foaf/0.1/Agent>", "acl:Read"),
    ):
        rules = ACL.format(owner=alice.web_id, who=who, modes=modes)
        url = f"{alice.pod_url}{container}.acl"
        assert session.request("PUT", url, rules, Content_Type="text/turtle").status == 201
    described = f"{alice.pod_url}notes/picture.meta"
    patch = (
        "@prefix solid: <http://www.w3.org/ns/solid/terms#>. _:p a solid:InsertDeletePatch; "
        f'solid:inserts {{ <{described[:-5]}> <http://purl.org/dc/terms/title> "A picture". }}.'
    )
    assert session.request("PATCH", described, patch, Content_Type="text/n3").status == 205
    containers = [alice.pod_url + name for name in ("", "notes/", "shared/", "open/", "profile/")]
    rdf = [url for url, content_type in urls.items() if content_type == "text/turtle"]
    profile = f"{alice.pod_url}profile/card"
    acls = [f"{alice.pod_url}{name}.acl" for name in ("", "shared/", "open/", "profile/card")]
    documents = record_all([*urls, profile], asking, rdf=[*rdf, profile])
    # The issuer as this server's discovery document spells it (OpenID Connect Discovery 4.3).
    issuer = server.base_url.removesuffix("/")
    documents[profile] = naming_issuer(documents[profile], issuer)
    return Written(
        server.data,
        server.base_url,
        server.port,
        alice,
        bob,
        documents,
        {url: members(url, asking["alice"]) for url in containers},
        record_all(acls, asking, rdf=acls),
        asking["alice"](described, "text/turtle"),
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("community")
    with running_community_server(folder) as server:
        return write(server, folder)


@pytest.fixture(scope="module")
def server(written: Written, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The server that took over the address, with everything imported while it runs."""
    root = tmp_path_factory.mktemp("moved") / "root"
    with running_server(ServerProcess(root, ("--idp",), port=written.port)) as running:
        ended = run_command("import", "css", str(written.data), "--root", str(root), "--json")
        report = json.loads(ended.stdout)
        assert report["left_out"] == []
        assert ended.returncode == 0
        assert {pod["name"] for pod in report["pods"]} == {"alice", "bob"}
        assert foreign_hashes(root) == 2
        yield running


def test_every_resource_is_answered_as_before(written: Written, server: ServerProcess) -> None:
    """Content, types, who may read, and WAC-Allow; the clients' secrets are the old ones."""
    asking = everybody(written, server.base_url)
    rdf = [url for url, each in written.documents.items() if each.content_type == "text/turtle"]
    here = record_all(written.documents, asking, rdf=rdf)
    for url, there in written.documents.items():
        assert_same(there, here[url])


def test_every_container_has_the_same_members(written: Written, server: ServerProcess) -> None:
    alice = everybody(written, server.base_url)["alice"]
    for url, there in written.members.items():
        # RFC 3986 section 6.2.2.2: spellings of one name. The other server escapes twice in lists
        # what Windows does not allow in names.
        expected = {unquote(each.replace("%253A", "%3A")) for each in there}
        assert {unquote(each) for each in members(url, alice)} == expected, url


def test_access_rules_and_descriptions_say_the_same(
    written: Written, server: ServerProcess
) -> None:
    asking = everybody(written, server.base_url)
    here = record_all(written.acls, asking, rdf=written.acls)
    for url, there in written.acls.items():
        assert_same(there, here[url])
    described = f"{written.alice.pod_url}notes/picture"
    answer = asking["alice"](f"{described}.meta", "text/turtle")
    graph = rdflib.Graph().parse(data=answer.body, format="turtle", publicID=described)
    # Only what alice has stated: size, date and type are the other server's own statements.
    assert list(graph) == [(URIRef(described), DCTERMS.title, rdflib.Literal("A picture"))]
    assert b"A picture" in written.description.body


def test_dates_are_those_of_the_files(written: Written, server: ServerProcess) -> None:
    asking = everybody(written, server.base_url)["alice"]
    url = f"{written.alice.pod_url}notes/plain.txt"
    modified = asking(url, "*/*").headers["last-modified"]
    stored = (written.data / "alice/notes/plain.txt").stat().st_mtime
    assert parsedate_to_datetime(modified).timestamp() == int(stored)


def sign_in(server: ServerProcess, password: str = PASSWORD) -> Answer:
    login = json.dumps({"email": "alice@example.com", "password": password})
    url = f"{server.base_url}/idp/credentials"
    return request_to("POST", url, login, {"Content-Type": "application/json"})


def foreign_hashes(root: Path) -> int:
    """How many records still have a hash that another server made."""
    return sum(b"$2a$10$" in value for value in stored_entries(root))


def test_people_sign_in_with_the_password_that_they_have(
    written: Written, server: ServerProcess
) -> None:
    """It is hashed anew at the first sign-in, as passwords are here."""
    before = foreign_hashes(server.root)
    assert sign_in(server, "password124").status == 401
    assert foreign_hashes(server.root) == before
    answer = sign_in(server)
    assert json.loads(answer.body)["webid"] == written.alice.web_id
    assert foreign_hashes(server.root) == 1
    assert sign_in(server).status == 200
    assert sign_in(server, "password124").status == 401


def test_a_client_library_reads_the_pod(
    written: Written, server: ServerProcess, start_client: StartClient
) -> None:
    client = start_client("solid-client.mjs")
    token = json.loads(sign_in(server).body)["access_token"]
    alice = Agent(written.alice.web_id, token)
    notes = f"{written.alice.pod_url}notes/"
    listed = client.run("listContainer", alice, url=notes).value
    text = json.dumps(listed)
    assert all(f"{notes}{name}" in text for name in ("plain.txt", "a%20b.txt", "picture"))
    read = client.run("readFile", alice, url=f"{notes}picture").value
    assert read["type"] == "image/png"
    assert bytes(read["bytes"]) == PNG
    described = client.run("describeResource", alice, url=f"{notes}page.html").value
    assert described["contentType"] == "text/turtle"


@pytest.fixture(scope="module")
def alice(written: Written, server: ServerProcess) -> Agent:
    return Agent(written.alice.web_id, json.loads(sign_in(server).body)["access_token"])


@pytest.fixture(scope="module")
def reader(start_client: StartClient) -> ClientProcess:
    return start_client(SCENARIO)


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_reads_documents_as_they_were(
    written: Written, alice: Agent, reader: ClientProcess, library: str
) -> None:
    pod = written.alice.pod_url
    assert_read(reader, library, alice, written.documents[f"{pod}notes/page.html"])
    assert_read(reader, library, alice, written.documents[f"{pod}profile/card"])
    assert_read(reader, library, None, written.documents[f"{pod}profile/card"])


def test_scripts_use_the_client_credentials_that_they_have(
    written: Written, server: ServerProcess, start_client: StartClient
) -> None:
    """In JavaScript and in Python, with a secret that the other server issued."""
    client_id, secret = written.alice.client_id, written.alice.client_secret
    private, public = (
        f"{written.alice.pod_url}{name}" for name in ("notes/plain.txt", "open/for-all.txt")
    )
    script = start_client("authn-node.mjs")
    options = {"oidcIssuer": server.base_url, "clientId": client_id, "clientSecret": secret}
    signed_in = script.run("signsIn", name="script", **options).value
    assert signed_in == {"isLoggedIn": True, "webId": written.alice.web_id}
    assert [script.run("gets", name="script", url=url).value for url in (private, public)] == [
        {"status": 200, "text": "plain"},
        {"status": 200, "text": "hello"},
    ]
    install_clients()
    arguments = [server.base_url, client_id, secret, private, public]
    said = subprocess.run(
        [PYTHON, FOLDER / "credentials_reader.py", *arguments],
        check=True,
        stdout=subprocess.PIPE,
        timeout=DEADLINE_S,
    ).stdout
    assert json.loads(said) == [[200, "plain"], [200, "hello"]]


def test_libraries_know_the_owner_and_the_rights(
    written: Written, alice: Agent, start_client: StartClient
) -> None:
    pod = written.alice.pod_url
    private, public = f"{pod}notes/plain.txt", f"{pod}open/for-all.txt"
    ldo = start_client("ldo.mjs")
    assert ldo.run("readBlob", alice, url=private).value["text"] == "plain"
    assert ldo.run("readBlob", None, url=public).value["text"] == "hello"
    profile = start_client("soukai.mjs").run("readProfile", alice).value
    assert profile["webId"] == alice.web_id
    assert profile["storageUrls"] == [pod]
    access = start_client("solid-client-access.mjs")
    assert access.run("readInfoWithAcl", alice, url=public).value["hasAccessibleAcl"] is True


def test_a_second_import_changes_nothing(written: Written, server: ServerProcess) -> None:
    url = f"{written.alice.pod_url}notes/a%20b.txt"
    session = SolidSession(server.base_url, written.alice.client_id, written.alice.client_secret)
    assert session.request("PUT", url, b"changed since", Content_Type="text/plain").status == 204
    command = ("import", "css", str(written.data), "--root", str(server.root), "--json")
    ended = run_command(*command)
    assert ended.returncode == 0
    assert all(pod["already_there"] for pod in json.loads(ended.stdout)["pods"])
    assert session.request("GET", url).body == b"changed since"
    # Other tests look at it, too.
    assert session.request("PUT", url, b"a space", Content_Type="text/plain").status == 204


def test_names_follow_to_another_base_url(
    written: Written, tmp_path: Path, server: ServerProcess
) -> None:
    """And to another name of a pod: in documents, in access rules and as the WebIDs of owners."""
    root = tmp_path / "root"
    assert server.port != 0
    with running_server(ServerProcess(root, ("--idp",))) as elsewhere:
        command = ("import", "css", str(written.data), "--root", str(root))
        tried = run_command(*command, "--as", "bob=robert", "--dry-run", "--json")
        assert tried.returncode == 0, tried.stderr
        assert request_to("GET", f"{elsewhere.base_url}/alice/profile/card").status == 401
        done = run_command(*command, "--as", "bob=robert", "--json")
        assert done.returncode == 0, done.stderr
        counted = ("name", "owner", "documents", "containers")
        assert [[pod[each] for each in counted] for pod in json.loads(tried.stdout)["pods"]] == [
            [pod[each] for each in counted] for pod in json.loads(done.stdout)["pods"]
        ]
        old, new = written.base_url, f"{elsewhere.base_url}/"
        asking = everybody(written, elsewhere.base_url)
        moved = {url: url.replace(old, new) for url in {**written.documents, **written.acls}}
        for url, there in {**written.documents, **written.acls}.items():
            rdf = [moved[url]] if there.content_type == "text/turtle" else []
            here = record_all([moved[url]], asking, rdf=rdf)[moved[url]]
            expected = replaced(there, f"{old}bob/", f"{new}robert/")
            if url.endswith("/profile/card"):
                expected = naming_issuer(expected, elsewhere.base_url)
            assert_same(expected, here, old=old, new=new)
        session = sign_in(elsewhere)
        assert json.loads(session.body)["webid"] == written.alice.web_id.replace(old, new)


def replaced(there: Recorded, old: str, new: str) -> Recorded:
    body = there.body.replace(old.encode(), new.encode())
    return dataclasses.replace(there, body=body)

"""Access rules and documents that javascript-solid-server wrote in its own way: what it answered is
answered here, and what had no effect there is listed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import rdflib
from rdflib.compare import isomorphic

from podstead.core.errors import RequestRefused
from tests.clients.moving.javascript_server import PASSWORD, running_javascript_server
from tests.support.recorded_pod import wac_modes
from tests.support.server import ServerProcess, request_to, run_command, running_server

pytestmark = pytest.mark.feature("importers")


TURTLE = "text/turtle"
JSON_LD = "application/ld+json"
PREFIXES = (
    "@prefix acl: <http://www.w3.org/ns/auth/acl#>. @prefix foaf: <http://xmlns.com/foaf/0.1/>."
)
OWNER = (
    "<#o> a acl:Authorization; acl:agent <POD/profile/card#me>; {}; "
    "acl:mode acl:Read, acl:Write, acl:Control."
)
HERE = "acl:accessTo <./>; acl:default <./>"
BOB = "<http://HOST/bob/profile/card#me>"


def rule(name: str, whom: str, modes: str, about: str = HERE) -> str:
    return f"<#{name}> a acl:Authorization; {whom}; {about}; acl:mode {modes}."


def rules(*more: str, about: str = HERE) -> str:
    return f"{PREFIXES}\n{OWNER.format(about)}\n" + "\n".join(more)


BARE = [
    {
        "@type": "Authorization",
        "agent": {"@id": "POD/profile/card#me"},
        "accessTo": "POD/bare",
        "default": "./",
        "mode": ["Read", "acl:Write", "Control"],
    },
    {"@type": ["acl:Authorization"], "acl:agentClass": "foaf:Agent", "acl:accessTo": ["POD/bare/"],
     "acl:mode": {"@id": "acl:Read"}, "acl:default": []},
    {"@type": "acl:Authorization", "acl:agent": "http://HOST/bob/profile/card#me",
     "acl:default": "POD/", "acl:mode": "acl:Append"},
]  # fmt: skip

AS_THERE = {
    "shared": rules(rule("b", f"acl:agent {BOB}", "acl:Read")),
    "open": rules(
        rule("p", "acl:agentClass foaf:Agent", "acl:Read"),
        rule("s", "acl:agentClass acl:AuthenticatedAgent", "acl:Append"),
    ),
    "only-here": rules(rule("p", "acl:agentClass foaf:Agent", "acl:Read", "acl:accessTo <./>")),
    "only-below": rules(rule("p", "acl:agentClass foaf:Agent", "acl:Read", "acl:default <./>")),
    "writers": rules(rule("b", f"acl:agent {BOB}", "acl:Write"), "<#n> foaf:name 'a note'."),
    "one": rules(),
    "everybody": rules(rule("p", "acl:agentClass foaf:Agent", "acl:Read, acl:Control")),
    "bare": json.dumps(BARE),
}
WITHOUT_EFFECT = {
    "grouped": rules(rule("g", "acl:agentGroup <../groups#g>", "acl:Read")),
    "relative": json.dumps(
        {
            "@context": {"acl": "http://www.w3.org/ns/auth/acl#"},
            "@graph": [
                {"@type": "acl:Authorization", "acl:agent": {"@id": agent},
                 "acl:accessTo": {"@id": "./"}, "acl:mode": {"@id": "acl:Read"}}
                for agent in ("POD/profile/card#me", "/bob/profile/card#me")
            ],
        }
    ),
    "other-prefix": rules(rule("p", "acl:agentClass foaf:Agent", "acl:Read")).replace("acl:", "a:"),
    "applications": rules(
        rule("b", f"acl:agent {BOB}; acl:origin <https://app.example>", "acl:Read")
    ),
    "further-down": rules(
        rule("b", f"acl:agent {BOB}", "acl:Read", "acl:default <inner/>, <./inner/>")
    ),
}  # fmt: skip
GRAPH = """@prefix ex: <http://e.example/x>. @prefix dct: <http://purl.org/dc/terms/>.
<#a> dct:title "A", "B"@en; dct:relation <#b>; ex:foo 2.5, 0.00001, 4, true;
  dct:date "2020-01-01"^^ex:d.
<#b> a ex:Note; dct:title "b"; dct:creator <mailto:a@b.example>, <http://h.example/>.
<> a dct:Thing. <http://h.example/x> dct:title "x".
"""
DOCUMENTS = {
    "public/graph.ttl": (TURTLE, GRAPH),
    "public/node.ttl": (TURTLE, '<#a> <http://e.example/p> 2.5, "x"; a <http://e.example/x>.'),
    "public/nodes.jsonld": (
        JSON_LD,
        json.dumps([{"@context": {"e": "http://e.example/"}, "@id": "#a", "e:p": 1.5},
                    {"@id": "#b", "e:p": {"@id": "#a"}}]),
    ),
}  # fmt: skip


@dataclass
class Written:
    """A pod in the two ways that its rules can be meant, and what everybody was answered."""

    data: Path
    base_url: str
    port: int
    answers: Mapping[str, object]
    graphs: Mapping[str, rdflib.Graph]


def answers(
    base_url: str, names: Mapping[str, str], tokens: Mapping[str, str]
) -> dict[str, object]:
    """Status and modes of every resource for everybody."""
    found: dict[str, object] = {}
    for name in names:
        for place in (f"{name}/", f"{name}/a.txt", f"{name}/inner/b.txt"):
            for who, token in tokens.items():
                headers = {"Authorization": f"Bearer {token}"} if token else {}
                answer = request_to("GET", f"{base_url}alice/{place}", None, headers)
                modes = dict(wac_modes(answer.headers.get("wac-allow", "")))
                if who == "alice":
                    # The owner always has Control here.
                    modes["user"] = modes.get("user", frozenset()) | {"control"}
                found[f"{place} {who}"] = (answer.status, modes)
    return found


def graph(url: str, token: str) -> rdflib.Graph:
    headers = {"Authorization": f"Bearer {token}", "Accept": TURTLE}
    answer = request_to("GET", url, None, headers)
    assert answer.status == 200, answer.text
    return rdflib.Graph().parse(data=answer.body, format="turtle", publicID=url)


def written(folder: Path, names: Mapping[str, str]) -> Written:
    with running_javascript_server(folder) as server:
        tokens = {name: server.create_pod(name) for name in ("alice", "bob")} | {"public": ""}
        pod = f"{server.base_url}alice"
        host = server.base_url.removeprefix("http://").strip("/")

        def put(path: str, content_type: str, body: str) -> None:
            text = body.replace("POD", pod).replace("HOST", host).encode()
            headers = {"Authorization": f"Bearer {tokens['alice']}", "Content-Type": content_type}
            answer = request_to("PUT", f"{pod}/{path}", text, headers)
            assert answer.status == 201, (path, answer.text)

        for name, acl in names.items():
            put(f"{name}/a.txt", "text/plain", "a")
            put(f"{name}/inner/b.txt", "text/plain", "b")
            put(f"{name}/.acl", JSON_LD if acl[0] in "[{" else TURTLE, acl)
        for path, (content_type, body) in DOCUMENTS.items():
            put(path, content_type, body)
        if names is WITHOUT_EFFECT:
            put(
                "public/lost.ttl",
                TURTLE,
                "@prefix : <#>. :a :p 1; a :T. :b <http://e.example/q> 2.",
            )
        return Written(
            server.data,
            server.base_url,
            server.port,
            answers(server.base_url, names, tokens),
            {path: graph(f"{pod}/{path}", tokens["alice"]) for path in DOCUMENTS},
        )


def tokens_of(server: ServerProcess) -> dict[str, str]:
    found = {"public": ""}
    for name in ("alice", "bob"):
        login = json.dumps({"email": f"{name}@example.com", "password": PASSWORD})
        url = f"{server.base_url}/idp/credentials"
        answer = request_to("POST", url, login, {"Content-Type": "application/json"})
        found[name] = json.loads(answer.body)["access_token"]
    return found


def test_rules_and_documents_are_what_that_server_read(tmp_path: Path) -> None:
    there = written(tmp_path, AS_THERE)
    root = tmp_path / "root"
    with running_server(ServerProcess(root, ("--idp",), port=there.port)) as server:
        ended = run_command("import", "jss", str(there.data), "--root", str(root), "--json")
        assert ended.returncode == 0, ended.stdout
        tokens = tokens_of(server)
        assert answers(there.base_url, AS_THERE, tokens) == there.answers
        for path, expected in there.graphs.items():
            found = graph(f"{there.base_url}alice/{path}", tokens["alice"])
            assert isomorphic(found, expected), (
                f"{path}\n{found.serialize()}\n{expected.serialize()}"
            )
        notes = json.loads(ended.stdout)["notes"]
        assert [each for each in notes if "everyone" in each] == [
            (
                "The access rules of /alice/everybody/ give everyone Control: anybody can change "
                "them. Remove that unless it is meant."
            )
        ]


def test_rules_without_effect_there_are_listed_and_grant_nothing(tmp_path: Path) -> None:
    there = written(tmp_path, WITHOUT_EFFECT)
    root = tmp_path / "root"
    with running_server(ServerProcess(root, ("--idp",), port=there.port)) as server:
        ended = run_command("import", "jss", str(there.data), "--root", str(root), "--json")
        assert ended.returncode == 1
        left_out = json.loads(ended.stdout)["left_out"]
        listed = {each["path"] for each in left_out}
        expected = {f"alice/{name}/.acl" for name in WITHOUT_EFFECT} | {"alice/public/lost.ttl"}
        assert listed == expected, left_out
        answered = dict(there.answers)
        for who in ("bob", "alice", "public"):
            # What is below this one had rules there that cannot be written into its ACL here.
            answered.pop(f"further-down/inner/b.txt {who}")
        found = answers(there.base_url, WITHOUT_EFFECT, tokens_of(server))
        assert answered.items() <= found.items()


@pytest.mark.parametrize("content", [b"", b"not json", b"[" * 100_000, b"null", b'{"@graph": 1}'])
def test_rules_that_cannot_be_read_grant_nothing(content: bytes) -> None:
    documents = pytest.importorskip("podstead.features.importers.javascript_documents")
    with contextlib.suppress(RequestRefused):
        assert not documents.rules_there(content, acl_url="https://a.example/alice/.acl").rules

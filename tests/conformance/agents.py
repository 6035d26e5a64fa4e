"""The agents of the conformance tests, and their responses: every field line as it was sent.

An agent sends exactly what a test says, each request on a connection of its own. Added are only
``Host``, the agent's credential, and the ``Content-Length`` of a body that is there.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from rdflib import URIRef

from tests.support.rdf import TURTLE, Triples, triples
from tests.support.server import ServerProcess

LDP = "http://www.w3.org/ns/ldp#"
PIM = "http://www.w3.org/ns/pim/space#"
SOLID = "http://www.w3.org/ns/solid/terms#"
ACL = "http://www.w3.org/ns/auth/acl#"
RDF_TYPE = URIRef("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")

N3_PATCH = "text/n3"
SPARQL_UPDATE = "application/sparql-update"

WRITTEN = {200, 201, 204, 205}
"""Any of these says that a write succeeded."""
DELETED = {200, 202, 204, 205}
"""Any of these says that a deletion succeeded."""

_names = itertools.count()
_LINK = re.compile(r'<([^>]*)>((?:\s*;\s*[^\s,;="]+(?:\s*=\s*(?:"[^"]*"|[^\s,;"]+))?)*)')
_REL = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^\s,;"]+))')


class Link(NamedTuple):
    """One link of a Link header."""

    target: str
    """Absolute."""
    rel: str
    """One relation; a link with several relations is given once for each."""


@dataclass(frozen=True, slots=True)
class Response:
    """One response as it came."""

    method: str
    url: str
    status: int
    lines: tuple[tuple[str, str], ...]
    """The header's field lines in their order: names as they are spelled, and values."""
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def values(self, name: str) -> list[str]:
        """The value of each line of this name, whatever its letters' case."""
        return [value for key, value in self.lines if key.lower() == name.lower()]

    def header(self, name: str) -> str | None:
        """The value of the one line of this name. Fails the test if there are several."""
        found = self.values(name)
        assert len(found) <= 1, f"{name} in several lines: {found}"
        return found[0] if found else None

    def listed(self, name: str) -> set[str]:
        """The members of a comma-separated header in one line; empty if it is absent."""
        return {item.strip() for item in (self.header(name) or "").split(",")} - {""}

    @property
    def media_type(self) -> str:
        """The Content-Type without parameters."""
        return (self.header("Content-Type") or "").partition(";")[0]

    @property
    def location(self) -> str:
        """The absolute URL in Location. Fails the test if there is none."""
        value = self.header("Location")
        assert value, f"no Location: {self}"
        return urljoin(self.url, value)

    @property
    def links(self) -> list[Link]:
        """All links, one for each relation."""
        found = []
        for match in _LINK.finditer(", ".join(self.values("Link"))):
            rel = _REL.search(match[2])
            assert rel, f"a link without relation: {match[0]}"
            relations = (rel[1] if rel[1] is not None else rel[2]).split()
            found += [Link(urljoin(self.url, match[1]), relation) for relation in relations]
        return found

    def targets(self, rel: str) -> list[str]:
        """The targets of all links with this relation, spelled exactly so."""
        return [link.target for link in self.links if link.rel == rel]

    def target(self, rel: str) -> str:
        """The target of the one link with this relation. Fails the test if there is not one."""
        found = self.targets(rel)
        assert len(found) == 1, f"{len(found)} links {rel}: {self.lines}"
        return found[0]

    @property
    def triples(self) -> Triples:
        """What the body says in its default graph, read by rdflib."""
        return triples(self.body, self.media_type, self.url)

    @property
    def members(self) -> list[str]:
        """The members that a container's representation lists, sorted."""
        contains = URIRef(f"{LDP}contains")
        return sorted(
            str(member)
            for subject, predicate, member in self.triples
            if (str(subject), predicate) == (self.url, contains)
        )

    @property
    def access(self) -> dict[str, list[str]]:
        """The groups of WAC-Allow and their modes in the order given; strict in its grammar."""
        value = self.header("WAC-Allow")
        assert value is not None, f"no WAC-Allow: {self.lines}"
        assert re.fullmatch(r'[a-z]+="[a-z ]*"(?:, ?[a-z]+="[a-z ]*")*', value), value
        return {group: modes.split() for group, modes in re.findall(r'([a-z]+)="([^"]*)"', value)}


@dataclass(frozen=True, slots=True)
class Rule:
    """One authorization of an ACL document."""

    who: str
    """Predicate and object in Turtle, such as ``Agent.named`` or ``EVERYONE``."""
    modes: str
    """Names of ``acl:`` modes with spaces between, such as ``Read Write``."""
    access_to: bool = True
    """Whether it is about the resource itself."""
    default: bool = False
    """Whether members of the container inherit it."""


EVERYONE = "acl:agentClass foaf:Agent"
AUTHENTICATED = "acl:agentClass acl:AuthenticatedAgent"


def acl_turtle(url: str, *rules: Rule) -> str:
    """An ACL document in Turtle for the resource at ``url``, with blank-node authorizations."""
    blocks = [
        "@prefix acl: <http://www.w3.org/ns/auth/acl#>.",
        "@prefix foaf: <http://xmlns.com/foaf/0.1/>.",
    ]
    for rule in rules:
        reach = [f"acl:accessTo <{url}>"] if rule.access_to else []
        reach += [f"acl:default <{url}>"] if rule.default else []
        modes = ", ".join(f"acl:{mode}" for mode in rule.modes.split())
        reach_and_modes = "; ".join([*reach, f"acl:mode {modes}"])
        blocks.append(f"[] a acl:Authorization; {rule.who}; {reach_and_modes}.")
    return "\n".join(blocks)


@dataclass(frozen=True, slots=True)
class Agent:
    """Somebody with a pod and a token, or the public with neither."""

    server: ServerProcess
    web_id: str = ""
    token: str | None = None
    pod: str = ""
    """The path of the pod's root container."""

    @property
    def named(self) -> str:
        """This agent as the subject of a rule."""
        return f"acl:agent <{self.web_id}>"

    def url(self, path: str) -> str:
        """The absolute URL of a path; absolute URLs stay as they are."""
        return urljoin(self.server.base_url, path)

    def request(
        self,
        method: str,
        target: str,
        body: bytes | str | None = None,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    ) -> Response:
        """Send a request to a path or an absolute URL of the server.

        A ``body`` that is ``None`` is none at all: neither Content-Length nor Transfer-Encoding.
        """
        fields = list(headers.items() if isinstance(headers, Mapping) else headers)
        content = body.encode() if isinstance(body, str) else body
        if self.token is not None:
            fields.append(("Authorization", f"Bearer {self.token}"))
        if content is not None:
            fields.append(("Content-Length", str(len(content))))
        with contextlib.closing(self.server.connect()) as connection:
            connection.putrequest(
                method, _origin_form(target), skip_host=True, skip_accept_encoding=True
            )
            connection.putheader("Host", urlsplit(self.server.base_url).netloc)
            for name, value in fields:
                connection.putheader(name, value)
            connection.endheaders(content)
            answer = connection.getresponse()
            received = answer.read()
        return Response(
            method, self.url(target), answer.status, tuple(answer.getheaders()), received
        )

    get = functools.partialmethod(request, "GET")
    head = functools.partialmethod(request, "HEAD")
    options = functools.partialmethod(request, "OPTIONS")
    delete = functools.partialmethod(request, "DELETE")

    def read(self, target: str, accept: str = TURTLE) -> Response:
        """GET with an Accept header, which must succeed."""
        response = self.request("GET", target, headers={"Accept": accept})
        assert response.status == 200, response
        return response

    def put(
        self,
        target: str,
        body: bytes | str | None = "",
        content_type: str = TURTLE,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        return self.request("PUT", target, body, {"Content-Type": content_type, **(headers or {})})

    def post(
        self,
        target: str,
        body: bytes | str | None = "",
        content_type: str = TURTLE,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        return self.request("POST", target, body, {"Content-Type": content_type, **(headers or {})})

    def patch(
        self,
        target: str,
        body: bytes | str | None,
        content_type: str = SPARQL_UPDATE,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        return self.request(
            "PATCH", target, body, {"Content-Type": content_type, **(headers or {})}
        )

    def create(self, target: str, body: bytes | str = "", content_type: str = TURTLE) -> str:
        """PUT something new, which must succeed; its target again."""
        response = self.put(target, body, content_type)
        assert response.status == 201, response
        return target

    def acl_of(self, target: str) -> str:
        """The URL of the ACL, as the Link header says."""
        return self.head(target).target("acl")

    def grant(self, target: str, *rules: Rule) -> None:
        """Give a resource an ACL of its own that keeps this agent in control; must succeed."""
        own = Rule(self.named, "Read Write Control", default=target.endswith("/"))
        self.put_acl(target, own, *rules)

    def put_acl(self, target: str, *rules: Rule) -> None:
        """Give a resource an ACL of exactly these rules, which must succeed."""
        response = self.put(self.acl_of(target), acl_turtle(self.url(target), *rules))
        assert response.status in WRITTEN, response


def create_agent(server: ServerProcess) -> Agent:
    """An agent with a new pod."""
    response = Agent(server).request(
        "POST",
        "/.pods",
        json.dumps({"name": f"agent{next(_names)}"}),
        {"Content-Type": "application/json"},
    )
    assert response.status == 201, response
    pod = json.loads(response.body)
    return Agent(server, pod["webId"], pod["token"], urlsplit(pod["podUri"]).path)


def _origin_form(target: str) -> str:
    parts = urlsplit(target)
    if not parts.scheme:
        return target
    return parts.path + (f"?{parts.query}" if parts.query else "")

"""What one server answers about a pod, to be compared with what another one answers.

The judges are rdflib for graphs and the bytes themselves for everything else.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urljoin

import rdflib
from rdflib.compare import isomorphic

from tests.support.server import Answer

Asking = Callable[[str, str], Answer]
"""A GET of a URL with an Accept header."""

LDP = rdflib.Namespace("http://www.w3.org/ns/ldp#")
OIDC_ISSUER = rdflib.URIRef("http://www.w3.org/ns/solid/terms#oidcIssuer")
TURTLE = "text/turtle"


@dataclass(frozen=True)
class Recorded:
    """One resource as its owner sees it, and the status of answers to others."""

    url: str
    content_type: str
    body: bytes
    statuses: Mapping[str, int]
    modes: Mapping[str, frozenset[str]]

    @property
    def graph(self) -> rdflib.Graph:
        assert self.content_type == TURTLE
        return rdflib.Graph().parse(data=self.body, format="turtle", publicID=self.url)


def record(url: str, people: Mapping[str, Asking], *, accept: str = "*/*") -> Recorded:
    """What everybody is answered; the first is the owner."""
    answers = {name: ask(url, accept) for name, ask in people.items()}
    owner = next(iter(answers.values()))
    assert owner.status == 200, (url, owner.status, owner.text)
    content_type = owner.headers["content-type"]
    return Recorded(
        url,
        TURTLE if content_type.partition(";")[0] == TURTLE else content_type,
        owner.body,
        {name: answer.status for name, answer in answers.items()},
        wac_modes(owner.headers.get("wac-allow", "")),
    )


def record_all(
    urls: Iterable[str], people: Mapping[str, Asking], *, rdf: Iterable[str] = ()
) -> dict[str, Recorded]:
    """The records by URL; those of ``rdf`` are asked for in Turtle."""
    as_turtle = set(rdf)
    return {url: record(url, people, accept=TURTLE if url in as_turtle else "*/*") for url in urls}


def naming_issuer(profile: Recorded, issuer: str) -> Recorded:
    """A profile in Turtle that names this provider."""
    graph = profile.graph
    for agent, predicate, _ in list(graph.triples((None, OIDC_ISSUER, None))):
        graph.set((agent, predicate, rdflib.URIRef(issuer)))
    return dataclasses.replace(profile, body=graph.serialize(format="turtle").encode())


def members(url: str, ask: Asking) -> set[str]:
    """The members that a container lists."""
    answer = ask(url, TURTLE)
    assert answer.status == 200, (url, answer.text)
    graph = rdflib.Graph().parse(data=answer.body, format="turtle", publicID=url)
    return {urljoin(url, str(each)) for each in graph.objects(rdflib.URIRef(url), LDP.contains)}


def assert_same(there: Recorded, here: Recorded, *, old: str = "", new: str = "") -> None:
    """Assert that a resource is the same, with names below ``old`` now below ``new``."""
    assert here.content_type == there.content_type, there.url
    assert here.statuses == there.statuses, there.url
    if there.modes:
        assert here.modes == there.modes, there.url
    if there.content_type != TURTLE:
        assert here.body == there.body, there.url
        return
    expected = renamed_graph(there, old=old, new=new)
    assert isomorphic(here.graph, expected), (there.url, here.body.decode(), there.body.decode())


def renamed_graph(there: Recorded, *, old: str = "", new: str = "") -> rdflib.Graph:
    """What a resource says, with names below ``old`` now below ``new``."""
    if not old:
        return there.graph
    text = there.graph.serialize(format="nt").replace(f"<{old}", f"<{new}")
    return rdflib.Graph().parse(data=text, format="nt")


def wac_modes(header: str) -> Mapping[str, frozenset[str]]:
    """What WAC-Allow says, with what a mode entails (Web Access Control section 5.1)."""
    found = {}
    for who, listed in re.findall(r'(\w+)="([^"]*)"', header):
        modes = set(listed.split())
        if modes:
            found[who] = frozenset(modes | ({"append"} if "write" in modes else set()))
    return found

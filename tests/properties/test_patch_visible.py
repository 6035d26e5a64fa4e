"""Every patch that is answered with success is there in the next GET, and no other one is.

Random sequences of patches, replacements and deletions over HTTP, on documents in both formats and
on containers, against a model that is nothing but rdflib graphs.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import pytest
import rdflib
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rdflib.compare import to_canonical_graph
from rdflib.term import BNode, Node, Variable

from podstead.app.adapters.keys import ensure_token_key
from podstead.config import Settings
from podstead.storage.keys import KeyFiles
from podstead.storage.root import prepare_root
from tests.properties.patch_model import (
    Formulas,
    RdflibTriple,
    block,
    patched_by_n3,
    patched_by_update,
)
from tests.support.application import BASE, running, with_two_pods
from tests.support.asgi import Answer, Client
from tests.support.rdf import JSON_LD, TURTLE, Triples, said

EX = rdflib.Namespace("http://example.org/")
N3_PATCH = "text/n3"
SPARQL_UPDATE = "application/sparql-update"
MAX_BLANK_NODES = 6  # telling whether graphs with many that are alike are the same takes too long

PLACES = ["doc.ttl", "doc.jsonld", "deep/doc", "own/", "deep/"]
IRIS = [EX.a, EX.b, EX["c"]]
PREDICATES = [EX.p, EX.q]
LITERALS = [
    rdflib.Literal("1"),
    rdflib.Literal(1),
    rdflib.Literal("1", lang="en"),
    rdflib.Literal(True),
    rdflib.Literal('"\\\n\t{?x} \U0001f600'),
]
VARIABLES = [Variable("x"), Variable("y")]
NODES = [BNode("m"), BNode("n")]

_numbers = itertools.count()


def several(
    subjects: Iterable[Node], objects: Iterable[Node], *, at_most: int
) -> st.SearchStrategy[list[RdflibTriple]]:
    triples = st.tuples(
        st.sampled_from(list(subjects)),
        st.sampled_from(PREDICATES),
        st.sampled_from(list(objects)),
    )
    return st.lists(triples, max_size=at_most, unique=True)


@dataclass(frozen=True)
class Put:
    """A replacement of all that is said, or the creation of it."""

    content_type: str
    triples: list[RdflibTriple]


@dataclass(frozen=True)
class Patch:
    """A patch in one of the two formats; an update without conditions may be of data blocks."""

    content_type: str
    formulas: Formulas
    as_data: bool


Step: TypeAlias = Put | Patch | Literal["delete"]


@st.composite
def patches(draw: st.DrawFn, stated: list[RdflibTriple]) -> Patch:
    """Patches whose templates have only variables of their conditions (X-7).

    What they are about is mostly ``stated``, so that conditions hold, in one way or in several.
    """

    def term(found: Node) -> Node:
        return draw(
            st.sampled_from([VARIABLES[0] if isinstance(found, BNode) else found, *VARIABLES])
        )

    def pattern() -> RdflibTriple:
        subject, predicate, object_ = draw(st.sampled_from(stated))
        return term(subject), predicate, term(object_)

    named = [triple for triple in stated if not any(isinstance(t, BNode) for t in triple)]
    is_aimed = draw(st.sampled_from([True, True, True, False]))
    if stated and is_aimed:
        where = [pattern() for _ in range(draw(st.integers(1, 2)))]
    else:
        where = draw(several([*IRIS, *VARIABLES], [*LITERALS, *VARIABLES], at_most=2))
    bound = {term for triple in where for term in triple if isinstance(term, Variable)}
    terms = [*IRIS, *sorted(bound)]
    deletes = draw(several(terms, [*terms, *LITERALS], at_most=1))
    present = [*where, *named]
    deletes += draw(st.lists(st.sampled_from(present), max_size=2)) if present else []
    inserts = draw(several([*terms, *NODES], [*terms, *LITERALS, *NODES], at_most=3))
    formulas = Formulas(where, deletes, inserts)
    return Patch(draw(st.sampled_from([N3_PATCH, SPARQL_UPDATE])), formulas, draw(st.booleans()))


puts = st.builds(
    Put,
    st.sampled_from([TURTLE, JSON_LD]),
    several([*IRIS, *NODES], [*IRIS, *LITERALS, *NODES], at_most=5),
)


def steps(stated: rdflib.Graph | None) -> st.SearchStrategy[Step]:
    """What may be done next where so much is said; mostly patches."""
    # With the same names in each run, as a strategy must be.
    named = to_canonical_graph(stated or rdflib.Graph())
    patch = patches(sorted(named, key=lambda triple: [term.n3() for term in triple]))
    return st.one_of(patch, patch, patch, puts, st.just("delete"))


def text_of(patch: Patch) -> str:
    where, deletes, inserts = map(block, patch.formulas)
    if patch.content_type == N3_PATCH:
        clauses = {"where": where, "deletes": deletes, "inserts": inserts}
        parts = [f"solid:{name} {{ {text} }};" for name, text in clauses.items() if text]
        prefix = "@prefix solid: <http://www.w3.org/ns/solid/terms#> .\n"
        return f"{prefix}[] {' '.join(parts)} a solid:InsertDeletePatch ."
    if patch.as_data and not where:
        return f"DELETE DATA {{ {deletes} }} ;\nINSERT DATA {{ {inserts} }} ;"
    return f"DELETE {{ {deletes} }} INSERT {{ {inserts} }} WHERE {{ {where} }}"


@dataclass
class Model:
    """What is said at each place: for a container what its owner says, ``None`` for nothing."""

    alice: Client
    root: str
    said: dict[str, rdflib.Graph | None] = field(default_factory=dict)

    async def take(self, place: str, step: Step) -> None:
        """Take a step over HTTP and in the model; they must agree on whether it succeeds."""
        if isinstance(step, Put):
            await self._put(place, step)
        elif isinstance(step, Patch):
            await self._patch(place, step)
        elif not place.endswith("/"):
            answer = await self.alice.delete(self.root + place)
            assert answer.status == (404 if self.said.get(place) is None else 204)
            self.said[place] = None

    async def _put(self, place: str, step: Put) -> None:
        graph = rdflib.Graph()
        for triple in step.triples:
            graph.add(triple)
        body = expanded(graph) if step.content_type == JSON_LD else graph.serialize(format="turtle")
        answer = await self.alice.put(self.root + place, body, step.content_type)
        self._succeeded(place, answer)
        self._set(place, graph)

    async def _patch(self, place: str, patch: Patch) -> None:
        before = self.said.get(place) or rdflib.Graph()
        is_n3 = patch.content_type == N3_PATCH
        after = (patched_by_n3 if is_n3 else patched_by_update)(before, patch.formulas)
        if after is not None and count_of_nodes(after) > MAX_BLANK_NODES:
            return
        answer = await self.alice.request(
            "PATCH",
            self.root + place,
            headers={"Content-Type": patch.content_type},
            body=text_of(patch).encode(),
        )
        if after is None:
            assert answer.status in {409, 422}, answer
            return
        self._succeeded(place, answer)
        self._set(place, after)

    def _succeeded(self, place: str, answer: Answer) -> None:
        assert answer.status == (201 if self.said.get(place) is None else 204), answer

    def _set(self, place: str, graph: rdflib.Graph) -> None:
        self.said[place] = graph
        if place.startswith("deep/") and self.said.get("deep/") is None:
            self.said["deep/"] = rdflib.Graph()

    async def check(self, place: str, accept: str) -> None:
        """Assert that a GET says what the model says."""
        answer = await self.alice.get(self.root + place, accept=accept)
        graph = self.said.get(place)
        assert answer.status == (404 if graph is None else 200), answer
        if graph is not None:
            found = said(answer, BASE + self.root + place)
            assert owners(found) == owners(frozenset(to_canonical_graph(graph)))


def expanded(graph: rdflib.Graph) -> str:
    """A graph in JSON-LD, node by node: rdflib's own writer forgets nodes that only name
    themselves."""

    def name(node: Node) -> str:
        return node.n3() if isinstance(node, BNode) else str(node)

    def value(term: Node) -> dict[str, str]:
        if not isinstance(term, rdflib.Literal):
            return {"@id": name(term)}
        if term.language:
            return {"@value": str(term), "@language": term.language}
        return {"@value": str(term), **({"@type": str(term.datatype)} if term.datatype else {})}

    return json.dumps([{"@id": name(s), str(p): [value(o)]} for s, p, o in graph])


def count_of_nodes(graph: rdflib.Graph) -> int:
    return len({term for triple in graph for term in triple if isinstance(term, BNode)})


def owners(found: Triples) -> Triples:
    """What is not the server's to say: here all statements with these predicates are not."""
    return {triple for triple in found if triple[1] in PREDICATES}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """The application, in a loop that runs while a step is taken: what comes next is drawn
    between the steps, which nothing may interrupt."""
    options = Settings(root=tmp_path / "root", base_url=BASE, pod_creations_per_hour=0)
    ensure_token_key(KeyFiles(prepare_root(options.root).keys))
    starting = running(options)
    with asyncio.Runner() as runner:
        application = runner.run(starting.__aenter__())
        server = runner.run(with_two_pods(application))
        yield World(runner, server.alice)
        runner.run(starting.__aexit__())


@dataclass
class World:
    """The server and who asks it."""

    runner: asyncio.Runner
    alice: Client

    def model(self) -> Model:
        """What is said below a container of its own: nothing."""
        return Model(self.alice, f"/alice/private/{next(_numbers)}/")


@pytest.mark.parametrize("place", PLACES)
@given(st.data(), st.integers(1, 5))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_succeeds_is_in_the_next_get(
    world: World, place: str, data: st.DataObject, length: int
) -> None:
    """X-11 to X-16, X-31, X-35, C-9, C-13: and what is refused has changed nothing."""
    model = world.model()
    for _ in range(length):
        world.runner.run(model.take(place, data.draw(steps(model.said.get(place)))))
        accept = data.draw(st.sampled_from([TURTLE, JSON_LD]))
        world.runner.run(model.check(place, accept))


@given(st.data(), st.lists(st.sampled_from(PLACES), min_size=2, max_size=8))
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_done_at_one_place_is_seen_there_alone(
    world: World, data: st.DataObject, sequence: list[str]
) -> None:
    """C-13, C-22: documents and their containers, each with what was said there."""
    model = world.model()
    for place in sequence:
        world.runner.run(model.take(place, data.draw(steps(model.said.get(place)))))
        accept = data.draw(st.sampled_from([TURTLE, JSON_LD]))
        for other in PLACES:
            world.runner.run(model.check(other, accept))

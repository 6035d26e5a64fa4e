"""How are patches measured? By what is stored afterwards, not by what was acknowledged.

A server may acknowledge a patch and lose it to another writer of the same document, so after each
round every document is read and searched for the triples sent. A peer's figure is the number of
patches that it kept; this server must have kept all of them, or its figure is void.

Each patch inserts a literal of its own. The documents have one subject and contain the patched
predicate in full, because javascript-solid-server finds it in no other form.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from pyoxigraph import Literal, RdfFormat, parse

from bench.exercises import Effect
from bench.load import Load, Outcome
from bench.messages import N3, SEQUENCE, SPARQL_UPDATE, TURTLE, WrongAnswer, sequence_text
from bench.site import WRITERS, Site, Stored

SLOT: Final = "SLOT"
SLOTS: Final = 20
"""Triples of a document that a patch may replace."""

_KNOWS_ABOUT: Final = "https://schema.org/knowsAbout"
_SUCCESS: Final = frozenset({200, 201, 204, 205})


@dataclass(frozen=True, slots=True)
class Form:
    """How a patch is written: `text` has a `SEQUENCE`, and a `SLOT` where it replaces one."""

    media_type: str
    text: str


N3_INSERT: Final = Form(
    N3,
    "@prefix solid: <http://www.w3.org/ns/solid/terms#>.\n"
    "@prefix schema: <https://schema.org/>.\n"
    "_:patch a solid:InsertDeletePatch;\n"
    f'  solid:inserts {{ <#me> schema:knowsAbout "{SEQUENCE}". }}.\n',
)
SPARQL_INSERT: Final = Form(
    SPARQL_UPDATE,
    "PREFIX schema: <https://schema.org/>\n"
    f'INSERT DATA {{ <#me> schema:knowsAbout "{SEQUENCE}". }}\n',
)
SPARQL_REPLACE: Final = Form(
    SPARQL_UPDATE,
    f'DELETE DATA {{ <#me> <{_KNOWS_ABOUT}> "{SLOT}" . }} ;\n'
    f'INSERT DATA {{ <#me> <{_KNOWS_ABOUT}> "{SEQUENCE}" . }}\n',
)


@dataclass(frozen=True, slots=True)
class Patch:
    """PATCH of fresh documents each round, `in_a_row` times one and then the next.

    With as many connections as patches in a row, so many writers have one document at a time. A
    form that replaces goes through all documents before it comes to their next triple.
    """

    container: str
    form: Form
    documents: int = 384
    in_a_row: int = 1

    def furnish(self, site: Site) -> None:
        """Nothing: each round has documents of its own."""

    def load(self, site: Site, label: str) -> Load:
        """One request for each document, or for each triple to be replaced."""
        paths = [self._path(label, number) for number in range(self.documents)]
        site.store(Stored(path, TURTLE, card().encode()) for path in paths)
        headers = {"Content-Type": self.form.media_type}
        requests = [
            site.request(
                "PATCH",
                path,
                headers=headers,
                body=self.form.text.replace(SLOT, slot),
                authorized=True,
            )
            for slot in self._slots()
            for path in paths
        ]
        return Load(requests, tally=True, in_a_row=self.in_a_row)

    def verify(self, site: Site, label: str, load: Load, outcome: Outcome) -> Effect:
        """Look for what each patch sent should have left."""
        outcome.require_whole_connections()
        sent: defaultdict[str, list[int]] = defaultdict(list)
        for number in range(1, outcome.sent + 1):
            document = load.request_of(number) % self.documents
            sent[self._path(label, document)].append(number)
        with ThreadPoolExecutor(WRITERS) as pool:
            said = list(pool.map(lambda path: _said(site, path), sent))
        present = sum(
            self._is_there(number, load, literals)
            for numbers, literals in zip(sent.values(), said, strict=True)
            for number in numbers
        )
        acknowledged = sum(outcome.statuses.get(status, 0) for status in _SUCCESS)
        return Effect(outcome.answered, acknowledged, present)

    def _is_there(self, number: int, load: Load, literals: frozenset[str]) -> bool:
        """Whether a document says what a patch inserts, and not what it deletes."""
        if sequence_text(number) not in literals:
            return False
        slots = self._slots()
        return slots[load.request_of(number) // self.documents] not in literals

    def _slots(self) -> list[str]:
        return list(_slots()) if SLOT in self.form.text else [""]

    def _path(self, label: str, number: int) -> str:
        return f"{self.container}{label}/d-{number:03d}.ttl"


def card() -> str:
    """Return a contact card in Turtle, of thirty triples."""
    slots = ", ".join(f'"{slot}"' for slot in _slots())
    return (
        "@prefix foaf: <http://xmlns.com/foaf/0.1/>.\n"
        "@prefix vcard: <http://www.w3.org/2006/vcard/ns#>.\n"
        "<#me> a foaf:Person, vcard:Individual;\n"
        '    foaf:name "Alice Example"; foaf:nick "alice"; foaf:age 42;\n'
        '    vcard:role "Une carte de visite"@fr;\n'
        "    vcard:url <https://alice.example/>;\n"
        "    foaf:knows <https://bob.example/card#me>, <https://carol.example/card#me>,\n"
        "        <https://dave.example/card#me>;\n"
        f"    <{_KNOWS_ABOUT}> {slots}.\n"
    )


def _slots() -> Iterator[str]:
    return (f"subject {number:02d}" for number in range(SLOTS))


def _said(site: Site, path: str) -> frozenset[str]:
    """Return the literals that a document names; none if it cannot be read any more."""
    try:
        answer = site.get(path, TURTLE, authorized=True).require(200)
        triples = parse(answer.body, format=RdfFormat.TURTLE, base_iri=site.url(path))
        return frozenset(
            triple.object.value
            for triple in triples
            if triple.predicate.value == _KNOWS_ABOUT and isinstance(triple.object, Literal)
        )
    except (SyntaxError, WrongAnswer):
        return frozenset()

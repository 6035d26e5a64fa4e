"""What is measured? Each case is one value in `CASES`.

To add a case, add a value: a key for `--only`, a title for the table, an exercise, the features it
needs of a server, and the ratios to reach, if any. For a new kind of work (such as a proof for each
request), add a class beside those in `exercises` and `patches`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from bench.certified import ReadByCertificate
from bench.documents import (
    CERTIFIED_CARD,
    HUNDRED,
    MEBIBYTE,
    PRIVATE_CARD,
    PROVEN_CARD,
    PUBLIC_CARD,
    SIGNED_CARD,
)
from bench.exercises import (
    CreateByPost,
    CreateByPut,
    Delete,
    Exercise,
    Read,
    ReadWithProofs,
    Replace,
)
from bench.messages import JSON_LD, OCTETS, TURTLE
from bench.pages import ReadContainerPage
from bench.patches import N3_INSERT, SPARQL_INSERT, SPARQL_REPLACE, Patch
from bench.servers import Feature
from bench.signatures import ReadSigned


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the table. `goals`: least podstead/peer ratio, by the peer's column.

    `own_goals` is the least ratio to another case of ours, by its key, and `least_per_s` the least
    rate of ours. `connections` is for a case that asks for a number of its own.
    """

    key: str
    title: str
    exercise: Exercise
    needs: frozenset[Feature] = frozenset()
    goals: Mapping[str, float] = field(default_factory=dict)
    connections: int | None = None
    own_goals: Mapping[str, float] = field(default_factory=dict)
    least_per_s: float | None = None


_READ_GOAL: Final = {"jss": 8.0}
_PATCH_GOAL: Final = {"jss": 1.2, "jss-quota": 2.0}
_ONE_DOCUMENT_GOAL: Final = {"jss": 2.0}
_WRITES: Final = frozenset({Feature.WRITES, Feature.CREDENTIALS})
_PATCHES: Final = _WRITES | {Feature.CONVERSION}
_WRITERS: Final = 50

CASES: Final = (
    Case(
        "public-get",
        "GET, public, 1 kB JSON-LD as stored",
        Read(PUBLIC_CARD, JSON_LD),
        goals={**_READ_GOAL, "nginx": 0.33},
    ),
    Case(
        "private-get",
        "GET, private, with a bearer token",
        Read(PRIVATE_CARD, JSON_LD, authorized=True),
        frozenset({Feature.CREDENTIALS}),
        _READ_GOAL,
    ),
    Case(
        "dpop-get",
        "GET, private, with a fresh DPoP proof",
        ReadWithProofs(PROVEN_CARD, JSON_LD),
        frozenset({Feature.PROOFS}),
        {"jss": 3.0},
    ),
    Case(
        "nostr-get",
        "GET, private, with a fresh NIP-98 event",
        ReadSigned(SIGNED_CARD, JSON_LD),
        frozenset({Feature.CREDENTIALS, Feature.SIGNATURES}),
        {"jss": 3.0},
    ),
    Case(
        "tls-get",
        "GET, public, over TLS",
        Read(PUBLIC_CARD, JSON_LD),
        frozenset({Feature.TLS}),
        own_goals={"public-get": 0.85},
    ),
    Case(
        "webid-tls-public",
        "GET, public, over TLS that requests a certificate",
        Read(PUBLIC_CARD, JSON_LD),
        frozenset({Feature.CERTIFICATES}),
    ),
    Case(
        "webid-tls-get",
        "GET, private, with a client certificate",
        ReadByCertificate(CERTIFIED_CARD, JSON_LD),
        frozenset({Feature.CREDENTIALS, Feature.CERTIFICATES}),
        {"jss": 3.0},
    ),
    Case(
        "webid-tls-fresh",
        "GET, private, with a client certificate on a new connection",
        ReadByCertificate(CERTIFIED_CARD, JSON_LD, connection_each=True),
        frozenset({Feature.CREDENTIALS, Feature.CERTIFICATES}),
        {"jss": 3.0},
    ),
    Case(
        "not-modified",
        "GET, 304 with If-None-Match",
        Read(PUBLIC_CARD, JSON_LD, conditional=True),
        goals={"jss": 5.0},
    ),
    Case(
        "container-100",
        "GET, container with 100 members, JSON-LD",
        Read(HUNDRED, JSON_LD),
        frozenset({Feature.CONTAINERS}),
        _READ_GOAL,
    ),
    Case(
        "container-turtle",
        "GET, container with 100 members, Turtle",
        Read(HUNDRED, TURTLE),
        frozenset({Feature.CONTAINERS, Feature.CONVERSION}),
        _READ_GOAL,
    ),
    Case(
        "container-page",
        "GET, page about a container with 100 members",
        ReadContainerPage(HUNDRED),
        frozenset({Feature.PAGES}),
        least_per_s=2000,
    ),
    Case(
        "turtle",
        "GET, Turtle from stored JSON-LD",
        Read(PUBLIC_CARD, TURTLE),
        frozenset({Feature.CONVERSION}),
        _READ_GOAL,
    ),
    Case("get-1mib", "GET, 1 MiB", Read(MEBIBYTE, OCTETS), goals={"jss": 8.0, "nginx": 0.5}),
    Case(
        "put-replace",
        "PUT, replacing",
        Replace("private/replaced/"),
        _WRITES,
        {"jss": 1.5, "jss-quota": 2.0},
    ),
    Case(
        "put-one",
        "PUT, replacing one document",
        Replace("private/replaced-one/", resources=1),
        _WRITES,
    ),
    Case(
        "put-create",
        "PUT, creating",
        CreateByPut("private/put/"),
        _WRITES,
        {"jss": 1.1, "jss-quota": 2.0},
    ),
    Case(
        "post-create",
        "POST, creating",
        CreateByPost("private/posted/"),
        _WRITES,
        {"jss": 1.2, "jss-quota": 2.0},
    ),
    Case("delete", "DELETE", Delete("private/deleted/"), _WRITES),
    Case(
        "n3-insert",
        "PATCH, N3, inserting",
        Patch("private/n3-insert/", N3_INSERT),
        _PATCHES,
        _PATCH_GOAL,
    ),
    Case(
        "sparql-insert",
        "PATCH, SPARQL, inserting",
        Patch("private/sparql-insert/", SPARQL_INSERT),
        _PATCHES,
        _PATCH_GOAL,
    ),
    Case(
        "sparql-replace",
        "PATCH, SPARQL, deleting and inserting",
        Patch("private/sparql-replace/", SPARQL_REPLACE),
        _PATCHES,
        _PATCH_GOAL,
    ),
    Case(
        "n3-one-document",
        f"PATCH, N3, {_WRITERS} writers of one document",
        Patch("private/n3-one/", N3_INSERT, documents=160, in_a_row=_WRITERS),
        _PATCHES,
        _ONE_DOCUMENT_GOAL,
        connections=_WRITERS,
    ),
    Case(
        "sparql-one-document",
        f"PATCH, SPARQL, {_WRITERS} writers of one document",
        Patch("private/sparql-one/", SPARQL_INSERT, documents=160, in_a_row=_WRITERS),
        _PATCHES,
        _ONE_DOCUMENT_GOAL,
        connections=_WRITERS,
    ),
)

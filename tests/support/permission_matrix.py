"""Who may do what: the one permission matrix, which tests check at four levels.

The levels are what operations require (``unit/wac/test_modes.py``), the gate
(``unit/wac/test_modes.py``), the application over ASGI
(``http/test_permission_matrix.py``) and the server over a socket
(``conformance/test_permission_matrix.py``).

Sources: WAC, the matrices of the Solid specification tests (web-access-control, ``acl-object`` and
``protected-operation``) and their converted permission features.

An access is written as three groups of modes in their first letters: those on the container itself,
those that its members inherit, and those of the target's own ACL; ``no`` stands for none, and ``-``
for no ACL of its own. What is an ACL or a description has the access of its subject.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

TURTLE = "text/turtle"
N3_PATCH = "text/n3"
SPARQL_UPDATE = "application/sparql-update"

TARGETS = {
    "document": "document.ttl",
    "text": "text.txt",
    "container": "inner/",
    "missing": "missing",
    "missing/": "missing/",
    "deep": "a/b/new",
    "deep/": "a/b/",
    "acl": "document.ttl.acl",
    "missing acl": "document.ttl.acl",
    "description": "document.ttl.meta",
    "missing description": "document.ttl.meta",
    "text description": "text.txt.meta",
}
"""The targets' names in the container."""
REFUSED = 403

_PREFIXES = (
    "@prefix solid: <http://www.w3.org/ns/solid/terms#>. @prefix ex: <http://example.org/>. "
)
REQUESTS: dict[str, tuple[str, str | None, str | None]] = {
    "GET": ("GET", None, None),
    "HEAD": ("HEAD", None, None),
    "OPTIONS": ("OPTIONS", None, None),
    "DELETE": ("DELETE", None, None),
    "PUT": ("PUT", TURTLE, "<#sent> <#p> 2."),
    "PUT text": ("PUT", "text/plain", "sent"),
    # As the specification tests send it: without the last dot.
    "POST": ("POST", TURTLE, "<#sent> <#p> 2"),
    "POST text": ("POST", "text/plain", "sent"),
    "PATCH": (
        *("PATCH", N3_PATCH),
        _PREFIXES + "_:p a solid:InsertDeletePatch; solid:inserts { <#sent> ex:p 2 . }.",
    ),
    "PATCH sparql": ("PATCH", SPARQL_UPDATE, "INSERT DATA { <#sent> <http://example.org/p> 2 }"),
    "PATCH replace": (
        *("PATCH", SPARQL_UPDATE),
        "DELETE { ?s a ?o } INSERT { ?s <http://example.org/was> ?o } WHERE { ?s a ?o }",
    ),
    "PATCH if": (
        *("PATCH", N3_PATCH),
        _PREFIXES + "_:p a solid:InsertDeletePatch; "
        "solid:where { ?x ex:p 1 . }; solid:inserts { ?x ex:q 1 . }.",
    ),
    "PATCH text": ("PATCH", "text/plain", "sent"),
}
"""Method, content type and body of each request."""
UNGUARDED = {"OPTIONS", "PATCH text"}
"""Requests that are answered alike whoever sends them."""


class Access(NamedTuple):
    """The modes of one agent, in their first letters."""

    container: str
    members: str
    own: str | None

    @classmethod
    def of(cls, text: str) -> Access:
        container, members, own = (part.replace("no", "") for part in text.split())
        return cls(container, members, None if own == "-" else own)

    def on(self, path: str, *, container: str, target: str) -> str:
        """The modes on a path: the container, the target or another member."""
        if path == container:
            return self.container
        return self.own if path == target and self.own is not None else self.members

    def __str__(self) -> str:
        own = "-" if self.own is None else self.own or "no"
        return f"{self.container or 'no'} {self.members or 'no'} {own}"


@dataclass(frozen=True, slots=True)
class Case:
    """One request on one target, with the access that its sender has."""

    requirement: str
    request: str
    target: str
    access: Access
    status: int

    @property
    def exists(self) -> bool:
        return self.target.partition(" ")[0] not in {"missing", "missing/", "deep", "deep/"}

    @property
    def passes(self) -> bool:
        """Whether the gate lets the request pass, whatever becomes of it then."""
        return self.status != REFUSED

    def __str__(self) -> str:
        words = f"{self.request} {self.target} {self.access} {self.status}"
        return words.replace("/", "_").replace(" ", "-")


Rows = list[tuple[str, str, str, int]]

_EXISTING = "document, text, container"
_READS = "no no R, R R -"
_BOTH = "missing, missing/"
_DESCRIPTIONS = "description, text description"

_MATRIX: dict[str, Rows] = {
    # requests; targets; accesses; the status that whoever has one of them gets
    "M-1": [
        ("GET, HEAD", _EXISTING, _READS, 200),
        ("GET, HEAD", _BOTH, "R R -", 404),
        ("PUT", "document, container", _READS, 403),
        ("PUT, PUT text", _BOTH, "R R -", 403),
        ("PUT text", "text", _READS, 403),
        ("POST, POST text", _EXISTING, _READS, 403),
        ("POST, POST text", "missing", "R R -", 403),
        ("PATCH, PATCH sparql, PATCH replace", _EXISTING, _READS, 403),
        ("PATCH, PATCH sparql, PATCH replace", "missing", "R R -", 403),
        ("PATCH text", "text", _READS, 415),
        ("PATCH text", "missing", "R R -", 415),
        ("DELETE", _EXISTING, _READS, 403),
        ("DELETE", "missing", "R R -", 403),
    ],
    "M-2": [
        ("GET, HEAD", _EXISTING, "no no WAC, WAC WAC -", 403),
        ("GET, HEAD", _BOTH, "WAC WAC -", 403),
        ("PUT", "document, container", "no no W, W W -", 204),
        ("PUT text", "text", "no no W, W W -", 204),
        ("PUT, PUT text", "missing", "W W -", 201),
        ("PUT", "missing/", "W W -", 201),
        ("PUT", _EXISTING, "no no A, A A -, C C -", 403),
        ("PUT", _BOTH, "A A -, C C -", 403),
        ("POST, POST text", "container", "no no W, W W -, no no A, A A -", 201),
        ("POST", "container", "no no C, C C -", 403),
        ("PATCH", "document, container", "no no W, W W -, no no A, A A -", 204),
        ("PATCH", "missing", "W W -, A A -", 201),
        ("PATCH", "document", "no no C, C C -", 403),
        ("PATCH", "missing", "C C -", 403),
        ("DELETE", _EXISTING, "no no C, no no A, C C -, A A -", 403),
        ("DELETE", "missing", "C C -, A A -", 403),
        ("DELETE", "document, text", "no no W", 403),
        ("DELETE", "document, text", "W W -", 204),
        ("DELETE", _BOTH, "W W -", 403),
        ("DELETE", "container", "no no W, W W -", 403),
    ],
    "M-3": [
        ("GET, HEAD", _EXISTING, "no no A", 403),
        ("GET, HEAD", _EXISTING, "no no RA, no no RW", 200),
        ("OPTIONS", "document, container", "no no RA, no no RW", 204),
        ("PUT", "document, container", "no no A, no no RA", 403),
        ("PUT text", "text", "no no A, no no RA", 403),
        ("PUT", "document, container", "no no RW", 204),
        ("PUT text", "text", "no no RW", 204),
        ("PATCH sparql", "document, container", "no no A, no no RA, no no RW", 204),
        ("PATCH replace", "document, container", "no no A, no no RA", 403),
        ("PATCH replace", "document, container", "no no RW", 204),
        ("PATCH text", "text", "no no A, no no RA, no no RW", 415),
        ("PATCH, PATCH sparql", "text", "no no A, no no RA, no no RW", 409),
        ("PATCH replace", "text", "no no A, no no RA", 403),
        ("PATCH replace", "text", "no no RW", 409),
        ("POST", "container", "no no A, no no RA, no no RW", 201),
        ("POST", "document, text", "no no A, no no RA, no no RW", 405),
        ("DELETE", _EXISTING, "no no A, no no RA, no no RW", 403),
    ],
    "W-30": [
        ("GET, HEAD", "document, container, missing, deep, missing/", "RWAC no -", 403),
        ("GET, HEAD", "document, container", "RWAC R -", 200),
        ("GET, HEAD", "missing, deep, missing/", "RWAC R -", 404),
        ("GET, HEAD", "document, container, missing, deep, missing/", "RWAC WAC -", 403),
        ("GET, HEAD", "document, container", "R R R", 200),
        ("GET, HEAD", "document, container", "R R WAC", 403),
        ("GET, HEAD", "document, container, missing, missing/", "R no -, W W -", 403),
    ],
    "W-32": [
        ("POST, POST text", "container", "no no A, no no W, no no AC", 201),
        ("POST, POST text", "container", "AW AW no, AW AW RC, no no no", 403),
        ("POST", "missing/", "A A -, W W -", 404),
        ("POST", "missing/", "R R -, C C -", 403),
        ("POST", "document", "A A -", 405),
        ("POST", "missing", "A A -", 404),
    ],
    "W-33": [
        ("PUT", "document, container", "no no W", 204),
        ("PUT", "document, container", "no no RAC, W W RAC, W no -", 403),
    ],
    "W-34": [
        ("PUT", _BOTH, "A W -, W W -, AW W -", 201),
        ("PUT", _BOTH, "A A -, W A -, no WRA -, RC W -, WA no -, W RC -, no no -", 403),
        ("PUT", _BOTH, "W no -, R R -", 403),
        ("PUT", "document, container", "AW W -", 204),
        ("PUT text", "missing", "A W -, W W -, AW W -", 201),
        ("PUT text", "missing", "A A -, W A -, no WRA -, RC W -, WA no -, W RC -, no no -", 403),
    ],
    "W-35": [
        ("PATCH", "document, container", "no no A, no no W", 204),
        ("PATCH", "document, container", "no no RC, A A RC", 403),
    ],
    "W-36": [
        ("PATCH, PATCH sparql", "missing", "A W -, W W -, A A -, W A -", 201),
        ("PATCH, PATCH sparql", "missing", "no WRA -, RC W -, WA no -, W RC -, no no -", 403),
        ("PATCH if", "missing", "A W -, A A -", 403),
        ("PATCH if", "missing", "A RA -", 409),
    ],
    "W-37": [
        ("PUT", "deep, deep/", "A W -, W W -", 201),
        ("PUT", "deep, deep/", "A A -, W A -, no WRA -, RC W -, WA no -, W RC -, no no -", 403),
        ("PATCH", "deep", "A W -, W W -, A A -, W A -", 201),
        ("PATCH", "deep", "no WRA -, RC W -, WA no -, W RC -, no no -", 403),
    ],
    "W-38": [
        ("DELETE", "document, text", "W W -, W RW -, W no W, W no RW, RW RW -", 204),
        ("DELETE", "document, text", "W RAC -, RAC RW -, no RW -, W no -, RW no -", 403),
        ("DELETE", "document, text", "W W RAC, no no RW, A RW RW, A A -, C C -", 403),
    ],
    "W-39": [
        ("DELETE", "container", "W RW -, W no RW, RW RW -", 204),
        ("DELETE", "container", "W W -, W RAC -, RAC RW -, no RW -, W no -, RW no -", 403),
        ("DELETE", "container", "W no W, W W RAC, no no RW, A RW RW", 403),
    ],
    "W-40": [
        ("GET, HEAD", "acl", "C C C", 200),
        ("GET", "missing acl", "C C -", 404),
        ("PUT, PATCH, PATCH sparql, DELETE", "acl", "C C C", 204),
        ("PUT", "missing acl", "C C -", 201),
        ("DELETE", "missing acl", "C C -", 404),
        ("GET, HEAD, PUT, PATCH, DELETE", "acl", "RWA RWA RWA", 403),
        ("GET, HEAD, PUT, PATCH, DELETE", "missing acl", "RWA RWA -", 403),
    ],
    "W-41": [
        ("DELETE", _BOTH, "W RW -, RW RW -", 404),
        ("DELETE", _BOTH, "W W -, W RAC -, RAC RW -, no RW -, W no -, RW no -", 403),
        ("DELETE", _BOTH, "A A -, C C -", 403),
    ],
    "W-42": [
        ("GET, HEAD", _DESCRIPTIONS, "no no R, R R -, no no RA, no R -, no RA -", 200),
        ("GET, HEAD", "missing description", "R R -", 200),
        ("GET, HEAD", _DESCRIPTIONS, "no no A, no no W, no no C, W W -, no A -, no C -", 403),
        ("GET", "missing description", "W W -", 403),
        ("PUT", _DESCRIPTIONS, "no no W, W W -, no W -", 204),
        ("PUT", "missing description", "W W -", 201),
        ("PUT", "missing description", "A A -", 403),
        ("PUT", _DESCRIPTIONS, "A A -, no no R, no no A, no no C, no no RA", 403),
        ("PUT", _DESCRIPTIONS, "no R -, no A -, no C -, no RA -", 403),
        ("PATCH", _DESCRIPTIONS, "no no A, no no W, no no RA, no A -, no W -, no RA -", 204),
        ("PATCH", _DESCRIPTIONS, "no no R, no no C, no R -, no C -", 403),
    ],
    "W-45": [
        ("DELETE", _EXISTING, "RAC no RW, RW no -", 403),
    ],
}


def _cases(requirement: str) -> list[Case]:
    return [
        Case(requirement, request, target, Access.of(access), status)
        for requests, targets, accesses, status in _MATRIX[requirement]
        for request in requests.split(", ")
        for target in targets.split(", ")
        for access in accesses.split(", ")
    ]


CASES: list[Case] = [case for requirement in _MATRIX for case in _cases(requirement)]


def cases_of(*requirements: str) -> list[Case]:
    """The part of the matrix that shows these requirements."""
    return [case for case in CASES if case.requirement in requirements]


def distinct_cases() -> list[Case]:
    """The matrix without what several requirements have in common."""
    known = {(case.request, case.target, case.access): case for case in reversed(CASES)}
    return list(reversed(known.values()))


# --- access rules ---------------------------------------------------------------------------------

_MODES = {"R": "acl:Read", "W": "acl:Write", "A": "acl:Append", "C": "acl:Control"}
PUBLIC = "acl:agentClass foaf:Agent"
AUTHENTICATED = "acl:agentClass acl:AuthenticatedAgent"


def subject_of(target: str) -> str:
    """The resource whose access decides about a target, by their names."""
    return TARGETS[target].removesuffix(".acl").removesuffix(".meta")


def access_rules(url: str, owner: str, who: str, *, own: str, members: str = "") -> str:
    """The ACL of a resource: its owner keeps control, and ``who`` has modes on it and below it."""
    every = [(f"acl:agent <{owner}>", "RWC", "RWC"), (who, own, members)]
    blocks = [
        "@prefix acl: <http://www.w3.org/ns/auth/acl#>.",
        "@prefix foaf: <http://xmlns.com/foaf/0.1/>.",
    ]
    for subject, here, below in every:
        for reach, letters in (("acl:accessTo", here), ("acl:default", below)):
            if letters:
                modes = ", ".join(_MODES[letter] for letter in letters)
                blocks.append(
                    f"[] a acl:Authorization; {subject}; {reach} <{url}>; acl:mode {modes}."
                )
    return "\n".join(blocks)

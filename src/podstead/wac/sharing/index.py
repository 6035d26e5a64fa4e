"""Derives the records of an index over access rules, which finds the ACLs that name an agent.

Pure. Each ACL has a record of its grantees and their modes, and one record for each agent and group
that it names, which is found by the name. The records of an ACL belong to its storage and are
written in the transaction that writes the ACL. They only suggest where to look: whether somebody
has access is always the gate's decision.

An ACL with very many names is recorded under one marker instead of each name, which bounds the cost
of a write; it is then a candidate for everybody.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from podstead.core.identifiers import ResourcePath, storage_root
from podstead.rdf.graph import Graph
from podstead.storage.record_store import RecordKind
from podstead.storage.records import Record
from podstead.wac.acl import agent_name, first_end_ms, read_acl
from podstead.wac.modes import NO_MODES, Mode, Modes
from podstead.wac.sharing.rules import Grantee, GranteeKind, grantees_of, order_of

MAX_NAMED: Final = 1000
"""How many agents and groups of one ACL are recorded under their names."""
LISTED_OF_MANY: Final = 50
"""How many grantees of an ACL with more than that are recorded with it."""

_HASH_DIGITS: Final = 32
_LETTERS: Final = {Mode.READ: "r", Mode.APPEND: "a", Mode.WRITE: "w", Mode.CONTROL: "c"}
_MODES: Final = {letter: mode for mode, letter in _LETTERS.items()}


class IndexedGrantee(msgspec.Struct, frozen=True, array_like=True):
    """An agent, group or class that an ACL names, and the modes that its rules grant on its subject
    (``here``) and on what inherits from it, as letters; and when the last of these rules ends,
    ``None`` if one has no end."""

    kind: str
    iri: str
    here: str
    inside: str
    ends_ms: int | None = None

    @property
    def grantee(self) -> Grantee:
        return Grantee(GranteeKind(self.kind), self.iri)

    @property
    def modes_here(self) -> Modes:
        return _modes_of(self.here)

    @property
    def modes_inside(self) -> Modes:
        return _modes_of(self.inside)


class IndexedAcl(msgspec.Struct, frozen=True):
    """Whom an ACL names: classes first, then groups and agents by IRI. ``total`` is their number,
    of which a very long ACL lists only some. The key is the path of the ACL."""

    grantees: tuple[IndexedGrantee, ...]
    total: int

    @property
    def names_many(self) -> bool:
        return len(self.grantees) < self.total


class Mention(msgspec.Struct, frozen=True):
    """The fact that an ACL names an agent or a group; the key is :func:`mention_key`."""

    iri: str


ACLS: Final = RecordKind("access-rules", IndexedAcl)
MENTIONS: Final = RecordKind("access-mention", Mention)

MANY: Final = "*"
"""The prefix of the keys of ACLs with very many names."""
GROUPS: Final = "g"
"""The prefix of the keys of all groups."""


def agent_prefix(iri: str) -> str:
    """The key prefix of an agent's mentions; the path of the ACL follows."""
    return f"a{_hash(agent_name(iri))}"


def group_prefix(iri: str) -> str:
    """The same for a group."""
    return f"{GROUPS}{_hash(iri)}"


def prefix_length(key: str) -> int:
    """The length of the prefix of a key."""
    return 1 if key.startswith(MANY) else 1 + _HASH_DIGITS


def indexed_acl(graph: Graph, *, subject_url: str) -> IndexedAcl | None:
    """What the index says about an ACL; ``None`` if it grants nothing to anybody."""
    here: dict[Grantee, Modes] = {}
    inside: dict[Grantee, Modes] = {}
    ends_ms: dict[Grantee, int | None] = {}
    for rule in read_acl(graph, subject_url=subject_url).authorizations:
        if not (rule.access_to or rule.default):
            continue
        rule_ends_ms = first_end_ms(rule.conditions)
        for grantee in grantees_of(rule):
            so_far_ms = ends_ms.get(grantee, rule_ends_ms)
            if so_far_ms is None or rule_ends_ms is None:
                ends_ms[grantee] = None
            else:
                ends_ms[grantee] = max(so_far_ms, rule_ends_ms)
            if rule.access_to:
                here[grantee] = here.get(grantee, NO_MODES) | rule.modes
            if rule.default:
                inside[grantee] = inside.get(grantee, NO_MODES) | rule.modes
    found = sorted({*here, *inside}, key=order_of)
    if not found:
        return None
    listed = found if len(found) <= MAX_NAMED else found[:LISTED_OF_MANY]
    return IndexedAcl(
        tuple(
            IndexedGrantee(
                each.kind.value,
                each.iri,
                _letters_of(here.get(each, NO_MODES)),
                _letters_of(inside.get(each, NO_MODES)),
                ends_ms[each],
            )
            for each in listed
        ),
        len(found),
    )


def mentions(acl: ResourcePath, indexed: IndexedAcl | None) -> Mapping[str, Mention]:
    """The mentions by an ACL, by their keys."""
    if indexed is None:
        return {}
    if indexed.names_many:
        return {MANY + acl: Mention("")}
    found = {}
    for each in indexed.grantees:
        if each.kind == GranteeKind.AGENT.value:
            found[agent_prefix(each.iri) + acl] = Mention(each.iri)
        elif each.kind == GranteeKind.GROUP.value:
            found[group_prefix(each.iri) + acl] = Mention(each.iri)
    return found


def index_changes(
    acl: ResourcePath, before: IndexedAcl | None, after: IndexedAcl | None
) -> list[Record]:
    """The changes of the records when an ACL is written, or deleted (``after`` is ``None``)."""
    if before == after:
        return []
    owner = storage_root(acl)
    gone, come = mentions(acl, before), mentions(acl, after)
    of_acl = ACLS.drop(acl) if after is None else ACLS.put(acl, after, owner=owner)
    return [
        of_acl,
        *(MENTIONS.drop(key) for key in gone if key not in come),
        *(MENTIONS.put(key, come[key], owner=owner) for key in come if key not in gone),
    ]


def _hash(iri: str) -> str:
    return hashlib.sha256(iri.encode()).hexdigest()[:_HASH_DIGITS]


def _letters_of(modes: Iterable[Mode]) -> str:
    return "".join(sorted(_LETTERS[mode] for mode in modes))


def _modes_of(letters: str) -> Modes:
    return frozenset(_MODES[letter] for letter in letters)

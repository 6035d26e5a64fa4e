"""What the index of a search contains, and what both engines offer to build it and to ask it.

The index is derived: it can be removed at any time, and is then built anew. It only proposes
documents; who may see them is decided when they are found, in ``finding.py``.
Each row names its *rule*, a path on which the gate decides as on the document: the document itself
if it has an ACL, and otherwise a path that stands for any member of the container whose ACL
applies. One decision then serves for all documents with this rule.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

from podstead.core import identifiers
from podstead.core.value import Value
from podstead.features.search.analysis import Question
from podstead.storage import protocol, schema, tables
from podstead.wac.effective import acl_paths
from podstead.wac.modes import any_member

FOLDER: Final = "folder"
"""The media type of containers, which have none."""


class IndexedDocument(Value):
    """A document or container as it is in the index.

    ``names`` and ``terms`` are the terms of its name and of its content, with blanks between them;
    ``text`` is the beginning of the text, for excerpts. The name itself is that of the path.
    """

    path: identifiers.ResourcePath
    rule: identifiers.ResourcePath
    version: str
    media_type: str
    names: str
    terms: str = ""
    text: str = ""
    language: str | None = None
    size_bytes: int = 0
    modified_ms: int = 0
    author: str | None = None


class Position(Value):
    """How far the index follows the change log: up to the row with this number, whose write had
    this version. ``cursor`` is the last path that was indexed while the index is being built, and
    ``None`` once it is complete."""

    sequence: int
    version: str
    cursor: str | None = None


@dataclass(slots=True)
class IndexStep:
    """What is changed in the index at once. ``ruled`` are subjects whose ACL was created or
    deleted, with the rules that their members and they themselves have now; ``languages`` are
    those of the new documents."""

    position: Position
    languages: set[str] = field(default_factory=set)
    puts: dict[identifiers.ResourcePath, IndexedDocument] = field(default_factory=dict)
    drops: set[identifiers.ResourcePath] = field(default_factory=set)
    ruled: dict[
        identifiers.ResourcePath, tuple[identifiers.ResourcePath, identifiers.ResourcePath]
    ] = field(default_factory=dict)


class Candidate(Value):
    """A document that matches, as of the index."""

    path: identifiers.ResourcePath
    version: str
    media_type: str
    size_bytes: int
    modified_ms: int
    author: str | None
    in_name: bool


class StoredText(Value):
    """The beginning of the text of a document, and its languages."""

    text: str
    language: str | None


class IndexQuery(msgspec.Struct, frozen=True):
    """What to look for: in which places (containers with what is below them, or documents), with
    one of which rules (``None`` for any), and how many, after how many."""

    question: Question
    places: Sequence[identifiers.ResourcePath]
    rules: Sequence[identifiers.ResourcePath] | None
    limit: int
    newest: bool = False
    offset: int = 0


class Index(Protocol):
    """The index of one server. All methods raise StorageError."""

    async def hold(self) -> bool:
        """Whether this worker is the one that changes the index now."""

    async def position(self) -> Position | None:
        """How far it is; ``None`` if it has to be built."""

    async def begin(self, position: Position) -> None:
        """Remove everything, and begin to build it."""

    async def forget(self) -> None:
        """Have it built anew by whoever holds it, which may be another process."""

    async def size(self) -> int:
        """How many documents and containers it has."""

    async def apply(self, step: IndexStep) -> None:
        """Make a change with its position, or none."""

    async def rules(
        self, below: identifiers.ResourcePath, *, limit: int
    ) -> Sequence[identifiers.ResourcePath]:
        """Up to ``limit`` of the rules that documents below a container may have."""

    async def candidates(self, selection: IndexQuery) -> Sequence[Candidate]:
        """What matches: hits in names first unless ``newest``, and the newest first."""

    async def languages(self) -> Sequence[str]:
        """The languages of all documents that were ever put, with stems."""

    async def terms(
        self, paths: Iterable[identifiers.ResourcePath], *, max_characters: int
    ) -> Mapping[identifiers.ResourcePath, str]:
        """The beginnings of the terms of some candidates."""

    async def texts(
        self, paths: Iterable[identifiers.ResourcePath]
    ) -> Mapping[identifiers.ResourcePath, StoredText]:
        """The texts of some candidates, for excerpts."""

    async def close(self) -> None:
        """Close what was opened, and let another worker change the index."""


COLUMNS: Final = "d.path, d.version, d.media_type, d.size_bytes, d.modified_ms, d.author"
"""Those of a :class:`Candidate` but the last one."""


def marks(values: Sequence[object]) -> str:
    """What stands for several values in SQL."""
    return ", ".join(["%s"] * len(values))


def candidate_of(row: schema.Row) -> Candidate:
    """From :data:`COLUMNS`, and whether the words are in the name."""
    path, version, media_type, size_bytes, modified_ms, author, in_name = row
    return Candidate(
        identifiers.ResourcePath(path),
        version,
        media_type,
        size_bytes,
        modified_ms,
        author,
        in_name=bool(in_name),
    )


def conditions(selection: IndexQuery) -> tuple[list[str], list[str | int]]:
    """The conditions on documents that are not about words, in the SQL of both engines, and their
    values."""
    question = selection.question
    found: list[str] = []
    values: list[str | int] = []
    if selection.rules is not None:
        found.append(f"d.rule IN ({marks(selection.rules) or 'NULL'})")
        values += selection.rules
    for alternatives in (
        [_in_place(each) for each in selection.places],
        [_of_type(each) for each in question.types],
        [_in_folder(each) for each in question.folders],
        [_by_author(each) for each in question.authors],
    ):
        if alternatives:
            found.append(f"({' OR '.join(condition for condition, *_ in alternatives)})")
            values += [value for _, *more in alternatives for value in more]
    if question.after_ms is not None:
        found.append("d.modified_ms >= %s")
        values.append(question.after_ms)
    if question.before_ms is not None:
        found.append("d.modified_ms < %s")
        values.append(question.before_ms)
    return found, values


def _in_place(place: identifiers.ResourcePath) -> tuple[str, ...]:
    if identifiers.is_container(place):
        return ("d.path > %s AND d.path < %s", place, tables.end_of(place))
    return ("d.path = %s", place)


def _of_type(text: str) -> tuple[str, ...]:
    """``pdf`` is a subtype, the end of a name or the first part of a type; ``text/csv`` a type."""
    text = text.lower()
    is_like = "d.media_type LIKE %s ESCAPE '!'"
    if text in ("folder", "container"):
        return (is_like, FOLDER)
    if "/" in text:
        return (is_like, _like("", text.rstrip("*"), "%"))
    likes = (_like("", text, "/%"), _like("%/", text, "%"), _like("%.", text, ""))
    return (f"{is_like} OR {is_like} OR lower(d.path) LIKE %s ESCAPE '!'", *likes)


def _in_folder(text: str) -> tuple[str, ...]:
    """A path from the root of the server if it begins with a slash, or a folder anywhere."""
    names = text.strip("/").split("/")
    name = "/".join(identifiers.encode_segment(each.encode(errors="replace")) for each in names)
    begin, end = "/" if text.startswith("/") else "%/", "/%" if name else "%"
    return ("lower(d.path) LIKE %s ESCAPE '!'", _like(begin, name.lower(), end))


def _by_author(text: str) -> tuple[str, ...]:
    return ("lower(d.author) LIKE %s ESCAPE '!'", _like("%", text.lower(), "%"))


def _like(before: str, text: str, after: str) -> str:
    """A pattern for LIKE."""
    for special in "!%_":
        text = text.replace(special, f"!{special}")
    return f"{before}{text}{after}"


def rule_of(
    path: identifiers.ResourcePath, snapshot: protocol.Snapshot
) -> identifiers.ResourcePath:
    """The rule of a document or container, by a snapshot with :func:`acl_paths` of it."""
    for acl in acl_paths(path):
        if snapshot[acl] is not None:
            return (
                path if acl == identifiers.acl_of(path) else any_member(identifiers.subject_of(acl))
            )
    return any_member(identifiers.ROOT)


def rule_of_members(
    container: identifiers.ResourcePath, snapshot: protocol.Snapshot
) -> identifiers.ResourcePath:
    """The rule of members of a container that have no ACL of their own."""
    for acl in acl_paths(container):
        if snapshot[acl] is not None:
            return any_member(identifiers.subject_of(acl))
    return any_member(identifiers.ROOT)


def rules_above(container: identifiers.ResourcePath) -> Sequence[identifiers.ResourcePath]:
    """The rules that what is below a container may have because of ACLs of containers above it."""
    return [any_member(above) for above in identifiers.ancestors(container)]

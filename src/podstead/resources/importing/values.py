"""The values of an import: its resources, their destination and its report."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

import msgspec

from podstead.core.identifiers import ResourcePath
from podstead.core.value import Value
from podstead.rdf.graph import Dataset
from podstead.resources.planning import DEFAULT_DESCRIPTION_TYPE
from podstead.resources.renaming import NameMapping
from podstead.storage.record_store import RecordKind
from podstead.storage.records import PodRecord, Precondition, Record


class ImportedResource(msgspec.Struct, frozen=True):
    """A document, container, description or ACL as it comes from elsewhere.

    ``path`` is its destination. That of a description or an ACL ends in ``.meta`` or ``.acl``; the
    description of a container may be the container's content or its ``.meta``. ``open`` starts
    reading the content from its beginning; ``None`` for a container without any. ``from_url`` is
    the URL for which its relative names were written, by default the new one.
    """

    path: ResourcePath
    content_type: str = DEFAULT_DESCRIPTION_TYPE
    open: Callable[[], AsyncIterator[bytes]] | None = None
    created_ms: int | None = None
    modified_ms: int | None = None
    from_url: str | None = None


class ImportTarget(msgspec.Struct, frozen=True):
    """Where resources go, and how.

    ``root`` is the root container of a pod; all paths begin with it. With ``new_pod``, the pod is
    created, and ``root_acl`` is the Turtle of its root's ACL if the source has none. Otherwise the
    pod exists, nothing in it is replaced, and ACLs are not imported. ``source_id`` identifies the
    source: an interrupted import continues only with the same one. ``names`` are rewritten in RDF,
    and ``adjust`` may change the document at a path. ``last_records`` are committed with the write
    that makes a new pod visible, if ``last_preconditions`` hold.
    """

    root: ResourcePath
    source_id: str
    new_pod: PodRecord | None = None
    root_acl: bytes = b""
    names: NameMapping = NameMapping()
    adjust: Callable[[ResourcePath, Dataset], Dataset] | None = None
    last_records: Sequence[Record] = ()
    last_preconditions: Sequence[Precondition] = ()
    dry_run: bool = False


class NotTaken(Value):
    """A resource that was not imported, or not unchanged, and why."""

    path: ResourcePath
    reason: str


class ImportReport(msgspec.Struct):
    """What an import did, or would do.

    ``charged_bytes`` is charged to the quota, and ``renamed`` the number of documents in which
    names were rewritten. The ``closed`` are ACLs that could not be read: nobody has access to what
    they protect. The ``not_renamed`` are documents that were stored as they are because they cannot
    be read as RDF. The ``controlled_by_all`` are containers and documents whose access rules
    everyone may change.
    """

    documents: int = 0
    containers: int = 0
    descriptions: int = 0
    rules: int = 0
    size_bytes: int = 0
    charged_bytes: int = 0
    renamed: int = 0
    repositories: int = 0
    already_there: int = 0
    not_taken: list[NotTaken] = msgspec.field(default_factory=list)
    closed: list[NotTaken] = msgspec.field(default_factory=list)
    not_renamed: list[NotTaken] = msgspec.field(default_factory=list)
    controlled_by_all: list[ResourcePath] = msgspec.field(default_factory=list)

    @property
    def resources(self) -> int:
        """The number of resources processed."""
        stored = self.documents + self.containers + self.descriptions + self.rules
        return stored + self.already_there + len(self.not_taken)


Progress = Callable[[ImportReport], None]
"""Called after each write with what was done so far."""


class UnfinishedImport(msgspec.Struct, frozen=True):
    """An import into a new pod that has begun; the key is the root container of the pod."""

    source_id: str
    started_ms: int


UNFINISHED_IMPORTS: Final = RecordKind("unfinished-import", UnfinishedImport)

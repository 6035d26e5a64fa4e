"""Plans the import of resources on one state of their surroundings.

Pure: values in, values out.
"""

from __future__ import annotations

from collections.abc import Mapping

from podstead.core.identifiers import (
    ResourcePath,
    ancestors,
    auxiliary_kind,
    slash_variant,
    subject_of,
)
from podstead.resources.importing.preparing import Prepared
from podstead.resources.importing.values import ImportTarget, NotTaken
from podstead.resources.planning import DEFAULT_DESCRIPTION_TYPE
from podstead.storage.records import (
    Absent,
    AtVersion,
    InlineBody,
    Metadata,
    Precondition,
    Put,
    ResourceKind,
)


class ImportPlan:
    """The puts of some resources, and why others are not stored."""

    def __init__(self, target: ImportTarget, state: Mapping[ResourcePath, Metadata | None]) -> None:
        self._target = target
        self._state = state
        self._creating: set[ResourcePath] = set()
        self.puts: list[Put] = []
        self.stored: list[Prepared] = []
        self.unused: list[Prepared] = []
        self.preconditions: list[Precondition] = []
        self.refused: list[NotTaken] = []
        self.already_there = 0

    def add(self, prepared: Prepared) -> None:
        """Plan the storing of a resource, with the containers above it that do not exist."""
        path, existing = prepared.path, self._state[prepared.path]
        if path in self._creating or existing is not None:
            self._fill(prepared, existing)
            return
        refusal = self._refusal(prepared)
        if refusal is not None:
            self.unused.append(prepared)
            self.refused.append(NotTaken(path, refusal))
            return
        if prepared.kind.is_member:
            for container in reversed(ancestors(path)[:-1]):
                if not self._exists(container):
                    self._create(_empty_container(container))
        self._create(prepared)
        self.stored.append(prepared)

    def _fill(self, prepared: Prepared, existing: Metadata | None) -> None:
        """Give a container that was created for a member its own content."""
        if existing is None or not prepared.kind.is_container:
            index = next(
                (index for index, put in enumerate(self.puts) if put.path == prepared.path), None
            )
            if index is not None and prepared.kind.is_container:
                self.puts[index] = put_of(prepared, creates=self.puts[index].creates)
                self.stored.append(prepared)
                return
        elif not existing.size_bytes and prepared.size_bytes:
            self.preconditions.append(AtVersion(prepared.path, existing.version))
            self.puts.append(put_of(prepared, creates=False))
            self.stored.append(prepared)
            return
        self.unused.append(prepared)
        # The root of a new pod exists before anything else.
        self.already_there += prepared.path != self._target.root

    def _create(self, prepared: Prepared) -> None:
        self._creating.add(prepared.path)
        self.puts.append(put_of(prepared, creates=True))
        if prepared.kind.is_member:
            self.preconditions.append(Absent(slash_variant(prepared.path)))

    def _refusal(self, prepared: Prepared) -> str | None:
        if not prepared.kind.is_member:
            if self._exists(subject_of(prepared.path)):
                return None
            return "What it describes does not exist"
        path = prepared.path
        if self._exists(slash_variant(path)):
            return "There is a resource whose URL differs only in the trailing slash"
        for container in ancestors(path)[:-1]:
            if not self._exists(container) and self._exists(slash_variant(container)):
                return "There is a document in the place of a container above it"
            named = auxiliary_kind(slash_variant(container))
            if container != self._target.root and named is not None:
                return "Without its slash, a container above it has the URL of an auxiliary"
        return None

    def _exists(self, path: ResourcePath) -> bool:
        return path in self._creating or self._state.get(path) is not None


def put_of(prepared: Prepared, *, creates: bool) -> Put:
    """The put that stores a resource."""
    return Put(
        prepared.path,
        prepared.kind,
        prepared.content_type,
        prepared.body,
        creates=creates,
        created_ms=prepared.created_ms,
        modified_ms=prepared.modified_ms,
    )


def _empty_container(path: ResourcePath) -> Prepared:
    return Prepared(path, ResourceKind.CONTAINER, DEFAULT_DESCRIPTION_TYPE, InlineBody(b""), 0)

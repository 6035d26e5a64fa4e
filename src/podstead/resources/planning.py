"""Plans writes: turns the state of a target and new content into one Write.

Pure. Each planner raises an error (Conflict, NotFound, …) if the state does not allow the
operation, and otherwise returns the write with its preconditions. If the commit finds that a
precondition no longer holds, the service reads and plans again; planners therefore keep no state.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from podstead.core import identifiers
from podstead.core.conditional import time_after, time_of_deletion, time_of_member
from podstead.core.errors import NotFound
from podstead.core.identity import Identity
from podstead.core.value import Value
from podstead.rdf.graph import Dataset
from podstead.resources.entity_tags import last_modified_ms, stored_tag
from podstead.resources.outcome import Outcome, Result
from podstead.resources.target_state import TargetState
from podstead.storage import records as storage_records
from podstead.storage.record_store import Changes, RecordKind, RecordStore

DEFAULT_DESCRIPTION_TYPE = "text/turtle"
"""The media type of an empty container body and of generated resources."""


class DerivedRecords(Value):
    """What is committed with content besides it: records that are derived from it, and the
    preconditions under which they are right."""

    records: tuple[storage_records.Record, ...] = ()
    preconditions: tuple[storage_records.Precondition, ...] = ()

    def with_more(self, more: "DerivedRecords") -> "DerivedRecords":
        """These and others together."""
        return DerivedRecords(self.records + more.records, self.preconditions + more.preconditions)

    def added_to(self, write: storage_records.Write) -> storage_records.Write:
        """The write with these added."""
        if not self.records and not self.preconditions:
            return write
        return replace(
            write,
            records=write.records + self.records,
            preconditions=write.preconditions + self.preconditions,
        )


NO_RECORDS = DerivedRecords()


class Content(Value):
    """The content to store: its media type, the staged bytes, and records to commit with it."""

    content_type: str
    body: storage_records.Body
    derived: DerivedRecords = NO_RECORDS


class NewVersion(Value):
    """The version that a write gives its resources, and its time in Unix milliseconds."""

    version: storage_records.Version
    at_ms: int


class Plan(msgspec.Struct, frozen=True):
    """A write, and the outcome of the operation once the write is committed."""

    write: storage_records.Write
    outcome: Outcome

    def with_preconditions(
        self, preconditions: tuple[storage_records.Precondition, ...], *, default_quota_bytes: int
    ) -> storage_records.Write:
        """The write with further preconditions, those of the access decision, and with the quota
        of pods that have none of their own."""
        return replace(
            self.write,
            preconditions=self.write.preconditions + preconditions,
            default_quota_bytes=default_quota_bytes,
        )


def plan_put(
    state: TargetState, content: Content, new_version: NewVersion, agent: Identity | None
) -> Plan:
    """Create or replace the target: a document, container, ACL or description (C-1, C-9, C-14).

    The content of a container consists of its own triples only. Raises Conflict if slash semantics
    forbid the path (P-47, P-49) and for an auxiliary resource whose subject does not exist.
    """
    existing = state.existing
    put = storage_records.Put(
        path=state.stored_path,
        kind=_kind_at(state),
        content_type=content.content_type,
        body=content.body,
        creates=existing is None,
    )
    if existing is not None:
        plan = _replacement(existing, put, new_version, agent)
    else:
        plan = _creation(state, put, new_version, agent)
    if content.derived is not NO_RECORDS:
        plan = replace(plan, write=content.derived.added_to(plan.write))
    return plan


def plan_unchanged(
    existing: storage_records.Metadata,
    new_version: NewVersion,
    agent: Identity | None = None,
    *,
    logged: bool = False,
) -> Plan:
    """A write that changes nothing: a PUT of a container that exists, or a patch without effect.

    With ``logged`` it is added to the change log nevertheless, for clients that match notifications
    with their own requests (L-7).
    """
    # Committed although it changes nothing, so that the response, including the entity tag,
    # describes what is stored at that moment.
    change = _change(existing.path, storage_records.ChangeType.UNCHANGED, agent)
    write = storage_records.Write(
        version=new_version.version,
        at_ms=new_version.at_ms,
        preconditions=(storage_records.AtVersion(existing.path, existing.version),),
        changes=(change,) if logged else (),
    )
    outcome = Outcome(Result.CHANGED, existing, stored_tag(existing))
    return Plan(write, outcome)


def plan_delete(
    state: TargetState,
    new_version: NewVersion,
    agent: Identity | None,
    *,
    derived: DerivedRecords = NO_RECORDS,
) -> Plan:
    """Delete the target with its auxiliary resources (C-17 to C-20).

    Deleting the description of a container empties the container's body. ``derived`` is committed
    with the deletion. Raises NotFound. The commit itself checks whether a container is empty.
    """
    existing = state.existing
    if existing is None or (existing.size_bytes == 0 and _is_container_description(state)):
        raise NotFound
    if _is_container_description(state):
        nothing = Content(DEFAULT_DESCRIPTION_TYPE, storage_records.InlineBody(b""), derived)
        plan = plan_put(state, nothing, new_version, agent)
        return replace(plan, outcome=Outcome(Result.DELETED))
    preconditions: list[storage_records.Precondition] = [
        storage_records.AtVersion(existing.path, existing.version)
    ]
    deletes = [existing.path]
    if existing.kind.is_member:
        for auxiliary in (
            identifiers.acl_of(existing.path),
            identifiers.description_of(existing.path),
        ):
            metadata = state.metadata(auxiliary)
            if metadata is None:  # it must not be created while its subject is being deleted
                preconditions.append(storage_records.Absent(auxiliary))
            else:
                preconditions.append(storage_records.AtVersion(auxiliary, metadata.version))
                deletes.append(auxiliary)
    if existing.kind.is_container:
        # Checked after the version: a container that has changed is planned again, and only one
        # that is unchanged and not empty is a conflict.
        preconditions.append(storage_records.NoMembers(existing.path))
    write = storage_records.Write(
        version=new_version.version,
        at_ms=new_version.at_ms,
        preconditions=tuple(preconditions),
        deletes=tuple(deletes),
        changes=tuple(
            _change(path, storage_records.ChangeType.DELETE, agent) for path in reversed(deletes)
        ),
    )
    return Plan(derived.added_to(write), Outcome(Result.DELETED))


def _replacement(
    existing: storage_records.Metadata,
    put: storage_records.Put,
    new_version: NewVersion,
    agent: Identity | None,
) -> Plan:
    write = storage_records.Write(
        version=new_version.version,
        at_ms=new_version.at_ms,
        preconditions=(storage_records.AtVersion(existing.path, existing.version),),
        puts=(put,),
        changes=(_change(existing.path, storage_records.ChangeType.UPDATE, agent),),
    )
    # Exactly what the store will hold: the next writer may plan on it before it is committed.
    after = replace(
        existing,
        version=new_version.version,
        content_type=put.content_type,
        size_bytes=put.body.size_bytes,
        modified_ms=time_after(new_version.at_ms, last_modified_ms(existing)),
        blob=_blob_of(put.body),
    )
    return Plan(write, Outcome(Result.CHANGED, after, stored_tag(after)))


def _creation(
    state: TargetState, put: storage_records.Put, new_version: NewVersion, agent: Identity | None
) -> Plan:
    state.check_creatable()
    if state.auxiliary is not None:
        preconditions: tuple[storage_records.Precondition, ...] = (
            *state.creation_preconditions(),
            storage_records.Present(state.subject),
        )
        puts: tuple[storage_records.Put, ...] = (put,)
    else:
        # The target must be absent and the container present. The container's version does not
        # matter, so that its members can be created in parallel (decision 0002).
        preconditions = state.creation_preconditions()
        above = state.missing_containers()
        puts = (*(empty_container(path) for path in above), put) if above else (put,)
    write = storage_records.Write(
        version=new_version.version,
        at_ms=new_version.at_ms,
        preconditions=preconditions,
        puts=puts,
        changes=tuple(
            _change(created.path, storage_records.ChangeType.CREATE, agent) for created in puts
        ),
    )
    after = _metadata_of(put, new_version, _creation_ms(state, put, new_version))
    return Plan(write, Outcome(Result.CREATED, after, stored_tag(after), location=put.path))


def _creation_ms(state: TargetState, put: storage_records.Put, new_version: NewVersion) -> int:
    """The modification time that the commit will set, unless the container changes before."""
    container = identifiers.parent_container(put.path) if put.kind.is_member else None
    if container is None:
        return time_of_deletion(new_version.at_ms)
    above = state.metadata(container)
    if above is None or above.members_modified_ms is None:
        return new_version.at_ms
    return time_of_member(new_version.at_ms, above.members_modified_ms)


def _metadata_of(
    put: storage_records.Put, new_version: NewVersion, modified_ms: int
) -> storage_records.Metadata:
    contains = put.kind.is_container
    return storage_records.Metadata(
        path=put.path,
        kind=put.kind,
        version=new_version.version,
        content_type=put.content_type,
        size_bytes=put.body.size_bytes,
        modified_ms=modified_ms,
        created_ms=new_version.at_ms,
        blob=_blob_of(put.body),
        members_version=new_version.version if contains else None,
        members_modified_ms=new_version.at_ms if contains else None,
    )


def _blob_of(body: storage_records.Body) -> storage_records.BlobId | None:
    return body.blob if isinstance(body, storage_records.StagedBlob) else None


def _kind_at(state: TargetState) -> storage_records.ResourceKind:
    existing = state.existing
    if existing is not None:
        return existing.kind
    auxiliary = state.auxiliary
    if auxiliary is identifiers.Auxiliary.ACL:
        return storage_records.ResourceKind.ACL
    if auxiliary is identifiers.Auxiliary.DESCRIPTION:
        return storage_records.ResourceKind.DESCRIPTION
    return (
        storage_records.ResourceKind.CONTAINER
        if identifiers.is_container(state.target)
        else storage_records.ResourceKind.DOCUMENT
    )


def empty_container(path: identifiers.ResourcePath) -> storage_records.Put:
    """Creates a container without statements of its own."""
    return storage_records.Put(
        path,
        storage_records.ResourceKind.CONTAINER,
        DEFAULT_DESCRIPTION_TYPE,
        storage_records.InlineBody(b""),
        creates=True,
    )


def _is_container_description(state: TargetState) -> bool:
    return state.stored_path != state.target


def _change(
    path: identifiers.ResourcePath, activity: storage_records.ChangeType, agent: Identity | None
) -> storage_records.Change:
    return storage_records.Change(path, activity, agent.iri if agent else None)


class WriteHook(Protocol):
    """Derives records from documents, by which other parts of the server index content.

    The records are committed in the same write as the document, so the two are always consistent,
    and they are derived from the graph that was parsed for that write anyway.
    """

    def applies_to(self, path: identifiers.ResourcePath) -> bool:
        """Whether a document at the path has such records. Called for every write; must be
        cheap."""

    async def of(self, path: identifiers.ResourcePath, content: Dataset) -> Changes[None]:
        """The record changes for giving the document at the path this content, which is empty if
        the document is deleted.
        """


class ContainerHook(Protocol):
    """Keeps the records that belong to containers. A class that derives from it changes nothing
    where it does not say otherwise."""

    def of_deletion(self, container: identifiers.ResourcePath) -> Sequence[storage_records.Record]:
        """The record changes for deleting a container: one that is created later at the path must
        not get the records of the first one."""
        del container
        return ()

    async def of_move(
        self,
        source: identifiers.ResourcePath,
        destination: identifiers.ResourcePath,
        containers: Sequence[identifiers.ResourcePath],
    ) -> Changes[None]:
        """The record changes for moving a resource, and the preconditions under which that can be
        done; ``containers`` are those that are moved with it. Raises Conflict if it cannot be
        done, StorageError."""
        del source, destination, containers
        return Changes(None)

    async def of_renaming(
        self,
        pod: storage_records.PodRecord,
        after: storage_records.PodRecord,
        renamed: Callable[[identifiers.ResourcePath], identifiers.ResourcePath],
    ) -> Changes[None]:
        """The record changes for renaming the pod, which is ``after`` afterwards; ``renamed`` gives
        the new path of each resource."""


class PodRecordsHook(ContainerHook):
    """Lets the records of some kinds follow a pod that is renamed: those whose owner is its root,
    also where their keys end with it. When a pod is deleted, everything goes whose owner is its
    root."""

    def __init__(self, records: RecordStore, *kinds: RecordKind[Any]) -> None:
        self._records = records
        self._kinds = kinds

    async def of_renaming(
        self,
        pod: storage_records.PodRecord,
        after: storage_records.PodRecord,
        renamed: Callable[[identifiers.ResourcePath], identifiers.ResourcePath],
    ) -> Changes[None]:
        records: list[storage_records.Record] = []
        preconditions: list[storage_records.Precondition] = []
        for kind in self._kinds:
            for each in await self._records.of_owner(kind, pod.root):
                if each.key.endswith(pod.root):
                    records.append(kind.drop(each.key))
                    key = each.key.removesuffix(pod.root) + after.root
                else:
                    key = each.key
                value = self.changed(each.value, pod, renamed)
                records.append(kind.put(key, value, owner=after.root, expires_ms=each.expires_ms))
                preconditions.append(each.unchanged)
        return Changes(None, records, preconditions)

    def changed(
        self,
        value: Any,  # noqa: ANN401 - of any of the kinds
        pod: storage_records.PodRecord,
        renamed: Callable[[identifiers.ResourcePath], identifiers.ResourcePath],
    ) -> Any:  # noqa: ANN401
        """What a record contains after the renaming; the same where a class does not say
        otherwise."""
        del pod, renamed
        return value


def has_hook(hooks: Sequence[WriteHook], path: identifiers.ResourcePath) -> bool:
    """Whether a document at the path has derived records."""
    for hook in hooks:  # noqa: SIM110 - in every write: any() would make a generator
        if hook.applies_to(path):
            return True
    return False


async def derived_records(
    hooks: Sequence[WriteHook], path: identifiers.ResourcePath, content: Dataset
) -> DerivedRecords:
    """What to commit with a write that gives the document at the path this content."""
    records: list[storage_records.Record] = []
    preconditions: list[storage_records.Precondition] = []
    for hook in hooks:
        if hook.applies_to(path):
            changes = await hook.of(path, content)
            records += changes.records
            preconditions += changes.preconditions
    if not records and not preconditions:
        return NO_RECORDS
    return DerivedRecords(tuple(records), tuple(preconditions))

"""Any sequence of writes, drawn by hypothesis, and what a plain model says about it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count

from hypothesis import strategies as st

from podstead.core.identifiers import ResourcePath
from podstead.storage.protocol import Store
from podstead.storage.records import (
    Absent,
    AtVersion,
    Change,
    ChangeType,
    Committed,
    MembersAtVersion,
    Metadata,
    NoMembers,
    NoPod,
    OverQuota,
    PodRecord,
    Precondition,
    Present,
    Put,
    ResourceKind,
    StoredBody,
    Version,
    VersionConflict,
    Write,
)
from tests.storage.engine_suite.engine import bytes_of, stream
from tests.storage.model import Model, Refusal, Stored

INLINE_BODY_BYTES = 12
"""Small, so that bodies of both sorts and changes between them are frequent."""

KINDS = {
    "/a/": ResourceKind.STORAGE,
    "/a/.acl": ResourceKind.ACL,
    "/a/x": ResourceKind.DOCUMENT,
    "/a/x.meta": ResourceKind.DESCRIPTION,
    "/a/d/": ResourceKind.CONTAINER,
    "/a/d/.acl": ResourceKind.ACL,
    "/a/d/x": ResourceKind.DOCUMENT,
    "/a/d/y": ResourceKind.DOCUMENT,
    "/a/d/e/": ResourceKind.CONTAINER,
    "/a/d/e/x": ResourceKind.DOCUMENT,
    "/b/": ResourceKind.STORAGE,
    "/b/x": ResourceKind.DOCUMENT,
}
PODS = ("a", "b")

paths = st.sampled_from(sorted(KINDS))


@dataclass(frozen=True)
class Step:
    """One write as drawn; what depends on the state is settled when it is made."""

    puts: dict[str, bytes]
    deletes: frozenset[str]
    careful: bool
    wrong_creates: bool
    precondition: tuple[str, str] | None
    pod: str | None
    quota_bytes: int
    taken_from: dict[str, str]
    """For some of the puts, the resource whose stored body they take."""


@dataclass(frozen=True)
class Batch:
    steps: list[Step]
    store: int


def batches_of(
    bodies: st.SearchStrategy[bytes], pods: st.SearchStrategy[str | None], *, max_steps: int
) -> st.SearchStrategy[Batch]:
    """Batches of writes with these bodies, some of which create these pods."""
    steps = st.builds(
        Step,
        puts=st.dictionaries(paths, bodies, max_size=4),
        deletes=st.frozensets(paths, max_size=2),
        careful=st.integers(0, 9).map(lambda number: number < 8),
        wrong_creates=st.integers(0, 19).map(lambda number: number == 19),
        precondition=st.none()
        | st.tuples(
            st.sampled_from(["current"] * 4 + ["stale", "absent", "present", "empty", "listed"]),
            paths,
        ),
        pod=pods,
        quota_bytes=st.sampled_from([0, 0, 1725]),
        taken_from=st.dictionaries(paths, paths, max_size=3),
    )
    return st.builds(
        Batch, steps=st.lists(steps, min_size=1, max_size=max_steps), store=st.integers(0, 1)
    )


batches = batches_of(
    st.binary(max_size=2 * INLINE_BODY_BYTES),
    st.none() | st.sampled_from(["a", "A", "b"]),
    max_steps=5,
)
plain_batches = batches_of(st.binary(max_size=INLINE_BODY_BYTES), st.none(), max_steps=2)
"""Batches of what one statement can compare with what is expected."""


async def compare_with_model(
    stores: list[Store], drawn: list[Batch], commit: Callable[[Store, Write], Awaitable[object]]
) -> Model:
    """Commit what was drawn, and compare what the stores hold with the model after each batch."""
    model, numbers = Model(INLINE_BODY_BYTES), count(1)
    await _check(stores, model)
    for batch in drawn:
        store = stores[batch.store]
        writes, refusals = [], []
        for step in batch.steps:
            puts, deletes = _sensible(model, step) if step.careful else (step.puts, step.deletes)
            taken = _takable(model, step, puts, deletes - puts.keys())
            puts |= {path: model.resources[source].content for path, source in taken.items()}
            contents = dict.fromkeys(deletes, b"") | puts
            wanted = await _write(
                store, model, step, puts, deletes - puts.keys(), next(numbers), taken
            )
            writes.append(wanted)
            refusals.append(model.apply(wanted, contents))
        outcomes = await asyncio.gather(*[commit(store, wanted) for wanted in writes])
        for outcome, refusal in zip(outcomes, refusals, strict=True):
            _check_outcome(outcome, refusal)
        await _check(stores, model)
    return model


def _sensible(model: Model, step: Step) -> tuple[dict[str, bytes], frozenset[str]]:
    """The puts with the containers that they lack, and of the deletes those that can be done."""
    puts = dict(step.puts)
    for path in step.puts:
        for container in ("/a/d/", "/a/d/e/", "/a/", "/b/"):
            if path.startswith(container) and container not in model.resources:
                puts.setdefault(container, b"")
    deletes = frozenset(
        path
        for path in step.deletes & model.resources.keys()
        if not model.members(path) and not any(put.startswith(path) for put in puts)
    )
    return puts, deletes


def _takable(
    model: Model, step: Step, puts: dict[str, bytes], deletes: frozenset[str]
) -> dict[str, str]:
    """The bodies that can be taken: from and for no ACL, and a blob only once, from a deleted
    resource."""
    taken: dict[str, str] = {}
    for path, source in step.taken_from.items():
        stored = model.resources.get(source)
        if path not in puts or stored is None:
            continue
        if ResourceKind.ACL in (stored.kind, KINDS[path]):
            continue
        is_large = len(stored.content) > INLINE_BODY_BYTES
        if not is_large or (source in deletes and source not in taken.values()):
            taken[path] = source
    return taken


async def _write(
    store: Store,
    model: Model,
    step: Step,
    contents: dict[str, bytes],
    deletes: frozenset[str],
    number: int,
    taken: dict[str, str],
) -> Write:
    puts = tuple(
        [
            Put(
                ResourcePath(path),
                KINDS[path],
                "text/plain",
                _stored_body(model, taken[path])
                if path in taken
                else await store.stage_body(stream(body)),
                creates=(path not in model.resources) is not step.wrong_creates,
            )
            for path, body in contents.items()
        ]
    )
    records = (
        [PodRecord(step.pod, ResourcePath(f"/{step.pod.lower()}/"), "urn:x", number)]
        if (step.pod)
        else []
    )
    preconditions = [_precondition(model, *step.precondition)] if step.precondition else []
    return Write(
        version=Version(f"{number:016x}"),
        at_ms=number * 1000,
        preconditions=(*preconditions, *[NoPod(record.name) for record in records]),
        puts=puts,
        deletes=tuple(ResourcePath(path) for path in sorted(deletes)),
        records=tuple(records),
        changes=tuple(Change(put.path, ChangeType.UPDATE, None) for put in puts),
        default_quota_bytes=step.quota_bytes,
    )


def _stored_body(model: Model, source: str) -> StoredBody:
    stored = model.resources[source]
    return StoredBody(ResourcePath(source), stored.version, len(stored.content))


def _precondition(model: Model, sort: str, text: str) -> Precondition:
    path = ResourcePath(text)
    current = model.resources.get(path)
    match sort:
        case "current" if current is not None:
            return AtVersion(path, current.version)
        case "current" | "absent":
            return Absent(path)
        case "present":
            return Present(path)
        case "empty":
            return NoMembers(path)
        case "listed" if current is not None and current.members_version is not None:
            return MembersAtVersion(path, current.members_version)
        case _:
            return AtVersion(path, Version("ffffffffffffffff"))


def _check_outcome(outcome: object, refusal: Refusal | None) -> None:
    if refusal is None:
        assert isinstance(outcome, Committed)
    elif refusal.over_quota:
        assert isinstance(outcome, OverQuota)
    else:
        assert isinstance(outcome, VersionConflict)
        assert refusal.broken in (None, outcome.precondition)


async def _check(stores: list[Store], model: Model) -> None:
    for store in stores:
        snapshot = await store.read_metadata([ResourcePath(path) for path in KINDS])
        for path, metadata in snapshot.items():
            assert (metadata is not None) == (path in model.resources)
            if metadata is not None:
                await _check_resource(store, metadata, model)
        for container, kind in KINDS.items():
            if kind.is_container:
                listed = await store.list_members(ResourcePath(container), limit=100)
                assert [member.path for member in listed] == model.members(container)
                assert listed == [snapshot[member.path] for member in listed]
        existing = {pod.name.lower() for pod in model.pods}
        for pod in PODS:
            expected = model.used_bytes(f"/{pod}/") if pod in existing else 0
            assert await store.used_bytes(pod) == expected
        assert {pod.name for pod in await store.list_pods(limit=1000)} == {
            pod.name for pod in model.pods
        }
        log = await store.changes_after(0, limit=10_000)
        assert [(row.change, row.version) for row in log] == model.log
        for deleting, gone in model.deleted_acls.items():
            kept = await store.deleted_acls(deleting, map(ResourcePath, KINDS))
            assert {path: (acl.metadata.version, acl.content) for path, acl in kept.items()} == {
                path: (acl.version, _kept_content(acl)) for path, acl in gone.items()
            }


def _kept_content(acl: Stored) -> bytes:
    return acl.content if len(acl.content) <= INLINE_BODY_BYTES else b""


async def _check_resource(store: Store, metadata: Metadata, model: Model) -> None:
    stored = model.resources[metadata.path]
    assert metadata == Metadata(
        metadata.path,
        stored.kind,
        stored.version,
        "text/plain",
        len(stored.content),
        stored.modified_ms,
        stored.created_ms,
        metadata.blob,
        stored.members_version,
        stored.members_modified_ms,
    )
    assert (metadata.blob is not None) == (len(stored.content) > INLINE_BODY_BYTES)
    body = await store.open_body(metadata)
    assert body is not None
    assert await bytes_of(body) == stored.content

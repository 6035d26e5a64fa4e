"""The date of a state of a resource never stands for another state, whatever the clocks say."""

from __future__ import annotations

from dataclasses import dataclass, field
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.core.conditional import (
    Conditions,
    PreconditionResult,
    check_write,
    evaluate_read,
)
from podstead.core.errors import PreconditionFailed
from podstead.core.identifiers import ResourcePath
from podstead.storage.decision import decide
from podstead.storage.records import InlineBody, Put, ResourceKind, Version, Write
from podstead.storage.state import ResourceRow, State

ROOT, DOCUMENT, OTHER = map(ResourcePath, ("/ann/", "/ann/note", "/ann/other"))
ACL = ResourcePath("/ann/note.acl")

# Few seconds, so that many changes share one and clocks go back.
CLOCKS = st.integers(10_000, 15_999)
_CHANGE = (CLOCKS, st.sampled_from([DOCUMENT, OTHER]), st.booleans())
_CHANGE_OF_ACL = (CLOCKS, st.just(ACL), st.booleans())
# Nothing is left of an ACL that was deleted, so only a clock that goes on keeps its dates apart.
CHANGES = st.lists(st.tuples(*_CHANGE)) | st.lists(st.tuples(*_CHANGE_OF_ACL)).map(sorted)


@dataclass
class Pod:
    """The rows of a pod as writes leave them."""

    state: State
    writes: int = 0
    dates: dict[ResourcePath, list[tuple[str, str]]] = field(default_factory=dict)
    """The version of each state that a resource has had, and what was its Last-Modified."""

    def write(self, at_ms: int, *puts: Put, deletes: tuple[ResourcePath, ...] = ()) -> None:
        self.writes += 1
        write = Write(Version(f"{self.writes:016x}"), at_ms, puts=puts, deletes=deletes)
        decide(write, self.state)
        for path, row in self.state.resources.items():
            if row is not None:
                seen = (_version(row), formatdate(_modified_ms(row) // 1000, usegmt=True))
                self.dates.setdefault(path, []).append(seen)

    def check(self) -> None:
        for path, seen in self.dates.items():
            row = self.state.resources[path]
            for version, date in seen:
                if row is not None and version != _version(row):
                    _check_date_of_another_state(row, date)


def _check_date_of_another_state(row: ResourceRow, date: str) -> None:
    modified_ms = _modified_ms(row)
    read = evaluate_read(Conditions(if_modified_since=date), etag='"x-b"', modified_ms=modified_ms)
    assert read is PreconditionResult.PROCEED
    with pytest.raises(PreconditionFailed):
        check_write(
            Conditions(if_unmodified_since=date), version=row.version, modified_ms=modified_ms
        )


def _version(row: ResourceRow) -> str:
    """What the date of a resource is about: of a container its own content and its membership, and
    not what becomes of its members (P-8)."""
    return f"{row.version} {row.member_count} {row.members_modified_ms}"


def _modified_ms(row: ResourceRow) -> int:
    return max(row.modified_ms, row.members_modified_ms or 0)


def _put(path: ResourcePath, kind: ResourceKind, *, creates: bool) -> Put:
    return Put(path, kind, "text/turtle", InlineBody(b""), creates)


@given(CHANGES)
def test_a_date_never_stands_for_another_state(
    changes: list[tuple[int, ResourcePath, bool]],
) -> None:
    resources = dict.fromkeys((ROOT, DOCUMENT, OTHER, ACL))
    pod = Pod(State(resources, set(), {}, {}, set(), {}, 0))
    pod.write(12_000, _put(ROOT, ResourceKind.STORAGE, creates=True))
    for at_ms, path, deletes in changes:
        exists = pod.state.resources[path] is not None
        kind = ResourceKind.ACL if path == ACL else ResourceKind.DOCUMENT
        before = pod.state.resources[path]
        if deletes and exists:
            pod.write(at_ms, deletes=(path,))
        else:
            pod.write(at_ms, _put(path, kind, creates=not exists))
        after = pod.state.resources[path]
        if before is not None and after is not None:
            assert after.modified_ms >= before.modified_ms, "a time has gone back"
        pod.check()


@given(CLOCKS)
def test_the_date_of_what_is_created_alone_in_its_second_stands_for_it(at_ms: int) -> None:
    resources = dict.fromkeys((ROOT, DOCUMENT))
    pod = Pod(State(resources, set(), {}, {}, set(), {}, 0))
    pod.write(5_000, _put(ROOT, ResourceKind.STORAGE, creates=True))
    at_ms -= at_ms % 1000
    pod.write(at_ms, _put(DOCUMENT, ResourceKind.DOCUMENT, creates=True))
    row = pod.state.resources[DOCUMENT]
    assert row is not None
    assert row.modified_ms == at_ms
    date = formatdate(at_ms // 1000, usegmt=True)
    read = evaluate_read(Conditions(if_modified_since=date), etag='"x-b"', modified_ms=at_ms)
    assert read is PreconditionResult.NOT_MODIFIED

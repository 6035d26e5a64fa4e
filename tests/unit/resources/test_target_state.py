"""What exists around a target, and what can therefore be created (P-47, P-49, P-52, W-1)."""

from __future__ import annotations

import pytest

from podstead.core.errors import Conflict, StorageError
from podstead.core.identifiers import ResourcePath
from podstead.resources.target_state import TargetState
from podstead.storage.records import Absent, Metadata, Present, ResourceKind, Version
from podstead.wac.effective import paths_to_read

POD = "/alice/"


def metadata(path: str) -> Metadata:
    kind = ResourceKind.CONTAINER if path.endswith("/") else ResourceKind.DOCUMENT
    if path == POD:
        kind = ResourceKind.STORAGE
    if path.endswith(".acl"):
        kind = ResourceKind.ACL
    return Metadata(ResourcePath(path), kind, Version("v"), "text/turtle", 0, 0, 0)


def state(target: str, *existing: str) -> TargetState:
    """A target, and all that exists around it beside the pod."""
    path = ResourcePath(target)
    there = {POD, *existing}
    return TargetState(
        path,
        {place: metadata(place) if place in there else None for place in paths_to_read(path)},
    )


@pytest.mark.parametrize(
    ("target", "existing"),
    [
        ("/alice/x", []),
        ("/alice/x/", []),
        ("/alice/a/b/c", []),
        ("/alice/a/b/c", ["/alice/a/"]),
        ("/alice/x.acl", ["/alice/x"]),
        ("/alice/x.meta", ["/alice/x"]),
        ("/alice/c/.acl", ["/alice/c/"]),
        ("/alice/x.acl.txt", []),
        ("/alice/acl/", []),
        ("/alice/.aclx/y", []),
    ],
)
def test_a_path_is_free_if_nothing_is_in_the_way(target: str, existing: list[str]) -> None:
    state(target, *existing).check_creatable()


@pytest.mark.parametrize(
    ("target", "existing"),
    [
        ("/alice/x", ["/alice/x/"]),  # P-47
        ("/alice/x/", ["/alice/x"]),
        ("/alice/x/y", ["/alice/x"]),  # P-49
        ("/alice/x/y/z/", ["/alice/x"]),
        ("/alice/x.acl/", []),  # P-52: the ACL of x must be able to stand there
        ("/alice/x.meta/", []),
        ("/alice/.acl/", []),
        ("/alice/x.acl/y", []),
        ("/alice/c/.meta/y/z", ["/alice/c/"]),
        ("/alice/x.acl", []),  # the ACL of nothing
        ("/alice/c/.acl", []),
        ("/alice/x.acl.acl", ["/alice/x", "/alice/x.acl"]),  # W-1
        ("/alice/x.acl.meta", ["/alice/x", "/alice/x.acl"]),
        ("/alice/x.meta.acl", ["/alice/x", "/alice/x.meta"]),
    ],
)
def test_a_path_is_not_free_if_something_exists_or_may_be_created_there(
    target: str, existing: list[str]
) -> None:
    with pytest.raises(Conflict):
        state(target, *existing).check_creatable()


def test_what_a_creation_would_make_and_what_it_relies_on() -> None:
    """C-2: outermost first; and each must still be absent, in both slash forms, at the commit."""
    made = state("/alice/a/b/c", "/alice/")
    assert made.missing_containers() == ("/alice/a/", "/alice/a/b/")
    preconditions = set(made.creation_preconditions())
    for path in ("/alice/a/b/c", "/alice/a/b/", "/alice/a/"):
        assert Absent(ResourcePath(path)) in preconditions
        twin = path[:-1] if path.endswith("/") else f"{path}/"
        assert Absent(ResourcePath(twin)) in preconditions
    assert Present(ResourcePath(POD)) in preconditions


def test_a_container_and_its_description_are_stored_in_one_place() -> None:
    """C-30: a document's description has its own."""
    described = state("/alice/c/.meta", "/alice/c/")
    assert described.stored_path == "/alice/c/"
    assert described.existing is not None
    apart = state("/alice/x.meta", "/alice/x")
    assert apart.stored_path == "/alice/x.meta"
    assert apart.existing is None


@pytest.mark.parametrize(
    ("target", "existing", "expected"),
    [
        ("/alice/x.meta", ["/alice/x"], True),
        ("/alice/c/.meta", ["/alice/c/"], True),
        ("/alice/x.meta", [], False),
        ("/alice/x", ["/alice/x"], False),
        ("/alice/x.acl", ["/alice/x"], False),
        ("/alice/x.acl.meta", ["/alice/x", "/alice/x.acl"], False),
    ],
)
def test_only_what_exists_and_is_not_an_auxiliary_can_be_described(
    target: str, existing: list[str], expected: bool
) -> None:
    assert state(target, *existing).is_possible_description is expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [("/alice/", True), ("/alice/.meta", True), ("/alice/.acl", False), ("/alice/c/", False)],
)
def test_a_storage_is_one_at_both_urls_of_its_triples(target: str, expected: bool) -> None:
    """C-25, C-30."""
    assert state(target, "/alice/c/").is_storage_root is expected


def test_not_having_looked_is_not_absence() -> None:
    """Trouble never reads as absence."""
    with pytest.raises(StorageError):
        state("/alice/x").metadata(ResourcePath("/bob/"))

"""What operations require: one test per row of the table, per exception, per kind of target."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from podstead.core.identifiers import ResourcePath
from podstead.storage.protocol import Snapshot
from podstead.storage.records import Metadata, ResourceKind, Version
from podstead.wac import modes
from podstead.wac.effective import paths_to_read
from podstead.wac.modes import (
    Mode,
    PatchContent,
    Requirement,
    Requirements,
    governed,
    with_entailed,
)
from tests.support.permission_matrix import (
    AUTHENTICATED,
    PUBLIC,
    TARGETS,
    UNGUARDED,
    Access,
    Case,
    access_rules,
    distinct_cases,
    subject_of,
)
from tests.support.wac_world import (
    BASE,
    BOB,
    CAROL,
    OWNER,
    World,
    identity,
    owner_rule,
    path,
    pod,
    rule,
)

# Which modes does an operation require, by the name of its method or of its request?

_INSERTS = PatchContent(inserts=True)
PATCHES = {
    "PATCH": _INSERTS,
    "PATCH sparql": _INSERTS,
    "PATCH replace": PatchContent(inserts=True, deletes=True, where=True),
    "PATCH if": PatchContent(inserts=True, where=True),
}
"""What the patches of the permission matrix contain."""


def required_modes(method: str, target: ResourcePath, snapshot: Snapshot) -> Requirements:
    """What the method requires whatever its body says, which is all but for PATCH."""
    match method:
        case "GET" | "HEAD":
            return modes.for_read(target)
        case "POST":
            return modes.for_post(target)
        case "PUT":
            return modes.for_put(target, snapshot)
        case "PATCH":
            return modes.for_patch(target, snapshot)
        case "DELETE":
            return modes.for_delete(target, snapshot)
    raise ValueError(method)


def requirements_of(request: str, target: ResourcePath, snapshot: Snapshot) -> Requirements:
    """What a request of the permission matrix requires, the content of its patch included."""
    if request in PATCHES:
        return modes.for_patch(target, snapshot, PATCHES[request])
    return required_modes(request.partition(" ")[0], target, snapshot)


DOCUMENT = ResourcePath("/pod/c/doc.ttl")
CONTAINER = ResourcePath("/pod/c/")


def snapshot(
    target: str, *existing: str, kinds: Mapping[str, ResourceKind] | None = None
) -> dict[ResourcePath, Metadata | None]:
    """The snapshot for a target when only ``existing`` is stored."""

    def metadata(name: ResourcePath) -> Metadata | None:
        if name not in existing:
            return None
        kind = ResourceKind.CONTAINER if name.endswith("/") else ResourceKind.DOCUMENT
        return Metadata(name, (kinds or {}).get(name, kind), Version("1"), "text/turtle", 0, 0, 0)

    return {name: metadata(name) for name in paths_to_read(ResourcePath(target))}


def told(requirements: Requirements) -> set[tuple[str, str]]:
    return {(requirement.subject, requirement.mode.value) for requirement in requirements}


LETTERS = {"R": Mode.READ, "W": Mode.WRITE, "A": Mode.APPEND, "C": Mode.CONTROL}


GUARDED = [each for each in distinct_cases() if each.request not in UNGUARDED]
REQUIREMENTS = sorted({each.requirement for each in GUARDED})


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_the_accesses_of_the_matrix_meet_what_operations_require(requirement: str) -> None:
    for case in GUARDED:
        if case.requirement == requirement:
            assert_accesses_meet(case)


def assert_accesses_meet(case: Case) -> None:
    target = ResourcePath(CONTAINER + TARGETS[case.target])
    subject = CONTAINER + subject_of(case.target)
    auxiliary = target != subject
    existing = {"/pod/", CONTAINER, *({subject} if auxiliary else ())}
    state = snapshot(target, *existing, *({target} if case.exists else ()))

    def is_held(requirement: Requirement) -> bool:
        letters = case.access.on(requirement.subject, container=CONTAINER, target=subject)
        return requirement.mode in with_entailed({LETTERS[letter] for letter in letters})

    required = requirements_of(case.request, target, state)
    assert all(is_held(each) for each in required) is case.passes, (case, required)


def test_reading_requires_read_on_the_target_and_nothing_else() -> None:
    """W-30"""
    assert told(modes.for_read(DOCUMENT)) == {(DOCUMENT, "read")}


def test_posting_requires_append_on_the_container_only() -> None:
    """W-32: nothing on the member that is to be made."""
    assert told(modes.for_post(CONTAINER)) == {(CONTAINER, "append")}


def test_posting_to_something_that_is_not_a_container_requires_the_same() -> None:
    """C-7, W-61: 405 and 404 are for those who may append."""
    assert told(modes.for_post(DOCUMENT)) == {(DOCUMENT, "append")}


def test_replacing_requires_write_on_the_resource_and_nothing_on_its_container() -> None:
    """W-33"""
    state = snapshot(DOCUMENT, "/pod/", "/pod/c/", DOCUMENT)
    assert told(modes.for_put(DOCUMENT, state)) == {(DOCUMENT, "write")}


def test_replacing_a_container_requires_write_on_it() -> None:
    """W-33"""
    state = snapshot(CONTAINER, "/pod/", CONTAINER)
    assert told(modes.for_put(CONTAINER, state)) == {(CONTAINER, "write")}


def test_creating_by_put_requires_append_on_the_container_and_write_on_the_new_resource() -> None:
    """W-34"""
    state = snapshot(DOCUMENT, "/pod/", "/pod/c/")
    assert told(modes.for_put(DOCUMENT, state)) == {("/pod/c/", "append"), (DOCUMENT, "write")}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_each_intermediate_container_counts_as_a_creation(method: str) -> None:
    """W-37"""
    target = ResourcePath("/pod/c/d/e/doc.ttl")
    state = snapshot(target, "/pod/", "/pod/c/")
    on_target = (target, "write" if method == "PUT" else "append")
    assert told(required_modes(method, target, state)) == {
        ("/pod/c/", "append"),
        ("/pod/c/d/", "append"),
        ("/pod/c/d/e/", "append"),
        on_target,
    }


def test_creating_where_no_container_exists_requires_append_up_to_the_servers_root() -> None:
    """W-37: so that nobody without rights at the root can make a storage by PUT."""
    target = ResourcePath("/new/doc.ttl")
    assert told(modes.for_put(target, snapshot(target))) == {
        ("/", "append"),
        ("/new/", "append"),
        (target, "write"),
    }


def test_creating_below_a_document_requires_what_any_creation_does() -> None:
    """W-61: that a document cannot have members (P-49) is told only to those who may create."""
    target = ResourcePath("/pod/c/doc.ttl/x")
    state = snapshot(target, "/pod/", "/pod/c/", "/pod/c/doc.ttl")
    assert told(modes.for_put(target, state)) == {
        ("/pod/c/", "append"),
        ("/pod/c/doc.ttl/", "append"),
        (target, "write"),
    }


@pytest.mark.parametrize(
    ("content", "needed"),
    [
        pytest.param(PatchContent(inserts=True), {"append"}, id="X-20 inserts"),
        pytest.param(PatchContent(deletes=True), {"read", "write"}, id="X-21 deletes"),
        pytest.param(
            PatchContent(inserts=True, deletes=True), {"read", "write"}, id="X-21 replaces"
        ),
        pytest.param(
            PatchContent(inserts=True, where=True), {"read", "append"}, id="X-22 inserts if"
        ),
        pytest.param(
            PatchContent(deletes=True, where=True), {"read", "write"}, id="X-24 deletes if"
        ),
        pytest.param(PatchContent(where=True), {"read", "append"}, id="X-26 conditions alone"),
        pytest.param(PatchContent(), {"append"}, id="X-26 nothing"),
    ],
)
def test_patching_requires_what_the_patch_would_do(content: PatchContent, needed: set[str]) -> None:
    """W-35 on an existing resource; W-36 on a new one, with Append on its container."""
    existing = snapshot(DOCUMENT, "/pod/", "/pod/c/", DOCUMENT)
    missing = snapshot(DOCUMENT, "/pod/", "/pod/c/")
    on_target = {(DOCUMENT, mode) for mode in needed}
    assert told(modes.for_patch(DOCUMENT, existing, content)) == on_target
    assert told(modes.for_patch(DOCUMENT, missing, content)) == on_target | {("/pod/c/", "append")}


def test_a_patch_that_was_not_read_yet_requires_no_more_than_any_patch() -> None:
    """Protocol 0.4, step 7"""
    every = [
        PatchContent(inserts, deletes, where)
        for inserts in (False, True)
        for deletes in (False, True)
        for where in (False, True)
    ]
    state = snapshot(DOCUMENT, "/pod/", "/pod/c/")
    least = required_modes("PATCH", DOCUMENT, state)
    for content in every:
        held = {
            (requirement.subject, mode)
            for requirement in modes.for_patch(DOCUMENT, state, content)
            for mode in with_entailed({requirement.mode})
        }
        assert {(requirement.subject, requirement.mode) for requirement in least} <= held


def test_deleting_a_document_requires_write_on_it_and_on_its_container() -> None:
    """W-38, W-45"""
    state = snapshot(DOCUMENT, "/pod/", "/pod/c/", DOCUMENT)
    assert told(modes.for_delete(DOCUMENT, state)) == {(DOCUMENT, "write"), ("/pod/c/", "write")}


def test_deleting_a_container_requires_read_on_it_too() -> None:
    """W-39: the answer tells whether it is empty."""
    state = snapshot(CONTAINER, "/pod/", CONTAINER)
    assert told(modes.for_delete(CONTAINER, state)) == {
        (CONTAINER, "write"),
        (CONTAINER, "read"),
        ("/pod/", "write"),
    }


@pytest.mark.parametrize("target", [DOCUMENT, CONTAINER])
def test_deleting_nothing_requires_read_too(target: ResourcePath) -> None:
    """W-41: 404 is for those who may know."""
    parent = "/pod/c/" if target == DOCUMENT else "/pod/"
    state = snapshot(target, "/pod/")
    assert told(modes.for_delete(target, state)) == {
        (target, "write"),
        (target, "read"),
        (parent, "write"),
    }


def test_deleting_a_storage_requires_nothing_above_it() -> None:
    """C-19, W-61: its owner learns that it cannot be deleted."""
    target = ResourcePath("/pod/")
    state = snapshot(target, "/pod/", kinds={"/pod/": ResourceKind.STORAGE})
    assert told(modes.for_delete(target, state)) == {("/pod/", "write"), ("/pod/", "read")}


def test_deleting_the_servers_root_requires_modes_there() -> None:
    target = ResourcePath("/")
    assert told(modes.for_delete(target, snapshot(target, "/"))) == {("/", "write"), ("/", "read")}


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"])
@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("subject", ["/pod/c/doc.ttl", "/pod/c/", "/pod/", "/"])
def test_everything_about_an_acl_requires_control_of_its_subject(
    method: str, exists: bool, subject: str
) -> None:
    """W-40, W-5"""
    target = ResourcePath(f"{subject}.acl")
    state = snapshot(target, "/pod/", subject, *([target] if exists else []))
    required = required_modes(method, target, state)
    assert required == (Requirement(ResourcePath(subject), Mode.CONTROL),)


@pytest.mark.parametrize("content", [PatchContent(), PatchContent(True, True, True)])
def test_any_patch_of_an_acl_requires_control_only(content: PatchContent) -> None:
    """X-25"""
    target = ResourcePath("/pod/c/.acl")
    assert told(modes.for_patch(target, snapshot(target), content)) == {("/pod/c/", "control")}


@pytest.mark.parametrize("name", ["/pod/doc.acl.acl", "/pod/doc.meta.acl", "/pod/doc.acl.meta"])
def test_what_is_auxiliary_to_an_acl_or_its_acl_requires_control_of_the_first_subject(
    name: str,
) -> None:
    """W-1: an ACL has no ACL of its own that could say otherwise."""
    assert told(modes.for_read(ResourcePath(name))) == {("/pod/doc", "control")}


@pytest.mark.parametrize("subject", ["/pod/c/doc.ttl", "/pod/c/"])
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "POST"])
def test_a_description_requires_what_its_subject_does(method: str, subject: str) -> None:
    """W-42, for an existing subject and for a missing one."""
    target = ResourcePath(f"{subject}.meta")
    for existing in (("/pod/", subject), ("/pod/",)):
        state = snapshot(target, *existing)
        assert required_modes(method, target, state) == required_modes(
            method, ResourcePath(subject), state
        )


def test_deleting_a_description_changes_its_subject_and_no_container() -> None:
    """W-42: a description is no member of the container."""
    target = ResourcePath("/pod/c/doc.ttl.meta")
    state = snapshot(target, "/pod/", "/pod/c/", DOCUMENT, target)
    assert told(modes.for_delete(target, state)) == {(DOCUMENT, "write")}


def test_deleting_a_description_that_is_not_there_requires_read_on_its_subject_too() -> None:
    """W-41, W-42"""
    target = ResourcePath("/pod/c/doc.ttl.meta")
    state = snapshot(target, "/pod/", "/pod/c/", DOCUMENT)
    assert told(modes.for_delete(target, state)) == {(DOCUMENT, "write"), (DOCUMENT, "read")}


def test_a_containers_description_exists_as_long_as_the_container() -> None:
    """C-30: both are one graph."""
    target = ResourcePath("/pod/c/.meta")
    assert told(modes.for_delete(target, snapshot(target, "/pod/", "/pod/c/"))) == {
        ("/pod/c/", "write")
    }


def test_changing_who_a_webid_is_requires_control_of_its_document() -> None:
    assert told(modes.identity_change(ResourcePath("/pod/"))) == {("/pod/", "control")}
    assert told(modes.identity_change(ResourcePath("/pod/.meta"))) == {("/pod/", "control")}


def test_not_having_looked_is_not_absence() -> None:
    with pytest.raises(KeyError):
        modes.for_put(DOCUMENT, {})


def test_write_entails_append_and_nothing_else_entails_anything() -> None:
    """W-15"""
    assert with_entailed({Mode.WRITE}) == {Mode.WRITE, Mode.APPEND}
    for mode in (Mode.READ, Mode.APPEND, Mode.CONTROL):
        assert with_entailed({mode}) == {mode}


def test_a_container_whose_name_ends_like_an_auxiliary_is_a_container() -> None:
    assert governed(ResourcePath("/pod/x.acl/")).subject == "/pod/x.acl/"
    assert not governed(ResourcePath("/pod/x.acl/")).is_acl


def _transfer_snapshot(*existing: str) -> dict[ResourcePath, Metadata | None]:
    return {
        **snapshot("/pod/c/doc.ttl", "/pod/", "/pod/c/", DOCUMENT, *existing),
        **snapshot("/pod/d/new", "/pod/", "/pod/d/", *existing),
    }


def test_a_copy_requires_read_and_what_put_requires_at_the_destination() -> None:
    new = ResourcePath("/pod/d/new")
    assert told(modes.for_copy([DOCUMENT], new, _transfer_snapshot())) == {
        (DOCUMENT, "read"),
        ("/pod/d/", "append"),
        (new, "write"),
    }


def test_replacing_a_document_requires_what_deleting_it_requires() -> None:
    new = ResourcePath("/pod/d/new")
    assert told(modes.for_copy([DOCUMENT], new, _transfer_snapshot(new))) == {
        (DOCUMENT, "read"),
        (new, "write"),
        ("/pod/d/", "write"),
    }


def test_a_move_requires_what_deleting_each_resource_requires() -> None:
    new, inner = ResourcePath("/pod/d/new/"), ResourcePath("/pod/c/x")
    state = {
        **snapshot("/pod/c/", "/pod/", "/pod/c/"),
        **snapshot("/pod/d/new/", "/pod/", "/pod/d/"),
    }
    required = told(modes.for_move([CONTAINER, inner], [], new, state))
    assert required == {
        ("/pod/", "write"),
        (CONTAINER, "read"),
        (CONTAINER, "write"),
        (inner, "read"),
        (inner, "write"),
        ("/pod/d/", "append"),
        (new, "write"),
    }
    ruled = told(modes.for_move([CONTAINER, inner], [inner], new, state))
    assert ruled - required == {(inner, "control"), (new, "control")}
    deleted = told(modes.for_tree_deletion([CONTAINER, inner]))
    assert deleted == {
        ("/pod/", "write"),
        (CONTAINER, "read"),
        (CONTAINER, "write"),
        (inner, "write"),
    }


# --- protected operations ----------------------------------------------------------------------
#
# The permission matrix at the gate: access rules come in as ACL documents, and 200 stands for a
# request that the gate lets pass; what becomes of it then (404, 405, …) is tested over HTTP.
# Further down are the ``acl-object`` scenarios of the Solid specification tests.


PROTECTED_CONTAINER = "/pod/c/"
SUBJECTS = {"agent": AUTHENTICATED, "bob": f"acl:agent <{BOB}>", "public": PUBLIC}


def given(access: Access, who: str, target: str, *, exists: bool = True) -> World:
    """A container with the target, and an access to it."""
    world = pod()
    world.store(PROTECTED_CONTAINER)
    name, subject = PROTECTED_CONTAINER + TARGETS[target], PROTECTED_CONTAINER + subject_of(target)
    if exists or subject != name:
        world.store(subject)
    if exists and name not in {subject, f"{subject}.acl"}:
        world.store(name)
    rules = access_rules(
        BASE + PROTECTED_CONTAINER, OWNER, who, own=access.container, members=access.members
    )
    world.acl(PROTECTED_CONTAINER, rules)
    if access.own is not None:
        world.acl(subject, access_rules(BASE + subject, OWNER, who, own=access.own))
    return world


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("requirement", REQUIREMENTS)
async def test_the_gate_permits_what_the_matrix_permits(requirement: str, subject: str) -> None:
    """W-30 to W-45: by rules about all agents, about Bob and about everybody. Whoever is refused
    cannot tell what exists from what does not."""
    for case in GUARDED:
        if case.requirement == requirement:
            await assert_gate_permits(case, subject)


async def assert_gate_permits(case: Case, subject: str) -> None:
    world = given(case.access, SUBJECTS[subject], case.target, exists=case.exists)
    target = path(PROTECTED_CONTAINER + TARGETS[case.target])
    required = requirements_of(case.request, target, world.snapshot_for(target))
    expected = {
        "bob": 200 if case.passes else 403,
        "carol": 200 if case.passes and subject != "bob" else 403,
        "nobody": 200 if case.passes and subject == "public" else 401,
    }
    agents = {"bob": identity(BOB), "carol": identity(CAROL), "nobody": None}
    found = {name: await world.status(target, who, required) for name, who in agents.items()}
    assert found == expected, case


# --- acl-object (12 scenarios) --------------------------------------------------------------


@pytest.mark.parametrize(
    ("access_to", "default", "expected"),
    [
        pytest.param(True, True, (200, 200, 200), id="access-to and default"),
        pytest.param(False, True, (403, 200, 200), id="default only"),
        pytest.param(False, False, (403, 403, 403), id="none, and access-to for the owner only"),
        pytest.param(True, False, (200, 403, 403), id="access-to for Bob only, not in the suite"),
    ],
)
async def test_acl_object(access_to: bool, default: bool, expected: tuple[int, int, int]) -> None:
    """W-8, W-10: Bob reads the container, a container below it, and a document below that."""
    world = pod()
    for name in ("/pod/c/", "/pod/c/intermediate/", "/pod/c/intermediate/doc.txt"):
        world.store(name)
    about_bob = rule(SUBJECTS["bob"], "R", "./", access_to=access_to, default=default)
    world.acl("/pod/c/", owner_rule("./") + about_bob)
    statuses = [
        await world.status(name, identity(BOB), modes.for_read(path(name)))
        for name in ("/pod/c/", "/pod/c/intermediate/", "/pod/c/intermediate/doc.txt")
    ]
    assert tuple(statuses) == expected


# --- rules that change, and what they are listed as ------------------------------------------


async def test_acl_propagation() -> None:
    """W-5: refused, granted by a new ACL, and granted for the very next requests."""
    world = pod()
    world.store(PROTECTED_CONTAINER)
    world.acl(PROTECTED_CONTAINER, owner_rule("./"))
    bob = identity(BOB)
    assert (
        await world.status(PROTECTED_CONTAINER, bob, modes.for_read(path(PROTECTED_CONTAINER)))
        == 403
    )
    world.acl(
        PROTECTED_CONTAINER, owner_rule("./") + rule(SUBJECTS["bob"], "RW", "./", default=True)
    )
    new = path(f"{PROTECTED_CONTAINER}new")
    assert await world.status(new, bob, modes.for_put(new, world.snapshot_for(new))) == 200
    assert await world.status(new, bob, modes.for_read(new)) == 200
    assert (
        await world.status(PROTECTED_CONTAINER, bob, modes.for_read(path(PROTECTED_CONTAINER)))
        == 200
    )


@pytest.mark.parametrize(
    ("modes_given", "listed"),
    [("R", "read"), ("RC", "read control"), ("RA", "read append"), ("RW", "read write append")],
)
@pytest.mark.parametrize("where", ["own", "inherited"])
async def test_wac_allow(modes_given: str, listed: str, where: str) -> None:
    """W-52, W-53: for Bob and for the public, from an own ACL and from an inherited one."""
    access = Access.of(
        f"no no {modes_given}" if where == "own" else f"{modes_given} {modes_given} -"
    )
    document = PROTECTED_CONTAINER + TARGETS["document"]
    bobs = await given(access, SUBJECTS["bob"], "document").grant(document, identity(BOB))
    assert bobs.wac_allow == f'user="{listed}",public=""'
    world = given(access, SUBJECTS["public"], "document")
    for agent in (None, identity(BOB)):
        grant = await world.grant(document, agent)
        assert grant.wac_allow == f'user="{listed}",public="{listed}"'

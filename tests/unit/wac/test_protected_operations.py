"""The permission matrix at the gate: access rules come in as ACL documents, and 200 stands for a
request that the gate lets pass; what becomes of it then (404, 405, …) is tested over HTTP.

Further down are the ``acl-object`` scenarios of the Solid specification tests.
"""

from __future__ import annotations

import pytest

from podstead.wac import modes
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
from tests.support.required_modes import requirements_of
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

CONTAINER = "/pod/c/"
SUBJECTS = {"agent": AUTHENTICATED, "bob": f"acl:agent <{BOB}>", "public": PUBLIC}


def given(access: Access, who: str, target: str, *, exists: bool = True) -> World:
    """A container with the target, and an access to it."""
    world = pod()
    world.store(CONTAINER)
    name, subject = CONTAINER + TARGETS[target], CONTAINER + subject_of(target)
    if exists or subject != name:
        world.store(subject)
    if exists and name not in {subject, f"{subject}.acl"}:
        world.store(name)
    rules = access_rules(BASE + CONTAINER, OWNER, who, own=access.container, members=access.members)
    world.acl(CONTAINER, rules)
    if access.own is not None:
        world.acl(subject, access_rules(BASE + subject, OWNER, who, own=access.own))
    return world


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize(
    "case", [each for each in distinct_cases() if each.request not in UNGUARDED], ids=str
)
async def test_the_gate_permits_what_the_matrix_permits(case: Case, subject: str) -> None:
    """W-30 to W-45: by rules about all agents, about Bob and about everybody. Whoever is refused
    cannot tell what exists from what does not."""
    world = given(case.access, SUBJECTS[subject], case.target, exists=case.exists)
    target = path(CONTAINER + TARGETS[case.target])
    required = requirements_of(case.request, target, world.snapshot_for(target))
    expected = {
        "bob": 200 if case.passes else 403,
        "carol": 200 if case.passes and subject != "bob" else 403,
        "nobody": 200 if case.passes and subject == "public" else 401,
    }
    agents = {"bob": identity(BOB), "carol": identity(CAROL), "nobody": None}
    found = {name: await world.status(target, who, required) for name, who in agents.items()}
    assert found == expected


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
    world.store(CONTAINER)
    world.acl(CONTAINER, owner_rule("./"))
    bob = identity(BOB)
    assert await world.status(CONTAINER, bob, modes.for_read(path(CONTAINER))) == 403
    world.acl(CONTAINER, owner_rule("./") + rule(SUBJECTS["bob"], "RW", "./", default=True))
    new = path(f"{CONTAINER}new")
    assert await world.status(new, bob, modes.for_put(new, world.snapshot_for(new))) == 200
    assert await world.status(new, bob, modes.for_read(new)) == 200
    assert await world.status(CONTAINER, bob, modes.for_read(path(CONTAINER))) == 200


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
    document = CONTAINER + TARGETS["document"]
    bobs = await given(access, SUBJECTS["bob"], "document").grant(document, identity(BOB))
    assert bobs.wac_allow == f'user="{listed}",public=""'
    world = given(access, SUBJECTS["public"], "document")
    for agent in (None, identity(BOB)):
        grant = await world.grant(document, agent)
        assert grant.wac_allow == f'user="{listed}",public="{listed}"'

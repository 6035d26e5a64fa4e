"""The access matrices of the conformance suite, at the level of requirements and decision.

Sources: Solid specification-tests, web-access-control: ``acl-object``, ``protected-operation``
(``read-access-*``, ``write-access-*``) and the converted permission features; protocol digest 5.2,
5.4. 200 stands for "the gate lets it pass"; what becomes of it then (404, 405, …) is not asked.

Names are the suite's: container modes/resource modes, where "no" is an ACL without any rule for Bob
and "inherited" is a container ACL whose rules have both accessTo and default.
"""

from __future__ import annotations

import pytest

from podstead.core.identity import Identity
from podstead.wac import modes
from podstead.wac.modes import PatchContent, Requirements
from tests.support.required_modes import required_modes
from tests.support.wac_world import (
    BOB,
    CAROL,
    World,
    identity,
    owner_rule,
    path,
    pod,
    rule,
)

CONTAINER = "/pod/c/"
TARGETS = {
    "rdf": "/pod/c/rdf.ttl",
    "plain": "/pod/c/plain.txt",
    "container": "/pod/c/sub/",
    "fictive": "/pod/c/fictive",
}
INSERT = PatchContent(inserts=True)
REPLACE = PatchContent(inserts=True, deletes=True, where=True)

SUBJECTS = {
    "agent": "acl:agentClass acl:AuthenticatedAgent",
    "bob": f"acl:agent <{BOB}>",
    "public": "acl:agentClass foaf:Agent",
}


def given(access: str, subject: str, target: str) -> World:
    """A container with the targets, and the access that the suite's row gives to the subject."""
    world = pod()
    world.store(CONTAINER)
    for kind, name in TARGETS.items():
        if kind != "fictive":
            world.store(name)
    on_container, _, on_resource = access.partition("/")
    owner = owner_rule("./")
    if on_resource == "inherited":
        world.acl(CONTAINER, owner + rule(subject, on_container, "./", default=True))
        return world
    assert on_container == "no"
    world.acl(CONTAINER, owner)
    name = TARGETS[target]
    reference = "./" if name.endswith("/") else name
    world.acl(name, rule(subject, on_resource, reference))
    return world


def requirements(world: World, method: str, target: str) -> Requirements:
    """What a request of the suite requires; ``PATCH+`` deletes as well as inserts."""
    name = path(TARGETS[target])
    snapshot = world.snapshot_for(name)
    match method:
        case "PATCH":
            return modes.patch(name, snapshot, INSERT)
        case "PATCH+":
            return modes.patch(name, snapshot, REPLACE)
    return required_modes(method, name, snapshot)


async def answer(
    access: str, subject: str, method: str, target: str, agent: Identity | None
) -> int:
    world = given(access, SUBJECTS[subject], target)
    return await world.status(TARGETS[target], agent, requirements(world, method, target))


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
        await world.status(name, identity(BOB), modes.read(path(name)))
        for name in ("/pod/c/", "/pod/c/intermediate/", "/pod/c/intermediate/doc.txt")
    ]
    assert tuple(statuses) == expected


# --- read side: the subject holds Read only -------------------------------------------------


def read_access(target: str) -> list[str]:
    return ["R/inherited"] if target == "fictive" else ["no/R", "R/inherited"]


READ_ROWS = [(target, access) for target in TARGETS for access in read_access(target)]


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(("target", "access"), READ_ROWS)
async def test_readers_may_read(subject: str, method: str, target: str, access: str) -> None:
    """W-30; ``fictive`` becomes 404 after the gate."""
    assert await answer(access, subject, method, target, identity(BOB)) == 200
    for_everybody = 200 if subject == "public" else 401
    assert await answer(access, subject, method, target, None) == for_everybody
    for_carol = 403 if subject == "bob" else 200
    assert await answer(access, subject, method, target, identity(CAROL)) == for_carol


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("method", ["PUT", "POST", "PATCH", "PATCH+", "DELETE"])
@pytest.mark.parametrize(("target", "access"), READ_ROWS)
async def test_readers_may_do_nothing_else(
    subject: str, method: str, target: str, access: str
) -> None:
    """W-32 to W-41, X-26: and cannot tell 403 for what exists from 403 for what does not."""
    assert await answer(access, subject, method, target, identity(BOB)) == 403
    assert await answer(access, subject, method, target, None) == 401


# --- write side -----------------------------------------------------------------------------

WRITE_ROWS = [
    # method, targets, access given, what Bob gets
    ("GET", "plain fictive rdf container", "WAC/inherited", 403),
    ("HEAD", "plain fictive rdf container", "WAC/inherited", 403),
    ("GET", "plain rdf container", "no/WAC", 403),
    ("HEAD", "plain rdf container", "no/WAC", 403),
    ("PUT", "rdf plain container", "no/W", 200),
    ("PUT", "rdf plain container fictive", "W/inherited", 200),
    ("PUT", "rdf plain container fictive", "A/inherited", 403),
    ("PUT", "rdf plain container", "no/A", 403),
    ("PUT", "rdf plain container fictive", "C/inherited", 403),
    ("POST", "container", "no/W", 200),
    ("POST", "container", "W/inherited", 200),
    ("POST", "container", "no/A", 200),
    ("POST", "container", "A/inherited", 200),
    ("POST", "container", "no/C", 403),
    ("PATCH", "rdf container", "no/W", 200),
    ("PATCH", "rdf container fictive", "W/inherited", 200),
    ("PATCH", "rdf container", "no/A", 200),
    ("PATCH", "rdf container fictive", "A/inherited", 200),
    ("PATCH", "rdf", "no/C", 403),
    ("PATCH", "rdf fictive", "C/inherited", 403),
    ("DELETE", "plain rdf container", "no/C", 403),
    ("DELETE", "plain rdf container", "no/A", 403),
    ("DELETE", "plain rdf container fictive", "C/inherited", 403),
    ("DELETE", "plain rdf container fictive", "A/inherited", 403),
    ("DELETE", "plain rdf", "no/W", 403),
    ("DELETE", "plain rdf", "W/inherited", 200),
    ("DELETE", "fictive", "W/inherited", 403),
    ("DELETE", "container", "no/W", 403),
    ("DELETE", "container", "W/inherited", 403),
    ("DELETE", "container fictive", "RW/inherited", 200),
]


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize(("method", "targets", "access", "expected"), WRITE_ROWS)
async def test_writers_may_do_exactly_what_their_modes_say(
    subject: str, method: str, targets: str, access: str, expected: int
) -> None:
    """W-30 to W-41, W-45; without credentials 403 becomes 401 and only the public rules count."""
    for target in targets.split():
        assert await answer(access, subject, method, target, identity(BOB)) == expected
        public = expected if subject == "public" and expected == 200 else 401
        assert await answer(access, subject, method, target, None) == public


# --- converted features: Bob has an ACL on the target and nothing on its parent --------------

CONVERTED_ROWS = [
    # modes, GET, PUT, PATCH that inserts, PATCH that deletes and inserts, POST, DELETE
    ("A", 403, 403, 200, 403, 200, 403),
    ("RA", 200, 403, 200, 403, 200, 403),
    ("RW", 200, 200, 200, 200, 200, 403),
]


@pytest.mark.parametrize("target", ["container", "rdf", "plain"])
@pytest.mark.parametrize(
    ("held", "get", "put", "insert", "replace", "post", "delete"), CONVERTED_ROWS
)
async def test_converted_permission_features(
    target: str,
    held: str,
    get: int,
    put: int,
    insert: int,
    replace: int,
    post: int,
    delete: int,
) -> None:
    """conv/3-x, 4-x, 5-x; POST to a document passes here and is 405 afterwards (C-7)."""
    expected = {
        "GET": get,
        "HEAD": get,
        "PUT": put,
        "PATCH": insert,
        "PATCH+": replace,
        "POST": post,
        "DELETE": delete,
    }
    for method, status in expected.items():
        assert await answer(f"no/{held}", "bob", method, target, identity(BOB)) == status


async def test_a_container_without_default_does_not_allow_deleting_its_members() -> None:
    """W-45"""
    world = given("no/RW", SUBJECTS["bob"], "rdf")
    world.remove(TARGETS["rdf"] + ".acl")
    world.acl(CONTAINER, rule(SUBJECTS["bob"], "RW", "./"))
    status = await world.status(TARGETS["rdf"], identity(BOB), requirements(world, "DELETE", "rdf"))
    assert status == 403


async def test_acl_propagation() -> None:
    """W-5: refused, granted by a new ACL, and granted for the very next requests."""
    world = pod()
    world.store(CONTAINER)
    world.acl(CONTAINER, owner_rule("./"))
    bob = identity(BOB)
    assert await world.status(CONTAINER, bob, modes.read(path(CONTAINER))) == 403
    world.acl(CONTAINER, owner_rule("./") + rule(SUBJECTS["bob"], "RW", "./", default=True))
    new = TARGETS["fictive"]
    assert await world.status(new, bob, requirements(world, "PUT", "fictive")) == 200
    assert await world.status(new, bob, modes.read(path(new))) == 200
    assert await world.status(CONTAINER, bob, modes.read(path(CONTAINER))) == 200


@pytest.mark.parametrize(
    ("modes_given", "listed"),
    [("R", "read"), ("RC", "read control"), ("RA", "read append"), ("RW", "read write append")],
)
@pytest.mark.parametrize("where", ["direct", "indirect"])
async def test_wac_allow(modes_given: str, listed: str, where: str) -> None:
    """W-52, W-53: for Bob and for the public, from an own ACL and from an inherited one."""
    access = f"no/{modes_given}" if where == "direct" else f"{modes_given}/inherited"
    world = given(access, SUBJECTS["bob"], "rdf")
    bobs = await world.grant(TARGETS["rdf"], identity(BOB))
    assert bobs.wac_allow == f'user="{listed}",public=""'
    world = given(access, SUBJECTS["public"], "rdf")
    for agent in (None, identity(BOB)):
        grant = await world.grant(TARGETS["rdf"], agent)
        assert grant.wac_allow == f'user="{listed}",public="{listed}"'

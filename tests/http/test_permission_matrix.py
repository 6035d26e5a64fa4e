"""The permission matrix over ASGI: what each request gets whose sender has the access of a row.

Bob has it, and the public has none, so that every refusal of the public is 401.
"""

from __future__ import annotations

import itertools

import pytest

from tests.support.application import BASE, Server
from tests.support.permission_matrix import (
    PUBLIC,
    REQUESTS,
    TARGETS,
    UNGUARDED,
    Access,
    Case,
    access_rules,
    distinct_cases,
    subject_of,
)
from tests.support.rdf import TURTLE

BY_ACCESS = {
    access: list(cases)
    for access, cases in itertools.groupby(
        sorted(distinct_cases(), key=lambda case: str(case.access)), key=lambda case: case.access
    )
}


async def arrange(server: Server, container: str, case: Case) -> str:
    """Create the container, the target and their rules; the target's path."""
    subject, target = container + subject_of(case.target), container + TARGETS[case.target]
    bob = f"acl:agent <{server.bob_web_id}>"

    async def put(path: str, content: str | None, content_type: str = TURTLE) -> None:
        assert (await server.alice.put(path, content, content_type)).status == 201, path

    await put(container, None)
    if case.exists or subject != target:
        kind = "text/plain" if subject.endswith(".txt") else TURTLE
        await put(subject, None if subject.endswith("/") else "<#secret> <#p> 1.", kind)
    if case.exists and target not in {subject, f"{subject}.acl"}:
        await put(target, "<#secret> <#p> 1.")
    if case.access.own is not None:
        own = access_rules(BASE + subject, server.alice_web_id, bob, own=case.access.own)
        await put(f"{subject}.acl", own)
    rules = access_rules(
        *(BASE + container, server.alice_web_id, bob),
        own=case.access.container,
        members=case.access.members,
    )
    await put(f"{container}.acl", rules)
    return target


@pytest.mark.parametrize("access", BY_ACCESS, ids=lambda access: str(access).replace(" ", "-"))
async def test_the_response_follows_the_access_and_a_refusal_reveals_nothing(
    server: Server, access: Access
) -> None:
    for number, case in enumerate(BY_ACCESS[access]):
        path = await arrange(server, f"/alice/private/c{number}/", case)
        method, content_type, body = REQUESTS[case.request]
        if path.endswith(".acl") and method == "PUT":
            subject = BASE + path.removesuffix(".acl")
            body = access_rules(subject, server.alice_web_id, PUBLIC, own="R")
        headers = {} if content_type is None else {"Content-Type": content_type}
        content = None if body is None else body.encode()

        anonymous = await server.public.request(method, path, headers=headers, body=content)
        if case.request in UNGUARDED:
            assert anonymous.status == case.status, str(case)
        else:
            assert anonymous.status == 401, str(case)  # W-60
            assert anonymous.header_lines("www-authenticate")  # P-3
        answer = await server.bob.request(method, path, headers=headers, body=content)
        assert answer.status == case.status, str(case)
        if answer.status == 403:
            assert answer.header("www-authenticate") is None
            assert "secret" not in answer.text  # P-16

"""Which answer does each method give under which rights, whether or not the target exists?

The rows are those of WAC (W-30 to W-45) and of the public suite's protected-operation matrices. Bob
holds the rights named on the container (``+`` modes are inherited) and, if not ``None``, on the
resource by an ACL of its own. The public holds none, so its answer to every refusal is 401.
"""

from __future__ import annotations

import itertools

import pytest

from tests.support.application import BASE, Server, acl_turtle

DONE = frozenset({200, 201, 204})
REFUSED = frozenset({403})

# method, target, rights on the container, rights on the resource, answers if it exists, if not
ROWS = [
    # W-30: Read on the target, looked up by default where nothing is.
    ("GET", "document", "", "Read", {200}, None),
    ("GET", "document", "+Read", None, {200}, {404}),
    ("GET", "document", "Read", None, REFUSED, REFUSED),
    ("GET", "document", "+Write +Append +Control", None, REFUSED, REFUSED),
    ("GET", "container", "", "Read", {200}, None),
    ("GET", "container", "+Read", None, {200}, {404}),
    ("GET", "container", "+Write +Append +Control", None, REFUSED, REFUSED),
    ("HEAD", "document", "+Read", None, {200}, {404}),
    ("HEAD", "document", "+Write", None, REFUSED, REFUSED),
    ("HEAD", "container", "+Read", None, {200}, {404}),
    # W-33, W-34: Write on what exists; Append on the container too for what does not.
    ("PUT", "document", "", "Write", {204}, None),
    ("PUT", "document", "+Write", None, {204}, {201}),
    ("PUT", "document", "Append +Write", None, {204}, {201}),
    ("PUT", "document", "+Append", None, REFUSED, REFUSED),
    ("PUT", "document", "Write", None, REFUSED, REFUSED),
    ("PUT", "document", "+Read", None, REFUSED, REFUSED),
    ("PUT", "document", "+Control", None, REFUSED, REFUSED),
    ("PUT", "document", "", "Append", REFUSED, None),
    ("PUT", "container", "+Write", None, {204}, {201}),
    ("PUT", "container", "+Append", None, REFUSED, REFUSED),
    ("PUT", "container", "+Read", None, REFUSED, REFUSED),
    ("PUT", "container", "", "Write", {204}, None),
    # W-32: Append on the container alone.
    ("POST", "container", "", "Append", {201}, None),
    ("POST", "container", "", "Write", {201}, None),
    ("POST", "container", "+Append", None, {201}, {404}),
    ("POST", "container", "+Write", None, {201}, {404}),
    ("POST", "container", "+Read", None, REFUSED, REFUSED),
    ("POST", "container", "+Control", None, REFUSED, REFUSED),
    ("POST", "document", "+Append", None, {405}, {404}),
    ("POST", "document", "+Read", None, REFUSED, REFUSED),
    # W-38, W-39, W-41, W-45: Write on the target and its parent; Read for what only it may tell.
    ("DELETE", "document", "+Write", None, {204}, REFUSED),
    ("DELETE", "document", "+Read +Write", None, {204}, {404}),
    ("DELETE", "document", "", "Write", REFUSED, None),
    ("DELETE", "document", "", "Read Write", REFUSED, None),
    ("DELETE", "document", "Write", "Write", {204}, None),
    ("DELETE", "document", "Write", None, REFUSED, REFUSED),
    ("DELETE", "document", "+Append", None, REFUSED, REFUSED),
    ("DELETE", "document", "+Control", None, REFUSED, REFUSED),
    ("DELETE", "container", "+Write", None, REFUSED, REFUSED),
    ("DELETE", "container", "+Read +Write", None, {204}, {404}),
    ("DELETE", "container", "", "Read Write", REFUSED, None),
    # W-40, W-5: Control on the subject, which gives nothing on the subject itself.
    ("GET", "acl", "+Control", None, {200}, {404}),
    ("GET", "acl", "+Read +Write +Append", None, REFUSED, REFUSED),
    ("PUT", "acl", "+Control", None, {204}, {201}),
    ("PUT", "acl", "+Read +Write +Append", None, REFUSED, REFUSED),
    ("DELETE", "acl", "+Control", None, {204}, {404}),
    ("DELETE", "acl", "+Read +Write +Append", None, REFUSED, REFUSED),
    # W-42: a description is its subject's.
    ("GET", "description", "+Read", None, {200}, {200}),
    ("GET", "description", "+Write", None, REFUSED, REFUSED),
    ("PUT", "description", "+Write", None, {204}, {201}),
    ("PUT", "description", "+Append", None, REFUSED, REFUSED),
]

CASES = [
    pytest.param(
        *row[:4], exists, row[4] if exists else row[5],
        id=f"{row[0]}-{row[1]}-{row[2] or 'none'}/{row[3] or 'inherited'}-"
        f"{'present' if exists else 'absent'}".replace(" ", "_"),
    )
    for row, exists in itertools.product(ROWS, (True, False))
    if exists or row[5] is not None
]  # fmt: skip


async def arrange(
    server: Server, target: str, container_modes: str, resource_modes: str | None, exists: bool
) -> str:
    """Make the container, the target and their rules; returns the target's path."""
    container = "/alice/private/c/"
    name = {"container": "x/"}.get(target, "x.ttl")
    path = container + name
    await server.alice.put(container, None, "text/turtle")
    if exists or target in ("acl", "description"):
        answer = await server.alice.put(path, "<#a> <#b> <#c>.", "text/turtle")
        assert answer.status == 201
    if resource_modes is not None:
        answer = await server.put_acl(path, (bob(server), resource_modes))
        assert answer.status == 201
    answer = await server.put_acl(container, (bob(server), container_modes))
    assert answer.status == 201
    if target == "description":
        if exists:
            answer = await server.alice.put(f"{path}.meta", "<#a> <#b> <#c>.", "text/turtle")
            assert answer.status == 201
        return f"{path}.meta"
    if target == "acl":
        if exists:
            rules = (bob(server), container_modes.replace("+", ""))
            assert (await server.put_acl(path, rules)).status == 201
        return f"{path}.acl"
    return path


def bob(server: Server) -> str:
    return f"acl:agent <{server.bob_web_id}>"


def body_for(method: str, path: str) -> tuple[str | None, str | None]:
    if method not in ("PUT", "POST"):
        return None, None
    if path.endswith(".acl"):
        subject = path.removesuffix(".acl")
        rule = (f"acl:agent <{BASE}/bob/#me>", "Control")
        return acl_turtle(subject, rule), "text/turtle"
    if method == "PUT" and path.endswith("/"):
        return None, "text/turtle"
    return "<#secret> <#b> <#d>.", "text/turtle"


@pytest.mark.parametrize(
    ("method", "target", "container_modes", "resource_modes", "exists", "expected"), CASES
)
async def test_answer_follows_the_rights_and_refusals_tell_nothing(
    server: Server,
    method: str,
    target: str,
    container_modes: str,
    resource_modes: str | None,
    exists: bool,
    expected: frozenset[int],
) -> None:
    path = await arrange(server, target, container_modes, resource_modes, exists)
    body, content_type = body_for(method, path)
    headers = {"Content-Type": content_type} if content_type else {}
    content = body.encode() if body else None

    anonymous = await server.public.request(method, path, headers=headers, body=content)
    assert anonymous.status == 401  # W-60
    assert anonymous.header_lines("www-authenticate")  # P-3
    answer = await server.bob.request(method, path, headers=headers, body=content)
    assert answer.status in expected
    if answer.status == 403:
        assert answer.header("www-authenticate") is None
        assert "secret" not in answer.text  # P-16

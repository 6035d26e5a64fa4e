"""What do answers tell about access? What is held where (W-50 to W-56), and otherwise nothing."""

from __future__ import annotations

import pytest

from tests.support.application import Server, acl_turtle
from tests.support.asgi import Answer, Client
from tests.support.rdf import TURTLE

PUBLIC = "acl:agentClass foaf:Agent"
AUTHENTICATED = "acl:agentClass acl:AuthenticatedAgent"
DOC = "/alice/private/doc"


def bob(server: Server) -> str:
    return f"acl:agent <{server.bob_web_id}>"


async def make_document(server: Server, path: str = DOC) -> None:
    assert (await server.alice.put(path, "hello", "text/plain")).status in (201, 204)


WAC_ALLOW = [
    ("Read", "read"),
    ("Read Control", "read control"),
    ("Read Append", "read append"),
    ("Read Write", "read write append"),
    ("Read Write Append", "read write append"),
    ("Read Write Append Control", "read write append control"),
    ("Write", "write append"),
    ("Append", "append"),
    ("Control", "control"),
    ("", ""),
]


@pytest.mark.parametrize(("modes", "listed"), WAC_ALLOW)
@pytest.mark.parametrize("inherited", [False, True], ids=["own", "inherited"])
@pytest.mark.parametrize("kind", ["doc", "c/"])
async def test_wac_allow_lists_exactly_what_is_held(
    server: Server, modes: str, listed: str, inherited: bool, kind: str
) -> None:
    """W-50 to W-56: whatever the status, by GET and HEAD, of what is and what is missing."""
    container = "/alice/private/x/"
    path = container + kind
    content_type = TURTLE if kind.endswith("/") else "text/plain"
    await server.alice.put(path, None, content_type)
    subject = container if inherited else path
    spelled = " ".join(f"+{mode}" for mode in modes.split()) if inherited else modes

    await server.put_acl(subject, (bob(server), spelled))
    for target in (path, f"{container}missing") if inherited else (path,):
        for answer in (await server.bob.get(target), await server.bob.head(target)):
            assert answer.header("wac-allow") == f'user="{listed}",public=""'
            assert (answer.status == 403) is ("read" not in listed)

    await server.put_acl(subject, (PUBLIC, spelled))
    for client in (server.public, server.bob):
        for answer in (await client.get(path), await client.head(path)):
            assert answer.header("wac-allow") == f'user="{listed}",public="{listed}"'


async def test_wac_allow_adds_the_public_modes_and_those_of_all_rules(server: Server) -> None:
    """W-16, W-52: the user's are a union, in one fixed order."""
    await make_document(server)
    await server.put_acl(DOC, (PUBLIC, "Read"), (bob(server), "Control"), (AUTHENTICATED, "Append"))
    expected = 'user="read append control",public="read"'
    assert (await server.bob.get(DOC)).header("wac-allow") == expected
    assert (await server.public.get(DOC)).header("wac-allow") == 'user="read",public="read"'
    tag = (await server.bob.get(DOC)).header("etag") or ""
    unchanged = await server.bob.get(DOC, if_none_match=tag)
    assert (unchanged.status, unchanged.header("wac-allow")) == (304, expected)


async def test_wac_allow_of_an_acl_is_all_or_nothing(server: Server) -> None:
    """W-54."""
    await make_document(server)
    await server.put_acl(DOC, (bob(server), "Control"))
    everything = 'user="read write append control",public=""'
    assert (await server.bob.get(f"{DOC}.acl")).header("wac-allow") == everything
    await server.put_acl(DOC, (bob(server), "Read Write"))
    refused = await server.bob.get(f"{DOC}.acl")
    assert (refused.status, refused.header("wac-allow")) == (403, 'user="",public=""')


async def test_refusals_of_every_method_say_what_is_held(server: Server) -> None:
    """A-9."""
    await make_document(server)
    for method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
        answer = await server.public.request(method, DOC, headers={"Content-Type": "text/plain"})
        assert (answer.status, answer.header("wac-allow")) == (401, 'user="",public=""')


async def test_a_public_root_makes_nothing_below_public(server: Server) -> None:
    """W-10: the public's rule has accessTo only."""
    await server.put_acl("/alice/", ("acl:agentClass foaf:Agent", "Read"))
    await server.alice.put("/alice/notes/a.txt", "x", "text/plain")
    await server.alice.put("/alice/top.txt", "x", "text/plain")
    listing = await server.public.get("/alice/")
    assert listing.status == 200
    assert listing.header("wac-allow") == 'user="read",public="read"'
    for name in ("notes/", "top.txt", "private/", "inbox/", "settings/"):
        assert f"<{name}>" in listing.text
    for path in ("notes/", "notes/a.txt", "top.txt", "private/", "missing", "settings/prefs.ttl"):
        assert (await server.public.get(f"/alice/{path}")).status == 401
        assert (await server.bob.get(f"/alice/{path}")).status == 403
    assert (await server.public.get("/alice/.acl")).status == 401


# --- what a refusal does not tell --------------------------------------------------------------

TARGETS = {
    "doc": "doc",
    "sub/": "sub/",
    "doc.acl": "doc.acl",
    "doc.meta": "doc.meta",
    "twin": "twin/",
    "twin/": "twin",
    "below/it": "below",
    "deep/er/": "deep/er/",
}
"""What is asked for, and what is made in between."""

HELD = [
    "", "Read", "Append", "Write", "Control", "Read Append", "Read Write", "Read Control",
    "Append Control", "Write Control", "Read Append Control",
]  # fmt: skip


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE"])
async def test_a_refusal_is_the_same_to_the_byte_whether_or_not_something_is_there(
    server: Server, held: str, method: str
) -> None:
    """W-60, W-61, W-64: of the public always, of others with whatever they hold.

    DELETE alone may be refused only where nothing is: it takes Read then (W-41).
    """
    for number, (asked, made) in enumerate(TARGETS.items()):
        container = f"/alice/private/{number}/"
        await server.alice.put(container, None, TURTLE)
        modes = " ".join(f"+{mode}" for mode in held.split())
        await server.put_acl(container, (bob(server), modes))
        if made.startswith("doc."):  # an auxiliary resource has its subject all the time
            await make_document(server, f"{container}doc")

        absent = await ask(server.public, method, container + asked)
        bobs_absent = await ask(server.bob, method, container + asked)
        if bobs_absent.status == 201:
            continue
        await make(server, container, made, held)
        present = await ask(server.public, method, container + asked)
        bobs_present = await ask(server.bob, method, container + asked)

        assert absent.status == 401
        assert whole(present) == whole(absent)
        if bobs_present.status == 403:
            assert whole(bobs_present) == whole(bobs_absent)
        elif bobs_absent.status == 403:
            assert method == "DELETE"


async def make(server: Server, container: str, name: str, held: str) -> None:
    """Create something of which Bob holds what he holds of the container."""
    content = ""
    if name == "doc.acl":
        content = acl_turtle(f"{container}doc", (bob(server), held))
    answer = await server.alice.put(container + name, content, content_type_at(name))
    assert answer.status == 201


async def ask(client: Client, method: str, path: str) -> Answer:
    if method in ("PUT", "POST"):
        headers = {"Content-Type": content_type_at(path)}
        return await client.request(method, path, headers=headers, body=b"")
    return await client.request(method, path)


def content_type_at(path: str) -> str:
    return TURTLE if path.endswith(("/", ".acl", ".meta")) else "text/plain"


def whole(answer: Answer) -> tuple[int, list[tuple[str, str]], bytes]:
    return answer.status, answer.headers, answer.body

"""Containers that are asked for without content, names that others need, and telling headers."""

from __future__ import annotations

import pytest

from tests.support.application import BASE, Server
from tests.support.rdf import JSON_LD, N_TRIPLES, TURTLE, media_type

BASIC_CONTAINER = '<http://www.w3.org/ns/ldp#BasicContainer>; rel="type"'
DOC = "/alice/private/doc"


@pytest.mark.parametrize("content_type", [TURTLE, JSON_LD, N_TRIPLES, "text/plain", "image/png"])
async def test_a_container_without_content_is_made_whatever_type_is_named(
    server: Server, content_type: str
) -> None:
    """P-7, C-8, C-9, C-11: where nothing is sent, its type means nothing."""
    put = await server.alice.put("/alice/private/c/", None, content_type)
    assert put.status == 201
    posted = await server.alice.post(
        "/alice/private/", None, content_type, slug="d", link=BASIC_CONTAINER
    )
    assert (posted.status, posted.header("location")) == (201, f"{BASE}/alice/private/d/")
    for path in ("/alice/private/c/", "/alice/private/d/"):
        listing = await server.alice.get(path)
        assert (listing.status, media_type(listing)) == (200, TURTLE)
    assert (await server.alice.put("/alice/private/c/", None, content_type)).status == 204


@pytest.mark.parametrize("content_type", [JSON_LD, "text/plain"])
async def test_an_acl_or_description_without_content_still_has_a_type(
    server: Server, content_type: str
) -> None:
    """W-6: nothing is a document of no triples in Turtle, and no JSON-LD at all."""
    await server.alice.put(DOC, "x", "text/plain")
    for auxiliary in (".acl", ".meta"):
        refused = await server.alice.put(DOC + auxiliary, None, content_type)
        assert refused.status in (400, 415)
    assert (await server.alice.get(f"{DOC}.acl")).status == 404


@pytest.mark.parametrize("path", ["doc.acl/", "doc.meta/", "doc.acl/x", "c/.acl/", "c/.meta/x/y"])
async def test_a_writer_cannot_take_the_place_of_rules_that_the_owner_may_want(
    server: Server, path: str
) -> None:
    """P-47, P-52: a container there would keep the owner from ever giving the ACL."""
    await server.put_acl("/alice/private/", (f"acl:agent <{server.bob_web_id}>", "+Read +Write"))
    assert (await server.bob.put("/alice/private/c/", None, TURTLE)).status == 201
    assert (await server.bob.put(DOC, "x", "text/plain")).status == 201
    content_type = TURTLE if path.endswith("/") else "text/plain"
    assert (await server.bob.put(f"/alice/private/{path}", None, content_type)).status == 409
    for subject in (DOC, "/alice/private/c/"):
        assert (await server.put_acl(subject)).status == 201
        assert (await server.bob.get(subject)).status == 403


@pytest.mark.parametrize("path", [".acl.acl", ".acl.meta", ".meta.acl", ".meta.meta"])
async def test_auxiliary_resources_have_none_themselves(server: Server, path: str) -> None:
    """W-1: they would outlive their document."""
    await server.alice.put(DOC, "x", "text/plain")
    await server.put_acl(DOC)
    await server.alice.put(f"{DOC}.meta", "<#a> <#b> <#c>.", TURTLE)
    assert (await server.alice.put(DOC + path, "", TURTLE)).status == 409
    assert (await server.alice.get(DOC + path)).status == 404


# --- headers by which a client goes on ---------------------------------------------------------


async def test_a_failed_precondition_names_the_state_that_is_there(server: Server) -> None:
    """Protocol 9.2: and it can be used at once."""
    made = await server.alice.put(DOC, "<#a> <#b> 1.", TURTLE)
    failed = await server.alice.put(DOC, "<#a> <#b> 2.", TURTLE, if_match='"old-ttl"')
    assert (failed.status, failed.header("etag")) == (412, made.header("etag"))
    again = await server.alice.put(
        DOC, "<#a> <#b> 2.", TURTLE, if_match=failed.header("etag") or ""
    )
    assert again.status == 204
    nothing = await server.alice.put("/alice/private/no", "", TURTLE, if_match="*")
    assert (nothing.status, nothing.header("etag")) == (412, None)
    container = await server.alice.put("/alice/private/", None, TURTLE, if_none_match="*")
    current = await server.alice.get("/alice/private/")
    assert (container.status, container.header("etag")) == (412, current.header("etag"))
    denied = await server.bob.put(DOC, "", TURTLE, if_match='"old-ttl"')
    assert (denied.status, denied.header("etag")) == (403, None)


async def test_an_unsupported_type_is_answered_with_those_that_would_do(server: Server) -> None:
    """Protocol 9.2, RFC 9110 section 15.5.16."""
    refused = await server.alice.put("/alice/private/", "x", "text/plain")
    assert refused.status == 415
    assert TURTLE in (refused.header("accept-put") or "")
    assert refused.header("accept-post")
    assert "PUT" in (refused.header("allow") or "")


async def test_a_redirect_to_the_other_slash_form_is_not_cached(
    server: Server,
) -> None:
    """P-47, P-28: else a browser keeps it for ever, also when something else is there."""
    await server.alice.put("/alice/private/c/", None, TURTLE)
    await server.alice.put("/alice/public/c/", None, TURTLE)
    for path in ("/alice/private/c", "/alice/public/c"):
        for response in (await server.alice.get(path), await server.alice.head(path)):
            assert (response.status, response.header("location")) == (301, f"{BASE}{path}/")
            assert "no-cache" in (response.header("cache-control") or "")
            assert (response.header("wac-allow") or "").startswith('user="read')
    private = await server.alice.get("/alice/private/c")
    assert "private" in (private.header("cache-control") or "")
    await server.alice.delete("/alice/private/c/")
    assert (await server.alice.put("/alice/private/c", "x", "text/plain")).status == 201
    assert (await server.alice.get("/alice/private/c")).body == b"x"

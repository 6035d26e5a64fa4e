"""WebIDs whose documents are on other servers, and documents that are no good (A-109)."""

from __future__ import annotations

import json

from tests.http.tokens.world import (
    ISSUER_TERM,
    MISNAMED,
    NO_DOCUMENT,
    NOT_NAMED,
    World,
    assert_refused,
)
from tests.support.application import BASE
from tests.support.provider import Page, Provider
from tests.support.rdf import TURTLE


async def test_a_webid_elsewhere_is_accepted_if_it_names_the_provider(
    world: World, elsewhere: Provider
) -> None:
    """A-109."""
    web_id = elsewhere.profile("/carol", world.provider.issuer)
    await world.let_in(web_id)
    assert (await world.get(world.app(web_id=web_id))).status == 200
    other = elsewhere.profile("/dave", "https://idp.example")
    assert_refused(await world.get(world.app(web_id=other)), NOT_NAMED)


async def test_a_webid_document_may_be_json_ld_and_may_have_moved(
    world: World, elsewhere: Provider
) -> None:
    """A-109, A-189: relative references are resolved against where it was found."""
    web_id = f"{elsewhere.issuer}/carol#me"
    await world.let_in(web_id)
    document = [{"@id": web_id, ISSUER_TERM: [{"@id": f"{world.provider.issuer}/"}]}]
    elsewhere.pages["/moved"] = Page(json.dumps(document).encode(), "application/ld+json")
    elsewhere.pages["/carol"] = Page.redirect("/moved")
    assert (await world.get(world.app(web_id=web_id))).status == 200
    relative = f"<#me> <{ISSUER_TERM}> <{world.provider.issuer}>."
    elsewhere.pages["/dave"] = Page.redirect("/moved-too")
    elsewhere.pages["/moved-too"] = Page(relative.encode(), TURTLE)
    answer = await world.get(world.app(web_id=f"{elsewhere.issuer}/dave#me"))
    assert_refused(answer, NOT_NAMED)


async def test_invalid_webid_documents_are_refused(world: World, elsewhere: Provider) -> None:
    """A-109, A-111, A-189."""
    web_id = f"{elsewhere.issuer}/carol#me"
    await world.let_in(web_id)
    triple = f"<#me> <{ISSUER_TERM}> <{world.provider.issuer}>."
    text = f'<#me> <{ISSUER_TERM}> "{world.provider.issuer}".'
    link = {"Link": f'<{world.provider.issuer}>; rel="{ISSUER_TERM}"'}
    many = "".join(f"<#a> <#b> {each}." for each in range(10_000))
    issuers = "".join(f"<#me> <{ISSUER_TERM}> <https://{each}.example>." for each in range(64))
    bad = {
        "gone": (Page(b"", status=404), NO_DOCUMENT),
        "no RDF": (Page(b"<html>", "text/html"), NO_DOCUMENT),
        "text": (Page(triple.encode(), "text/plain"), NO_DOCUMENT),
        "not Turtle": (Page(b"<", TURTLE), NO_DOCUMENT),
        "huge": (Page(triple.encode() + b"#" * 1024 * 1024, TURTLE), NO_DOCUMENT),
        "too many triples": (Page((triple + many).encode(), TURTLE), NO_DOCUMENT),
        "too many issuers": (Page((triple + issuers).encode(), TURTLE), NO_DOCUMENT),
        "moved to this server": (Page.redirect(f"{BASE}/alice/"), MISNAMED),
        "moved to a private network": (Page.redirect("http://10.0.0.1/"), NO_DOCUMENT),
        "moved to itself": (Page.redirect("/carol"), NO_DOCUMENT),
        "in a header only": (Page(b"", TURTLE, headers=link), NOT_NAMED),
        "as a text": (Page(text.encode(), TURTLE), NOT_NAMED),
        "of another subject": (Page(triple.replace("#me", "#you").encode(), TURTLE), NOT_NAMED),
        "of a longer issuer": (Page(triple.replace(">.", "/x>.").encode(), TURTLE), NOT_NAMED),
        "of the issuer in other case": (
            Page(triple.replace("localhost", "LOCALHOST").encode(), TURTLE),
            NOT_NAMED,
        ),
        "in a comment": (Page(f"# {triple}".encode(), TURTLE), NOT_NAMED),
    }
    for how, (page, phrase) in bad.items():
        elsewhere.pages["/carol"] = page
        answer = await world.get(world.app(web_id=web_id))
        assert (how, answer.json()["message"]) == (how, phrase)
        assert_refused(answer, phrase)
        world.clock.advance(61)
    elsewhere.pages["/carol"] = Page(triple.encode(), TURTLE)
    assert (await world.get(world.app(web_id=web_id))).status == 200


async def test_a_huge_document_here_is_not_read_for_its_issuers(world: World) -> None:
    """A-111: anybody may have a token for it."""
    path = "/alice/huge"
    triple = f"<#me> <{ISSUER_TERM}> <{world.provider.issuer}>."
    for extra, phrase in ((1024 * 1024, NO_DOCUMENT), (0, None)):
        content = triple.encode() + b"\n#" + b"x" * extra
        assert (await world.server.alice.put(path, content, TURTLE)).status in {201, 204}
        answer = await world.get(world.app(web_id=f"{BASE}{path}#me"))
        assert answer.status == (403 if phrase is None else 401)

"""The pages on which people make groups, name them and choose their members, without scripts."""

from __future__ import annotations

import re

import pytest
from rdflib import RDF, Graph, URIRef
from rdflib.namespace import Namespace

from podstead.web.sharing import groups
from tests.http.pod_pages.test_sharing import PHOTO, SHARE, knows, share, words
from tests.support.application import BASE, Server
from tests.support.browser import Browser, Page
from tests.support.rdf import TURTLE

GROUPS = "/.pages/groups"
VCARD = Namespace("http://www.w3.org/2006/vcard/ns#")


@pytest.fixture
async def photos(server: Server) -> Server:
    assert (await server.alice.put(PHOTO, "content", "text/plain")).status == 201
    return server


async def new_group(browser: Browser, name: str, *members: str) -> Page:
    """Make a group with these members; shows its page."""
    page = await browser.send(await browser.get(GROUPS), GROUPS, name=name)
    for each in members:
        page = await browser.send(page, page.path, who=each, change="add")
    return page


async def stored(server: Server, page: Page) -> Graph:
    """The document of the group of a page, as rdflib reads it."""
    path = page.path.removeprefix(GROUPS)
    answer = await server.alice.get(path, accept=TURTLE)
    return Graph().parse(data=answer.text, format="turtle", publicID=BASE + path)


async def test_a_group_is_made_and_shared_with_by_its_name(photos: Server, alice: Browser) -> None:
    page = await new_group(alice, "The Family", "bob")
    assert "1 member bob" in words(page)
    graph = await stored(photos, page)
    [group] = graph.subjects(RDF.type, VCARD.Group)
    assert str(graph.value(group, VCARD.fn)) == "The Family"
    assert set(graph.objects(group, VCARD.hasMember)) == {URIRef(photos.bob_web_id)}
    listed = await alice.get(SHARE)
    assert '<option value="The Family" label="Group">' in listed.text
    shown = await share(alice, "the family")
    assert "The members of The Family can view." in words(shown)
    assert (await photos.bob.get(PHOTO)).status == 200
    assert "photos" in words(await alice.get(page.path))
    # Who is no member any longer has no access.
    page = await alice.get(page.path)
    fields = {"change": "remove", "member": photos.bob_web_id}
    await alice.post(page.path, {**page.form(page.path).fields, **fields})
    assert (await photos.bob.get(PHOTO)).status == 403


async def test_a_renamed_group_keeps_what_it_has_and_what_else_its_document_says(
    photos: Server, alice: Browser
) -> None:
    page = await new_group(alice, "Family", "bob")
    await share(alice, "Family")
    path = page.path.removeprefix(GROUPS)
    update = f'INSERT DATA {{ <{BASE}{path}#group> <{VCARD.note}> "kept" }}'
    headers = {"Content-Type": "application/sparql-update"}
    answer = await photos.alice.request("PATCH", path, headers=headers, body=update.encode())
    assert answer.status < 300
    page = await alice.get(page.path)
    await alice.post(
        page.path, {**page.form(page.path).fields, "change": "rename", "name": "Relatives"}
    )
    graph = await stored(photos, page)
    [group] = graph.subjects(RDF.type, VCARD.Group)
    assert [str(each) for each in graph.objects(group, VCARD.fn)] == ["Relatives"]
    assert str(graph.value(group, VCARD.note)) == "kept"
    assert (await photos.bob.get(PHOTO)).status == 200
    assert "The members of Relatives can view." in words(await alice.get(SHARE))


async def test_a_deleted_group_ends_what_was_shared_with_it(photos: Server, alice: Browser) -> None:
    page = await new_group(alice, "Family", "bob")
    await share(alice, "Family")
    page = await alice.get(page.path)
    assert "Its member loses what is shared with the group." in words(page)
    gone = await alice.post(page.path, {**page.form(page.path).fields, "change": "delete"})
    assert gone.path == GROUPS
    assert "No groups yet" in words(gone)
    assert (await photos.bob.get(PHOTO)).status == 403
    acl = await photos.alice.get("/alice/photos/.acl")
    assert "agentGroup" not in acl.text
    again = await new_group(alice, "Family", "bob")
    assert again.path != page.path


async def test_the_groups_of_somebody_else_are_out_of_reach(
    photos: Server, alice: Browser, bob: Browser, browser: Browser
) -> None:
    page = await new_group(alice, "Family", "bob")
    for path in (page.path, f"{GROUPS}/alice/groups/"):
        assert (await bob.get(path)).status == 404
        assert (await browser.get(path)).path == "/.pages/sign-in"
    own = await bob.get(GROUPS)
    refused = await bob.post(page.path, {**own.form(GROUPS).fields, "change": "delete"})
    assert refused.status == 404
    assert "Family" not in own.text
    assert (await photos.bob.get(page.path.removeprefix(GROUPS))).status == 403


async def test_a_member_is_a_person_and_found_as_such(photos: Server, alice: Browser) -> None:
    await new_group(alice, "Team")
    page = await new_group(alice, "Family")
    assert "No groups yet" not in words(await alice.get(GROUPS))
    for who in ("Team", "nobody-here"):
        refused = await alice.send(page, page.path, who=who, change="add")
        assert refused.status == 400
        assert "Nobody was found." in words(refused)
    await knows(photos, "https://carol.example/#me", "Carol")
    shown = await alice.send(page, page.path, who="carol", change="add")
    assert "1 member Carol" in words(shown)
    assert re.search(r'title="https://carol.example/#me"', shown.text)


async def test_a_group_needs_a_name(photos: Server, alice: Browser) -> None:
    page = await alice.get(GROUPS)
    assert (await alice.send(page, GROUPS, name="  ")).status == 400
    assert "No groups yet" in words(await alice.get(GROUPS))
    assert (await photos.alice.get("/alice/groups/")).status == 404


async def test_a_document_has_no_group_of_another_address(photos: Server, alice: Browser) -> None:
    """A rule about it would be about whatever is there."""
    foreign = f'<https://elsewhere.example/g#it> a <{VCARD.Group}>; <{VCARD.fn}> "Family".'
    answer = await photos.alice.put("/alice/groups/foreign.ttl", foreign, TURTLE)
    assert answer.status == 201
    assert "Family" not in (await alice.get(GROUPS)).text
    shown = await share(alice, "Family")
    assert "elsewhere.example" not in shown.text


async def test_an_address_means_nobody_who_is_only_called_that(
    photos: Server, alice: Browser
) -> None:
    page = await new_group(alice, photos.bob_web_id)
    path = page.path.removeprefix(GROUPS)
    await share(alice, photos.bob_web_id)
    assert (await photos.bob.get(PHOTO)).status == 200
    rules = (await photos.alice.get(f"{PHOTO}.acl", accept=TURTLE)).text
    assert path not in rules


async def test_a_deleted_group_leaves_also_the_rules_that_its_page_does_not_list(
    photos: Server, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "_SHOWN_PLACES", 1)
    page = await new_group(alice, "Family", "bob")
    await share(alice, "Family")
    at = f"/.pages/share{PHOTO}"
    fields = {"who": "Family", "kind": "agent", "role": "edit", "step": "share"}
    await alice.send(await alice.get(at), at, **fields)
    acls = ("/alice/photos/.acl", f"{PHOTO}.acl")
    for acl in acls:
        assert "agentGroup" in (await photos.alice.get(acl)).text
    page = await alice.get(page.path)
    assert "One more is not shown." in words(page)
    await alice.post(page.path, {**page.form(page.path).fields, "change": "delete"})
    for acl in acls:
        assert "agentGroup" not in (await photos.alice.get(acl)).text

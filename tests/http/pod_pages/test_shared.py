"""The lists of what is shared with a person and by a person, without scripts."""

from __future__ import annotations

import re

import pytest

from tests.http.pod_pages.test_sharing import words
from tests.support.application import BASE, Server, Start
from tests.support.browser import Browser
from tests.support.clock import FakeClock
from tests.support.pod_pages import sign_in_by_token, sign_in_to_account

SHARED = "/.pages/shared"
BY_ME = f"{SHARED}?view=by-me"
BOB = f"acl:agent <{BASE}/bob/#me>"
EVERYONE = "acl:agentClass foaf:Agent"
PHOTO = "/alice/photos/sea.txt"


@pytest.fixture
async def photos(server: Server) -> Server:
    assert (await server.alice.put(PHOTO, "content", "text/plain")).status == 201
    return server


async def test_what_names_me_is_listed_with_what_i_can_do(photos: Server, bob: Browser) -> None:
    assert "Nothing is shared with you yet" in words(await bob.get(SHARED))
    await photos.put_acl("/alice/photos/", (BOB, "+Read"))
    await photos.put_acl("/alice/private/", (BOB, "Read Write"))
    page = await bob.get(SHARED)
    assert page.status == 200
    assert '<a href="/.pages/files/alice/photos/">' in page.text
    assert "alice Can view " in words(page)
    assert "alice Can edit · This folder only" in words(page)
    assert 'href="/.pages/shared"' in page.text  # the navigation


async def test_what_is_no_longer_shared_is_gone(photos: Server, bob: Browser) -> None:
    await photos.put_acl("/alice/photos/", (BOB, "+Read"))
    assert "photos" in words(await bob.get(SHARED))
    await photos.put_acl("/alice/photos/")
    assert "Nothing is shared with you yet" in words(await bob.get(SHARED))


async def test_what_only_its_contents_are_shared_of_has_no_link(
    photos: Server, bob: Browser
) -> None:
    rules = f"""@prefix acl: <http://www.w3.org/ns/auth/acl#>.
<#owner> a acl:Authorization; acl:agent <{BASE}/alice/#me>; acl:accessTo <./>; acl:default <./>;
  acl:mode acl:Read, acl:Write, acl:Control.
<#bob> a acl:Authorization; {BOB}; acl:default <./>; acl:mode acl:Read."""
    assert (await photos.alice.put("/alice/photos/.acl", rules, "text/turtle")).status == 201
    page = await bob.get(SHARED)
    assert "alice Can view · Everything inside" in words(page)
    assert "/.pages/files/alice/photos/" not in page.text


async def test_what_is_shared_with_my_group_is_listed(photos: Server, bob: Browser) -> None:
    group = f"""@prefix vcard: <http://www.w3.org/2006/vcard/ns#>.
<#team> a vcard:Group; vcard:hasMember <{BASE}/bob/#me>. <#others> a vcard:Group."""
    assert (await photos.alice.put("/alice/groups.ttl", group, "text/turtle")).status == 201
    groups = f"acl:agentGroup <{BASE}/alice/groups.ttl"
    await photos.put_acl("/alice/photos/", (f"{groups}#team>", "+Read"))
    await photos.put_acl("/alice/private/", (f"{groups}#others>", "+Read"))
    page = words(await bob.get(SHARED))
    assert "alice Can view" in page
    assert "private" not in page
    await photos.alice.put("/alice/groups.ttl", group.replace("bob", "x"), "text/turtle")
    assert "Nothing is shared with you yet" in words(await bob.get(SHARED))


async def test_what_names_very_many_is_listed_for_each(photos: Server, bob: Browser) -> None:
    agents = ", ".join(f"<https://p.example/{number}#me>" for number in range(1100))
    await photos.put_acl("/alice/photos/", (f"{BOB}, {agents}", "+Read"))
    await photos.put_acl("/alice/private/", (f"acl:agent {agents}", "+Read"))
    page = words(await bob.get(SHARED))
    assert "alice Can view" in page
    assert "private" not in page


async def test_one_pod_does_not_fill_the_list(photos: Server, bob: Browser) -> None:
    """Anybody can name Bob in as many rules as they like."""
    for number in range(25):
        subject = f"/alice/private/{number:02}.txt"
        await photos.alice.put(subject, "x", "text/plain")
        await photos.put_acl(subject, (BOB, "Read"))
    created = await photos.public.post("/.pods", '{"name": "zoe"}', "application/json")
    zoe = photos.public.with_token(created.json()["token"])
    rules = f"""@prefix acl: <http://www.w3.org/ns/auth/acl#>.
<#owner> a acl:Authorization; acl:agent <{BASE}/zoe/#me>; acl:accessTo <./>; acl:mode acl:Control.
<#bob> a acl:Authorization; {BOB}; acl:accessTo <./>; acl:mode acl:Read."""
    assert (await zoe.put("/zoe/private/.acl", rules, "text/turtle")).status == 204
    page = await bob.get(SHARED)
    assert "zoe Can view · This folder only" in words(page)
    assert page.text.count("/.pages/files/alice/") == 20
    assert '<a href="/.pages/shared?from=%2Falice%2F">More from alice</a>' in page.text
    rest = await bob.get("/.pages/shared?from=%2Falice%2F")
    assert rest.text.count("/.pages/files/alice/") == 25
    assert "zoe" not in words(rest)


async def test_longer_lists_have_pages(photos: Server, bob: Browser) -> None:
    for number in range(105):
        subject = f"/alice/private/{number:03}.txt"
        await photos.alice.put(subject, "x", "text/plain")
        await photos.put_acl(subject, (BOB, "Read"))
    first = await bob.get("/.pages/shared?from=%2Falice%2F")
    assert first.text.count("/.pages/files/alice/") == 100
    address = re.search(r'<p><a href="([^"]+)">More</a>', first.text)
    assert address is not None
    second = await bob.get(address[1].replace("&amp;", "&"))
    assert second.text.count("/.pages/files/alice/") == 5
    assert ">More</a>" not in second.text


async def test_a_page_of_another_place_in_the_list_shows_nothing_of_others(
    photos: Server, bob: Browser
) -> None:
    """Where the next page begins is told by the address, which anybody can change."""
    await photos.put_acl("/alice/private/", ("acl:agent <https://p.example/#me>", "+Read"))
    for after in ("*", "a", "a/", "g", "zzz", "%00", "a" + "0" * 32 + "/alice/"):
        page = await bob.get(f"{SHARED}?after={after}&from=%2Falice%2F")
        assert page.status == 200
        assert "private" not in words(page)


async def test_my_own_resources_are_listed_with_who_has_access(
    photos: Server, alice: Browser
) -> None:
    await photos.put_acl("/alice/photos/", (BOB, "+Read +Write"), (EVERYONE, "Read"))
    page = await alice.get(BY_ME)
    shown = words(page)
    assert "photos alice Change access" in shown
    assert "photos Everyone can view · This folder only End bob can edit" in shown
    assert "inbox Everyone can add something, but not view it" in shown
    assert "private" not in shown
    assert 'href="/.pages/share/alice/photos/"' in page.text


async def test_only_my_own_pod_is_listed(photos: Server, bob: Browser) -> None:
    await photos.put_acl("/alice/private/", ("acl:agent <https://p.example/#me>", "+Read"))
    for pod in ("%2Falice%2F", "%2Fal", "%2F"):
        page = await bob.get(f"{BY_ME}&pod={pod}")
        assert "private" not in words(page)


async def test_names_are_shown_and_never_run(server: Server) -> None:
    subject = "/alice/private/%3Cscript%3Ealert(1)%3C%2Fscript%3E.txt"
    assert (await server.alice.put(subject, "x", "text/plain")).status == 201
    await server.put_acl(subject, (BOB, "Read"))
    bob = await sign_in_by_token(server, server.bob)
    page = await bob.get(SHARED)
    assert "<script>alert" not in page.text
    assert "&lt;script&gt;alert(1)" in page.text


async def test_without_a_sign_in_there_is_no_list(server: Server, browser: Browser) -> None:
    assert (await browser.get(SHARED)).path == "/.pages/sign-in"


async def test_the_page_is_there_in_each_language(photos: Server, bob: Browser) -> None:
    await photos.put_acl("/alice/photos/", (BOB, "+Read"))
    for language, title in {"de": "Geteilt", "es": "Compartido", "nl": "Gedeeld"}.items():
        page = await bob.get(SHARED, accept_language=language)
        assert f"<h1>{title}</h1>" in page.text


async def test_accounts_have_the_lists_too(start: Start) -> None:
    server = await start(idp=True)
    bob = await sign_in_to_account(server, "bob")
    await server.put_acl("/alice/private/", (BOB, "+Read"))
    assert "alice Can view" in words(await bob.get(SHARED))


def acl_until(*rules: tuple[str, str, str]) -> str:
    """An ACL of the photos; each rule is a grantee, its modes, and its end."""
    blocks = [
        f"[] a acl:Authorization; {who}; acl:accessTo <./>; acl:default <./>; acl:mode {modes}; "
        f'acl:condition [ a access:PeriodCondition; access:ends "{ends}"^^xsd:dateTime ].'
        for who, modes, ends in rules
    ]
    return """@prefix acl: <http://www.w3.org/ns/auth/acl#>.
@prefix access: <urn:uuid:83c6a852-1ff7-4d9b-acde-c873bc613aee#>.
@prefix foaf: <http://xmlns.com/foaf/0.1/>.
@prefix xsd: <http://www.w3.org/2001/XMLSchema#>.
<#owner> a acl:Authorization; acl:agent <http://localhost:3000/alice/#me>; acl:accessTo <./>;
  acl:default <./>; acl:mode acl:Read, acl:Write, acl:Control.
""" + "\n".join(blocks)


async def test_what_i_share_shows_ends_and_what_was_done_last(
    start: Start, clock: FakeClock
) -> None:
    server = await start(clock=clock)  # 15 January 2027
    await server.alice.put(PHOTO, "content", "text/plain")
    rules = acl_until(
        (BOB, "acl:Read, acl:Write", "2027-02-01T00:00:00Z"),
        ("acl:agent <https://p.example/#me>", "acl:Read", "2027-01-01T00:00:00Z"),
    )
    assert (await server.alice.put("/alice/photos/.acl", rules, "text/turtle")).status == 201
    assert (await server.bob.put("/alice/photos/by-bob.txt", "x", "text/plain")).status == 201
    alice = await sign_in_by_token(server, server.alice)
    shown = words(await alice.get(BY_ME))
    assert "bob can edit, until Jan 31, 2027 Last: Created" in shown
    assert "by-bob.txt" in shown
    assert "p.example can view, until Dec 31, 2026 Ended" in shown


async def test_one_click_ends_the_access_of_one(photos: Server, alice: Browser) -> None:
    await photos.put_acl("/alice/photos/", (BOB, "+Read +Write"), (EVERYONE, "Read"))
    page = await alice.get(BY_ME)
    form = next(
        each for each in page.forms
        if each.action == "/.pages/share/alice/photos/" and each.fields.get("kind") == "agent"
    )  # fmt: skip
    back = await alice.post(form.action, form.fields)
    assert back.url.endswith(BY_ME)
    assert "Saved." in words(back)
    assert "bob can edit" not in words(back)
    assert "Everyone can view" in words(back)
    assert (await photos.bob.put(PHOTO, "again", "text/plain")).status == 403
    again = await alice.post(form.action, form.fields)
    assert "Somebody else changed the access" in words(again)


async def test_rules_for_applications_are_listed_too(photos: Server, alice: Browser) -> None:
    await photos.put_acl("/alice/photos/", (f"{BOB}; acl:origin <https://app.example>", "Read"))
    assert "Another rule: names applications" in words(await alice.get(BY_ME))


async def test_an_end_is_announced_before_and_after(start: Start, clock: FakeClock) -> None:
    server = await start(clock=clock)
    await server.alice.put(PHOTO, "content", "text/plain")
    rules = acl_until((BOB, "acl:Read", "2027-02-01T00:00:00Z"))
    assert (await server.alice.put("/alice/photos/.acl", rules, "text/turtle")).status == 201
    alice = await sign_in_by_token(server, server.alice)
    announced = '<span class="visually-hidden">1 notice about an end</span>'
    told = "Access to “photos” for bob: "
    for days, expected in ((0, ""), (12, ""), (3, "ends on"), (4, "ended on"), (10, "")):
        clock.advance(days * 24 * 3600)
        alice = await sign_in_by_token(server, server.alice)
        for path in ("/.pages/", "/.pages/requests"):
            page = await alice.get(path)
            assert (told in words(page)) == bool(expected), (days, path)
            assert f"{told}{expected}" in words(page) or not expected
            assert (announced in page.text) == bool(expected)
    assert "/.pages/share/alice/photos/" in (await alice.get(BY_ME)).text


async def test_an_end_that_is_taken_back_is_no_longer_announced(
    start: Start, clock: FakeClock
) -> None:
    server = await start(clock=clock)
    await server.alice.put(PHOTO, "content", "text/plain")
    rules = acl_until((BOB, "acl:Read", "2027-01-18T00:00:00Z"))
    assert (await server.alice.put("/alice/photos/.acl", rules, "text/turtle")).status == 201
    alice = await sign_in_by_token(server, server.alice)
    badge = '<span class="badge">'
    page = await alice.get("/.pages/requests")
    assert "ends on" in words(page)
    assert badge in page.text
    await server.put_acl("/alice/photos/", (BOB, "Read"))
    page = await alice.get("/.pages/requests")
    assert "ends on" not in words(page)
    assert badge not in page.text

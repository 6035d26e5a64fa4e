"""Sharing links: what they let people do, how they are opened, and how they end."""

from __future__ import annotations

import asyncio
import io
import re
import zipfile
from datetime import UTC, date, datetime, timedelta

import pytest
from PIL import Image

from podstead.config import Settings
from tests.features.links.sharing_links import (
    FOLDER,
    MANAGE,
    SHARE,
    Owner,
    csrf_token_of_form,
    visit,
)
from tests.support.application import Server, Start, acl_turtle
from tests.support.asgi import Client
from tests.support.browser import Browser
from tests.support.clock import FakeClock
from tests.support.pod_pages import csrf_token_of, sign_in_by_token

DAY_S = 24 * 3600


def _picture() -> bytes:
    written = io.BytesIO()
    Image.new("RGB", (400, 300), "teal").save(written, "PNG")
    return written.getvalue()


PICTURE = _picture()


async def test_a_folder_is_listed_and_its_documents_are_shown(server: Server, owner: Owner) -> None:
    visitor = await visit(server, await owner.link())
    assert visitor.page.status == 200
    assert "a.txt" in visitor.page.text
    below = await visitor.get("sub/")
    assert "b.txt" in below.text
    shown = await visitor.get("sub/b.txt")
    assert "two" in shown.text
    raw = await visitor.get("sub/b.txt?download=yes", "raw")
    assert (raw.status, raw.text) == (200, "two")
    assert raw.answer.header("content-disposition") == "attachment; filename*=UTF-8''b.txt"


@pytest.mark.feature("previews")
async def test_a_folder_of_pictures_has_thumbnails_and_leads_from_one_to_the_next(
    server: Server, owner: Owner
) -> None:
    for name in ("1.png", "2.png", "3.png"):
        assert (await server.alice.put(f"{FOLDER}trip/{name}", PICTURE, "image/png")).status == 201
    visitor = await visit(server, await owner.link())
    assert "alice shares this with you." in visitor.page.text
    small = re.findall(r'<img src="([^"]+)"', (await visitor.get("trip/")).text)
    assert len(small) == 3
    for address in small:
        thumbnail = await visitor.browser.get(address)
        assert thumbnail.status == 200
        assert thumbnail.answer.header("content-type") == "image/webp"
    assert (await Browser(server.application).get(small[0])).status == 404
    turned = {
        name: dict(re.findall(r'rel="(prev|next)" href="([^"]+)"', page.text))
        for name in ("1.png", "2.png", "3.png")
        for page in [await visitor.get(f"trip/{name}")]
    }
    at = {name: visitor.at("view", f"trip/{name}") for name in turned}
    assert turned == {
        "1.png": {"next": at["2.png"]},
        "2.png": {"prev": at["1.png"], "next": at["3.png"]},
        "3.png": {"prev": at["2.png"]},
    }


async def test_who_is_not_found_by_an_e_mail_address_can_get_a_link(owner: Owner) -> None:
    share = SHARE + FOLDER
    form = await owner.browser.get(share)
    somebody = await owner.browser.send(form, share, who="lena", step="share")
    assert "Copy one here" not in somebody.text
    nobody = await owner.browser.send(form, share, who="lena@example.net", step="share")
    assert nobody.status == 400
    assert "Nobody was found." in nobody.text
    assert "profile#me" not in nobody.text
    assert "Copy one here, and send it to lena@example.net." in nobody.text
    await owner.browser.send(nobody, MANAGE + FOLDER, change="create")
    assert "lena@example.net" in (await owner.browser.get(share)).text


async def test_everything_that_a_link_shows_can_be_downloaded_at_once(
    server: Server, owner: Owner
) -> None:
    await server.alice.put(FOLDER + "closed.txt", "closed", "text/plain")
    await server.put_acl(FOLDER + "closed.txt")
    visitor = await visit(server, await owner.link())
    assert visitor.at("zip") in visitor.page.text
    with zipfile.ZipFile(io.BytesIO((await visitor.get("", "zip")).answer.body)) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if name[-1] != "/"}
    assert files == {"photos/a.txt": b"one", "photos/sub/b.txt": b"two"}
    assert (await visitor.get("a.txt", "zip")).status == 404
    adding = await visit(server, await owner.link(kind="add"))
    for action in ("zip", "thumbnail"):
        assert (await adding.get("", action)).status == 404
    assert "/zip/" not in adding.page.text


async def test_a_document_is_shown_and_nothing_beside_it(server: Server, owner: Owner) -> None:
    visitor = await visit(server, await owner.link(FOLDER + "a.txt"))
    assert "one" in visitor.page.text
    assert (await visitor.get("", "raw")).text == "one"
    for rest in ("sub/b.txt", "x", ".acl", ".meta", "../secret.txt", "%2e%2e/secret.txt"):
        assert (await visitor.get(rest, "raw")).status in (400, 403, 404)


async def test_what_is_elsewhere_or_has_other_rules_is_not_shown(
    server: Server, owner: Owner
) -> None:
    await server.alice.put(FOLDER + "closed.txt", "closed", "text/plain")
    await server.put_acl(FOLDER + "closed.txt")
    visitor = await visit(server, await owner.link())
    for rest in ("closed.txt", ".acl", "closed.txt.acl", "no.txt", "no/"):
        for action in ("view", "raw"):
            page = await visitor.get(rest, action)
            assert page.status in (403, 404), rest
            assert "closed</" not in page.text
    with_path = visitor.at("view", "").removesuffix("/") + "//alice/secret.txt"
    assert (await visitor.browser.get(with_path)).status == 400


async def test_no_page_names_the_link_or_leads_elsewhere(server: Server, owner: Owner) -> None:
    visitor = await visit(server, await owner.link(kind="edit", name="printer of Alice"))
    token = csrf_token_of_form(visitor.page)
    pages = [
        await visitor.get("", "nothing"),
        await visitor.get("sub", "raw"),
        await visitor.get("sub", "view"),
        await visitor.upload(("n.txt", b"n"), action="nothing", token=token),
        await visitor.upload(("n.txt", b"n"), token="0" * 32),
        await visitor.browser.post(visitor.at("save", "a.txt"), {"csrf_token": "0" * 32}),
    ]
    assert [each.status for each in pages] == [404, 404, 404, 404, 403, 403]
    for each in pages:
        assert "printer of Alice" not in each.text
        assert "/.links/at/" in each.path


async def test_a_visitor_does_not_learn_the_quota(start: Start, clock: FakeClock) -> None:
    server = await start(clock=clock, quota_bytes=500_000)
    for name in ("a.txt", "b.txt"):
        await server.alice.put(FOLDER + name, "x" * 100_000, "text/plain")
    owner = Owner(await sign_in_by_token(server, server.alice))
    visitor = await visit(server, await owner.link(kind="edit"))
    token = csrf_token_of_form(visitor.page)
    big = ("n.txt", b"n" * 400_000)
    for action, rest in (("add", ""), ("replace", "a.txt")):
        page = await visitor.upload(big, action=action, rest=rest, token=token)
        assert "There is no room left" in page.text
        for text in ("quota", "500", " of its"):
            assert text not in page.text.partition("</head>")[2], action


async def test_a_visitor_is_nobody_who_is_signed_in(server: Server, owner: Owner) -> None:
    await server.put_acl(FOLDER + "a.txt", ("acl:agentClass acl:AuthenticatedAgent", "Read"))
    assert (await server.bob.get(FOLDER + "a.txt")).status == 200
    visitor = await visit(server, await owner.link())
    for action in ("view", "raw"):
        assert (await visitor.get("a.txt", action)).status == 403
    await server.put_acl(FOLDER + "a.txt", ("acl:agentClass foaf:Agent", "Read"))
    assert (await visitor.get("a.txt", "raw")).text == "one"


async def test_a_link_to_view_changes_nothing(server: Server, owner: Owner) -> None:
    visitor = await visit(server, await owner.link())
    assert 'type="file"' not in visitor.page.text
    token = csrf_token_of_any(visitor.page.text)
    page = await visitor.upload(("new.txt", b"new"), token=token)
    assert "new.txt" not in (await server.alice.get(FOLDER)).text
    assert page.status in (200, 403)
    for action in ("save", "replace"):
        page = await visitor.upload(("a.txt", b"x"), action=action, rest="a.txt", token=token)
        assert page.status == 404
    assert (await server.alice.get(FOLDER + "a.txt")).text == "one"


def csrf_token_of_any(text: str) -> str:
    found = re.search(r'data-csrf-token="([0-9a-f]+)"', text)
    assert found is not None
    return found[1]


async def test_a_link_to_edit_adds_replaces_and_edits(server: Server, owner: Owner) -> None:
    visitor = await visit(server, await owner.link(kind="edit"))
    page = await visitor.upload(("new.txt", b"new"), ("ü b.txt", b"other"))
    assert page.status == 200
    assert (await server.alice.get(FOLDER + "new.txt")).text == "new"
    assert (await server.alice.get(FOLDER + "%C3%BC%20b.txt")).text == "other"
    editor = await visitor.get("a.txt?view=edit")
    saved = await visitor.browser.send(editor, visitor.at("save", "a.txt"), text="changed")
    assert (saved.status, saved.path) == (200, visitor.at("view", "a.txt"))
    assert (await server.alice.get(FOLDER + "a.txt")).text == "changed"
    # Somebody else was faster: nothing is lost, and the second attempt replaces it.
    outdated = await visitor.browser.send(editor, visitor.at("save", "a.txt"), text="mine")
    assert outdated.status == 409
    assert "mine" in outdated.text
    again = await visitor.browser.send(outdated, visitor.at("save", "a.txt"))
    assert again.status == 200
    assert (await server.alice.get(FOLDER + "a.txt")).text == "mine"
    token = csrf_token_of_form(await visitor.get("a.txt"))
    await visitor.upload(("z.txt", b"file"), action="replace", rest="a.txt", token=token)
    assert (await server.alice.get(FOLDER + "a.txt")).text == "file"


async def test_wrong_rdf_is_not_saved_and_the_line_is_told(server: Server, owner: Owner) -> None:
    path = FOLDER + "data.ttl"
    await server.alice.put(path, "<#a> <#b> <#c>.", "text/turtle")
    visitor = await visit(server, await owner.link(path, "edit"))
    editor = await visitor.get("?view=edit")
    answer = await visitor.browser.send(editor, visitor.at("save"), text="<#a> <#b>")
    assert answer.status == 422
    assert "&lt;#a&gt; &lt;#b&gt;" in answer.text


async def test_a_drop_takes_files_and_tells_nothing(server: Server, owner: Owner) -> None:
    visitor = await visit(server, await owner.link(kind="add"))
    assert "a.txt" not in visitor.page.text
    page = await visitor.upload(("a.txt", b"mine"), ("c.txt", b"third"))
    assert page.text.count("Uploaded") == 2
    assert (await server.alice.get(FOLDER + "a.txt")).text == "one"
    listing = (await server.alice.get(FOLDER)).text
    added = re.search(r"[0-9a-f-]{36}-a\.txt", listing)
    assert added is not None
    assert added[0] not in page.text
    assert (await server.alice.get(FOLDER + added[0])).text == "mine"
    for rest in ("a.txt", "c.txt", added[0], "sub/", "sub/b.txt"):
        for action in ("view", "raw"):
            assert (await visitor.get(rest, action)).status == 404
    assert (await visitor.get("", "raw")).status == 404
    assert (await visitor.upload(("d.txt", b""), rest="sub/")).status == 404


async def test_names_of_the_server_are_refused(server: Server, owner: Owner) -> None:
    visitor = await visit(server, await owner.link(kind="add"))
    for name in (".acl", "c.txt.acl", ".meta"):
        page = await visitor.upload((name, b"<#a> <#b> <#c>."))
        assert "Uploaded" not in page.text
    acl = (await server.alice.get(FOLDER + ".acl")).text
    assert "#c" not in acl


async def test_the_address_with_the_secret_leads_to_one_without(
    server: Server, owner: Owner
) -> None:
    url = await owner.link()
    secret = url.rpartition("/")[2]
    assert re.fullmatch("[0-9a-f]{64}", secret)
    answer = await Browser(server.application).ask("GET", url)
    location = answer.header("location")
    assert answer.status == 303
    assert location is not None
    assert secret not in location
    [cookie] = answer.header_lines("set-cookie")
    assert secret not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert f"Path={location.rpartition('view')[0]}" in cookie
    for each in (answer, (await visit(server, url)).page.answer):
        assert each.header("referrer-policy") == "no-referrer"
        assert each.header("cache-control") == "no-store"
    assert secret not in (await visit(server, url)).page.text
    assert (
        "<script"
        not in (await visit(server, url)).page.text.replace("pods.js", "").split("</head>")[1]
    )


async def test_the_secret_is_not_stored(server: Server, owner: Owner, settings: Settings) -> None:
    secret = (await owner.link(kind="edit", password="long enough")).rpartition("/")[2]
    acl = (await server.alice.get(FOLDER + ".acl")).text
    [link_id] = await owner.ids()
    assert f"/.links/{link_id}#it" in acl
    for text in (acl, (await owner.browser.get(SHARE + FOLDER)).text):
        assert secret not in text
    await visit(server, f"http://localhost:3000/.links/open/{secret}")
    stored = [each for each in settings.root.rglob("*") if each.is_file()]
    assert stored
    for each in stored:
        content = each.read_bytes()
        assert secret.encode() not in content, each
        assert b"long enough" not in content, each


async def test_a_password_is_asked_for(server: Server, owner: Owner) -> None:
    url = await owner.link(password="open sesame")
    visitor = await visit(server, url)
    assert "a.txt" not in visitor.page.text
    wrong = await visitor.browser.send(visitor.page, visitor.at("open"), password="sesame open")
    assert wrong.status == 403
    assert "This is not the password" in wrong.text
    assert (await visitor.get("a.txt", "raw")).text.find("one") < 0
    right = await visitor.browser.send(wrong, visitor.at("open"), password="open sesame")
    assert "a.txt" in right.text


async def test_guesses_are_limited_for_each_link_and_address(server: Server, owner: Owner) -> None:
    url = await owner.link(password="open sesame")
    stranger = await visit(server, url, peer="198.51.100.1")
    answers = [
        (await stranger.browser.send(stranger.page, stranger.at("open"), password="x")).status
        for _ in range(11)
    ]
    assert answers == [403] * 10 + [429]
    other = await visit(server, url, peer="203.0.113.9")
    page = await other.browser.send(other.page, other.at("open"), password="open sesame")
    assert "a.txt" in page.text


async def test_the_eleventh_guess_is_not_compared_even_if_all_are_sent_at_once(
    server: Server, owner: Owner
) -> None:
    url = await owner.link(password="open sesame")
    visitors = [await visit(server, url, peer="198.51.100.1") for _ in range(20)]
    guesses = ["x"] * 19 + ["open sesame"]
    pages = await asyncio.gather(
        *(
            each.browser.send(each.page, each.at("open"), password=guess)
            for each, guess in zip(visitors, guesses, strict=True)
        )
    )
    assert sorted(each.status for each in pages) == [403] * 10 + [429] * 10
    assert pages[-1].status == 429


async def test_a_number_of_uses(server: Server, owner: Owner) -> None:
    url = await owner.link(uses="2")
    for _ in range(3):  # what a messenger does to show a preview uses nothing up
        preview = await visit(server, url)
        assert "a.txt" not in preview.page.text
    for expected in (True, True, False):
        visitor = await visit(server, url)
        page = await visitor.browser.send(visitor.page, visitor.at("open"))
        assert ("a.txt" in page.text) is expected
    assert "Opened 2 of 2 times" in (await owner.browser.get(SHARE + FOLDER)).text


async def test_uses_are_counted_exactly(server: Server, owner: Owner) -> None:
    url = await owner.link(uses="3")
    visitors = [await visit(server, url, peer=f"192.0.2.{number}") for number in range(8)]
    pages = await asyncio.gather(
        *(each.browser.send(each.page, each.at("open")) for each in visitors)
    )
    opened = sum("a.txt" in each.text for each in pages)
    assert opened <= 3  # some may have been told to try again
    assert f"Opened {opened} of 3 times" in (await owner.browser.get(SHARE + FOLDER)).text


async def test_the_list_says_how_often_and_when(
    server: Server, owner: Owner, clock: FakeClock
) -> None:
    url = await owner.link(name="for the printer", until="2027-02-01")
    page = (await owner.browser.get(SHARE + FOLDER)).text
    assert "for the printer" in page
    assert "Never opened" in page
    assert "until" in page
    await visit(server, url)
    assert "Opened once" in (await owner.browser.get(SHARE + FOLDER)).text
    clock.advance(3600)
    await visit(server, url)
    page = (await owner.browser.get(SHARE + FOLDER)).text
    assert "Opened 2 times" in page
    assert ".links/" not in page.split("Links</h2>")[0]


@pytest.mark.usefixtures("owner")
async def test_links_until_tomorrow_and_until_the_next_friday_are_offered(
    server: Server, clock: FakeClock
) -> None:
    for weekday in range(7):
        owner = Owner(await sign_in_by_token(server, server.alice))
        page = (await owner.browser.get(SHARE + FOLDER)).text
        offered = re.findall(r'name="day" value="([0-9-]+)"', page)
        today = datetime.fromtimestamp(clock.now_ms() / 1000, UTC).date()
        days = [date.fromisoformat(each) - today for each in offered]
        assert days[0] == timedelta(days=1)
        assert (today + days[-1]).strftime("%A") == "Friday"
        assert timedelta(0) < days[-1] <= timedelta(days=7)
        assert len(days) == (1 if today.strftime("%A") == "Thursday" else 2), weekday
        clock.advance(DAY_S)


async def test_the_day_of_the_button_counts(owner: Owner) -> None:
    page = await owner.asks(
        FOLDER, change="create", kind="view", until="2027-03-01", day="2027-01-22"
    )
    assert "until Jan 22, 2027" in page.text


async def test_an_end(server: Server, owner: Owner, clock: FakeClock) -> None:
    url = await owner.link(until="2027-01-16")
    visitor = await visit(server, url)
    assert "a.txt" in visitor.page.text
    clock.advance(2 * DAY_S)
    assert "a.txt" not in (await visit(server, url)).page.text
    assert (await visitor.get()).status == 404
    owner = Owner(await sign_in_by_token(server, server.alice))  # the session has ended, too
    assert "Ended" in (await owner.browser.get(SHARE + FOLDER)).text
    page = await owner.asks(FOLDER, change="create", kind="view", until="2027-01-01")
    assert page.status == 400


async def test_a_visit_ends_by_itself(server: Server, owner: Owner, clock: FakeClock) -> None:
    visitor = await visit(server, await owner.link())
    clock.advance(12 * 3600)
    assert (await visitor.get()).status == 404


@pytest.mark.parametrize("change", ["end", "pause"])
async def test_a_link_that_is_ended_or_paused_opens_nothing(
    server: Server, owner: Owner, change: str
) -> None:
    url = await owner.link(kind="edit")
    visitor = await visit(server, url)
    await owner.changes(change)
    for rest, action in (("", "view"), ("a.txt", "view"), ("a.txt", "raw")):
        assert (await visitor.get(rest, action)).status == 404
    assert (await visitor.upload(("new.txt", b"new"))).status == 404
    assert "new.txt" not in (await server.alice.get(FOLDER)).text
    assert "a.txt" not in (await visit(server, url)).page.text
    acl = (await server.alice.get(FOLDER + ".acl")).text
    assert (".links/" in acl) is (change == "pause")
    if change == "pause":
        await owner.changes("resume")
        assert (await visitor.get()).status == 200


async def test_each_link_ends_by_itself(server: Server, owner: Owner) -> None:
    first = await owner.link()
    await owner.changes("end")
    other = await owner.link(kind="add")
    third = await owner.link(kind="edit")
    links = await owner.ids()
    assert len(links) == 2
    await owner.asks(FOLDER, change="end", link=links[0])
    states = [(await visit(server, each)).page.status for each in (first, other, third)]
    assert sorted(states) == [200, 404, 404]


async def test_removing_the_rule_ends_the_link(server: Server, owner: Owner) -> None:
    visitor = await visit(server, await owner.link())
    await server.put_acl(FOLDER)
    assert (await visitor.get()).status == 404


async def test_only_those_who_have_control_make_and_end_links(server: Server, owner: Owner) -> None:
    await server.put_acl(FOLDER, (f"acl:agent <{server.bob_web_id}>", "+Read +Write"))
    bob = await sign_in_by_token(server, server.bob)
    token = csrf_token_of(await bob.get("/.pages/files/bob/"))
    url = await owner.link()
    [link] = await owner.ids()
    for fields in ({"change": "create", "kind": "view"}, {"change": "end", "link": link}):
        for path in (FOLDER, FOLDER + "a.txt"):
            page = await bob.post(MANAGE + path, {"csrf_token": token, **fields})
            assert page.status == 403
    # Nor by way of a resource of one's own.
    for change in ("end", "pause"):
        page = await bob.post(
            f"{MANAGE}/bob/", {"csrf_token": token, "change": change, "link": link}
        )
        assert page.status == 404
    page = await Browser(server.application).post(MANAGE + FOLDER, {"change": "create"})
    assert page.path.startswith("/.pages/")
    assert page.status in (401, 403)
    assert (await visit(server, url)).page.status == 200


async def test_naming_a_link_in_rules_of_ones_own_gives_no_power_over_it(
    server: Server, owner: Owner
) -> None:
    url = await owner.link(name="printer of Alice", until="2027-02-01", uses="3")
    [link] = await owner.ids()
    other = "/bob/x/"
    await server.bob.put(other + "y.txt", "y", "text/plain")
    await name_link(server.bob, server.bob_web_id, other, link)
    bob = Owner(await sign_in_by_token(server, server.bob))
    page = await bob.browser.get(SHARE + other)
    for text in ("printer of Alice", "until", "Opened", "Never opened", ">View<"):
        assert text not in page.text.split("Links</h2>")[1].split("<details")[0], text
    for change in ("pause", "resume"):
        assert (await bob.asks(other, change=change, link=link)).status == 404
    await owner.changes("pause")
    assert (await bob.asks(other, change="resume", link=link)).status == 404
    assert (await visit(server, url)).page.status == 404
    await owner.changes("resume")
    # What can be removed is the rule.
    assert (await bob.asks(other, change="end", link=link)).status == 200
    assert await bob.ids(other) == []
    assert (await visit(server, url)).page.status == 200
    assert "printer of Alice" in (await owner.browser.get(SHARE + FOLDER)).text


async def test_nor_does_naming_it_elsewhere_in_the_pod(server: Server, owner: Owner) -> None:
    url = await owner.link(kind="edit", name="printer of Alice")
    [link] = await owner.ids()
    other = "/alice/x/"
    await server.alice.put(other + "y.txt", "y", "text/plain")
    await name_link(server.alice, server.alice_web_id, other, link)
    assert "printer of Alice" not in (await owner.browser.get(SHARE + other)).text
    assert (await owner.asks(other, change="pause", link=link)).status == 404
    assert (await owner.asks(other, change="end", link=link)).status == 200
    assert "a.txt" in (await visit(server, url)).page.text


async def name_link(client: Client, web_id: str, resource: str, link: str) -> None:
    """Have the rules of a resource name the agent of a link, beside the owner."""
    rules = (
        (f"acl:agent <{web_id}>", "+Read +Write +Control"),
        (f"acl:agent <http://localhost:3000/.links/{link}#it>", "Read"),
    )
    turtle = acl_turtle(resource, *rules, owner=False)
    assert (await client.put(f"{resource}.acl", turtle, "text/turtle")).status < 300


async def test_a_visit_of_one_link_is_none_of_another(server: Server, owner: Owner) -> None:
    await server.alice.put("/alice/other/x.txt", "x", "text/plain")
    first = await visit(server, await owner.link())
    second = await visit(server, await owner.link("/alice/other/", "edit"))
    [(name, value)] = first.browser.cookies.items()
    forged = Browser(server.application)
    other = next(iter(second.browser.cookies))
    for taken, path in ((name, first.address), (other, second.address)):
        for content in ("", "1", "9" * 12 + ".0.0", value[:-1], "secret." + "0" * 64):
            forged.cookies = {taken: content}
            assert (await forged.get(path)).status == 404
    forged.cookies = {other: value}
    assert (await forged.get(second.address)).status == 404


async def test_forms_need_the_token_and_come_from_this_server(server: Server, owner: Owner) -> None:
    visitor = await visit(server, await owner.link(kind="add"))
    page = await visitor.upload(("n.txt", b"n"), token="0" * 32)
    assert page.status == 403
    answer = await visitor.browser.ask(
        "POST", visitor.at("add"), headers={"Sec-Fetch-Site": "cross-site"}, body=b""
    )
    assert answer.status == 403
    assert "n.txt" not in (await server.alice.get(FOLDER)).text


async def test_a_link_follows_its_resource(server: Server, owner: Owner) -> None:
    visitor = await visit(server, await owner.link())
    moved = {"Destination": "http://localhost:3000/alice/pictures/"}
    answer = await server.alice.request("MOVE", FOLDER, headers=moved)
    assert answer.status == 201
    assert "a.txt" in (await visitor.get()).text
    assert len(await owner.ids("/alice/pictures/")) == 1
    answer = await server.alice.request("DELETE", "/alice/pictures/", headers={"Depth": "infinity"})
    assert answer.status == 204
    assert (await visitor.get()).status == 404
    await server.alice.put("/alice/pictures/a.txt", "again", "text/plain")
    await server.alice.put(FOLDER + "a.txt", "again", "text/plain")
    assert (await visitor.get()).status == 404


async def test_a_link_leads_nowhere_else_whatever_rules_name_it(
    server: Server, owner: Owner
) -> None:
    visitor = await visit(server, await owner.link())
    [link] = await owner.ids()
    for number in range(12):
        other = f"/alice/a{number}/"
        await server.alice.put(other + "bait.txt", "bait", "text/plain")
        await name_link(server.alice, server.alice_web_id, other, link)
    assert "a.txt" in (await visitor.get()).text
    for source, destination in ((FOLDER, "/alice/z/"), ("/alice/z/", "/alice/a0/z/")):
        moved = {"Destination": f"http://localhost:3000{destination}"}
        assert (await server.alice.request("MOVE", source, headers=moved)).status == 201
        page = (await visitor.get()).text
        assert "a.txt" in page
        assert "bait" not in page
    await server.put_acl("/alice/a0/z/")
    assert (await visitor.get()).status == 404


async def test_the_link_of_a_document_and_those_below_a_folder_are_moved(
    server: Server, owner: Owner
) -> None:
    first = await visit(server, await owner.link(FOLDER + "a.txt"))
    second = await visit(server, await owner.link(FOLDER + "sub/b.txt"))
    for source, destination in (
        (FOLDER + "a.txt", FOLDER + "c.txt"),
        (FOLDER + "sub/", FOLDER + "below/"),
        (FOLDER, "/alice/pictures/"),
    ):
        moved = {"Destination": f"http://localhost:3000{destination}"}
        assert (await server.alice.request("MOVE", source, headers=moved)).status == 201
    assert (await first.get("", "raw")).text == "one"
    assert (await second.get("", "raw")).text == "two"


async def test_a_copy_is_not_shared(server: Server, owner: Owner) -> None:
    visitor = await visit(server, await owner.link())
    headers = {"Destination": "http://localhost:3000/alice/a-copy/"}
    assert (await server.alice.request("COPY", FOLDER, headers=headers)).status == 201
    await server.alice.put("/alice/a-copy/new.txt", "new", "text/plain")
    page = await visitor.get()
    assert "a.txt" in page.text
    assert "new.txt" not in page.text


async def test_the_rule_gives_the_agent_nothing_elsewhere(server: Server, owner: Owner) -> None:
    visitor = await visit(server, await owner.link())
    [link] = await owner.ids()
    agent = f"acl:agent <http://localhost:3000/.links/{link}#it>"
    rules = ((agent, "+Read +Write"), ("acl:agentClass acl:AuthenticatedAgent", "+Read +Write"))
    await server.put_acl(FOLDER + "a.txt", *rules)
    token = csrf_token_of_any(visitor.page.text)
    page = await visitor.upload(("z", b"z"), action="replace", rest="a.txt", token=token)
    assert page.status == 404
    page = await visitor.upload(("z", b"z"), rest="", token=token)
    assert "Uploaded" not in page.text


async def test_the_longest_end(start: Start, clock: FakeClock) -> None:
    server = await start(clock=clock, sharing_link_max_days=7)
    await server.alice.put(FOLDER + "a.txt", "one", "text/plain")
    owner = Owner(await sign_in_by_token(server, server.alice))
    page = (await owner.browser.get(SHARE + FOLDER)).text
    assert "end after 7 days" in page
    url = await owner.link(until="2030-01-01")
    clock.advance(6 * DAY_S)
    assert "a.txt" in (await visit(server, url)).page.text
    clock.advance(DAY_S + 1)
    assert "a.txt" not in (await visit(server, url)).page.text


async def test_an_operator_forbids_links(start: Start, clock: FakeClock) -> None:
    server = await start(clock=clock, sharing_links=False)
    browser = await sign_in_by_token(server, server.alice)
    page = await browser.get(SHARE + "/alice/")
    assert "sharing-links" not in page.text
    for path in ("/.links/open/" + "0" * 64, f"/.links/at/{'0' * 32}/view/"):
        assert (await server.public.get(path)).status == 404
    fields = {"csrf_token": csrf_token_of(page), "change": "create", "kind": "view"}
    assert (await browser.post(MANAGE + "/alice/", fields)).status == 404
    assert ".links" not in (await server.alice.get("/alice/.acl")).text


async def test_a_pod_has_a_limited_number_of_links(start: Start) -> None:
    server = await start(sharing_links_per_pod=2)
    assert (await server.alice.put(FOLDER + "a.txt", "one", "text/plain")).status == 201
    owner = Owner(await sign_in_by_token(server, server.alice))
    await owner.link()
    await owner.link()
    page = await owner.asks(FOLDER, change="create", kind="view")
    assert page.status == 409
    await server.put_acl(FOLDER)  # both open nothing any more
    await owner.link()
    assert len(await owner.ids()) == 1


BY_ME = "/.pages/shared?view=by-me"


async def test_a_link_is_listed_with_what_is_shared_and_paused_and_ended_there(
    server: Server, owner: Owner
) -> None:
    visitor = await visit(server, await owner.link(kind="edit", name="for the printer"))
    await visitor.upload(("new.txt", b"new"))
    page = await owner.browser.get(BY_ME)
    for shown in ("for the printer", "View and edit", "Opened once", "Last:"):
        assert shown in page.text, shown
    assert "/.links/" not in page.text
    for change, shown in (("pause", "Paused"), ("resume", "Pause"), ("end", "has ended")):
        page = await owner.browser.send(page, MANAGE + FOLDER, change=change)
        assert page.url.endswith(BY_ME)
        assert shown in page.text
        assert (await visitor.get()).status == (200 if change == "resume" else 404)
    assert "for the printer" not in page.text


async def test_activity_names_a_link_also_after_it_has_ended(server: Server, owner: Owner) -> None:
    visitor = await visit(server, await owner.link(kind="edit", name="for the printer"))
    await visitor.upload(("new.txt", b"new"))
    for _ in range(2):
        for path in ("/.pages/activity", "/.pages/"):
            page = await owner.browser.get(path)
            assert "The link “for the printer”" in page.text
        await owner.changes("end") if await owner.ids() else None
    other = await sign_in_by_token(server, server.bob)
    assert "for the printer" not in (await other.get("/.pages/activity")).text


async def test_the_names_of_ended_links_are_limited(
    server: Server, owner: Owner, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podstead.features.links.sharing_links.KEPT_NAMES", 2)
    for name in ("first", "second", "third"):
        visitor = await visit(server, await owner.link(kind="edit", name=name))
        await visitor.upload((f"{name}.txt", b"new"))
        await owner.changes("end")
        clock.advance(1)
    page = (await owner.browser.get("/.pages/activity")).text
    assert "“first”" not in page
    assert "“second”" in page
    assert "“third”" in page


async def test_the_end_of_a_link_and_one_that_nobody_opens_are_announced(
    start: Start, clock: FakeClock
) -> None:
    server = await start(clock=clock, token_lifetime_s=400 * DAY_S)
    assert (await server.alice.put(FOLDER + "a.txt", "one", "text/plain")).status == 201
    owner = Owner(await sign_in_by_token(server, server.alice))
    await owner.link(name="short", until="2027-01-17")
    await owner.link(name="ends", until="2027-02-20")
    await owner.link(FOLDER + "a.txt", name="forgotten")
    page = (await owner.browser.get("/.pages/requests")).text
    assert "ends: ends on" not in page
    assert "short: ends on" not in page, "they have just said so"
    clock.advance(35 * DAY_S)
    browser = await sign_in_by_token(server, server.alice)
    assert "ends: ends on" in (await browser.get("/.pages/requests")).text
    clock.advance(331 * DAY_S)
    browser = await sign_in_by_token(server, server.alice)
    page = (await browser.get("/.pages/requests")).text
    assert "forgotten: not used since" in page
    assert "ends: ended" not in page


async def test_a_link_is_not_suggested_as_somebody_to_share_with(
    server: Server, owner: Owner
) -> None:
    await owner.link()
    [link] = await owner.ids()
    assert link in (await server.alice.get(FOLDER + ".acl")).text
    groups = "/.pages/groups"
    group = await owner.browser.send(await owner.browser.get(groups), groups, name="Family")
    assert "Family" in group.text
    for address in (group.path, f"{SHARE}{FOLDER}a.txt"):
        offered = re.findall(r"<option [^>]*>", (await owner.browser.get(address)).text)
        assert not [each for each in offered if link in each]

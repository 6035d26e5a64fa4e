"""Changing what an application may do: its page, pausing it, and the question of a refusal."""

from __future__ import annotations

import json
import re
from html import unescape

from podstead.core.identity import IDENTITY_SCOPE
from tests.features.access_limits.conftest import TYPE
from tests.support.application import BASE, Server
from tests.support.browser import Browser, Page
from tests.support.clock import FakeClock
from tests.support.idp_pages import App, register, sign_in

DOC = "/alice/photos/a.ttl"


async def let_in(server: Server, browser: Browser, app: App, **chosen: str) -> str:
    """The access token of an application that was let in with a choice."""
    assert (await server.alice.put(DOC, "<> a <#x>.", "text/turtle")).status in {201, 204}
    await sign_in(browser)
    page = await browser.get(app.request(prompt="consent"))
    tokens = await app.tokens(await browser.send(page, f"{page.path}/confirm", **chosen))
    token: str = tokens["access_token"]
    return token


async def page_of(browser: Browser) -> Page:
    """The page of the only application, by its link under "Apps"."""
    apps = await browser.get("/.pages/apps")
    (address,) = re.findall(r'href="(/\.pages/apps/limits/[0-9a-f]{64})"', apps.text)
    return await browser.get(address)


async def read(server: Server, token: str) -> int:
    return (await server.public.with_token(token).get(DOC)).status


async def test_an_application_is_narrowed_paused_and_resumed(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    token = await let_in(pages_server, browser, notes)
    assert "Acts as you" in (await browser.get("/.pages/apps")).text
    for sent, status in (
        ({"access": "less", "another": f"{BASE}/alice/notes/", "read": "yes"}, 403),
        ({"access": "less", "another": DOC, "read": "yes"}, 200),
        ({"do": "pause"}, 403),
        ({"do": "resume"}, 200),
        ({"access": "all"}, 200),
    ):
        page = await page_of(browser)
        page = await browser.send(page, page.path, **sent)
        assert page.status == 200, page.text
        assert await read(pages_server, token) == status, sent
        shown = (await browser.get("/.pages/apps")).text
        assert ("Acts as you" in shown) == (sent == {"access": "all"})


async def test_each_registration_keeps_its_own_limit_when_all_are_paused(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    """Those of one application are one entry under "Apps"."""
    wide = await let_in(pages_server, browser, notes)
    narrow = await let_in(
        pages_server, Browser(pages_server.application), await register(pages_server),
        access="less", another="/alice/notes/", read="yes",
    )  # fmt: skip
    for sent, expected in (
        ({"do": "pause"}, (403, 403)),
        ({"do": "resume"}, (200, 403)),
        ({"do": "widen", "path": DOC, "mode": "read"}, (200, 200)),
    ):
        page = await page_of(browser)
        await browser.send(page, page.path, **sent)
        assert (await read(pages_server, wide), await read(pages_server, narrow)) == expected


async def test_a_refusal_leads_to_its_question(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    token = await let_in(
        pages_server, browser, notes, access="less", another="/alice/notes/", read="yes"
    )
    refused = await pages_server.public.with_token(token).get(DOC)
    assert refused.status == 403
    (challenge,) = refused.header_lines("www-authenticate")
    (address,) = re.findall(r'error_uri="([^"]+)"', challenge)
    page = await browser.get(address)
    assert f"<code>{DOC}</code>" in page.text
    assert "Pause" not in page.text, "just this question"
    await browser.send(page, page.path, do="widen")
    assert await read(pages_server, token) == 200
    changed = await pages_server.public.with_token(token).put(DOC, "<> a <#y>.", "text/turtle")
    assert changed.status == 403


async def test_a_question_says_what_else_the_answer_allows(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    await let_in(pages_server, browser, notes, access="less", another=DOC, read="yes")
    address = (await page_of(browser)).url
    of_folder = "Everything in this folder is included"
    of_rules = "It may then change and delete this as well"
    for path, mode, said in (
        (DOC, "read", (False, False)),
        ("/alice/photos/", "read", (True, False)),
        ("/alice/photos/", "control", (True, True)),
        (DOC, "control", (False, True)),
    ):
        page = await browser.get(f"{address}?path={path}&mode={mode}")
        assert (of_folder in page.text, of_rules in page.text) == said


async def test_a_limit_that_is_saved_as_shown_does_not_become_wider(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    asked = json.dumps(
        [
            {
                "type": TYPE,
                "locations": ["photos/"],
                "actions": ["read", "edit"],
                "shared": ["read"],
                "until": "2027-01-20T12:00:00Z",
            }
        ]
    )
    await sign_in(browser)
    page = await browser.get(notes.request(authorization_details=asked))
    page = await browser.send(page, f"{page.path}/confirm", access="asked")
    before = (await notes.tokens(page))["authorization_details"]
    page = await page_of(browser)
    assert 'value="2027-01-20"' in page.text
    assert '<option value="date" selected>' in page.text
    await browser.send(page, page.path, until="date")
    page = await browser.get(notes.request(authorization_details=asked))
    after = (await notes.tokens(page))["authorization_details"]
    assert [each["until"] for each in after] == [each["until"] for each in before]
    assert [each["shared"] for each in after if "shared" in each] == [["read"]]


async def test_the_end_of_a_day_remains_the_end_of_that_day(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    await let_in(pages_server, browser, notes, until="date", until_date="2027-01-20")
    page = await page_of(browser)
    assert "Until Jan 20, 2027" in page.text
    assert 'value="2027-01-20"' in page.text
    await browser.send(page, page.path, until="date")
    assert 'value="2027-01-20"' in (await page_of(browser)).text


async def test_the_page_is_of_its_person_alone(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    await let_in(pages_server, browser, notes, access="less", another=DOC, read="yes")
    page = await page_of(browser)
    other = Browser(pages_server.application)
    assert "/.pages/apps/limits" not in (await other.get(page.url)).path
    await sign_in(other, "bob")
    assert (await other.get(page.url)).status == 404
    assert (await other.post(page.url, {"do": "pause"})).status in {403, 404}


async def test_client_credentials_have_a_limit_of_their_own(
    pages_server: Server, browser: Browser
) -> None:
    await sign_in(browser)
    page = await browser.get("/.pages/security?view=programs")
    made = await browser.send(page, "/idp/account/client-credentials", name="backup")
    secrets = [unescape(each) for each in re.findall(r'class="secret"[^>]*>([^<]+)<', made.text)]
    client_id, secret = secrets[:2]
    form = f"grant_type=client_credentials&client_id={client_id}&client_secret={secret}"
    content_type = "application/x-www-form-urlencoded"
    answer = await pages_server.public.post("/idp/token", form, content_type)
    assert answer.status == 200, answer.text
    token = answer.json()["access_token"]
    await pages_server.alice.put(DOC, "<> a <#x>.", "text/turtle")
    assert await read(pages_server, token) == 200
    shown = await browser.get("/.pages/security?view=programs")
    (address,) = re.findall(r'href="(/\.pages/apps/limits/[0-9a-f]{64})"', shown.text)
    page = await browser.get(address)
    await browser.send(page, page.path, access="less", another="/alice/notes/", read="yes")
    assert await read(pages_server, token) == 403
    again = await pages_server.public.post("/idp/token", form, content_type)
    (granted,) = again.json()["authorization_details"]
    assert granted["locations"] == [f"{BASE}/alice/notes/"]
    assert await read(pages_server, again.json()["access_token"]) == 403


async def test_a_token_is_created_with_a_limit_and_seen(
    pages_server: Server, browser: Browser
) -> None:
    await pages_server.alice.put(DOC, "<> a <#x>.", "text/turtle")
    await sign_in(browser)
    page = await browser.get("/.pages/security?view=programs")
    assert 'formaction="/idp/account/tokens?' in page.text
    fields = {**page.form("/idp/account/client-credentials").fields, "read": "yes"}
    chosen = {"access": "less", "place:/alice/photos/": "yes", "until": "week"}
    for name in ("add", "edit"):
        fields.pop(name, None)
    made = await browser.post("/idp/account/tokens", {**fields, **chosen})
    (token,) = re.findall(r'class="secret"[^>]*>([^<]+)<', made.text)
    assert await read(pages_server, token) == 200
    client = pages_server.public.with_token(token)
    assert (await client.get("/alice/private/")).status == 403
    assert (await client.put(DOC, "<> a <#y>.", "text/turtle")).status == 403
    shown = await browser.get("/.pages/security?view=programs")
    assert re.search(r"<code>/alice/photos/</code>\s*: read", shown.text)
    assert "oken of a pod created" in (await browser.get("/.pages/security?view=events")).text
    (address,) = re.findall(r'action="(/idp/account/tokens/[^"?]+)', shown.text)
    await browser.send(shown, address)
    assert await read(pages_server, token) == 401


async def test_each_place_has_actions_of_its_own(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    """And access rules as well; what is saved as shown stays the same."""
    await pages_server.alice.put("/alice/notes/b.ttl", "<> a <#x>.", "text/turtle")
    await pages_server.alice.put("/alice/mail/c.ttl", "<> a <#x>.", "text/turtle")
    token = await let_in(
        pages_server,
        browser,
        notes,
        **{
            "access": "less",
            "place:/alice/photos/": "yes",
            "place:/alice/notes/": "yes",
            "actions:/alice/notes/": "read add edit rules",
            "place:/alice/mail/": "yes",
            "actions:/alice/mail/": "add",
            "read": "yes",
        },
    )
    client = pages_server.public.with_token(token)

    async def reach() -> list[int]:
        found = []
        for path in (DOC, "/alice/notes/b.ttl", "/alice/mail/c.ttl"):
            found.append((await client.get(path)).status)
            found.append((await client.put(path, "<> a <#y>.", "text/turtle")).status)
            found.append((await client.get(f"{path}.acl")).status)
        return found

    expected = [200, 403, 403, 200, 204, 404, 403, 403, 403]
    assert await reach() == expected
    page = await page_of(browser)
    assert "read, add, change and delete, change who has access" in page.text
    chosen = re.findall(
        r'<select name="(actions:[^"]+)"[^>]*>(?:\s*<option (?:(?! selected)[^>])*>[^<]*</option>)*'
        r'\s*<option value="([^"]+)" selected',
        page.text,
    )
    assert len(chosen) == 3, "all of them differ from what is common to all, which is nothing"
    places = {name.replace("actions:", "place:"): "yes" for name, _ in chosen}
    await browser.send(page, page.path, access="less", **places, **dict(chosen))
    assert await reach() == expected


async def test_an_application_asks_for_access_rules_in_one_folder(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    asked = [
        {"type": TYPE, "locations": ["./"], "actions": ["read", "edit"]},
        {
            "type": TYPE,
            "locations": ["photos/"],
            "actions": ["edit"],
            "privileges": ["access_rules"],
        },
    ]
    await pages_server.alice.put(DOC, "<> a <#x>.", "text/turtle")
    await sign_in(browser)
    page = await browser.get(notes.request(authorization_details=json.dumps(asked)))
    tokens = await notes.tokens(await browser.send(page, f"{page.path}/confirm", access="asked"))
    client = pages_server.public.with_token(tokens["access_token"])
    assert (await client.get(f"{DOC}.acl")).status == 404
    assert (await client.get("/alice/.acl")).status == 403
    granted = tokens["authorization_details"]
    assert {
        "type": TYPE,
        "locations": [f"{BASE}/alice/photos/"],
        "actions": ["edit"],
        "privileges": ["access_rules"],
    } in granted


async def test_client_credentials_are_limited_when_they_are_created(
    pages_server: Server, browser: Browser
) -> None:
    await pages_server.alice.put(DOC, "<> a <#x>.", "text/turtle")
    await sign_in(browser)
    page = await browser.get("/.pages/security?view=programs")
    assert f'name="{IDENTITY_SCOPE}"' in page.text
    chosen = {"access": "less", "place:/alice/photos/": "yes", "read": "yes"}
    made = await browser.send(page, "/idp/account/client-credentials", **chosen)
    client_id, secret = re.findall(r'class="secret"[^>]*>([^<]+)<', made.text)[:2]
    form = f"grant_type=client_credentials&client_id={client_id}&client_secret={secret}"
    content_type = "application/x-www-form-urlencoded"
    token = (await pages_server.public.post("/idp/token", form, content_type)).json()
    (granted,) = token["authorization_details"]
    assert granted["locations"] == [f"{BASE}/alice/photos/"]
    assert await read(pages_server, token["access_token"]) == 200
    client = pages_server.public.with_token(token["access_token"])
    assert (await client.get("/alice/private/")).status == 403


async def test_the_list_of_applications_pauses_and_resumes(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    token = await let_in(pages_server, browser, notes)
    for status, shown in ((403, "Paused: it can do nothing now"), (200, "Everything that you can")):
        apps = await browser.get("/.pages/apps")
        form = next(each for each in apps.forms if "/apps/limits/" in each.action)
        value = "pause" if status == 403 else "resume"
        back = await browser.post(form.action, {**form.fields, "do": value})
        assert back.path == "/.pages/apps"
        assert (shown in back.text) == (status == 403)
        assert await read(pages_server, token) == status


async def test_the_end_of_an_application_and_one_that_is_not_used_are_announced(
    pages_server: Server, browser: Browser, notes: App, clock: FakeClock
) -> None:
    token = await let_in(pages_server, browser, notes, access="all", until="day")
    assert await read(pages_server, token) == 200
    assert ": ends on" in (await browser.get("/.pages/requests")).text
    clock.advance(2 * 24 * 3600)
    later = Browser(pages_server.application)
    await sign_in(later)
    assert ": ended on" in (await later.get("/.pages/requests")).text
    clock.advance(300 * 24 * 3600)
    later = Browser(pages_server.application)
    await sign_in(later)
    assert "not used since" not in (await later.get("/.pages/requests")).text
    clock.advance(200 * 24 * 3600)
    later = Browser(pages_server.application)
    await sign_in(later)
    assert "not used since" in (await later.get("/.pages/requests")).text

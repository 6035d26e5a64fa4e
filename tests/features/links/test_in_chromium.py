"""Links in a real browser: without scripts and without an account, on a phone and on a desk."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.support.browser_fixtures import axe, chromium, person, provider
from tests.support.browser_people import PHONE_WIDTH, Window, sign_in, violations
from tests.support.people import Account
from tests.support.server import ServerProcess

pytestmark = pytest.mark.needs("chromium")


def new_link(page: Page, provider: ServerProcess, path: str, kind: str, password: str = "") -> str:
    page.goto(f"{provider.base_url}/.pages/share{path}")
    summary = page.get_by_text("Make a link", exact=True)
    expect(summary).to_have_css("cursor", "pointer")
    summary.click()
    page.get_by_label("Name, such as").fill("for the printer")
    page.get_by_label("What it lets people do").select_option(kind)
    page.locator("#link-until").fill("2100-01-01")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Make the link").click()
    return page.get_by_label("Address").input_value()


def test_a_link_is_made_opened_and_ended_without_scripts(
    chromium: Browser, provider: ServerProcess, person: Account, tmp_path: Path, axe: str
) -> None:
    folder = f"/{person.name}/printer/"
    with person.owner() as client:
        text = {"Content-Type": "text/plain"}
        assert client.request("PUT", f"{folder}a.txt", "the first", text).status == 201
    owner = Window(scripts=False).new_context(chromium)
    visitor = Window(PHONE_WIDTH, scripts=False).new_context(chromium)
    try:
        page = owner.new_page()
        sign_in(page, provider, person)
        url = new_link(page, provider, folder, "edit", password="a long password")
        _visit(visitor, url, tmp_path)
        _is_accessible(chromium, url, axe)
        page.goto(f"{provider.base_url}/.pages/share{folder}")
        expect(page.get_by_text("Opened 2 times")).to_be_visible()
        page.get_by_role("button", name="End the link for the printer").click()
        expect(page.get_by_role("status")).to_have_text("The link has ended.")
        after = visitor.new_page()
        after.goto(url)
        expect(after.get_by_role("heading", name="There is nothing here")).to_be_visible()
    finally:
        owner.close()
        visitor.close()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_one_click_makes_a_link_that_ends_and_copies_it(
    chromium: Browser, provider: ServerProcess, person: Account, scripts: bool
) -> None:
    text, folder = {"Content-Type": "text/plain"}, f"/{person.name}/trip/"
    with person.owner() as client:
        assert client.request("PUT", f"{folder}a.txt", "the first", text).status == 201
    context = Window(scripts=scripts).new_context(chromium)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    try:
        page = context.new_page()
        sign_in(page, provider, person)
        page.goto(f"{provider.base_url}/.pages/share{folder}")
        last_day = page.get_by_label("Anyone with a link can view, until")
        assert last_day.input_value() > ""
        last_day.fill("2100-01-01")
        page.get_by_role("button", name="Copy link", exact=True).click()
        url = page.get_by_label("Address", exact=True).input_value()
        if scripts:
            expect(page.get_by_text("The link is copied.")).to_be_visible()
            assert page.evaluate("navigator.clipboard.readText()") == url
        expect(page.get_by_text("until Jan 1, 2100")).to_be_visible()
        with Window(scripts=False).new_context(chromium) as elsewhere:
            visitor = elsewhere.new_page()
            visitor.goto(url)
            expect(visitor.get_by_role("link", name="a.txt")).to_be_visible()
    finally:
        context.close()


def _open(page: Page, url: str) -> None:
    page.goto(url)
    assert url.rpartition("/")[2] not in page.url
    page.get_by_label("Password of the link").fill("a long password")
    page.get_by_role("button", name="Open").click()


def _visit(context: BrowserContext, url: str, folder: Path) -> None:
    page = context.new_page()
    asked: list[tuple[str, dict[str, str]]] = []
    page.on("request", lambda request: asked.append((request.url, request.headers)))
    _open(page, url)
    (folder / "mine.txt").write_text("from the printer")
    page.get_by_label("Files").set_input_files(folder / "mine.txt")
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_text("mine.txt: Uploaded")).to_be_visible()
    page.get_by_role("link", name="a.txt").click()
    expect(page.get_by_text("the first")).to_be_visible()
    page.get_by_role("link", name="Edit").click()
    page.get_by_role("textbox").fill("the second")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("the second")).to_be_visible()
    assert [each for each in asked if each[1].get("referer")] == []
    secret = url.rpartition("/")[2]
    assert [each for each, _headers in asked if secret in each] == [url]


def _is_accessible(chromium: Browser, url: str, axe: str) -> None:
    with Window(PHONE_WIDTH).new_context(chromium) as context:
        page = context.new_page()
        page.goto(url)
        assert violations(page, axe) == {}
        _open(page, url)
        assert violations(page, axe) == {}
        for path in ("a.txt", "a.txt?view=edit"):
            page.goto(page.url.rpartition("/")[0] + "/" + path)
            assert violations(page, axe) == {}, path

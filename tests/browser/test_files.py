"""The pages about folders and documents in a real browser: rows on scroll, selection, live changes,
editing, without scripts, and for everybody."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.support.browser_people import AT_BOTH_WIDTHS, violations
from tests.support.client import Client, Pod, create_pod
from tests.support.server import ServerProcess, running_server

MANY = 450
DEADLINE_MS = 30_000
PHONE: ViewportSize = {"width": 360, "height": 700}
DESK: ViewportSize = {"width": 1280, "height": 800}
CARD = """
@prefix foaf: <http://xmlns.com/foaf/0.1/>. @prefix vcard: <http://www.w3.org/2006/vcard/ns#>.
<#me> a foaf:Person; foaf:name "Alice"; foaf:img <sea.png>; foaf:knows <#bob>, </bob/#me>;
    foaf:homepage <https://alice.example/>; vcard:hasAddress [ vcard:locality "Ghent" ];
    vcard:note "hello"@en.
<#bob> a foaf:Person; foaf:name "Bob".
"""
MARKDOWN = """# Notes

[one](a.txt) `code`

```python
import os  # x
```

|a|b|
|-|-|
|1|2|
"""

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("files") / "root"
    with running_server(ServerProcess(root, ["--workers", "2"])) as server:
        yield server


@pytest.fixture(scope="module")
def pod(server: ServerProcess) -> Pod:
    pod = create_pod(server)
    picture = io.BytesIO()
    Image.new("RGB", (900, 600), "teal").save(picture, "PNG")
    with pod.owner() as owner:
        for name, content, kind in (
            ("sea.png", picture.getvalue(), "image/png"),
            ("card.ttl", CARD, "text/turtle"),
            ("notes.md", MARKDOWN, "text/markdown"),
            ("table.csv", "a;b\n1;2\n", "text/csv"),
            ("code.py", "import os\n\ndef f(x): return 'y'  # z\n", "text/x-python"),
            ("a.txt", "text", "text/plain"),
            ("thing.bin", b"\x00\x01", "application/octet-stream"),
            ("film.mp4", b"x", "video/mp4"),
        ):
            assert owner.put(f"{pod.root}private/{name}", content, kind).status == 201
        for number in range(MANY):
            answer = owner.put(f"{pod.root}many/file%20{number}.txt", "x")
            assert answer.status == 201
    return pod


@pytest.fixture
def owner(pod: Pod) -> Iterator[Client]:
    with pod.owner() as owner:
        yield owner


def opened(page: Page, pod: Pod, address: str) -> None:
    """Sign in and go to a page."""
    base = pod.server.base_url
    page.goto(f"{base}/.pages/sign-in?next=/.pages/files{pod.root}")
    page.get_by_label("Token").fill(pod.token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"**/.pages/files{pod.root}")
    page.goto(base + address)


def boxes(page: Page) -> int:
    return page.locator("#members input[type=checkbox]").count()


def of_folders(page: Page, pod: Pod, owner: Client) -> Iterator[str]:
    """The pages about folders, one after another."""
    files = f"/.pages/files{pod.root}private/"
    assert owner.put(f"{pod.root}private/empty/", "", "text/turtle").status in {201, 204}
    yield from _each(
        page,
        pod,
        {
            "list": files,
            "grid": f"{files}?view=grid",
            "filtered": f"{files}?filter=nothing",
            "empty": f"{files}empty/",
            "search": "/.pages/search?q=sea",
            "new": f"/.pages/new{pod.root}private/?kind=contact",
        },
    )


def of_linked_data(page: Page, pod: Pod, _owner: Client) -> Iterator[str]:
    """The pages about a document with linked data."""
    card = f"/.pages/files{pod.root}private/card.ttl"
    yield from _each(
        page,
        pod,
        {
            "cards": card,
            "statements": f"{card}?view=statements",
            "graph": f"{card}?view=graph",
            "formats": f"{card}?view=text&format=json-ld",
            "editor": f"{card}?view=edit",
        },
    )
    page.locator("textarea").fill("<#a> <#b> oops .")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("alert").wait_for()
    yield "mistake"


def of_other_documents(page: Page, pod: Pod, owner: Client) -> Iterator[str]:
    """The pages about documents of other types."""
    files = f"/.pages/files{pod.root}private/"
    yield from _each(
        page,
        pod,
        {
            "markdown": f"{files}notes.md",
            "table": f"{files}table.csv",
            "source": f"{files}code.py",
            "text": f"{files}a.txt",
            "picture": f"{files}sea.png",
            "video": f"{files}film.mp4",
            "other": f"{files}thing.bin",
        },
    )
    page.goto(f"{pod.server.base_url}{files}a.txt?view=edit")
    page.locator("textarea").fill("mine")
    owner.put(f"{pod.root}private/a.txt", "theirs")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("alert").wait_for()
    yield "conflict"


def _each(page: Page, pod: Pod, addresses: Mapping[str, str]) -> Iterator[str]:
    for name, address in addresses.items():
        page.goto(pod.server.base_url + address)
        yield name


PAGES = (of_folders, of_linked_data, of_other_documents)
Tour = Callable[[Page, Pod, Client], Iterator[str]]


@pytest.mark.parametrize("pages", PAGES)
def test_axe_finds_nothing_on_the_pages_about_files(
    page: Page, pod: Pod, owner: Client, axe: str, pages: Tour
) -> None:
    opened(page, pod, "/.pages/")
    found = {name: violations(page, axe) for name in pages(page, pod, owner)}
    assert {name: each for name, each in found.items() if each} == {}


@pytest.mark.parametrize("pages", PAGES)
def test_every_page_fits_a_phone_and_breaks_no_policy(
    chromium: Browser, pod: Pod, owner: Client, pages: Tour
) -> None:
    context = chromium.new_context(viewport=PHONE)
    page = context.new_page()
    complaints: list[str] = []
    origins: set[str] = set()
    page.on("console", lambda each: complaints.append(each.text) if "olicy" in each.text else None)
    page.on("pageerror", lambda each: complaints.append(str(each)))
    page.on("request", lambda each: origins.add("/".join(each.url.split("/")[:3])))
    opened(page, pod, "/.pages/")
    for name in pages(page, pod, owner):
        too_wide = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert too_wide <= 0, name
    context.close()
    assert complaints == []
    assert {each for each in origins if each.startswith("http")} == {pod.server.base_url}


@AT_BOTH_WIDTHS
def test_further_rows_come_when_the_list_is_scrolled(page: Page, pod: Pod) -> None:
    opened(page, pod, f"/.pages/files{pod.root}many/")
    assert boxes(page) == 200
    for count in (400, MANY):
        page.locator("#members .more").scroll_into_view_if_needed()
        expect(page.locator("#members input[type=checkbox]")).to_have_count(count)
    assert page.locator("#members .more").count() == 0
    names = page.locator("#members .title").all_text_contents()
    assert names == [f"file {number}.txt" for number in range(MANY)]


@AT_BOTH_WIDTHS
def test_the_filter_works_while_typing(page: Page, pod: Pod) -> None:
    opened(page, pod, f"/.pages/files{pod.root}many/")
    page.keyboard.press("/")
    page.keyboard.type("FILE 44")
    expect(page.locator("#count")).to_have_text("11 items")
    assert boxes(page) == 11
    assert "filter=FILE" in page.url
    expect(page.get_by_label("Filter by name")).to_be_focused()


@AT_BOTH_WIDTHS
def test_a_selection_is_made_with_the_keyboard(page: Page, pod: Pod) -> None:
    opened(page, pod, f"/.pages/files{pod.root}private/")
    bar = page.locator("#selection")
    expect(bar).to_be_hidden()
    page.get_by_label("Select a.txt").focus()
    page.keyboard.press("Space")
    expect(bar).to_be_visible()
    expect(page.locator("#selected")).to_have_text("1 selected")
    expect(bar.get_by_role("button", name="Rename")).to_be_visible()
    page.keyboard.press("Shift+ArrowDown")
    expect(page.locator("#selected")).to_have_text("2 selected")
    expect(bar.get_by_role("button", name="Rename")).to_be_hidden()
    page.keyboard.press("Control+a")
    expect(page.locator("#selected")).to_have_text(f"{boxes(page)} selected")
    page.keyboard.press("Escape")
    expect(bar).to_be_hidden()
    page.get_by_label("Select card.ttl").click()
    page.get_by_label("Select notes.md").click(modifiers=["Shift"])
    expect(page.locator("#selected")).to_have_text("4 selected")
    bar.get_by_role("button", name="Delete").click()
    page.wait_for_url(f"**/.pages/delete{pod.root}private/**")
    expect(page.get_by_text("notes.md").first).to_be_visible()


@AT_BOTH_WIDTHS
def test_what_others_change_appears(page: Page, pod: Pod, owner: Client) -> None:
    with page.expect_event(
        "response", lambda each: "/private/" in each.url and "events" in each.url
    ):
        opened(page, pod, f"/.pages/files{pod.root}private/")
    page.get_by_label("Select a.txt").check()
    row = page.locator('[data-name="arrived.txt"]')
    expect(row).to_have_count(0)
    owner.put(f"{pod.root}private/arrived.txt", "x")
    expect(row).to_have_count(1, timeout=DEADLINE_MS)
    expect(page.get_by_label("Select a.txt")).to_be_checked()
    owner.request("DELETE", f"{pod.root}private/arrived.txt")
    expect(row).to_have_count(0, timeout=DEADLINE_MS)


@AT_BOTH_WIDTHS
def test_a_document_that_others_change_says_so(page: Page, pod: Pod, owner: Client) -> None:
    path = f"{pod.root}private/watched.txt"
    assert owner.put(path, "first").status in (201, 204)  # the other width was here before
    with page.expect_event("response", lambda each: each.url.endswith(f"/.pages/events{path}")):
        opened(page, pod, f"/.pages/files{path}")
    owner.put(path, "second")
    link = page.get_by_role("link", name="Show the new version")
    link.click(timeout=DEADLINE_MS)
    expect(page.get_by_text("second")).to_be_visible()


@AT_BOTH_WIDTHS
def test_the_editor_goes_to_the_mistake(page: Page, pod: Pod) -> None:
    opened(page, pod, f"/.pages/files{pod.root}private/card.ttl?view=edit")
    page.locator("textarea").fill("<#a> <#b> 1 .\n<#a> <#b> oops .")
    page.keyboard.press("Control+s")
    page.get_by_role("alert").wait_for()
    area = "document.activeElement"
    chosen = page.evaluate(f"{area}.value.slice({area}.selectionStart)")
    assert chosen == "oops ."
    page.locator("textarea").fill(CARD)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").first).to_contain_text("card.ttl was saved.")


@AT_BOTH_WIDTHS
def test_a_thumbnail_is_shown(page: Page, pod: Pod) -> None:
    opened(page, pod, f"/.pages/files{pod.root}private/?view=grid")
    picture = page.locator('[data-name="sea.png"] img')
    expect(picture).to_have_js_property("naturalWidth", 320)


def test_a_pdf_and_pictures_are_loaded_through_the_pages(page: Page, pod: Pod) -> None:
    opened(page, pod, f"/.pages/files{pod.root}private/sea.png")
    expect(page.locator(".media img")).to_have_js_property("naturalWidth", 900)


@pytest.mark.parametrize("window", [PHONE, DESK], ids=["phone", "desk"])
def test_everything_works_without_scripts(
    chromium: Browser, pod: Pod, owner: Client, window: ViewportSize
) -> None:
    context = chromium.new_context(java_script_enabled=False, viewport=window)
    page = context.new_page()
    opened(page, pod, f"/.pages/files{pod.root}many/")
    page.get_by_role("link", name="Show more").click()
    page.get_by_role("link", name="Show more").click()
    expect(page.get_by_text("file 449.txt")).to_be_visible()
    page.get_by_label("Filter by name").fill("file 44")
    page.get_by_label("Filter by name").press("Enter")
    expect(page.locator("#count")).to_have_text("11 items")
    page.get_by_label("Select file 44.txt").check()
    expect(page.locator("#selection")).to_be_visible()
    page.goto(f"{pod.server.base_url}/.pages/files{pod.root}private/")
    page.get_by_text("New", exact=True).click()
    page.get_by_role("link", name="Markdown").click()
    name = f"plain{window['width']}"
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Create").click()
    page.locator("textarea").fill("# Written\n\nwithout scripts")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Written")).to_be_visible()
    assert owner.get(f"{pod.root}private/{name}.md").text == "# Written\n\nwithout scripts"
    context.close()

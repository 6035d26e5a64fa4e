"""The pages about folders and documents in a real browser: rows on scroll, selection, live changes,
editing, without scripts, and for everybody."""

from __future__ import annotations

import asyncio
import io
import re
import wave
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from tests.storage.engine_suite.engine import commit, put, write
from tests.support.browser_people import (
    AT_BOTH_WIDTHS,
    IN_EVERY_WINDOW,
    PHONE_WIDTH,
    Window,
    sign_in_by_token,
    violations,
)
from tests.support.client import Client, Pod, create_pod
from tests.support.engine import new_store
from tests.support.server import ServerProcess, server_fixture

MANY = 10_000
MAX_PAGE_BYTES = 150_000
DEADLINE_MS = 30_000
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


server = server_fixture(["--workers", "2"])


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
            ("paper.pdf", b"%PDF-1.4\n", "application/pdf"),
            ("song.wav", _second_of_silence(), "audio/wav"),
        ):
            assert owner.put(f"{pod.root}private/{name}", content, kind).status == 201
    with ThreadPoolExecutor(1) as thread:  # this one has the event loop of Playwright
        thread.submit(asyncio.run, _fill(server, f"{pod.root}many/")).result()
    return pod


def _second_of_silence() -> bytes:
    sound = io.BytesIO()
    with wave.open(sound, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(1)
        written.setframerate(8000)
        written.writeframes(b"\x80" * 8000)
    return sound.getvalue()


async def _fill(server: ServerProcess, container: str) -> None:
    """Put many members into a container, beside the running server."""
    store = new_store(server.root)
    await store.open()
    await commit(store, write(put(container)))
    for first in range(0, MANY, 2500):
        names = (f"{container}file%20{number}.txt" for number in range(first, first + 2500))
        await commit(store, write(*(put(name, b"x") for name in names)))
    await store.close()


@pytest.fixture
def owner(pod: Pod) -> Iterator[Client]:
    with pod.owner() as owner:
        yield owner


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


def of_other_documents(page: Page, pod: Pod, _owner: Client) -> Iterator[str]:
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
    with pod.owner() as other:  # a new connection: the server ends those that are idle
        other.put(f"{pod.root}private/a.txt", "theirs")
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
def test_every_page_is_accessible_fits_and_breaks_no_policy(
    page: Page, pod: Pod, owner: Client, axe: str, pages: Tour
) -> None:
    complaints: list[str] = []
    origins: set[str] = set()
    page.on("console", lambda each: complaints.append(each.text) if "olicy" in each.text else None)
    page.on("pageerror", lambda each: complaints.append(str(each)))
    page.on("request", lambda each: origins.add("/".join(each.url.split("/")[:3])))
    sign_in_by_token(page, pod, "/.pages/")
    found = {name: violations(page, axe) for name in pages(page, pod, owner)}
    assert {name: each for name, each in found.items() if each} == {}
    assert complaints == []
    assert {each for each in origins if each.startswith("http")} == {pod.server.base_url}


@AT_BOTH_WIDTHS
@pytest.mark.parametrize("view", ["", "grid"])
def test_ten_thousand_rows_are_there_to_scroll_and_few_in_the_page(
    page: Page, pod: Pod, view: str
) -> None:
    folder = f"/.pages/files{pod.root}many/" + (f"?view={view}" if view else "")
    with page.expect_response(lambda each: each.url.endswith(folder)) as first:
        sign_in_by_token(page, pod, folder)
    assert len(first.value.body()) < MAX_PAGE_BYTES
    expect(page.locator("#count")).to_have_text("10,000 items")
    expect(page.locator("#members .blank").first).to_be_attached()
    for place, number in ((1, MANY - 1), (0.5, MANY // 2), (0, 0)):
        page.evaluate("at => scrollTo(0, at * document.documentElement.scrollHeight)", place)
        near = [number + each for each in (-12, 0, 12) if 0 <= number + each < MANY]
        for each in near:
            expect(many(page, each)).to_have_count(1)
    numbers = page.evaluate(  # at once, since what is far is being taken out
        """() => [...document.querySelectorAll("#members [data-name]")].map(row => [
        row.ariaPosInSet ?? row.ariaRowIndex - 1,
        row.dataset.name, row.getBoundingClientRect().top])"""
    )
    assert len(numbers) < MANY // 10
    assert [name for _, name, _ in numbers] == [f"file {int(at) - 1}.txt" for at, *_ in numbers]
    assert [top for *_, top in numbers] == sorted(top for *_, top in numbers)


@AT_BOTH_WIDTHS
def test_what_is_selected_far_away_goes_along(page: Page, pod: Pod) -> None:
    sign_in_by_token(page, pod, f"/.pages/files{pod.root}many/")
    expect(page.locator("#members .blank").first).to_be_attached()
    page.get_by_label("Select file 0.txt", exact=True).check()
    many(page, 1).get_by_role("link").focus()
    page.keyboard.press("End")
    expect(many(page, MANY - 1).get_by_role("link")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(many(page, MANY - 2).get_by_role("link")).to_be_focused()
    page.get_by_label(f"Select file {MANY - 3}.txt").check()
    expect(page.locator("#selected")).to_have_text("2 selected")
    expect(many(page, 0)).to_have_count(0)
    page.locator("#selection").get_by_role("button", name="Copy").click()
    page.wait_for_url(f"**/.pages/copy{pod.root}many/")
    for number in (0, MANY - 3):
        expect(page.get_by_text(f"file {number}.txt", exact=True)).to_be_visible()
    page.go_back()
    many(page, MANY - 1).get_by_role("link").focus()
    page.keyboard.press("Home")
    expect(many(page, 0).get_by_role("link")).to_be_focused()


def many(page: Page, number: int) -> Locator:
    return page.locator(f'[data-name="file {number}.txt"]')


@AT_BOTH_WIDTHS
def test_the_filter_works_while_typing(page: Page, pod: Pod) -> None:
    sign_in_by_token(page, pod, f"/.pages/files{pod.root}many/")
    page.keyboard.press("/")
    page.keyboard.type("FILE 444")
    expect(page.locator("#count")).to_have_text("11 items")
    assert boxes(page) == 11
    assert "filter=FILE" in page.url
    expect(page.get_by_label("Filter by name")).to_be_focused()


@AT_BOTH_WIDTHS
def test_a_selection_is_made_with_the_keyboard(page: Page, pod: Pod) -> None:
    sign_in_by_token(page, pod, f"/.pages/files{pod.root}private/")
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
        sign_in_by_token(page, pod, f"/.pages/files{pod.root}private/")
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
        sign_in_by_token(page, pod, f"/.pages/files{path}")
    owner.put(path, "second")
    link = page.get_by_role("link", name="Show the new version")
    link.click(timeout=DEADLINE_MS)
    expect(page.get_by_text("second")).to_be_visible()


@AT_BOTH_WIDTHS
def test_the_editor_goes_to_the_mistake(page: Page, pod: Pod) -> None:
    sign_in_by_token(page, pod, f"/.pages/files{pod.root}private/card.ttl?view=edit")
    page.locator("textarea").fill("<#a> <#b> 1 .\n<#a> <#b> oops .")
    page.keyboard.press("Control+s")
    page.get_by_role("alert").wait_for()
    expect(page.locator("textarea")).to_be_focused()
    chosen = page.locator("textarea").evaluate("area => area.value.slice(area.selectionStart)")
    assert chosen == "oops ."
    page.locator("textarea").fill(CARD)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").first).to_contain_text("card.ttl was saved.")


@AT_BOTH_WIDTHS
def test_a_text_that_cannot_be_saved_without_a_connection_stays(page: Page, pod: Pod) -> None:
    sign_in_by_token(page, pod, f"/.pages/files{pod.root}private/card.ttl?view=edit")
    text = CARD + "# written on a train\n"
    page.locator("textarea").fill(text)
    page.context.set_offline(True)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Your text is still here")
    expect(page.locator("textarea")).to_have_value(text)
    page.context.set_offline(False)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").first).to_contain_text("card.ttl was saved.")


@AT_BOTH_WIDTHS
def test_a_thumbnail_is_shown(page: Page, pod: Pod) -> None:
    sign_in_by_token(page, pod, f"/.pages/files{pod.root}private/?view=grid")
    picture = page.locator('[data-name="sea.png"] img')
    expect(picture).to_have_js_property("naturalWidth", 320)


def test_a_pdf_a_sound_and_pictures_are_loaded_through_the_pages(page: Page, pod: Pod) -> None:
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if "olicy" in said.text else None)
    sign_in_by_token(page, pod, f"/.pages/files{pod.root}private/sea.png")
    expect(page.locator(".media img")).to_have_js_property("naturalWidth", 900)
    files = f"{pod.server.base_url}/.pages/files{pod.root}private/"
    page.goto(f"{files}song.wav")
    expect(page.locator("audio")).to_have_js_property("duration", 1)
    with page.expect_response(
        lambda each: (
            each.url.partition("?")[0].endswith(f"{pod.root}private/paper.pdf")
            and "/.pages/raw/" in each.url
        )
    ) as raw:
        page.goto(f"{files}paper.pdf")
    assert raw.value.status == 200
    assert raw.value.headers["content-type"] == "application/pdf"
    assert complaints == []


@IN_EVERY_WINDOW
def test_a_long_list_is_read_filtered_and_selected_from(
    page: Page, pod: Pod, window: Window
) -> None:
    sign_in_by_token(page, pod, f"/.pages/files{pod.root}many/")
    if not window.scripts:
        page.get_by_role("link", name="Show more").click()
        page.get_by_role("link", name="Show more").click()
        expect(page.get_by_text("file 249.txt")).to_be_visible()
    page.get_by_label("Filter by name").fill("file 444")
    page.get_by_label("Filter by name").press("Enter")
    expect(page.locator("#count")).to_have_text("11 items")
    page.get_by_label("Select file 444.txt").check()
    page.locator("#selection").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("file 444.txt").first).to_be_visible()
    page.goto(f"{pod.server.base_url}/.pages/files{pod.root}private/")
    if window.width == PHONE_WIDTH:
        page.locator("summary", has_text="Sort").click()
        page.get_by_role("list").get_by_role("link", name="Size").click()
    else:
        page.get_by_role("columnheader", name="Size").get_by_role("link").click()
    expect(page.locator("th[aria-sort]:not([aria-sort=none])")).to_contain_text("Size")
    page.get_by_role("link", name="Grid").click()
    expect(page.locator('[data-name="sea.png"] img')).to_be_visible()
    page.get_by_role("link", name="Search in subfolders, too").click()
    page.get_by_label(re.compile("Part of a name|Words in names or contents")).last.fill("sea")
    page.get_by_role("button", name="Search").last.click()
    page.get_by_role("link", name="sea.png").click()
    expect(page.locator(".media img")).to_have_attribute("alt", "sea.png")


@IN_EVERY_WINDOW
def test_documents_of_every_kind_are_created_and_edited(
    page: Page, pod: Pod, window: Window
) -> None:
    folder = f"kinds-{window}"
    sign_in_by_token(page, pod, f"/.pages/files{pod.root}")
    create(page, "Folder", folder)
    files = f"{pod.server.base_url}/.pages/files{pod.root}{folder}/"
    stored = f"{pod.root}{folder}/"
    page.goto(files)
    create(page, "Text", "plain.txt")
    save(page, "first")
    expect(page.get_by_text("first")).to_be_visible()
    page.goto(files)
    create(page, "Markdown", "notes")
    save(page, "# Written\n\nby hand")
    expect(page.get_by_role("heading", name="Written")).to_be_visible()
    with pod.owner() as other:
        assert other.get(f"{stored}notes.md").text == "# Written\n\nby hand"
    page.goto(files)
    create(page, "Contact", "Lena", {"E-mail": "lena@example.org"})
    expect(page.get_by_text("lena@example.org").first).to_be_visible()
    page.goto(files)
    create(page, "Bookmark", "A page", {"Address": "https://page.example/"})
    expect(page.get_by_role("link", name="page.example")).to_be_visible()
    page.goto(files)
    create(page, "New linked-data document", "facts", menu="More actions")
    save(page, "<#a> <#b> oops .")
    expect(page.get_by_role("alert")).to_contain_text("Line 1, column 11")
    save(page, '<#a> <#b> "a value" .')
    expect(page.get_by_text("a value").first).to_be_visible()
    # Somebody else saves first.
    page.goto(f"{files}plain.txt?view=edit")
    with pod.owner() as other:
        other.put(f"{stored}plain.txt", "theirs")
    save(page, "mine")
    expect(page.get_by_role("alert")).to_contain_text("Somebody else has saved")
    expect(page.get_by_text("theirs").first).to_be_visible()
    page.get_by_role("button", name="Save mine over it").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    with pod.owner() as other:
        assert other.get(f"{stored}plain.txt").text == "mine"


def create(
    page: Page,
    kind: str,
    name: str,
    fields: Mapping[str, str] | None = None,
    *,
    menu: str = "New",
) -> None:
    """Create something by a menu of a folder."""
    page.locator(f'summary:has-text("{menu}"), summary[title="{menu}"]').click()
    page.get_by_role("link", name=kind, exact=True).click()
    page.get_by_label("Name", exact=True).fill(name)
    for label, value in (fields or {}).items():
        page.get_by_label(label).fill(value)
    page.get_by_role("button", name="Create").click()
    page.wait_for_url("**/.pages/files/**")


def save(page: Page, text: str) -> None:
    """Save another text in the editor."""
    page.locator("textarea").fill(text)
    page.get_by_role("button", name="Save").click()


@IN_EVERY_WINDOW
def test_every_kind_of_document_is_shown(page: Page, pod: Pod) -> None:
    sign_in_by_token(page, pod, f"/.pages/files{pod.root}private/notes.md")
    expect(page.get_by_role("heading", name="Notes", exact=True)).to_be_visible()
    files = f"{pod.server.base_url}/.pages/files{pod.root}private/"
    page.goto(f"{files}table.csv")
    expect(page.get_by_role("columnheader", name="b")).to_be_visible()
    page.goto(f"{files}code.py")
    expect(page.locator("pre span[class]", has_text="def").first).to_be_visible()
    page.goto(f"{files}film.mp4")
    expect(page.locator("video")).to_have_attribute("controls", "")
    page.goto(f"{files}song.wav")
    expect(page.locator("audio")).to_have_attribute("controls", "")
    page.goto(f"{files}paper.pdf")
    expect(page.get_by_title("paper.pdf")).to_be_visible()
    page.goto(f"{files}card.ttl")
    expect(page.get_by_role("heading", name="Alice")).to_be_visible()
    expect(page.locator(".cards img").first).to_be_visible()
    page.get_by_role("link", name="Statements").click()
    expect(page.get_by_text("Ghent")).to_be_visible()
    page.get_by_role("link", name="Graph").click()
    expect(page.get_by_role("region", name="Graph").locator("svg")).to_be_visible()
    page.get_by_role("link", name="Text", exact=True).click()
    page.get_by_role("navigation", name="Format").get_by_role("link", name="JSON-LD").click()
    expect(page.locator("pre")).to_contain_text('"@id"')

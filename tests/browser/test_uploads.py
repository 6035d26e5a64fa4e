"""Uploads on the pages in a real browser: dropped, pasted and chosen, through connections that
break, and without scripts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.support.breaking_proxy import (
    BreakingProxy,
    ProxiedServer,
    running_behind,
    running_breaking_proxy,
)
from tests.support.browser_people import (
    AT_BOTH_WIDTHS,
    WITHOUT_SCRIPTS,
    sign_in_by_token,
    violations,
)
from tests.support.client import Client, Pod, create_pod
from tests.support.server import run_command

DEADLINE_MS = 60_000
FILES = 50
FILE_BYTES = 120_000
CHOOSE = ".upload-buttons input[multiple]"
WAIT_HERE = "document.addEventListener('uploads-finished', (event) => event.preventDefault())"

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def proxies() -> Iterator[BreakingProxy]:
    with running_breaking_proxy() as proxy:
        yield proxy


@pytest.fixture
def proxy(proxies: BreakingProxy) -> BreakingProxy:
    """The proxy in front of the server, which breaks nothing yet."""
    proxies.breaks = []
    proxies.broken = 0
    proxies.is_down = proxies.stays_down = False
    return proxies


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, proxies: BreakingProxy
) -> Iterator[ProxiedServer]:
    root = tmp_path_factory.mktemp("uploads") / "root"
    with running_behind(proxies, root, "--workers", "2") as server:
        yield server


@pytest.fixture
def pod(server: ProxiedServer, proxy: BreakingProxy) -> Pod:
    return create_pod(server)


@pytest.fixture
def owner(pod: Pod) -> Iterator[Client]:
    with pod.owner() as owner:
        yield owner


def file(name: str, content: bytes, media_type: str = "text/plain") -> FilePayload:
    """A file that is chosen."""
    return {"name": name, "mimeType": media_type, "buffer": content}


def open_upload(page: Page, pod: Pod, *, scripts: bool = True) -> None:
    """Sign in and go to the page for uploading to a folder."""
    sign_in_by_token(page, pod, f"/.pages/upload{pod.root}private/")
    page.get_by_role("heading", name="Upload to").wait_for()
    if scripts:
        page.locator(".upload-buttons:not([hidden])").wait_for(state="attached")


def stored(pod: Pod, name: str) -> bytes | None:
    with pod.owner() as owner:  # a new connection: the server ends those that are idle
        answer = owner.get(f"{pod.root}private/{name}")
    assert answer.status in {200, 404}
    return answer.body if answer.status == 200 else None


def news(page: Page, text: str) -> None:
    """Wait until the page has said something to screen readers."""
    expect(page.locator("[data-uploads] > [aria-live]")).to_contain_text(text, timeout=DEADLINE_MS)


def drop(page: Page, *paths: Path) -> None:
    """Drop files and folders of this machine on the page."""
    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, "x": 200, "y": 200, "data": data})
    session.detach()


@pytest.mark.feature("uploads")
def test_fifty_files_arrive_although_the_connection_breaks(
    page: Page, pod: Pod, owner: Client, proxy: BreakingProxy
) -> None:
    contents = {f"picture {number}.jpg": os.urandom(FILE_BYTES) for number in range(FILES)}
    contents["film.mp4"] = os.urandom(12_000_000)
    open_upload(page, pod)
    page.evaluate(WAIT_HERE)
    proxy.break_after([1_000_000, 3_000_000, 5_000_000, 9_000_000, 12_000_000, 15_000_000])
    page.locator(CHOOSE).set_input_files(
        [file(name, content, "image/jpeg") for name, content in contents.items()]
    )
    news(page, f"Files uploaded: {FILES + 1}")
    assert proxy.broken == 6
    for name, content in contents.items():
        assert stored(pod, name.replace(" ", "%20")) == content
    expect(page.locator(".upload-summary")).to_contain_text(f"Files uploaded: {FILES + 1}")


@pytest.mark.feature("uploads")
def test_the_page_leads_to_the_folder_when_all_is_done(page: Page, pod: Pod) -> None:
    open_upload(page, pod)
    page.locator(CHOOSE).set_input_files([file("a.txt", b"one")])
    page.wait_for_url(f"**/.pages/files{pod.root}private/", timeout=DEADLINE_MS)
    expect(page.get_by_role("link", name="a.txt")).to_be_visible()


@pytest.mark.feature("uploads")
@AT_BOTH_WIDTHS
def test_the_page_of_a_folder_shows_what_arrives(page: Page, pod: Pod, tmp_path: Path) -> None:
    """It stays open, with what was selected and sorted on it."""
    dropped = tmp_path / "dropped.txt"
    dropped.write_text("one")
    open_upload(page, pod)
    page.get_by_role("link", name="Back to the folder").click()
    page.wait_for_url(f"**/.pages/files{pod.root}private/")
    page.locator(".upload-buttons:not([hidden])").wait_for(state="attached")
    page.evaluate("window.isSamePage = true")
    drop(page, dropped)
    news(page, "Files uploaded: 1")
    expect(page.get_by_role("link", name="dropped.txt")).to_be_visible(timeout=DEADLINE_MS)
    assert page.evaluate("window.isSamePage")
    page.get_by_role("button", name="Close").click()
    expect(page.locator(".upload-panel")).to_be_hidden()


@pytest.mark.feature("uploads")
@AT_BOTH_WIDTHS
def test_the_panel_of_an_upload_moves_and_hides_nothing(
    page: Page, pod: Pod, owner: Client
) -> None:
    for number in range(12):
        owner.put(f"{pod.root}private/{number}.txt", "old", "text/plain")
    open_upload(page, pod)
    page.get_by_role("link", name="Back to the folder").click()
    page.wait_for_url(f"**/.pages/files{pod.root}private/")
    page.locator(".upload-buttons:not([hidden])").wait_for(state="attached")
    expect(page.get_by_role("link", name="11.txt")).to_be_visible()
    page.evaluate(
        """() => {
            window.moved = [];
            const panel = () => document.querySelector(".upload-panel");
            const moved = ({node}) => !panel()?.contains(node);
            new PerformanceObserver(list => window.moved.push(
                ...list.getEntries().flatMap(({sources}) => sources.filter(moved)).map(
                    ({node, previousRect, currentRect}) =>
                    `${node.outerHTML ?? node.data} ${previousRect.y} ${currentRect.y}`)
            )).observe({type: "layout-shift"});
        }"""
    )
    # Names that sort behind the others: what is added to the list is not what moves it.
    page.locator(CHOOSE).set_input_files(
        [file(f"z{number}.bin", os.urandom(200_000)) for number in range(3)]
    )
    panel = page.locator(".upload-panel")
    expect(panel).to_be_visible()
    news(page, "Files uploaded: 3")
    expect(page.get_by_role("link", name="z2.bin")).to_be_visible(timeout=DEADLINE_MS)
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.evaluate("window.moved") == []
    above = panel.bounding_box()
    button = page.locator(".add summary").bounding_box()  # on phones at the lower edge
    assert above is not None
    assert button is not None
    ends = [each["y"] + each["height"] for each in (above, button)]
    assert ends[0] <= button["y"] or ends[1] <= above["y"]


@pytest.mark.feature("uploads")
@AT_BOTH_WIDTHS
def test_a_folder_is_dropped_with_everything_in_it(
    page: Page, pod: Pod, owner: Client, tmp_path: Path
) -> None:
    folder = tmp_path / "holiday"
    (folder / "day 1" / "morning").mkdir(parents=True)
    for number in range(120):  # browsers list a hundred at a time
        (folder / "day 1" / f"{number}.txt").write_text(f"day 1, {number}")
    (folder / "day 1/morning/a & b.txt").write_text("deep")
    (folder / "top.txt").write_text("top")
    alone = tmp_path / "alone.txt"
    alone.write_text("alone")
    open_upload(page, pod)
    page.evaluate(WAIT_HERE)
    drop(page, folder, alone)
    news(page, "Files uploaded: 123")
    assert stored(pod, "holiday/day%201/119.txt") == b"day 1, 119"
    assert stored(pod, "holiday/day%201/morning/a%20&%20b.txt") == b"deep"
    assert stored(pod, "holiday/top.txt") == b"top"
    assert stored(pod, "alone.txt") == b"alone"


@pytest.mark.feature("uploads")
@AT_BOTH_WIDTHS
def test_a_picture_is_pasted(page: Page, pod: Pod, owner: Client) -> None:
    open_upload(page, pod)
    page.evaluate(WAIT_HERE)
    page.evaluate(
        """() => {
            const clipboardData = new DataTransfer();
            clipboardData.items.add(new File(["pixels"], "image.png", {type: "image/png"}));
            document.dispatchEvent(new ClipboardEvent("paste", {clipboardData, bubbles: true}));
        }"""
    )
    news(page, "Files uploaded: 1")
    listed = owner.get(f"{pod.root}private/", Accept="text/turtle").text
    assert ".png>" in listed
    assert "image.png" not in listed


@pytest.mark.feature("uploads")
@AT_BOTH_WIDTHS
@pytest.mark.parametrize(
    ("button", "kept", "beside"),
    [("Keep both", b"old", b"new"), ("Replace", b"new", None), ("Skip the file", b"old", None)],
)
def test_names_that_are_taken_are_asked_about_once(
    page: Page, pod: Pod, owner: Client, button: str, kept: bytes, beside: bytes | None
) -> None:
    for number in range(5):
        owner.put(f"{pod.root}private/{number}.txt", "old", "text/plain")
    open_upload(page, pod)
    page.evaluate(WAIT_HERE)
    page.locator(CHOOSE).set_input_files([file(f"{number}.txt", b"new") for number in range(8)])
    dialog = page.get_by_role("dialog", name="The name is taken")
    dialog.get_by_role("button", name=button).click(timeout=DEADLINE_MS)
    news(page, "Files uploaded")
    expect(dialog).to_be_hidden()
    for number in range(8):
        assert stored(pod, f"{number}.txt") == (kept if number < 5 else b"new")
        assert stored(pod, f"{number}%20(2).txt") == (beside if number < 5 else None)


@pytest.mark.feature("uploads")
def test_an_upload_goes_on_after_the_page_was_reloaded(
    page: Page, pod: Pod, owner: Client, proxy: BreakingProxy, tmp_path: Path
) -> None:
    film = tmp_path / "film.mp4"
    film.write_bytes(os.urandom(40_000_000))
    open_upload(page, pod)
    proxy.break_after([25_000_000])
    proxy.stays_down = True
    page.locator(CHOOSE).set_input_files(film)
    expect(page.locator(".upload-status")).to_contain_text("broken", timeout=DEADLINE_MS)
    proxy.is_down = False
    page.on("dialog", lambda dialog: dialog.accept())  # leave although something is under way
    page.reload()
    page.evaluate(WAIT_HERE)
    before = proxy.sent
    page.locator(CHOOSE).set_input_files(film)
    news(page, "Files uploaded: 1")
    assert proxy.sent - before < 25_000_000
    assert stored(pod, "film.mp4") == film.read_bytes()


@pytest.mark.feature("uploads")
@AT_BOTH_WIDTHS
def test_an_upload_can_be_cancelled_and_tried_again(page: Page, pod: Pod, owner: Client) -> None:
    open_upload(page, pod)
    page.evaluate(WAIT_HERE)
    page.locator(CHOOSE).set_input_files(
        [
            file("bad.ttl", b"<a> <", "text/turtle"),
            file("good.txt", b"one"),
        ]
    )
    news(page, "Files: 1; failed: 1")
    row = page.get_by_role("listitem").filter(has_text="bad.ttl")
    expect(row.locator(".upload-status")).not_to_be_empty()
    row.get_by_role("button", name="Try again: bad.ttl").click()
    news(page, "Files: 1; failed: 1")
    # Something that stays under way until it is cancelled.
    page.route("**/.pages/uploads/**", lambda _: None)
    page.locator(CHOOSE).set_input_files([file("film.mp4", os.urandom(1_000_000), "video/mp4")])
    row = page.get_by_role("listitem").filter(has_text="film.mp4")
    row.get_by_role("button", name="Cancel: film.mp4").click()
    expect(row).to_contain_text("Cancelled")
    summary = page.locator(".upload-summary")
    expect(summary).to_contain_text("The upload was cancelled.")
    page.unroute("**/.pages/uploads/**")
    assert stored(pod, "film.mp4") is None


@pytest.mark.feature("uploads")
@AT_BOTH_WIDTHS
def test_an_upload_says_that_there_is_no_connection_and_not_how_long_it_takes(
    page: Page, pod: Pod
) -> None:
    open_upload(page, pod)
    page.evaluate(WAIT_HERE)
    summary = page.locator(".upload-summary")
    page.context.set_offline(True)
    page.locator(CHOOSE).set_input_files([file("late.bin", os.urandom(1_000_000))])
    expect(summary).to_contain_text("No connection")
    expect(summary).not_to_contain_text("left")
    expect(summary).not_to_contain_text("per second")
    page.context.set_offline(False)
    news(page, "Files uploaded: 1")
    expect(summary).to_contain_text("Files uploaded: 1")
    assert len(stored(pod, "late.bin") or b"") == 1_000_000


@pytest.mark.feature("uploads")
def test_what_failed_is_listed_among_many(page: Page, pod: Pod) -> None:
    open_upload(page, pod)
    page.evaluate(WAIT_HERE)
    many = [file(f"{number}.txt", b"x") for number in range(220)]
    page.locator(CHOOSE).set_input_files([*many, file("bad.ttl", b"<a> <", "text/turtle")])
    news(page, "failed: 1")
    expect(page.locator(".upload-list").get_by_text("bad.ttl")).to_be_visible()
    assert page.locator(".upload-list li").count() < 210


@pytest.mark.feature("uploads")
@AT_BOTH_WIDTHS
def test_what_has_no_room_is_said_before_and_after(
    page: Page, pod: Pod, server: ProxiedServer
) -> None:
    set_quota = ("pod", "quota", pod.name, "1000000", "--root", str(server.root))
    assert run_command(*set_quota).returncode == 0
    open_upload(page, pod)
    page.locator(CHOOSE).set_input_files(
        [file("first", b"x" * 750_000), file("second", b"x" * 750_000)]
    )
    expect(page.locator(".upload-room")).to_contain_text("These files need 1.5 MB, and your pod")
    failed = page.locator(".upload-list li[data-state=failed]")
    expect(failed).to_contain_text("There is no room for this", timeout=DEADLINE_MS)
    page.goto(page.url)
    expect(page.locator(".storage-note")).to_be_hidden()
    page.locator(CHOOSE).set_input_files([file("third", b"x" * 160_000)])
    page.wait_for_url("**/.pages/files/**", timeout=DEADLINE_MS)
    expect(page.locator(".storage-note")).to_contain_text("This pod is nearly full")


@pytest.mark.feature("uploads")
def test_a_name_is_never_html(page: Page, pod: Pod, owner: Client) -> None:
    name = "<img src=x onerror=document.title='evil'>.txt"
    segment = "%3Cimg%20src=x%20onerror=document.title='evil'%3E.txt"
    owner.put(f"{pod.root}private/{segment}", "old", "text/plain")
    open_upload(page, pod)
    page.evaluate(WAIT_HERE)
    page.locator(CHOOSE).set_input_files([file(name, b"new")])
    dialog = page.get_by_role("dialog", name="The name is taken")
    expect(dialog).to_contain_text(name)
    dialog.get_by_role("button", name="Keep both").click()
    news(page, "Files uploaded: 1")
    assert page.locator("[data-uploads] img").count() == 0
    assert "evil" not in page.title()
    assert stored(pod, segment.replace(".txt", "%20(2).txt")) == b"new"


@WITHOUT_SCRIPTS
def test_the_form_works_without_scripts(
    page: Page, pod: Pod, owner: Client, tmp_path: Path
) -> None:
    owner.put(f"{pod.root}private/a.txt", "old", "text/plain")
    files = []
    for name, text in [("a.txt", "new"), ("b \N{SNOWMAN}.txt", "other"), ('q".txt', "quote")]:
        files.append(tmp_path / name)
        files[-1].write_text(text)
    open_upload(page, pod, scripts=False)
    page.get_by_label("Files", exact=True).first.set_input_files(files)
    page.get_by_role("button", name="Upload").click()
    page.get_by_role("heading", name="What about the names that are taken?").wait_for()
    page.get_by_role("button", name="Keep both").click()
    expect(page.get_by_role("cell", name="Uploaded as “a (2).txt”")).to_be_visible()
    page.get_by_role("link", name="Back to the folder").click()
    expect(page.get_by_role("link", name="b \N{SNOWMAN}.txt")).to_be_visible()
    assert stored(pod, "a.txt") == b"old"
    assert stored(pod, "a%20(2).txt") == b"new"
    assert stored(pod, "b%20%E2%98%83.txt") == b"other"
    assert stored(pod, "q%22.txt") == b"quote"


def test_axe_finds_nothing_and_the_page_is_not_too_wide(
    page: Page, pod: Pod, owner: Client, axe: str
) -> None:
    owner.put(f"{pod.root}private/a.txt", "old", "text/plain")
    open_upload(page, pod)
    page.evaluate(WAIT_HERE)
    assert not any(violations(page, axe).values())
    page.locator(CHOOSE).set_input_files(
        [
            file("bad.ttl", b"<a> <", "text/turtle"),
            file(f"{'long ' * 30}.txt", b"one"),
            file("a.txt", b"two"),
        ]
    )
    dialog = page.get_by_role("dialog", name="The name is taken")
    dialog.wait_for(timeout=DEADLINE_MS)
    assert not any(violations(page, axe).values())
    dialog.get_by_role("button", name="Skip the file").click()
    news(page, "failed: 1")
    assert not any(violations(page, axe).values())

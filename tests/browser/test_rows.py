"""What is done with one row of the list of files: its menu, its new name, deleting it."""

from __future__ import annotations

import io
import re
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from PIL import ExifTags, Image
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.support.browser_people import (
    AT_BOTH_WIDTHS,
    IN_EVERY_WINDOW,
    PHONE_WIDTH,
    WITHOUT_SCRIPTS,
    Window,
    sign_in_by_token,
    violations,
)
from tests.support.client import Client, Pod, create_pod
from tests.support.server import ServerProcess, server_fixture
from tests.support.waiting import wait_until

pytestmark = pytest.mark.needs("chromium")

MAX_COLD_BYTES = 40_000
MAX_SCRIPT_BYTES = 60_000

server = server_fixture()


@pytest.fixture
def pod(server: ServerProcess) -> Pod:
    return create_pod(server)


@pytest.fixture
def owner(pod: Pod) -> Iterator[Client]:
    with pod.owner() as owner:
        for name in ("a.txt", "b.txt", "c.txt", "inner/d.txt"):
            assert owner.put(f"{pod.root}files/{name}", name).status == 201
        yield owner


@pytest.fixture
def files(page: Page, pod: Pod, owner: Client) -> Page:
    """The page about a folder with three documents and a folder."""
    sign_in(page, pod)
    return page


def sign_in(page: Page, pod: Pod) -> None:
    """Sign in, and go to the folder."""
    sign_in_by_token(page, pod, f"/.pages/files{pod.root}files/")


def row(page: Page, name: str) -> Locator:
    return page.locator(f'[data-name="{name}"]')


def names(page: Page) -> list[str]:
    return page.locator("#members .title").all_text_contents()


@IN_EVERY_WINDOW
def test_the_menu_of_a_row_leads_to_what_can_be_done_with_it(files: Page, pod: Pod) -> None:
    files.get_by_role("button", name="Actions for a.txt").click()
    has_menu = files.locator("#row-menu:popover-open").count() == 1
    role: Literal["menuitem", "link"] = "menuitem" if has_menu else "link"
    main = files.locator("main")
    for item in ("Details", "Download", "Share", "Rename", "Move", "Copy", "Versions", "Delete"):
        expect(main.get_by_role(role, name=item, exact=True)).to_be_visible()
    main.get_by_role(role, name="Move", exact=True).click()
    files.wait_for_url(f"**/.pages/move{pod.root}files/a.txt")


@WITHOUT_SCRIPTS
def test_a_folder_has_its_own_actions_without_scripts(files: Page, pod: Pod) -> None:
    files.get_by_role("button", name="Actions for inner").click()
    main = files.locator("main")
    expect(main.get_by_role("link", name="Versions")).to_have_count(0)
    main.get_by_role("link", name="Open", exact=True).click()
    files.wait_for_url(f"**/.pages/files{pod.root}files/inner/")


@AT_BOTH_WIDTHS
def test_the_menu_is_worked_by_keys(files: Page) -> None:
    link = row(files, "b.txt").get_by_role("link")
    link.focus()
    files.keyboard.press("Shift+F10")
    menu = files.get_by_role("menu")
    expect(menu).to_be_visible()
    expect(files.get_by_role("menuitem", name="Quick look")).to_be_focused()
    files.keyboard.press("ArrowUp")
    expect(files.get_by_role("menuitem", name="Delete")).to_be_focused()
    files.keyboard.press("m")
    expect(files.get_by_role("menuitem", name="Move")).to_be_focused()
    files.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(row(files, "b.txt").get_by_role("button")).to_be_focused()
    row(files, "a.txt").click(button="right")
    expect(menu).to_be_visible()
    files.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(row(files, "a.txt").get_by_role("link")).to_be_focused()
    files.keyboard.press("ArrowDown")
    expect(link).to_be_focused()


@AT_BOTH_WIDTHS
def test_a_row_is_renamed_in_its_place(files: Page, pod: Pod, owner: Client) -> None:
    row(files, "a.txt").get_by_role("link").focus()
    files.keyboard.press("F2")
    field = files.get_by_label("New name")
    expect(field).to_be_focused()
    files.keyboard.type("never")
    files.keyboard.press("Escape")
    expect(field).to_have_count(0)
    expect(row(files, "a.txt").get_by_role("link")).to_be_focused()
    files.keyboard.press("F2")
    files.keyboard.type("zebra")  # the ending is not selected
    files.keyboard.press("Enter")
    expect(row(files, "zebra.txt").get_by_role("link")).to_be_focused()
    expect(files.locator("#said")).to_have_text("It is now called zebra.txt.")
    assert names(files) == ["inner", "b.txt", "c.txt", "zebra.txt"]
    assert owner.get(f"{pod.root}files/zebra.txt").text == "a.txt"
    assert owner.get(f"{pod.root}files/a.txt").status == 404


@AT_BOTH_WIDTHS
def test_a_name_that_is_taken_is_not_taken_again(files: Page, pod: Pod, owner: Client) -> None:
    files.get_by_role("button", name="Actions for a.txt").click()
    files.get_by_role("menuitem", name="Rename").click()
    files.get_by_label("New name").fill("b.txt")
    files.keyboard.press("Enter")
    expect(files.locator("#said")).to_have_text("There is already something with this name.")
    expect(files.get_by_label("New name")).to_be_focused()
    files.keyboard.press("Escape")
    assert owner.get(f"{pod.root}files/b.txt").text == "b.txt"
    assert owner.get(f"{pod.root}files/a.txt").text == "a.txt"


@AT_BOTH_WIDTHS
def test_what_the_delete_key_deletes_comes_back(files: Page, pod: Pod, owner: Client) -> None:
    row(files, "b.txt").get_by_role("link").focus()
    files.keyboard.press("Delete")
    expect(row(files, "b.txt")).to_have_count(0)
    expect(row(files, "c.txt").get_by_role("link")).to_be_focused()
    assert owner.get(f"{pod.root}files/b.txt").status == 404
    files.get_by_role("button", name="Undo").click()
    expect(row(files, "b.txt").get_by_role("link")).to_be_focused()
    assert owner.get(f"{pod.root}files/b.txt").text == "b.txt"


@IN_EVERY_WINDOW
def test_a_star_is_given_by_the_menu(files: Page, pod: Pod) -> None:
    folder = files.url
    button = files.get_by_role("button", name="Actions for b.txt")
    button.click()
    files.locator("main [data-do=star]", has_text="Star").locator("visible=true").click()
    expect(row(files, "b.txt").get_by_label("Starred")).to_be_visible()
    expect(row(files, "a.txt").get_by_label("Starred")).to_have_count(0)
    files.goto(f"{pod.server.base_url}/.pages/")
    files.get_by_role("region", name="Starred").get_by_role("link", name="b.txt").click()
    files.wait_for_url(f"**/.pages/files{pod.root}files/b.txt")
    files.goto(folder)
    button.click()
    files.locator("main [data-do=star]", has_text="Remove star").click()
    expect(row(files, "b.txt")).to_be_visible()
    expect(row(files, "b.txt").get_by_label("Starred")).to_have_count(0)


def test_a_folder_is_deleted_only_after_a_question(files: Page, pod: Pod, owner: Client) -> None:
    row(files, "inner").get_by_role("link").focus()
    files.keyboard.press("Delete")
    files.wait_for_url(f"**/.pages/delete{pod.root}files/inner/")
    assert owner.get(f"{pod.root}files/inner/d.txt").status == 200


@AT_BOTH_WIDTHS
def test_quick_look_shows_one_document_after_the_other(
    files: Page, pod: Pod, owner: Client
) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (900, 600), "teal").save(picture, "PNG")
    for name, content, kind in (
        ("d.png", picture.getvalue(), "image/png"),
        ("e.ttl", '<#a> <http://xmlns.com/foaf/0.1/name> "Ada Lovelace" .', "text/turtle"),
        ("f.pdf", b"%PDF-1.4\n", "application/pdf"),
        ("g.mp4", b"x", "video/mp4"),
    ):
        assert owner.put(f"{pod.root}files/{name}", content, kind).status == 201
    files.reload()
    row(files, "b.txt").get_by_role("link").focus()
    files.keyboard.press("Space")
    look = files.get_by_role("dialog")
    expect(look.get_by_role("heading", name="b.txt")).to_be_focused()
    expect(look.locator("pre")).to_have_text("b.txt")
    files.keyboard.press("ArrowRight")
    expect(look.locator("pre")).to_have_text("c.txt")
    files.keyboard.press("ArrowRight")
    expect(look.get_by_role("img", name="d.png")).to_have_js_property("naturalWidth", 900)
    files.keyboard.press("ArrowRight")
    expect(look.get_by_text("Ada Lovelace").first).to_be_visible()
    look.get_by_role("button", name="Next").click()
    expect(look.locator("iframe")).to_be_visible()
    look.get_by_role("button", name="Next").click()
    expect(look.locator("video")).to_have_attribute("preload", "metadata")
    expect(look.get_by_role("button", name="Next")).to_be_disabled()
    expect(look.get_by_role("button", name="Previous")).to_be_enabled()
    files.keyboard.press("Escape")
    expect(look).to_be_hidden()
    expect(row(files, "g.mp4").get_by_role("link")).to_be_focused()
    row(files, "a.txt").locator(".picture").click()
    expect(look.locator("pre")).to_have_text("a.txt")
    expect(look.get_by_role("button", name="Previous")).to_be_disabled()
    look.get_by_role("button", name="Close").click()
    files.get_by_role("button", name="Actions for c.txt").click()
    files.get_by_role("menuitem", name="Quick look").click()
    expect(look.locator("pre")).to_have_text("c.txt")
    look.get_by_role("link", name="Details").click()
    files.wait_for_url(f"**/.pages/files{pod.root}files/c.txt")


def played(files: Page, pod: Pod, name: str, kind: str, *, in_quick_look: bool) -> Locator:
    """The player of a video or sound, which is asked for by parts."""
    with files.expect_response(lambda each: name in each.url and each.status == 206) as part:
        if in_quick_look:
            files.reload()
            row(files, "c.txt").get_by_role("link").focus()
            files.keyboard.press("Space")
            expect(files.get_by_role("dialog").locator("pre")).to_have_text("c.txt")
            files.keyboard.press("ArrowRight")
        else:
            files.goto(f"{pod.server.base_url}/.pages/files{pod.root}files/{name}")
    assert part.value.request.headers["range"].startswith("bytes=")
    place = files.get_by_role("dialog") if in_quick_look else files.get_by_role("main")
    player = place.locator(kind)
    player.evaluate("async player => { player.muted = true; await player.play(); }")
    wait_until(lambda: player.evaluate("player => player.currentTime") > 0.2, "it plays")
    return player


IN_PAGE_AND_QUICK_LOOK = pytest.mark.parametrize("in_quick_look", [False, True])


@AT_BOTH_WIDTHS
@IN_PAGE_AND_QUICK_LOOK
def test_a_video_plays_and_goes_on_where_it_is_sent(
    files: Page, pod: Pod, owner: Client, *, in_quick_look: bool
) -> None:
    """The file was recorded by Chromium: four seconds in VP8, 64 by 48 pixels."""
    film = Path(__file__).with_name("clip.webm").read_bytes()
    assert owner.put(f"{pod.root}files/d.webm", film, "video/webm").status == 201
    player = played(files, pod, "d.webm", "video", in_quick_look=in_quick_look)
    expect(player).to_have_js_property("videoWidth", 64)
    player.evaluate("player => { player.currentTime = 3; }")
    wait_until(lambda: player.evaluate("player => player.currentTime") > 3.2, "it goes on there")


@AT_BOTH_WIDTHS
@IN_PAGE_AND_QUICK_LOOK
def test_a_sound_plays_by_parts(
    files: Page, pod: Pod, owner: Client, *, in_quick_look: bool
) -> None:
    sound = io.BytesIO()
    with wave.open(sound, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(44_100)
        written.writeframes(b"\0\0" * 44_100 * 60)
    assert owner.put(f"{pod.root}files/d.wav", sound.getvalue(), "audio/wav").status == 201
    player = played(files, pod, "d.wav", "audio", in_quick_look=in_quick_look)
    expect(player).to_have_js_property("duration", 60)
    player.evaluate("player => { player.currentTime = 50; }")  # which has not been loaded
    wait_until(lambda: player.evaluate("player => player.currentTime") > 50.2, "it goes on there")


@IN_EVERY_WINDOW
def test_photos_are_shown_by_the_month_in_which_they_were_taken(
    files: Page, pod: Pod, owner: Client, window: Window
) -> None:
    for name, taken in (
        ("a.jpg", "2019:07:04 12:00:00"),
        ("b.jpg", "2021:02:03 23:59:59"),
        ("c.jpg", "2019:07:05 08:00:00"),
        ("d.jpg", "nonsense"),
    ):
        exif = Image.Exif()
        exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = taken
        photo = io.BytesIO()
        Image.new("RGB", (90, 60), "teal").save(photo, "JPEG", exif=exif)
        stored = owner.put(f"{pod.root}files/{name}", photo.getvalue(), "image/jpeg")
        assert stored.status == 201
    files.get_by_role("group", name="View").get_by_role("link", name="Photos").click()
    files.wait_for_url("**?view=photos")
    expected = ["d.jpg", "February 2021", "b.jpg", "July 2019", "c.jpg", "a.jpg"]

    def is_sorted() -> bool:
        page = files.request.get(files.url).text()
        places = [page.find(f">{each}<") for each in expected]
        return -1 not in places and places == sorted(places)

    wait_until(is_sorted, "the months in which the photos were taken")
    files.reload()
    assert files.locator("#members :is(.month, .title)").all_inner_texts()[1:] == expected
    if window.scripts:
        row(files, "b.jpg").locator(".picture").click()
        look = files.get_by_role("dialog")
        expect(look.get_by_role("img", name="b.jpg")).to_have_js_property("naturalWidth", 90)
        files.keyboard.press("ArrowRight")
        expect(look.get_by_role("img", name="c.jpg")).to_have_js_property("naturalWidth", 90)


def test_a_finger_turns_to_the_next_document(chromium: Browser, pod: Pod, owner: Client) -> None:
    assert owner.get(f"{pod.root}files/a.txt").status == 200
    going = (("touchStart", 300), ("touchMove", 200), ("touchMove", 80), ("touchEnd", None))
    with chromium.new_context(
        viewport={"width": 360, "height": 740}, has_touch=True, service_workers="block"
    ) as context:
        page = context.new_page()
        sign_in(page, pod)
        row(page, "a.txt").locator(".picture").tap()
        look = page.get_by_role("dialog")
        expect(look.locator("pre")).to_have_text("a.txt")
        session = context.new_cdp_session(page)
        for kind, x in going:
            points = [] if x is None else [{"x": x, "y": 400}]
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        expect(look.locator("pre")).to_have_text("b.txt")


def test_a_finger_that_stays_opens_the_menu_and_chooses_nothing(
    chromium: Browser, pod: Pod, owner: Client
) -> None:
    """Wherever it is when it leaves: what opens lies under it."""
    assert owner.get(f"{pod.root}files/a.txt").status == 200
    with chromium.new_context(
        viewport={"width": 360, "height": 740}, has_touch=True, service_workers="block"
    ) as context:
        page = context.new_page()
        sign_in(page, pod)
        session = context.new_cdp_session(page)
        menu = page.get_by_role("menu")
        for name in ("a.txt", "c.txt"):
            place = row(page, name).bounding_box()
            assert place is not None
            points = [{"x": place["x"] + 60, "y": place["y"] + 15}]
            session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": points})
            expect(menu).to_be_visible()
            session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
            expect(menu).to_be_visible()
            expect(row(page, name)).to_be_visible()
            box = menu.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] == pytest.approx(740, abs=1), "at the bottom"
            page.keyboard.press("Escape")
            expect(menu).to_be_hidden()
        row(page, "a.txt").locator(".picture").tap()
        expect(page.get_by_role("dialog")).to_be_visible()
        address = page.url
        page.go_back()
        expect(page.get_by_role("dialog")).to_be_hidden()
        assert page.url == address


def test_a_picture_does_not_wait_for_the_text_before_it(
    files: Page, pod: Pod, owner: Client
) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (90, 60), "teal").save(picture, "PNG")
    stored = owner.put(f"{pod.root}files/d.png", picture.getvalue(), "image/png")
    assert stored.status == 201
    files.reload()
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    files.route("**/c.txt", hold)
    row(files, "c.txt").get_by_role("link").focus()
    files.keyboard.press("Space")
    look = files.get_by_role("dialog")
    expect(look.locator("[aria-busy=true]")).to_have_count(1)
    files.keyboard.press("ArrowRight")
    expect(look.get_by_role("img", name="d.png")).to_have_js_property("naturalWidth", 90)
    expect(look.locator("[aria-busy=true]")).to_have_count(0)
    for route in held:
        route.abort()


def test_a_list_that_arrives_late_leaves_the_name_that_is_typed(files: Page) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    files.route("**/*filter=a", hold, times=1)
    with files.expect_request("**/*filter=a"):
        files.locator("#filter").fill("a")
    row(files, "a.txt").get_by_role("link").focus()
    files.keyboard.press("F2")
    files.keyboard.type("zebra")
    with files.expect_response("**/*filter=a") as answer:
        held[0].continue_()
    answer.value.finished()
    files.evaluate("new Promise(done => setTimeout(done))")
    expect(files.get_by_label("New name")).to_have_value("zebra.txt")
    files.keyboard.press("Escape")
    expect(row(files, "b.txt")).to_have_count(0)
    expect(row(files, "a.txt")).to_be_visible()


@pytest.mark.parametrize("selected", [1, 2])
def test_rows_are_dragged_into_a_folder_and_back_to_the_one_above(
    files: Page, pod: Pod, owner: Client, selected: int
) -> None:
    moved = ["a.txt", "b.txt"][:selected]
    for name in moved if selected > 1 else ():
        files.get_by_label(f"Select {name}").check()
    drag(files, row(files, "b.txt" if selected > 1 else "a.txt"), row(files, "inner"))
    for name in moved:
        expect(row(files, name)).to_have_count(0)
        assert owner.get(f"{pod.root}files/inner/{name}").text == name
    expect(files.locator("#said")).to_contain_text("Moved to inner.")
    files.goto(f"{files.url}inner/")
    drag(files, row(files, "a.txt"), files.locator(".crumbs").get_by_role("link", name="files"))
    expect(row(files, "a.txt")).to_have_count(0)
    assert owner.get(f"{pod.root}files/a.txt").text == "a.txt"


@pytest.mark.parametrize("selected", [1, 2])
def test_what_was_dragged_comes_back(files: Page, pod: Pod, owner: Client, selected: int) -> None:
    moved = ["a.txt", "b.txt"][:selected]
    for name in moved if selected > 1 else ():
        files.get_by_label(f"Select {name}").check()
    drag(files, row(files, "a.txt"), row(files, "inner"))
    expect(row(files, "a.txt")).to_have_count(0)
    # Another one with the name, which is not touched.
    assert owner.put(f"{pod.root}files/a.txt", "new").status == 201
    files.get_by_role("button", name="Undo").click()
    if selected == 1:
        expect(files.locator("#said")).to_have_text("There is already something with this name.")
        assert owner.request("DELETE", f"{pod.root}files/a.txt").status in {200, 204, 205}
        return
    expect(row(files, "b.txt").get_by_role("link")).to_be_visible()
    assert owner.get(f"{pod.root}files/b.txt").text == "b.txt"
    assert owner.get(f"{pod.root}files/a.txt").text == "new"
    assert owner.get(f"{pod.root}files/inner/a.txt").text == "a.txt"


@pytest.mark.parametrize(
    "window", [Window(PHONE_WIDTH), Window(PHONE_WIDTH, scripts=False)], indirect=True, ids=str
)
def test_a_phone_has_a_round_button_for_what_is_new(files: Page, pod: Pod, window: Window) -> None:
    button = files.locator(".add summary")
    box = button.bounding_box()
    assert box is not None
    assert 48 <= box["width"] == box["height"]
    files.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    last = row(files, "c.txt").get_by_role("button").bounding_box()
    placed = button.bounding_box()
    assert last is not None
    assert placed is not None
    assert last["y"] + last["height"] <= placed["y"]
    button.click()
    main = files.locator("main")
    expect(main.get_by_role("link", name="Take a photo")).to_be_visible(visible=window.scripts)
    if window.scripts:
        with files.expect_file_chooser() as photo:
            main.get_by_role("link", name="Take a photo").click()
        assert photo.value.element.get_attribute("capture") == "environment"
        button.click()
        with files.expect_file_chooser() as chooser:
            main.get_by_role("link", name="Upload files").click()
        chooser.value.set_files({"name": "e.txt", "mimeType": "text/plain", "buffer": b"e"})
        expect(row(files, "e.txt")).to_be_visible()
        files.reload()
        button.click()
    main.get_by_role("link", name="Folder", exact=True).click()
    files.wait_for_url(f"**/.pages/new{pod.root}files/?kind=folder")


@pytest.mark.parametrize("window", [Window(PHONE_WIDTH)], indirect=True, ids=str)
def test_the_search_opens_on_a_phone(files: Page) -> None:
    field = files.get_by_role("searchbox", name="Search", exact=True)
    narrow = field.bounding_box()
    field.click()
    wide = field.bounding_box()
    assert narrow is not None
    assert wide is not None
    assert 44 <= narrow["width"] < 60
    assert wide["width"] > 300


def drag(page: Page, what: Locator, to: Locator) -> None:
    """Drag by the mouse to a folder."""
    carry(page, what, to, sign=".drop-here")
    page.mouse.up()


def carry(page: Page, what: Locator, to: Locator, *, sign: str) -> None:
    """Press the mouse on a row, and move it elsewhere, as a hand does: until the page shows that
    the row goes along, for which it loads a script."""
    what.locator(".title").hover()
    page.mouse.down()
    box = to.bounding_box()
    assert box is not None
    x, y = box["x"] + min(box["width"] / 2, 60), box["y"] + box["height"] / 2

    def is_shown() -> bool:
        page.mouse.move(x - 1, y, steps=4)
        page.mouse.move(x, y)
        return page.locator(sign).count() == 1

    wait_until(is_shown, f"{sign} shows")


def test_nothing_is_moved_by_what_ends_elsewhere(files: Page, pod: Pod, owner: Client) -> None:
    carry(files, row(files, "a.txt"), files.locator("#filter"), sign=".dragged")
    expect(files.locator(".dragged")).to_have_text("a.txt")
    files.mouse.up()
    expect(files.locator(".dragged")).to_have_count(0)
    carry(files, row(files, "b.txt"), row(files, "inner"), sign=".drop-here")
    files.keyboard.press("Escape")
    expect(files.locator(".drop-here")).to_have_count(0)
    files.mouse.up()
    assert owner.get(f"{pod.root}files/a.txt").status == 200
    assert owner.get(f"{pod.root}files/b.txt").status == 200


def test_whoever_comes_back_to_a_long_list_finds_the_place(
    files: Page, pod: Pod, owner: Client
) -> None:
    for number in range(320):
        assert owner.put(f"{pod.root}long/{number}.txt", "x").status == 201
    files.goto(f"{pod.server.base_url}/.pages/files{pod.root}long/")
    expect(files.locator("#members .blank").first).to_be_attached()
    files.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    link = row(files, "310.txt").get_by_role("link")
    link.scroll_into_view_if_needed()
    link.click()
    files.wait_for_url(f"**/.pages/files{pod.root}long/310.txt")
    files.go_back()
    expect(row(files, "310.txt").get_by_role("link")).to_be_in_viewport()


def test_the_list_its_open_menu_and_a_name_that_is_typed_are_accessible(
    files: Page, axe: str
) -> None:
    files.get_by_role("button", name="Actions for a.txt").click()
    found = {"menu": violations(files, axe)}
    files.get_by_role("menuitem", name="Rename").click()
    found["field"] = violations(files, axe)
    files.keyboard.press("Escape")
    row(files, "a.txt").locator(".picture").click()
    expect(files.get_by_role("dialog").locator("pre")).to_have_text("a.txt")
    found["look"] = violations(files, axe)
    look = files.get_by_role("dialog")
    look.get_by_role("button", name="Close").click()
    files.locator(".add summary").click()
    found["new"] = violations(files, axe)
    files.goto(f"{files.url}?view=grid")
    files.get_by_role("button", name="Actions for inner").click()
    found["grid"] = violations(files, axe)
    files.goto(files.url.replace("=grid", "=photos"))
    found["no photos"] = violations(files, axe)
    files.goto(files.url.replace("/files/", "/actions/", 1).partition("?")[0] + "a.txt")
    found["page"] = violations(files, axe)
    assert {name: each for name, each in found.items() if each} == {}


def test_a_phone_tells_how_long_ago_as_a_wide_window_does(files: Page) -> None:
    files.set_viewport_size({"width": PHONE_WIDTH, "height": 800})
    time = row(files, "a.txt").locator("time:visible")
    expect(time).to_have_text(re.compile("ago|now"))
    expect(time).to_have_attribute("title", re.compile(r"\d{4}"))


def test_a_folder_of_thirty_one_is_light_when_it_is_opened_first(
    files: Page, pod: Pod, owner: Client
) -> None:
    for number in range(27):
        assert owner.put(f"{pod.root}files/{number}.txt", "x").status == 201
    files.evaluate("performance.clearResourceTimings()")
    session = files.context.new_cdp_session(files)
    session.send("Network.clearBrowserCache")
    files.reload(wait_until="load")
    assert len(names(files)) == 31
    loaded = files.evaluate(  # the page, its styles and scripts; not what a change made it ask for
        """["navigation", "resource"].flatMap(type => performance.getEntriesByType(type))
        .filter(({initiatorType}) => ["navigation", "link", "script"].includes(initiatorType))
        .map(({name, transferSize, decodedBodySize}) => [name, transferSize, decodedBodySize])"""
    )
    scripts = sum(size for name, _, size in loaded if name.endswith(".js"))
    assert 0 < scripts < MAX_SCRIPT_BYTES
    assert sum(size for _, size, _ in loaded) < MAX_COLD_BYTES

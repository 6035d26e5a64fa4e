"""The pages of pods in a real browser: signing in, finding the way, languages, accessibility."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect

from podstead.storage.layout import RootLayout
from tests.support.browser_people import IN_EVERY_WINDOW, sign_in, type_password, violations
from tests.support.client import Client, create_pod
from tests.support.people import Account
from tests.support.server import ServerProcess, running_server, server_fixture

LOADED_FONTS = """document.fonts.ready.then(
    fonts => [...fonts].filter(each => each.status == "loaded").map(each => each.family)
)"""

JSON = {"Content-Type": "application/json"}

pytestmark = pytest.mark.needs("chromium")


@dataclass(frozen=True)
class Home:
    """A pod on a server without accounts, and its token."""

    server: ServerProcess
    token: str

    def url(self, path: str) -> str:
        return self.server.base_url + path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    root = tmp_path_factory.mktemp("home") / "root"
    with running_server(ServerProcess(root=root)) as server:
        with Client(server) as public:
            sent = json.dumps({"name": "alice"})
            made = json.loads(public.request("POST", "/.pods", sent, JSON).body)
        with Client(server, token=made["token"]) as owner:
            for name, content_type, content in (
                ("note.txt", "text/plain", "a note"),
                ("card.ttl", "text/turtle", "<#me> <#is> <#here>."),
                (f"{'long' * 50}.txt", "text/plain", "x"),
                ("empty/", "text/turtle", ""),
            ):
                stored = owner.put(f"/alice/private/{name}", content, content_type)
                assert stored.status == 201, stored.text
        yield Home(server, made["token"])


strict_server = server_fixture(
    ("--max-body-bytes", "200000", "--invalid-credentials-per-minute", "1")
)
"""A server with limits that people reach."""


def _sign_in_by_token(page: Page, home: Home, path: str = "/alice/private/") -> None:
    page.goto(home.url(path))
    page.get_by_label("Token").fill(home.token)
    page.get_by_role("main").get_by_role("button", name="Sign in").click()
    page.wait_for_url(home.url(f"/.pages/files{path}"))


def _tour(page: Page, home: Home) -> Iterator[str]:
    page.goto(home.url("/"))
    yield "first page"
    page.goto(home.url("/alice/private/"))
    yield "sign-in"
    page.get_by_label("Token").fill("nonsense")
    page.get_by_role("main").get_by_role("button", name="Sign in").click()
    page.get_by_role("alert").wait_for()
    yield "sign-in refused"
    page.goto(home.url("/alice/public/nothing"))
    yield "nothing there"
    _sign_in_by_token(page, home)
    yield "container"
    page.goto(home.url("/.pages/files/alice/private/note.txt"))
    yield "document"
    page.goto(home.url("/.pages/files/alice/private/empty/"))
    yield "empty container"
    page.goto(home.url("/.pages/files/alice/private/nothing"))
    yield "problem"
    page.goto(home.url("/.pages/components"))
    page.get_by_label("More actions").click()
    yield "components"


def test_every_page_is_accessible_fits_and_loads_only_from_here(
    page: Page, home: Home, axe: str
) -> None:
    requested: list[str] = []
    complaints: list[str] = []

    def note(request: Request) -> None:
        requested.append(request.url)

    page.on("request", note)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if "Policy" in said.text else None)
    seen = {name: violations(page, axe) for name in _tour(page, home)}
    assert {name: found for name, found in seen.items() if found} == {}
    assert complaints == []
    assert {url.startswith((home.server.base_url, "data:")) for url in requested} == {True}
    assert "Figtree" in page.evaluate(LOADED_FONTS)


@IN_EVERY_WINDOW
def test_a_person_finds_the_way_through_the_pod(page: Page, home: Home) -> None:
    _sign_in_by_token(page, home)
    page.goto(home.url("/.pages/files/"))
    page.get_by_role("link", name="private").click()
    page.get_by_role("link", name="note.txt").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "note.txt"
    assert download.value.path().read_text() == "a note"
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="alice").click()
    expect(page.get_by_role("heading", name="alice")).to_be_visible()
    page.get_by_label("Signed in as alice").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("status")).to_contain_text("You are signed out")
    page.goto(home.url("/.pages/files/alice/private/"))
    expect(page).to_have_url(home.url("/.pages/sign-in?next=/.pages/files/alice/private/"))


@IN_EVERY_WINDOW
def test_a_page_about_an_error_names_the_next_step(
    page: Page, strict_server: ServerProcess
) -> None:
    pod = create_pod(strict_server)
    home = Home(strict_server, pod.token)
    folder = f"{pod.root}private/"
    with pod.owner() as owner:
        for name, content in (("note.txt", "a note"), ("long.txt", "x" * 100_000)):
            assert owner.put(f"{folder}{name}", content).status == 201
    _sign_in_by_token(page, home, folder)
    page.goto(home.url(f"/.pages/files{folder}note.txt?view=edit"))
    page.locator("textarea").fill("x" * 300_000)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="This is too large")).to_be_visible()
    page.get_by_role("link", name="Back to your files").click()
    expect(page.get_by_role("heading", name=pod.name)).to_be_visible()

    for file in RootLayout(strict_server.root).blobs.rglob("*"):
        if file.is_file():
            file.unlink()
    page.goto(home.url(f"/.pages/files{folder}long.txt"))
    expect(page.get_by_role("heading", name="The server has a problem")).to_be_visible()
    expect(page.get_by_text("Try again in a moment, and tell the operator")).to_be_visible()

    page.context.clear_cookies()
    too_many = page.get_by_role("heading", name="Too many requests")
    for _ in range(2):
        page.goto(home.url("/.pages/sign-in"))
        page.get_by_label("Token").fill("nonsense")
        page.get_by_role("main").get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert").or_(too_many)).to_be_visible()
    expect(too_many).to_be_visible()
    expect(page.get_by_text("Wait a moment, and try again.")).to_be_visible()


@pytest.mark.parametrize("with_scripts", [True, False])
def test_the_language_is_chosen_in_the_footer(
    chromium: Browser, home: Home, *, with_scripts: bool
) -> None:
    context = chromium.new_context(
        service_workers="block", java_script_enabled=with_scripts, locale="de-DE"
    )
    page = context.new_page()
    page.goto(home.url("/.pages/sign-in"))
    expect(page.get_by_role("heading", name="Anmelden")).to_be_visible()
    page.get_by_label("Sprache").select_option("es")
    if not with_scripts:
        page.get_by_role("button", name="Verwenden").click()
    expect(page.get_by_role("heading", name="Iniciar sesión")).to_be_visible()


def test_times_are_those_of_the_reader(chromium: Browser, home: Home) -> None:
    def shown(timezone: str) -> str | None:
        context = chromium.new_context(
            service_workers="block", timezone_id=timezone, locale="en-US"
        )
        page = context.new_page()
        _sign_in_by_token(page, home)
        time = page.locator("time").first
        expect(time).to_have_text(re.compile("ago|now"))
        return time.get_attribute("title")

    assert shown("Asia/Kolkata") != shown("America/New_York")


def test_how_long_ago_is_told_for_a_week(page: Page, home: Home) -> None:
    """As people say it, in the language of the page."""
    page.clock.set_fixed_time("2026-03-11T15:30:00")
    _sign_in_by_token(page, home)

    def shown(moment: str) -> tuple[str, str | None]:
        page.evaluate(
            """async (moment) => {
                const time = document.querySelector("time[data-relative]");
                time.removeAttribute("title");
                time.dateTime = new Date(moment).toISOString();
                const script = document.querySelector('script[src*="/pods."]').src;
                (await import(script)).showLocalTimes();
            }""",
            moment,
        )
        time = page.locator("time[data-relative]").first
        return time.inner_text().replace("\u202f", " "), time.get_attribute("title")

    assert shown("2026-03-11T15:29:40")[0] == "now"
    assert shown("2026-03-11T15:25:00")[0] == "5 minutes ago"
    assert shown("2026-03-11T09:10:00")[0] == "6 hours ago"
    assert shown("2026-03-10T23:59:00")[0] == "yesterday, 11:59 PM"
    assert shown("2026-03-06T08:00:00")[0] == "5 days ago, 8:00 AM"
    for far in ("2026-03-04T15:30:00", "2026-03-11T15:31:00"):
        text, title = shown(far)
        assert text.startswith("Mar ")
        assert title is None


def test_the_keyboard_reaches_everything(page: Page, home: Home) -> None:
    _sign_in_by_token(page, home)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("(document.activeElement.href ?? '').split('/private/')[1]"))
    assert {"note.txt", "card.ttl", "empty/"} <= reached


def test_a_stored_page_loads_nothing_of_what_the_person_sees(page: Page, home: Home) -> None:
    """Whether a picture loads would tell that it is there."""
    picture = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    with Client(home.server, token=home.token) as owner:
        owner.put("/alice/private/dot.png", picture, "image/png")
        content = "<title>Stored</title><p>A page of somebody."
        assert owner.put("/alice/public/page", content, "text/html").status == 201
    load = """url => new Promise(resolve => {
        const image = new Image();
        image.onload = () => resolve("loaded");
        image.onerror = () => resolve("refused");
        image.src = url;
    })"""
    _sign_in_by_token(page, home)
    picture_url = home.url("/.pages/raw/alice/private/dot.png")
    assert page.evaluate(load, picture_url) == "loaded"
    page.goto(home.url("/alice/public/page"))
    assert page.title() == "Stored"
    assert page.evaluate(load, picture_url) == "refused"


def test_a_session_of_an_account_opens_the_pages(
    page: Page, provider: ServerProcess, person: Account
) -> None:
    page.goto(f"{provider.base_url}/{person.name}/private/")
    type_password(page, person.name)
    page.wait_for_url(f"{provider.base_url}/.pages/files/{person.name}/private/")
    expect(page.get_by_label(f"Signed in as {person.name}")).to_be_visible()


def test_no_other_site_frames_the_pages_or_acts_there(
    context: BrowserContext, provider: ServerProcess, person: Account, application: str
) -> None:
    """Clickjacking, and forms of other sites."""
    page = context.new_page()
    sign_in(page, provider, person)
    files = f"{provider.base_url}/.pages/files/{person.name}/"
    page.goto(application)
    framed = """url => new Promise(resolve => {
        const frame = document.createElement("iframe");
        frame.onload = () => {
            try { resolve(frame.contentDocument === null ? "refused" : "blank"); }
            catch (error) { resolve("refused"); }
        };
        frame.src = url;
        document.body.append(frame);
    })"""
    page.evaluate(framed, files)
    assert not any("Signed in" in frame.content() for frame in page.frames[1:])
    page.evaluate(
        """url => {
            const form = document.createElement("form");
            form.method = "post";
            form.action = url;
            document.body.append(form);
            form.submit();
        }""",
        f"{provider.base_url}/.pages/sign-out",
    )
    page.wait_for_url(f"{provider.base_url}/.pages/sign-out")
    page.goto(files)
    expect(page.get_by_label(f"Signed in as {person.name}")).to_be_visible()

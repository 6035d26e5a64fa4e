"""Five people and what they do at home, page by page: with scripts and without, on a phone and on a
desk, in both colour schemes. Each page on the way is checked for accessibility, fits the window and
causes no error in the browser. (What happens without a network is tested with the feature.)
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from PIL import Image
from playwright.sync_api import Browser, FilePayload, Locator, Page, expect

from tests.support.browser_people import (
    CHECK,
    DESK_WIDTH,
    PHONE_WIDTH,
    App,
    Window,
    become_the_first_operator,
    printed_link,
    sign_in,
    sign_out,
)
from tests.support.people import PASSWORD, Account, create_account
from tests.support.server import ServerProcess, running_server
from tests.support.waiting import wait_until

pytestmark = pytest.mark.needs("chromium")

OPERATOR = "olga"
LETTER = "Dear all, the key is below the flower pot."
IN_EACH_WINDOW = pytest.mark.parametrize(
    "window",
    [Window(width, scripts) for scripts in (True, False) for width in (PHONE_WIDTH, DESK_WIDTH)],
    indirect=True,
    ids=str,
)
SMALL_TARGETS = """() => [...document.querySelectorAll("nav.nav a, header a, summary, main button")]
    .filter(each => each.checkVisibility() && !each.closest(".visually-hidden"))
    .filter(each => { const {width, height} = each.getBoundingClientRect();
                      return Math.min(width, height) < 24 && width > 1; })
    .map(each => each.outerHTML.slice(0, 200))"""
AT_ONCE = """window.setTimeout = (call, _, ...given) => {
    Promise.resolve().then(() => typeof call === "function" && call(...given)); return 0; }"""
"""Lets axe work on a page whose scripts are off: there, timers do not call it back."""
_MADE_BY_TESTS = "by Playwright"


@dataclass
class Visit:
    """What one person sees in one window, and what was wrong with it."""

    server: ServerProcess
    page: Page
    window: Window
    axe: str
    account: Account
    errors: list[str] = field(default_factory=list)
    wrong: dict[str, object] = field(default_factory=dict)

    def go(self, path: str) -> None:
        """Open a page of the server, and look at it."""
        self.page.goto(self.server.base_url + path)
        self.look()

    def of(self, action: str, path: str = "") -> str:
        """A page about something in the person's pod."""
        return f"/.pages/{action}/{self.account.name}/{path}"

    def look(self) -> None:
        """Note what is wrong with the page that shows."""
        page = self.page
        page.wait_for_load_state()
        if not self.window.scripts:
            page.evaluate(AT_ONCE)
        page.evaluate(self.axe)
        rules = page.evaluate(CHECK, None)
        found = {
            "rules": rules,
            "small targets": page.evaluate(SMALL_TARGETS),
            "errors": [*self.errors],
            "is too wide": page.evaluate(
                "document.documentElement.scrollWidth > document.documentElement.clientWidth"
            ),
        }
        self.errors.clear()
        if any(found.values()):
            self.wrong[urlsplit(page.url).path] = {
                name: each for name, each in found.items() if each
            }

    def press(self, name: str) -> None:
        self.page.get_by_role("main").get_by_role("button", name=name, exact=True).first.click()

    def says(self, text: str) -> None:
        """Wait for what the page says, and look at it."""
        expect(self.page.get_by_text(text).locator("visible=true").first).to_be_visible()
        self.look()

    def act(self, name: str, item: str) -> None:
        """Choose from the actions for a row of the list: a menu where scripts run, else a page."""
        page = self.page
        page.get_by_role("button", name=f"Actions for {name}").click()
        if self.window.scripts:
            page.get_by_role("menuitem", name=item, exact=True).click()
        else:
            target: Locator = page.get_by_role("main").locator("a, button").filter(has_text=item)
            target.first.click()


@pytest.fixture(scope="module")
def provider(
    tmp_path_factory: pytest.TempPathFactory, chromium: Browser
) -> Iterator[ServerProcess]:
    """A server with an operator."""
    server = ServerProcess(root=tmp_path_factory.mktemp("home") / "root", options=["--idp"])
    with running_server(server):
        link = printed_link(server)
        with Window().new_context(chromium) as context:
            page = context.new_page()
            page.goto(link)
            become_the_first_operator(page)
        yield server


@pytest.fixture
def visit(
    provider: ServerProcess, chromium: Browser, window: Window, axe: str
) -> Iterator[Callable[[Account], Visit]]:
    """Opens the window of somebody, who signs in if there is such an account already."""
    made: list[Visit] = []

    def begin(account: Account, *, signs_in: bool = True) -> Visit:
        page = window.new_context(chromium).new_page()
        is_dark = window.scripts is (window.width == DESK_WIDTH)
        page.emulate_media(color_scheme="dark" if is_dark else "light")
        begun = Visit(provider, page, window, axe, account)
        page.on("pageerror", lambda error: begun.errors.append(str(error)))
        page.on(
            "console",
            lambda said: (
                begun.errors.append(said.text)
                if said.type == "error" and _MADE_BY_TESTS not in said.text
                else None
            ),
        )
        made.append(begun)
        if signs_in:
            sign_in(page, provider, account)
        return begun

    yield begin
    wrong = {path: each for of_one in made for path, each in of_one.wrong.items()}
    for each in made:
        each.page.context.close()
    assert wrong == {}


@pytest.fixture
def owner(visit: Callable[[Account], Visit], provider: ServerProcess) -> Visit:
    """Somebody with a letter of two versions, a plan and a photo."""
    account = create_account(provider)
    with account.owner() as client:
        for path, content, media_type in (
            ("letter.txt", b"Dear all", "text/plain"),
            ("letter.txt", LETTER.encode(), "text/plain"),
            ("Trip/plan.txt", b"Pack the tent.", "text/plain"),
            ("Photos/sea.png", picture(), "image/png"),
        ):
            assert client.put(f"/{account.name}/{path}", content, media_type).status in (201, 204)
    return visit(account)


def picture() -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (40, 30), "teal").save(content, "PNG")
    return content.getvalue()


@IN_EACH_WINDOW
def test_a_newcomer_moves_in(
    visit: Callable[..., Visit], provider: ServerProcess, window: Window
) -> None:
    name = f"nora-{window}"
    nora = visit(Account(provider, name, "", ""), signs_in=False)
    page = nora.page
    nora.go("/idp/register")
    page.get_by_label("Name of your pod").fill(name)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Repeat the password").fill(PASSWORD)
    nora.press("Create the account")
    nora.says(f"Welcome, {name}")
    upload(nora)
    nora.go(nora.of("files"))
    for kind, title in (("Folder", "Garden"), ("Text", "seeds.txt")):
        page.get_by_role("main").locator("summary").filter(has_text="New").click()
        page.get_by_role("link", name=kind, exact=True).click()
        nora.look()
        page.get_by_label("Name", exact=True).fill(title)
        nora.press("Create")
        nora.says(title)
        nora.go(nora.of("files"))
    expect(page.get_by_role("link", name="seeds.txt")).to_be_visible()
    sign_out(page)
    nora.look()
    sign_in(page, provider, nora.account)
    nora.go("/.pages/")
    expect(page.get_by_role("region", name="First steps")).to_contain_text("Done:")
    expect(page.get_by_role("link", name="Share Garden")).to_be_visible()


def upload(visit: Visit) -> None:
    page = visit.page
    page.get_by_role("link", name="Upload your first files").click()
    visit.look()
    photo: FilePayload = {"name": "cat.png", "mimeType": "image/png", "buffer": picture()}
    if visit.window.scripts:
        page.locator(".upload-buttons input[multiple]:not([capture])").set_input_files([photo])
    else:
        page.locator("#upload-files").set_input_files([photo])
        visit.press("Upload")
    page.wait_for_url(f"**{visit.of('files')}")  # where the page leads once all is there
    visit.go(visit.of("files", "?view=photos"))
    expect(page.get_by_role("link", name="cat.png")).to_be_visible()


@IN_EACH_WINDOW
def test_an_owner_shares_and_ends_it(owner: Visit, provider: ServerProcess, app: App) -> None:
    page, friend = owner.page, create_account(provider).name
    owner.go(owner.of("share", "Trip/"))
    page.get_by_label("Name or e-mail address").fill(friend)
    owner.press("Share")
    owner.says(f"{friend} can view.")
    owner.go("/.pages/groups")
    page.get_by_label("Name of a new group").fill("Family")
    owner.press("New group")
    page.get_by_label("Name or e-mail address").fill(friend)
    owner.press("Add")
    owner.says("1 member")
    owner.go(owner.of("share", "letter.txt"))
    page.get_by_role("button", name="Copy link until Friday").click()
    expect(page.get_by_label("Address", exact=True)).to_be_visible()
    owner.go("/.pages/shared?view=own")
    page.goto(app.request())
    page.get_by_label("Only one folder:").select_option(label="Trip")
    owner.look()
    page.get_by_role("button", name="Allow", exact=True).click()
    page.wait_for_url(f"{app.redirect_uri}**")
    owner.go("/.pages/apps")
    page.get_by_role("button", name="Disconnect Field Notes").click()
    owner.says("No application is connected")


@IN_EACH_WINDOW
def test_an_owner_keeps_order(owner: Visit, window: Window) -> None:
    page, has_scripts = owner.page, window.scripts
    files = owner.of("files")
    owner.go(files)
    owner.act("letter.txt", "Star")
    owner.says("letter.txt is starred.")
    owner.go("/.pages/starred")
    owner.go(files)
    if has_scripts:
        page.get_by_role("link", name="letter.txt").first.focus()
        page.keyboard.press("F2")
        page.get_by_label("New name").fill("dear.txt")
        page.keyboard.press("Enter")
    else:
        owner.act("letter.txt", "Rename")
        owner.look()
        page.get_by_label("New name").fill("dear.txt")
        owner.press("Rename")
    expect(page.locator('[data-name="dear.txt"]')).to_be_visible()
    owner.go(owner.of("move", "dear.txt"))
    owner.press("Trip")
    owner.press("Move here")
    page.wait_for_url("**/.pages/files/**")
    owner.go(owner.of("files", "Trip/"))
    if has_scripts:
        page.locator('[data-name="dear.txt"]').get_by_role("link").focus()
        page.keyboard.press("Delete")
        page.get_by_role("button", name="Undo").click()
    else:
        owner.go(owner.of("delete", "Trip/dear.txt"))
        owner.press("Delete")
        owner.go("/.pages/trash")
        owner.press("Restore dear.txt")
        owner.says("It has been restored.")
        owner.go(owner.of("files", "Trip/"))
    expect(page.locator('[data-name="dear.txt"]')).to_be_visible()
    owner.go(owner.of("versions", "Trip/plan.txt"))
    owner.go(owner.of("files", "Photos/?view=grid"))


@IN_EACH_WINDOW
def test_an_owner_restores_a_version_and_finds_things(owner: Visit) -> None:
    page = owner.page
    owner.go(owner.of("versions", "letter.txt"))
    owner.press("Restore")
    page.wait_for_url("**/.pages/**")
    owner.go(owner.of("files", "letter.txt"))
    expect(page.get_by_text(LETTER)).to_have_count(0)

    def is_found() -> bool:
        page.goto(f"{owner.server.base_url}/.pages/search?q=plan")
        return page.get_by_role("main").get_by_role("link", name="plan.txt").count() > 0

    wait_until(is_found, "the search finds the plan")
    owner.look()
    owner.go("/.pages/search?q=nothing-has-this-name")
    for path in ("photos", "shared", "requests", "activity", "storage", "profile", "trash"):
        owner.go(f"/.pages/{path}")


@pytest.mark.feature("personal_data")
@IN_EACH_WINDOW
def test_an_owner_keeps_contacts_dates_notes_and_bookmarks(owner: Visit) -> None:
    page = owner.page
    for kind, button, typed in (
        ("contacts", "New contact", {"Name": "Ada"}),
        ("calendar", "New event", {"Name": "Lunch", "Begins": "2099-05-01"}),
        ("notes", "New note", {"Name": "Shopping", "Note": "Milk"}),
        ("bookmarks", "New bookmark", {"Name": "News", "Address": "https://news.example/"}),
    ):
        owner.go(f"/.pages/collections?view={kind}")
        page.get_by_role("link", name=button).first.click()
        owner.look()
        for label, text in typed.items():
            page.get_by_label(label, exact=True).fill(text)
        owner.press("Save")
        owner.says("was added.")
    owner.go("/.pages/collections?view=calendar&month=2099-05")
    expect(page.get_by_role("link", name="Lunch").locator("visible=true")).to_be_visible()


@pytest.mark.feature("notices")
@IN_EACH_WINDOW
def test_a_friend_is_told_opens_what_is_shared_and_asks_for_more(
    owner: Visit, visit: Callable[[Account], Visit], provider: ServerProcess
) -> None:
    friend = visit(create_account(provider))
    owner.page.goto(provider.base_url + owner.of("share", "Trip/"))
    owner.page.get_by_label("Name or e-mail address").fill(friend.account.name)
    owner.press("Share")
    expect(owner.page.get_by_text(f"{friend.account.name} can view.")).to_be_visible()
    page = friend.page
    friend.go("/.pages/")
    expect(page.get_by_role("region", name="New for you")).to_contain_text("Trip")
    friend.go("/.pages/notices")
    friend.go("/.pages/shared")
    page.get_by_role("link", name="Trip").first.click()
    page.get_by_role("link", name="plan.txt").first.click()
    friend.says("Pack the tent.")
    expect(page.get_by_role("link", name="Edit", exact=True)).to_have_count(0)
    page.goto(provider.base_url + owner.of("files", "letter.txt"))
    friend.errors.clear()  # the browser tells of the status 403
    friend.says("You have no access")
    page.get_by_role("link", name="Ask for access").click()
    friend.look()
    friend.press("Send the request")
    friend.says("Your request was sent to the owner.")
    owner.go("/.pages/requests")
    owner.press("Allow")
    owner.look()
    owner.press("Save")
    owner.says("can view.")
    page.goto(provider.base_url + owner.of("files", "letter.txt"))
    friend.says(LETTER)


@pytest.mark.parametrize("window", [Window(PHONE_WIDTH)], indirect=True, ids=str)
def test_a_phone_has_a_bar_at_the_bottom_and_can_install_the_pages(owner: Visit) -> None:
    page = owner.page
    owner.go("/.pages/")
    links = page.get_by_role("navigation", name="Pages").get_by_role("link").locator("visible=true")
    expect(links).to_have_count(5)
    for link in links.all():
        box = link.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] > 600
        assert min(box["width"], box["height"]) >= 40
    links.filter(has_text="Files").click()
    owner.look()
    page.get_by_label("Search", exact=True).fill("letter")
    page.get_by_label("Search", exact=True).press("Enter")
    page.wait_for_url("**/.pages/search**")
    owner.look()
    page.get_by_label("Signed in as").click()
    expect(page.get_by_role("link", name="Security").locator("visible=true")).to_be_visible()
    session = page.context.new_cdp_session(page)
    assert session.send("Page.getAppManifest")["errors"] == []


@IN_EACH_WINDOW
def test_an_operator_looks_after_the_house(
    visit: Callable[[Account], Visit], provider: ServerProcess
) -> None:
    guest = create_account(provider).name
    olga = visit(Account(provider, OPERATOR, "", ""))
    page, console = olga.page, "/.pages/console/"
    olga.go(f"{console}accounts")
    olga.go(f"{console}accounts/{guest}")
    page.get_by_label("A limit of its own").check()
    page.get_by_label("Megabytes").fill("5")
    olga.press("Set the quota")
    olga.says(f"The quota of {guest} is set")
    olga.go(f"{console}invitations")
    page.get_by_label("How many people can use it").fill("3")
    olga.press("Create the invitation")
    expect(page.locator("code.secret").first).to_contain_text("/idp/register")
    olga.look()
    for each in ("health", "settings", "log"):
        olga.go(console + each)

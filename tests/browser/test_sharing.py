"""Sharing in a real browser: in a dialog and without scripts, at two widths, for everybody."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser_people import (
    AT_BOTH_WIDTHS,
    IN_EVERY_WINDOW,
    Window,
    sign_in,
    violations,
)
from tests.support.client import Client
from tests.support.people import Account, create_account
from tests.support.rdf import TURTLE, Triples, triples
from tests.support.server import ServerProcess

pytestmark = pytest.mark.needs("chromium")


@dataclass(frozen=True)
class Photos:
    """A folder of the person, who has a friend."""

    provider: ServerProcess
    owner: Account
    friend: Account

    @property
    def folder(self) -> str:
        return f"/{self.owner.name}/photos/"

    def url(self, page: str, path: str = "") -> str:
        return f"{self.provider.base_url}/.pages/{page}{path or self.folder}"

    def seen_by(self, account: Account | None) -> int:
        """The status that somebody gets for the photo."""
        return self.seen_with(None if account is None else account.token)

    def seen_with(self, token: str | None) -> int:
        """The status for the photo with an access token."""
        with Client(self.provider, token=token) as client:
            return client.get(f"{self.folder}sea.txt").status


@pytest.fixture
def photos(provider: ServerProcess, person: Account) -> Photos:
    with person.owner() as client:
        for name in ("sea.txt", "sky.txt"):
            put = client.put(f"/{person.name}/photos/{name}", b"content", "text/plain")
            assert put.status == 201
    return Photos(provider, person, create_account(provider))


@pytest.fixture
def owners(page: Page, photos: Photos) -> Page:
    """A browser of the owner."""
    sign_in(page, photos.provider, photos.owner)
    return page


@pytest.fixture
def friends(chromium: Browser, window: Window, photos: Photos) -> Page:
    """A browser of the friend, in a window like that of the owner."""
    page = window.new_context(chromium).new_page()
    sign_in(page, photos.provider, photos.friend)
    return page


@AT_BOTH_WIDTHS
def test_a_file_is_shared_in_a_dialog(owners: Page, photos: Photos) -> None:
    page = owners
    page.goto(photos.url("files", f"{photos.folder}sea.txt"))
    share = page.get_by_role("link", name="Share", exact=True)
    share.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading", name="Share “sea.txt”")).to_be_visible()
    expect(dialog.get_by_label("Name or e-mail address")).to_be_focused()
    page.keyboard.press("Escape")
    expect(share).to_be_focused()
    expect(page.get_by_text("Only you")).to_be_visible()
    share.click()
    dialog.get_by_label("Name or e-mail address").fill(photos.friend.name)
    dialog.get_by_label("Role", exact=True).select_option("edit")
    dialog.get_by_role("button", name="Share", exact=True).click()
    expect(dialog.get_by_text(f"Shared with {photos.friend.name}.")).to_be_visible()
    expect(dialog.get_by_text(f"{photos.friend.name} can edit.")).to_be_visible()
    assert photos.seen_by(photos.friend) == 200
    # Everyone has no name.
    dialog.get_by_text("More choices").click()
    dialog.get_by_label("Who", exact=True).select_option("everyone")
    expect(dialog.get_by_label("Name or e-mail address")).to_be_hidden()
    # A choice leads to the preview at once.
    dialog.get_by_label(f"Role of {photos.friend.name}").select_option("view")
    expect(dialog.get_by_role("cell", name="Can view")).to_be_visible()
    dialog.get_by_role("link", name="Cancel").click()
    # The page below says who can see the file now.
    page.keyboard.press("Escape")
    expect(page.get_by_text("Certain people")).to_be_visible()
    share.click()
    dialog.get_by_role("button", name=f"Remove {photos.friend.name}").click()
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_text("Saved.", exact=True)).to_be_visible()
    assert photos.seen_by(photos.friend) == 403
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_text("Only you")).to_be_visible()


@IN_EVERY_WINDOW
def test_a_folder_is_shared_with_everyone_and_says_why(
    owners: Page, photos: Photos, window: Window
) -> None:
    page = owners
    page.goto(photos.url("files"))
    page.get_by_role("link", name="Share", exact=True).click()
    shown = page.get_by_role("dialog") if window.scripts else page.locator("main")
    shown.get_by_text("More choices").click()
    shown.get_by_label("Who", exact=True).select_option("everyone")
    shown.get_by_role("button", name="Share", exact=True).click()
    expect(shown.get_by_role("row", name="Everyone No access Can view")).to_be_visible()
    assert photos.seen_by(None) == 401
    shown.get_by_role("button", name="Save").click()
    expect(shown.get_by_text("Everyone can view.")).to_be_visible()
    assert photos.seen_by(None) == 200
    page.goto(photos.url("share", f"{photos.folder}sea.txt"))
    sentence = "Everyone can view, because the folder “photos” says so."
    expect(page.get_by_text(sentence)).to_be_visible()
    page.get_by_text("Why, and other rules").click()
    page.get_by_role("link", name="Why can somebody see this?").click()
    page.get_by_label("Who", exact=True).select_option("anybody")
    page.get_by_role("button", name="Explain").click()
    expect(page.get_by_text("The rules of “photos” allow it to everyone.")).to_be_visible()
    # What inheritance gives is replaced, and followed again.
    page.goto(photos.url("share", f"{photos.folder}sea.txt"))
    page.get_by_text("Why, and other rules").click()
    page.get_by_role("button", name="Give this rules of its own").click()
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Remove Everyone").click()
    expect(page.get_by_role("row", name="Everyone Can view No access")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("Saved.")
    expect(page.get_by_role("button", name="Remove Everyone")).to_have_count(0)
    assert photos.seen_by(None) == 401
    page.get_by_text("Why, and other rules").click()
    page.get_by_role("button", name="Follow the folder above again").click()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text(sentence)).to_be_visible()
    assert photos.seen_by(None) == 200


_BESIDE_ROLES = (
    "@prefix acl: <http://www.w3.org/ns/auth/acl#>.\n"
    "<#owner> a acl:Authorization; acl:agent <{owner}>; acl:accessTo <./>; acl:default <./>;\n"
    "  acl:mode acl:Read, acl:Write, acl:Control.\n"
    "<#app> a acl:Authorization; acl:agentClass acl:AuthenticatedAgent; acl:accessTo <./>;\n"
    "  acl:origin <https://app.example>; acl:mode acl:Read.\n"
)
_VCARD = "@prefix vcard: <http://www.w3.org/2006/vcard/ns#>.\n"
_TEAM = _VCARD + "<#team> a vcard:Group; vcard:hasMember <{member}>.\n"
_CONTACT = _VCARD + "<#it> vcard:fn 'Lena'; vcard:url <{web_id}>.\n"
_CONTACTS = (
    "@prefix solid: <http://www.w3.org/ns/solid/terms#>.\n" + _VCARD + "<#it>\n"
    "  solid:forClass vcard:Individual; solid:instance <../lena.ttl#it>.\n"
)


@IN_EVERY_WINDOW
def test_a_contact_a_group_and_anyone_signed_in_get_access_beside_other_rules(
    owners: Page, photos: Photos, window: Window
) -> None:
    """A rule that no role expresses stays as it is, whatever is changed beside it."""
    page = owners
    home = f"/{photos.owner.name}/"
    acl = f"{photos.folder}.acl"
    friends = photos.friend.token
    with photos.owner.owner() as owner:
        for path, content in (
            (acl, _BESIDE_ROLES.format(owner=photos.owner.web_id)),
            (f"{home}team.ttl", _TEAM.format(member=photos.friend.web_id)),
            (f"{home}lena.ttl", _CONTACT.format(web_id=photos.friend.web_id)),
            (f"{home}settings/publicTypeIndex.ttl", _CONTACTS),
        ):
            put = owner.put(path, content, TURTLE)
            assert put.status in {201, 204}, put.text
        page.goto(photos.url("files"))
        page.get_by_role("link", name="Share", exact=True).click()
        shown = page.get_by_role("dialog") if window.scripts else page.locator("main")
        expect(shown.locator("datalist option[value=Lena]")).to_have_count(1)
        team = f"{photos.provider.base_url}{home}team.ttl#team"
        beside = _about_the_app(owner, photos, acl)
        assert beside
        for kind, who, named, sentence in (
            ("agent", "Lena", "Lena", "{} can view."),
            ("group", team, "team", "The members of {} can view."),
            ("authenticated", None, "Anyone who is signed in", "{} can view."),
        ):
            shown.get_by_text("More choices").click()
            shown.get_by_label("Who", exact=True).select_option(kind)
            if who is not None:
                shown.get_by_label("Name or e-mail address").fill(who)
            shown.get_by_role("button", name="See what changes").click()
            expect(shown.get_by_role("row", name="No access Can view")).to_contain_text(named)
            shown.get_by_role("button", name="Save").click()
            expect(shown.get_by_text(sentence.format(named))).to_be_visible()
            expect(shown.get_by_text("1 rule that is not edited here")).to_be_visible()
            assert (photos.seen_with(friends), photos.seen_with(None)) == (200, 401)
            shown.get_by_role("button", name=f"Remove {named}").click()
            shown.get_by_role("button", name="Save").click()
            expect(shown.get_by_text("1 rule that is not edited here")).to_be_visible()
            expect(shown.get_by_role("button", name=f"Remove {named}")).to_have_count(0)
            assert _about_the_app(owner, photos, acl) == beside
        assert photos.seen_with(friends) == 403


def _about_the_app(owner: Client, photos: Photos, acl: str) -> Triples:
    """The rule of the application, as rdflib reads it."""
    url = f"{photos.provider.base_url}{acl}"
    rules = triples(owner.get(acl, accept=TURTLE).body, TURTLE, url)
    return {rule for rule in rules if str(rule[0]) == f"{url}#app"}


@IN_EVERY_WINDOW
def test_a_friend_asks_for_access_until_it_is_allowed(
    owners: Page, friends: Page, photos: Photos
) -> None:
    """Refused the first time; then it is in the lists of both."""
    for answer in ("Refuse", "Allow"):
        friends.goto(photos.url("files"))
        expect(friends.get_by_role("heading", name="You have no access")).to_be_visible()
        friends.get_by_role("link", name="Ask for access").click()
        friends.get_by_label("Message (optional)").fill("It is <b>me</b>")
        friends.get_by_role("button", name="Send the request").click()
        expect(friends.get_by_text("Your request was sent to the owner.")).to_be_visible()
        owners.goto(photos.url("requests", " ").strip())
        expect(owners.get_by_text("It is <b>me</b>")).to_be_visible()
        owners.get_by_role("button", name=answer).click()
        if answer == "Refuse":
            expect(owners.get_by_text("It is <b>me</b>")).to_have_count(0)
            assert photos.seen_by(photos.friend) == 403
    owners.get_by_role("button", name="Save").click()
    expect(owners.get_by_text(f"{photos.friend.name} can view.")).to_be_visible()
    assert photos.seen_by(photos.friend) == 200
    friends.goto(photos.url("shared", " ").strip())
    friends.get_by_role("link", name="photos", exact=True).click()
    expect(friends.get_by_role("link", name="sea.txt")).to_be_visible()
    owners.goto(photos.url("shared", " ").strip())
    owners.get_by_role("link", name="Shared by me").click()
    expect(owners.get_by_text(f"{photos.friend.name} can view")).to_be_visible()


def test_axe_finds_nothing_and_everything_fits(owners: Page, photos: Photos, axe: str) -> None:
    found = {name: violations(owners, axe) for name in _tour(owners, photos)}
    assert {name: each for name, each in found.items() if each} == {}
    assert len(found) == _TOUR_PAGES


_TOUR_PAGES = 11


def _tour(page: Page, photos: Photos) -> Iterator[str]:
    """Every page about access, and the dialog."""
    special = (
        "@prefix acl: <http://www.w3.org/ns/auth/acl#>.\n"
        f"<#owner> a acl:Authorization; acl:agent <{photos.owner.web_id}>; acl:accessTo <./>;\n"
        "  acl:default <./>; acl:mode acl:Read, acl:Write, acl:Control.\n"
        f"<#friend> a acl:Authorization; acl:agent <{photos.friend.web_id}>; acl:accessTo <./>;\n"
        "  acl:default <./>; acl:mode acl:Append.\n"
        "<#app> a acl:Authorization; acl:agentClass acl:AuthenticatedAgent; acl:accessTo <./>;\n"
        "  acl:origin <https://app.example>; acl:mode acl:Read.\n"
    )
    with photos.owner.owner() as client:
        assert client.put(f"{photos.folder}.acl", special.encode(), "text/turtle").status == 201
    page.goto(photos.url("share"))
    page.get_by_text(re.compile("rule that is not edited here")).click()
    yield "list"
    page.get_by_label("Name or e-mail address").fill("nobody-of-this-name")
    page.get_by_role("button", name="Share", exact=True).click()
    page.get_by_text("Nobody was found.").wait_for()
    yield "nobody"
    page.get_by_text("More choices").click()
    yield "more choices"
    page.get_by_label("Name or e-mail address").fill("https://friend.example/profile#me")
    page.get_by_label("Role", exact=True).select_option("manage")
    page.get_by_role("button", name="Share", exact=True).click()
    page.get_by_role("heading", name="What changes for “photos”").wait_for()
    yield "preview"
    page.goto(f"{photos.url('why')}?who={photos.friend.name}")
    yield "why"
    page.goto(photos.url("ask"))
    yield "ask"
    page.goto(photos.url("requests", " ").strip())
    yield "requests"
    page.goto(photos.url("groups", " ").strip())
    page.get_by_label("Name of a new group").fill("Family")
    yield "no groups"
    page.get_by_role("button", name="New group").click()
    page.get_by_label("Name or e-mail address").fill(photos.friend.name)
    page.get_by_role("button", name="Add").click()
    page.get_by_role("heading", name="1 member").wait_for()
    page.get_by_text("Rename or delete").click()
    yield "group"
    page.get_by_role("link", name="Groups").first.click()
    page.get_by_role("link", name="Family").wait_for()
    yield "groups"
    page.goto(photos.url("files"))
    page.get_by_role("link", name="Share", exact=True).click()
    page.get_by_role("dialog").get_by_role("heading", name="Share “photos”").wait_for()
    yield "dialog"


@IN_EVERY_WINDOW
def test_a_group_is_made_and_shared_with_by_name(owners: Page, photos: Photos) -> None:
    page = owners
    page.goto(photos.url("groups", " ").strip())
    page.get_by_label("Name of a new group").fill("The family")
    page.get_by_role("button", name="New group").click()
    page.get_by_label("Name or e-mail address").fill(photos.friend.name)
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("heading", name="1 member")).to_be_visible()
    page.goto(photos.url("share"))
    page.get_by_label("Name or e-mail address").fill("The family")
    page.get_by_role("button", name="Share", exact=True).click()
    expect(page.get_by_text("The members of The family can view.")).to_be_visible()
    assert photos.seen_by(photos.friend) == 200
    page.goto(photos.url("groups", " ").strip())
    page.get_by_role("link", name="The family").click()
    expect(page.get_by_role("link", name="photos", exact=True)).to_be_visible()
    page.get_by_text("Rename or delete").click()
    page.get_by_role("button", name="Delete the group").click()
    expect(page.get_by_text("No groups yet")).to_be_visible()
    assert photos.seen_by(photos.friend) == 403

"""The pages on which people share, understand access and ask for it, without scripts."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest

from podstead.app.services import Services
from podstead.core import vocab
from podstead.core.vocab import ACL
from podstead.resources.sharing import people
from podstead.web.pages.notifier import SHARED, Notifier, PersonNotice
from tests.support.application import BASE, Server, Start, acl_turtle
from tests.support.browser import Browser, Page
from tests.support.pod_pages import sign_in_to_account
from tests.support.rdf import TURTLE

FOLDER = "/alice/photos/"
PHOTO = f"{FOLDER}sea.txt"
SHARE = f"/.pages/share{FOLDER}"
SCRIPT = '<script>alert("x")</script>'


@pytest.fixture
async def photos(server: Server) -> Server:
    assert (await server.alice.put(PHOTO, "content", "text/plain")).status == 201
    return server


def words(page: Page) -> str:
    """What a person reads, in one line."""
    visible = re.sub(
        r"<(?:script|style|head).*?</(?:script|style|head)>", "", page.text, flags=re.DOTALL
    )
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", visible)).split())


async def give(
    browser: Browser, who: str, role: str = "view", *, at: str = SHARE, **further: str
) -> Page:
    """Fill in the form for giving access; shows the preview."""
    page = await browser.get(at)
    return await browser.send(page, at, **{"who": who, "kind": "agent", "role": role, **further})


async def save(browser: Browser, preview: Page, at: str = SHARE, **further: str) -> Page:
    return await browser.send(preview, at, **further)


async def test_a_folder_is_shared_by_name_in_two_steps(photos: Server, alice: Browser) -> None:
    preview = await give(alice, "bob", scope="both")
    assert preview.status == 200, preview.text
    assert "Nothing is saved yet." in words(preview)
    assert f"bob Details {BASE}/bob/#me No access Can view" in words(preview)
    assert "This gets rules of its own." in words(preview)
    assert (await photos.bob.get(PHOTO)).status == 403
    shown = await save(alice, preview)
    assert "Saved." in words(shown)
    assert "bob can view." in words(shown)
    assert (await photos.bob.get(PHOTO)).status == 200
    assert (await photos.bob.put(PHOTO, "x", "text/plain")).status == 403


async def share(browser: Browser, who: str, role: str = "view", **further: str) -> Page:
    """Fill in the field, and choose Share."""
    page = await browser.get(SHARE)
    fields = {"who": who, "kind": "agent", "role": role, "step": "share", **further}
    return await browser.send(page, SHARE, **fields)


async def test_one_line_shares_with_one_person_at_once(photos: Server, alice: Browser) -> None:
    shown = await share(alice, "bob", "edit")
    assert "Shared with bob." in words(shown)
    assert (await photos.bob.put(PHOTO, "x", "text/plain")).status == 204
    assert "No access" not in words(await alice.get(f"/.pages/why{FOLDER}?ask=yes&who=bob"))


class Told(Notifier):
    """What people were told, and who."""

    def __init__(self) -> None:
        self.notices: list[tuple[str, PersonNotice]] = []

    async def tell(self, person: str, notice: PersonNotice) -> None:
        self.notices.append((person, notice))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    """Takes what a server tells that is started afterwards."""
    found = Told()
    monkeypatch.setattr(Services, "notifier", found)
    return found


async def test_who_gets_access_is_told_with_the_message(
    told: Told, photos: Server, alice: Browser
) -> None:
    await share(alice, "bob", message="From the boat")
    expected = PersonNotice(
        SHARED,
        f"/.pages/files{FOLDER}",
        "photos",
        photos.alice_web_id,
        "From the boat",
    )
    assert told.notices == [(photos.bob_web_id, expected)]
    # Nobody is told of less, of what everyone gets, and of what begins later.
    await save(alice, await give(alice, "", kind="everyone"))
    fields = entry_fields(await alice.get(SHARE), photos.bob_web_id)
    await save(alice, await alice.post(SHARE, {**fields, "change": "remove"}))
    await share(alice, "bob", **{"from": "2999-01-01"})
    assert len(told.notices) == 1


@pytest.mark.parametrize(
    "further",
    [{"kind": "everyone"}, {"kind": "authenticated"}, {"role": "manage"}],
    ids=["everyone", "signed in", "full"],
)
async def test_what_is_more_than_that_is_seen_before_it_is_saved(
    photos: Server, alice: Browser, further: dict[str, str]
) -> None:
    shown = await share(alice, "bob", **further)
    assert "Nothing is saved yet." in words(shown)
    assert (await photos.bob.get(PHOTO)).status == 403


async def test_what_the_share_does_not_reach_is_said_first(photos: Server, alice: Browser) -> None:
    await photos.put_acl(PHOTO)
    assert "1 thing inside has rules of its own" in words(await share(alice, "bob"))
    assert (await photos.bob.get(FOLDER)).status == 403


async def test_less_than_before_is_seen_first(photos: Server, alice: Browser) -> None:
    await share(alice, "bob", "edit")
    assert "Can edit Can view" in words(await share(alice, "bob", "view"))
    assert (await photos.bob.put(PHOTO, "x", "text/plain")).status == 204


CONTACT = """@prefix foaf: <http://xmlns.com/foaf/0.1/>.
INSERT DATA { <%s> foaf:knows <%s>. <%s> foaf:name "%s" }"""


async def knows(server: Server, web_id: str, name: str) -> None:
    """Let the profile of alice name somebody whom she knows."""
    update = CONTACT.replace("@prefix", "PREFIX").replace(">.\n", ">\n", 1)
    answer = await server.alice.request(
        "PATCH",
        "/alice/",
        headers={"Content-Type": "application/sparql-update"},
        body=(update % (server.alice_web_id, web_id, web_id, name)).encode(),
    )
    assert answer.status < 300, answer.text


async def test_people_are_called_as_the_owner_calls_them(photos: Server, alice: Browser) -> None:
    await knows(photos, photos.bob_web_id, "Bob Builder")
    page = await alice.get(SHARE)
    assert '<option value="Bob Builder">' in page.text
    shown = words(await share(alice, "bob builder"))
    assert "Bob Builder can view." in shown
    assert (await photos.bob.get(PHOTO)).status == 200


async def test_ones_own_contacts_are_found_after_too_many_look_ups(
    photos: Server, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    await knows(photos, photos.bob_web_id, "Bob Builder")
    monkeypatch.setattr(people, "LOOKUPS_PER_HOUR", 1)
    assert "Nobody was found." in words(await share(alice, "nobody-here"))
    assert "You have looked for many people." in words(await share(alice, "nobody-here"))
    assert "Bob Builder can view." in words(await share(alice, "bob builder"))


async def test_an_empty_field_means_nobody(photos: Server, alice: Browser) -> None:
    await knows(photos, photos.bob_web_id, "")  # who has no name here
    assert "Nobody was found." in words(await share(alice, ""))
    assert (await photos.bob.get(PHOTO)).status == 403


async def test_a_name_of_several_is_asked_about(photos: Server, alice: Browser) -> None:
    await knows(photos, "https://carol.example/#me", "bob")
    shown = await share(alice, "bob")
    assert shown.status == 400
    assert "More than one match." in words(shown)
    assert (await photos.bob.get(PHOTO)).status == 403
    chosen = {"choice": f"agent {photos.bob_web_id}", "step": "share"}
    # A choice counts for the name that it was offered for.
    refused = await alice.send(shown, SHARE, who="nobody-here", **chosen)
    assert "Nobody was found." in words(refused)
    assert (await photos.bob.get(PHOTO)).status == 403
    await alice.send(shown, SHARE, **chosen)
    assert (await photos.bob.get(PHOTO)).status == 200


async def test_suggestions_are_of_the_person_alone(
    photos: Server, alice: Browser, bob: Browser
) -> None:
    """Whoever manages a folder of somebody else sees whom they know themselves."""
    await knows(photos, "https://secret.example/#me", "Secret Friend")
    await photos.put_acl("/alice/private/", ("acl:agent <https://hidden.example/#me>", "+Read"))
    await save(alice, await give(alice, "bob", "manage"))
    mine, theirs = await alice.get(SHARE), await bob.get(SHARE)
    assert "Secret Friend" in mine.text
    assert "hidden.example" in mine.text
    assert '<option value="alice">' in theirs.text  # who shares with bob
    assert "Secret Friend" not in theirs.text
    assert "hidden.example" not in theirs.text


async def test_a_file_says_which_folder_gives_access(photos: Server, alice: Browser) -> None:
    await save(alice, await give(alice, "", kind="everyone"))
    page = await alice.get(f"/.pages/share{PHOTO}")
    assert "Everyone can view, because the folder “photos” says so." in words(page)
    german = await alice.get(f"/.pages/share{PHOTO}", accept_language="de")
    assert "Alle können es ansehen, weil der Ordner „photos“ es so festlegt." in words(german)


async def test_a_role_is_changed_and_removed(photos: Server, alice: Browser) -> None:
    shown = await save(alice, await give(alice, "bob"))
    fields = entry_fields(shown, photos.bob_web_id)
    preview = await alice.post(SHARE, {**fields, "change": "set", "role": "edit", "scope": "both"})
    assert "Can view Can edit" in words(preview)
    shown = await save(alice, preview)
    assert (await photos.bob.put(PHOTO, "by bob", "text/plain")).status == 204
    fields = entry_fields(shown, photos.bob_web_id)
    shown = await save(alice, await alice.post(SHARE, {**fields, "change": "remove"}))
    assert photos.bob_web_id not in shown.text
    assert (await photos.bob.get(PHOTO)).status == 403


async def test_an_answer_to_somebody_else_is_not_shown(
    photos: Server, alice: Browser, bob: Browser
) -> None:
    answer = {
        "@context": ["https://www.w3.org/ns/activitystreams", {"acl": ACL}],
        "type": "Accept",
        "actor": photos.alice_web_id,
        "object": {
            "type": "Offer",
            "actor": "https://carol.example/#me",
            "object": {
                "type": "acl:Authorization",
                "acl:agent": {"id": "https://carol.example/#me"},
                "acl:accessTo": {"id": BASE + PHOTO},
                "acl:mode": {"id": f"{ACL}Read"},
            },
        },
    }
    sent = await photos.alice.request(
        "POST",
        "/bob/inbox/",
        headers={"Content-Type": "application/ld+json"},
        body=json.dumps(answer).encode(),
    )
    assert sent.status == 201
    assert "Nobody has asked for access" in words(await bob.get("/.pages/requests"))


async def test_a_role_is_narrowed_to_what_is_inside(photos: Server, alice: Browser) -> None:
    shown = await save(alice, await give(alice, "bob"))
    fields = entry_fields(shown, photos.bob_web_id)
    wanted = {**fields, "change": "set", "role": "view", "scope": "inside"}
    await save(alice, await alice.post(SHARE, wanted))
    assert (await photos.bob.get(PHOTO)).status == 200
    assert (await photos.bob.get(FOLDER)).status == 403


def entry_fields(page: Page, grantee: str) -> dict[str, str]:
    """The fields of the form for one entry."""
    return next(
        dict(form.fields)
        for form in page.forms
        if form.fields.get("grantee") == grantee and "was" in form.fields
    )


async def test_who_has_no_control_sees_nothing_of_the_rules(
    photos: Server, bob: Browser, browser: Browser
) -> None:
    for path in (SHARE, f"/.pages/why{FOLDER}", "/.pages/share/alice/nothing"):
        page = await bob.get(path)
        assert page.status == 403
        assert "alice/#me" not in page.text
        assert (await browser.get(path)).path == "/.pages/sign-in"


async def test_nothing_is_changed_without_the_token_of_the_session(
    photos: Server, alice: Browser
) -> None:
    """And not by a page of another site."""
    preview = await give(alice, "bob")
    fields = dict(preview.form(SHARE).fields)
    for changed in ({"csrf_token": ""}, {"csrf_token": "0" * 64}):
        assert (await alice.post(SHARE, {**fields, **changed})).status in (400, 403)
    foreign = await alice.post(
        SHARE, fields, Sec_Fetch_Site="cross-site", Origin="https://evil.example"
    )
    assert foreign.status in (400, 403)
    assert (await photos.bob.get(PHOTO)).status == 403


async def test_a_preview_that_is_out_of_date_saves_nothing(photos: Server, alice: Browser) -> None:
    preview = await give(alice, "bob")
    assert (await photos.put_acl(FOLDER)).status == 201
    shown = await save(alice, preview)
    assert "Somebody else changed the access in the meantime" in words(shown)
    assert (await photos.bob.get(PHOTO)).status == 403


async def test_the_owner_cannot_be_locked_out(photos: Server, alice: Browser) -> None:
    page = await alice.get(SHARE)
    token = page.form(SHARE).fields["token"]
    csrf = page.form(SHARE).fields["csrf_token"]
    wanted = {
        "csrf_token": csrf,
        "token": token,
        "kind": "agent",
        "grantee": photos.alice_web_id,
        "was": "both",
        "change": "remove",
    }
    preview = await alice.post(SHARE, wanted)
    assert "keeps full access" in words(preview)
    assert "Save" not in [
        button.strip() for button in re.findall(r">([^<>]*)</button>", preview.text)
    ]
    refused = await alice.post(SHARE, {**wanted, "step": "save", "confirmed": "yes"})
    assert refused.status == 409
    assert (await photos.alice.put(PHOTO, "still mine", "text/plain")).status == 204


async def test_who_manages_confirms_giving_it_up(
    photos: Server, alice: Browser, bob: Browser
) -> None:
    await save(alice, await give(alice, "bob", "manage"))
    shown = await bob.get(SHARE)
    fields = entry_fields(shown, photos.bob_web_id)
    preview = await bob.post(SHARE, {**fields, "change": "remove"})
    assert "You could no longer manage this yourself." in words(preview)
    again = await save(bob, preview)
    assert again.status == 409
    assert (await photos.bob.get(f"{FOLDER}.acl")).status == 200
    # Afterwards the page itself is no longer theirs.
    assert (await save(bob, again, confirmed="yes")).status == 403
    assert (await photos.bob.get(f"{FOLDER}.acl")).status == 403


async def test_own_rules_are_made_and_given_up_by_a_button(photos: Server, alice: Browser) -> None:
    at = f"/.pages/share{PHOTO}"
    page = await alice.get(at)
    fields = {
        "csrf_token": page.form(at).fields["csrf_token"],
        "token": page.form(at).fields["token"],
    }
    preview = await alice.post(at, {**fields, "change": "stop"})
    shown = await save(alice, preview, at)
    assert "This has rules of its own." in words(shown)
    fields["token"] = shown.form(at).fields["token"]
    shown = await save(alice, await alice.post(at, {**fields, "change": "resume"}), at)
    assert "This follows the folder" in words(shown)


@pytest.mark.parametrize(
    ("who", "text"),
    [
        ("nobody", "Nobody was found."),
        ("nobody@example.org", "Nobody was found."),
        ("https://", "This is not the address of a person"),
        (SCRIPT, "Nobody was found."),
        ("javascript://x", "This is not the address of a person"),
    ],
)
async def test_who_is_not_found_is_said_at_the_field(
    who: str, text: str, photos: Server, alice: Browser
) -> None:
    page = await give(alice, who)
    assert page.status == 400
    assert text in words(page)
    assert SCRIPT not in page.text


async def test_an_account_is_found_by_an_e_mail_address_that_its_profile_states(
    start: Start,
) -> None:
    """The answer to any other address is the same, whether or not it has an account."""
    server = await start(idp=True)
    await server.alice.put(PHOTO, "content", "text/plain")
    alice = await sign_in_to_account(server)
    assert "Nobody was found." in words(await give(alice, "bob@example.org"))
    update = (
        f"INSERT DATA {{ <{server.bob_web_id}> <http://xmlns.com/foaf/0.1/mbox> "
        "<mailto:bob@example.org> }"
    )
    headers = {"Content-Type": "application/sparql-update"}
    await server.bob.request("PATCH", "/bob/", headers=headers, body=update.encode())
    assert "Can view" in words(await give(alice, "bob@example.org"))


async def test_rules_with_scripts_in_them_are_shown_as_text(photos: Server, alice: Browser) -> None:
    special = (
        "<#app> a acl:Authorization; acl:agent <https://x.example/#%3Cscript%3E>; "
        "acl:origin <https://app.example>; acl:accessTo <./>; acl:mode acl:Read; "
        f"<http://www.w3.org/2000/01/rdf-schema#label> '{SCRIPT}', 'a\"b'."
    )
    await photos.alice.put(f"{FOLDER}.acl", f"{acl_turtle(FOLDER)}\n{special}", TURTLE)
    page = await alice.get(SHARE)
    assert "1 rule that is not edited here" in words(page)
    assert "names applications" in words(page)
    assert SCRIPT not in page.text
    assert "https://app.example" in words(page)


async def test_somebody_can_be_explained(photos: Server, alice: Browser) -> None:
    await save(alice, await give(alice, "", kind="authenticated"))
    page = await alice.get(f"/.pages/why{PHOTO}?ask=yes&who=bob")
    text = words(page)
    assert "bob : Can view" in text
    assert "view: yes The rules of “photos” allow it to anyone who is signed in." in text
    assert "/alice/photos/.acl#share-1" in text
    assert "change and delete: no No rule of “photos” allows it." in text
    page = await alice.get(f"/.pages/why{PHOTO}?ask=yes&kind=anybody")
    assert "Anyone, without signing in: No access" in words(page)


async def test_an_application_can_be_explained(photos: Server, alice: Browser) -> None:
    special = (
        f"<#app> a acl:Authorization; acl:agent <{photos.bob_web_id}>; "
        "acl:origin <https://app.example>; acl:accessTo <./>; acl:mode acl:Read."
    )
    await photos.alice.put(f"{FOLDER}.acl", f"{acl_turtle(FOLDER)}\n{special}", TURTLE)
    page = await alice.get(f"/.pages/why{FOLDER}?who=bob&app=https://other.example")
    assert "only through other applications: https://app.example." in words(page)
    page = await alice.get(f"/.pages/why{FOLDER}?who=bob&app=javascript:alert(1)")
    assert "This is not the address of an application" in words(page)


async def test_a_request_for_access_is_answered_on_the_sharing_page(
    photos: Server, alice: Browser, bob: Browser
) -> None:
    ask = f"/.pages/ask{PHOTO}"
    sent = await bob.send(await bob.get(ask), ask, role="edit", message=f"Please {SCRIPT}")
    assert "Your request was sent to the owner." in words(sent)
    listed = await alice.get("/.pages/requests")
    assert photos.bob_web_id in listed.text
    assert SCRIPT not in listed.text
    at = f"/.pages/share{PHOTO}"
    page = await alice.get(at)
    allow = next(form for form in page.forms if form.fields.get("request"))
    preview = await alice.post(at, allow.fields)
    assert "No access Can edit" in words(preview)
    await save(alice, preview, at)
    assert (await photos.bob.put(PHOTO, "by bob", "text/plain")).status == 204
    assert "Nobody has asked for access" in words(await alice.get("/.pages/requests"))
    told = await bob.get("/.pages/requests")
    assert "Allowed:" in words(told)
    assert f'href="/.pages/files{PHOTO}"' in told.text
    told = await bob.send(told, "/.pages/requests")
    assert "The answer was removed." in words(told)
    assert "Nobody has asked for access" in words(told)


async def test_a_request_is_announced_on_every_page_and_asked_on_the_first(
    photos: Server, alice: Browser, bob: Browser
) -> None:
    waits = '<span class="visually-hidden">1 request for access</span>'
    pages = ("/.pages/", "/.pages/files/alice/", "/.pages/profile")
    for path in pages:
        assert waits not in (await alice.get(path)).text
    ask = f"/.pages/ask{PHOTO}"
    await bob.send(await bob.get(ask), ask, role="edit", message="Please")
    for path in pages:
        page = await alice.get(path)
        assert waits in page.text
        assert 'href="/.pages/requests"' in page.text
        assert waits not in (await bob.get("/.pages/")).text
    home = await alice.get("/.pages/")
    assert "Somebody asks you for access" in words(home)
    assert "Please" in words(home)
    assert "bob" in words(home)
    allow = next(form for form in home.forms if form.action == f"/.pages/share{PHOTO}")
    assert "Can edit" in words(await alice.post(allow.action, allow.fields))
    back = await alice.send(home, "/.pages/requests")
    assert back.path == "/.pages/"
    assert "The request was removed." in words(back)
    for path in pages:
        assert waits not in (await alice.get(path)).text
    assert "Somebody asks you" not in words(await alice.get("/.pages/"))


async def test_a_request_is_refused(photos: Server, alice: Browser, bob: Browser) -> None:
    ask = f"/.pages/ask{PHOTO}"
    await bob.send(await bob.get(ask), ask, role="view", message="")
    page = await alice.send(await alice.get("/.pages/requests"), "/.pages/requests")
    assert "The request was removed." in words(page)
    assert "Nobody has asked for access" in words(page)
    assert (await photos.bob.get(PHOTO)).status == 403
    told = await bob.get("/.pages/requests")
    assert "Refused:" in words(told)
    assert f'href="/.pages/files{PHOTO}"' not in told.text
    [path] = re.findall(r'name="answer" value="([^"]+)"', told.text)
    notification = (await photos.bob.get(path)).json()
    assert (notification["type"], notification["object"]["type"]) == ("Reject", "Offer")


async def test_who_asks_for_access_has_to_sign_in(photos: Server, browser: Browser) -> None:
    assert (await browser.get(f"/.pages/ask{PHOTO}")).path == "/.pages/sign-in"


async def test_asking_does_not_tell_what_exists(photos: Server, bob: Browser) -> None:
    texts = [
        words(await bob.get(f"/.pages/ask{path}")).replace(path, "")
        for path in (PHOTO, f"{FOLDER}no.txt")
    ]
    assert texts[0] == texts[1]


async def test_files_lead_to_sharing_for_those_who_manage_them(
    photos: Server, alice: Browser, bob: Browser
) -> None:
    await save(alice, await give(alice, "bob", "edit"))
    for path in (FOLDER, PHOTO):
        assert f'href="/.pages/share{path}"' in (await alice.get(f"/.pages/files{path}")).text
        assert f'href="/.pages/share{path}"' not in (await bob.get(f"/.pages/files{path}")).text


async def test_contacts_are_offered(photos: Server, alice: Browser) -> None:
    prefixes = (
        "@prefix solid: <http://www.w3.org/ns/solid/terms#>. "
        "@prefix vcard: <http://www.w3.org/2006/vcard/ns#>. "
    )
    index = f"{prefixes}<#it> solid:forClass vcard:Individual; solid:instance </alice/c.ttl#it>."
    await photos.alice.put("/alice/settings/publicTypeIndex.ttl", index, TURTLE)
    card = f"{prefixes}<#it> vcard:fn 'Carol \"{SCRIPT}'; vcard:url <https://carol.example/#me>."
    await photos.alice.put("/alice/c.ttl", card.replace('alert("x")', "alert(1)"), TURTLE)
    page = await alice.get(SHARE)
    assert 'value="Carol &#34;&lt;script&gt;' in page.text


GROUPS = f"""@prefix vcard: <http://www.w3.org/2006/vcard/ns#>.
@prefix foaf: <http://xmlns.com/foaf/0.1/>. @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#>.
<#g1> a vcard:Group; vcard:fn "Book\u202e  club"; foaf:name "Readers";
  vcard:hasMember <{BASE}/bob/#me>.
<#g2> a vcard:Group; rdfs:label "Neighbours". <#choir%20boys> a vcard:Group; vcard:fn " "."""
MEMBERS_URL = f"{BASE}/alice/private/groups.ttl"


async def test_groups_appear_by_the_name_that_they_state(photos: Server, alice: Browser) -> None:
    assert (await photos.alice.put("/alice/private/groups.ttl", GROUPS, TURTLE)).status == 201
    groups = ", ".join(f"<{MEMBERS_URL}#{each}>" for each in ("g1", "g2", "choir%20boys"))
    await photos.put_acl(FOLDER, (f"acl:agentGroup {groups}", "+Read"))
    page = words(await alice.get(SHARE))
    for name in ("Book club", "Neighbours", "choir boys"):
        assert f"The members of {name} can view." in page
    assert f"{MEMBERS_URL}#g1" in page  # two groups can state the same name
    own = words(await alice.get("/.pages/shared?view=by-me"))
    assert "The members of Book club can view" in own
    assert "groups.ttl#" not in own
    why = words(await alice.get(f"/.pages/why{FOLDER}?ask=yes&who=bob"))
    assert "allow it to the group Book club, of which" in why
    preview = words(await give(alice, f"{MEMBERS_URL}#g2", "edit", kind="group"))
    assert f"Neighbours Details {MEMBERS_URL}#g2 Can view Can edit" in preview


async def test_the_name_of_a_group_that_may_not_be_read_does_not_show(
    photos: Server, bob: Browser
) -> None:
    assert (await photos.alice.put("/alice/private/groups.ttl", GROUPS, TURTLE)).status == 201
    rules = (
        acl_turtle("/bob/x", (f"acl:agentGroup <{MEMBERS_URL}#g2>", "Read"), owner=False)
        + f"<#o> a acl:Authorization; acl:agent <{BASE}/bob/#me>; "
        f"acl:accessTo <{BASE}/bob/x>; acl:mode acl:Control."
    )
    assert (await photos.bob.put("/bob/x", "x", "text/plain")).status == 201
    assert (await photos.bob.put("/bob/x.acl", rules, TURTLE)).status == 201
    for address in ("/.pages/share/bob/x", "/.pages/why/bob/x?ask=yes&who=alice"):
        page = await bob.get(address)
        assert page.status == 200
        assert "g2" in words(page)
        assert "Neighbours" not in page.text


async def test_a_request_on_home_is_not_among_what_happened_too(
    photos: Server, alice: Browser, bob: Browser
) -> None:
    ask = f"/.pages/ask{PHOTO}"
    await bob.send(await bob.get(ask), ask, role="view", message="please")
    page = words(await alice.get("/.pages/"))
    assert "please" in page
    recent = page.partition("Recent files")[2]
    assert "sea.txt" in recent
    assert "inbox" not in recent
    assert "inbox" in words(await alice.get("/.pages/activity?apps=yes"))


async def test_home_shows_each_file_once_and_not_what_is_gone_or_for_applications(
    photos: Server, alice: Browser
) -> None:
    for name in ("private/old.txt", "private/gone.txt", "settings/x.txt", "private/old.txt"):
        assert (await photos.alice.put(f"/alice/{name}", name, "text/plain")).status in {201, 204}
    assert (await photos.alice.delete("/alice/private/gone.txt")).status == 204
    page = words(await alice.get("/.pages/"))
    recent = page.partition("Recent files")[2].partition("All activity")[0]
    assert recent.count("old.txt") == 1
    assert "gone.txt" not in recent
    assert "x.txt" not in recent
    assert recent.index("old.txt") < recent.index("sea.txt")


# --- ends and conditions -------------------------------------------------------------------------


async def test_access_is_given_until_a_day_and_the_end_is_changed(
    photos: Server, alice: Browser
) -> None:
    preview = await give(alice, "bob", scope="both", until="2999-12-04")
    assert "No access Can view, until Dec 4, 2999" in words(preview)
    shown = await save(alice, preview)
    assert "bob can view, until Dec 4, 2999." in words(shown)
    rules = await photos.alice.get(f"{FOLDER}.acl")
    assert '"2999-12-05T00:00:00.000Z"' in rules.text
    assert (await photos.bob.get(PHOTO)).status == 200
    fields = entry_fields(shown, photos.bob_web_id) | {"change": "set", "role": "edit"}
    assert fields["until"] == "2999-12-04"
    preview = await alice.post(SHARE, fields)
    assert "Can view, until Dec 4, 2999 Can edit, until Dec 4, 2999" in words(preview)
    preview = await alice.post(SHARE, {**fields, "until": ""})
    shown = await save(alice, preview)
    assert "bob can edit." in words(shown)
    assert "2999" not in (await photos.alice.get(f"{FOLDER}.acl")).text
    german = await alice.post(
        SHARE, {**entry_fields(shown, photos.bob_web_id), "change": "set", "until": "2999-12-04"}
    )
    assert german.status == 200


async def test_access_is_given_from_a_day_on(photos: Server, alice: Browser) -> None:
    """Until another one, and the beginning is changed."""
    preview = await give(alice, "bob", scope="both", until="2999-12-04", **{"from": "2999-12-01"})
    said = "Can view, from Dec 1, 2999 until Dec 4, 2999"
    assert f"No access {said}" in words(preview)
    shown = await save(alice, preview)
    assert "bob can view, from Dec 1, 2999 until Dec 4, 2999." in words(shown)
    rules = await photos.alice.get(f"{FOLDER}.acl")
    assert '"2999-12-01T00:00:00.000Z"' in rules.text
    assert (await photos.bob.get(PHOTO)).status == 403
    fields = entry_fields(shown, photos.bob_web_id) | {"change": "set"}
    assert (fields["from"], fields["until"]) == ("2999-12-01", "2999-12-04")
    empty = await alice.post(SHARE, {**fields, "from": "2999-12-05"})
    assert empty.status == 400
    shown = await save(alice, await alice.post(SHARE, {**fields, "from": ""}))
    assert "bob can view, until Dec 4, 2999." in words(shown)
    assert (await photos.bob.get(PHOTO)).status == 200
    shown = await save(
        alice,
        await alice.post(SHARE, {**entry_fields(shown, photos.bob_web_id), "change": "remove"}),
    )
    assert "bob can view" not in words(shown)


@pytest.mark.parametrize("until", ["tomorrow", "2001-02-03", "2999-02-30"])
async def test_a_day_that_is_none_or_has_passed_is_refused(
    photos: Server, alice: Browser, until: str
) -> None:
    assert (await give(alice, "bob", until=until)).status == 400
    assert (await photos.alice.get(f"{FOLDER}.acl")).status == 404


async def test_conditions_are_shown_in_words_and_kept(photos: Server, alice: Browser) -> None:
    conditions = (
        "[ a acl:ClientCondition; acl:client <https://app.example/id> ], "
        "[ a acl:IssuerCondition; acl:issuer <https://idp.example> ], "
        f"[ a <{vocab.ACCESS_PERIOD_CONDITION}>; <{vocab.ACCESS_ENDS}> "
        '"2999-12-04T18:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> ]'
    )
    rule = f"acl:agent <{photos.bob_web_id}>; acl:condition {conditions}"
    await photos.put_acl(FOLDER, (rule, "Read"))
    page = words(await alice.get(SHARE))
    assert "only through these applications: https://app.example/id" in page
    assert "only for people of these identity providers: https://idp.example" in page
    assert "until Dec 4, 2999, 6:00" in page
    assert "does not know" not in page
    await save(alice, await give(alice, "", kind="everyone"))
    rules = (await photos.alice.get(f"{FOLDER}.acl")).text
    assert "ClientCondition" in rules
    assert "IssuerCondition" in rules
    why = await alice.get(f"/.pages/why{FOLDER}?ask=yes&kind=person&who={photos.bob_web_id}")
    assert why.status == 200


async def test_a_condition_that_is_not_evaluated_is_warned_of(
    photos: Server, alice: Browser
) -> None:
    rule = "acl:agentClass foaf:Agent; acl:condition [ a <https://example.org/Weather> ]"
    await photos.put_acl(FOLDER, (rule, "Read"))
    page = words(await alice.get(SHARE))
    assert "does not know, and applies without it: https://example.org/Weather." in page
    assert (await photos.public.get(FOLDER)).status == 200


async def test_why_names_the_condition_that_does_not_hold(photos: Server, alice: Browser) -> None:
    condition = "[ a acl:ClientCondition; acl:client <https://app.example/id> ]"
    await photos.put_acl(FOLDER, (f"acl:agentClass foaf:Agent; acl:condition {condition}", "Read"))
    page = words(await alice.get(f"/.pages/why{FOLDER}?ask=yes&kind=anybody"))
    assert "not now or not in this way" in page
    assert "only through these applications: https://app.example/id" in page

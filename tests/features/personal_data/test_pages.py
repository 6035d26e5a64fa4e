"""The pages over what applications keep: whose rights apply, what is written, and hostile data."""

from __future__ import annotations

import json
import re

import pytest

from podstead.core.media_types import TURTLE
from podstead.features.personal_data import finder
from tests.features.personal_data import documents
from tests.support import rdf_oracle as oracle
from tests.support.application import BASE, Server, Start
from tests.support.asgi import Client
from tests.support.browser import Browser
from tests.support.pod_pages import sign_in_by_token

COLLECTIONS = "/.pages/collections"
INDEX = "/alice/settings/privateTypeIndex.ttl"
VCARD = "http://www.w3.org/2006/vcard/ns#"
BOOKMARK = "http://www.w3.org/2002/01/bookmark#"


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists are complete, however slow the machine is."""
    monkeypatch.setattr(finder, "MAX_SECONDS", 600.0)


@pytest.fixture
async def server(start: Start) -> Server:
    return await start()


@pytest.fixture
async def alice(server: Server) -> Browser:
    return await sign_in_by_token(server, server.alice)


async def put(client: Client, path: str, turtle: str, content_type: str = TURTLE) -> None:
    assert (await client.put(path, turtle, content_type)).status in (200, 201, 204, 205)


async def register(
    server: Server, type_: str, place: str, relation: str = "instance", index: str = INDEX
) -> None:
    turtle = (await server.alice.get(index)).text
    statement = (
        f"<#r{len(turtle)}> a <http://www.w3.org/ns/solid/terms#TypeRegistration>; "
        f"<http://www.w3.org/ns/solid/terms#forClass> <{type_}>; "
        f"<http://www.w3.org/ns/solid/terms#{relation}> <{place}>."
    )
    await put(server.alice, index, f"{turtle}\n{statement}")


async def text_of(browser: Browser, view: str, **query: str) -> str:
    more = "".join(f"&{name}={value}" for name, value in query.items())
    page = await browser.get(f"{COLLECTIONS}?view={view}{more}")
    assert page.status == 200, page.text
    return page.text


async def with_contacts(server: Server) -> None:
    for path, turtle in (
        ("index.ttl", documents.ADDRESS_BOOK),
        ("people.ttl", documents.PEOPLE),
        ("Person/1/index.ttl", documents.CONTACT),
    ):
        await put(server.alice, f"/alice/Contacts/{path}", turtle)
    await register(server, f"{VCARD}AddressBook", f"{BASE}/alice/Contacts/index.ttl#this")


CARLA = "/.pages/collections/alice/Contacts/Person/1/index.ttl?thing=%23this"


async def test_a_pod_without_anything_says_so(alice: Browser) -> None:
    page = await alice.get(COLLECTIONS)
    assert "No contacts yet" in page.text
    assert f'href="{COLLECTIONS}" aria-current="page"' in page.text
    assert "No events yet" in await text_of(alice, "calendar")


async def test_the_type_indexes_lead_to_what_is_kept(server: Server, alice: Browser) -> None:
    await with_contacts(server)
    await put(server.alice, "/alice/calendar/events.ttl", documents.EVENTS)
    await register(
        server, "http://schema.org/Event", f"{BASE}/alice/calendar/", "instanceContainer"
    )
    await put(server.alice, "/alice/notes.ttl", documents.NOTES)
    public = "/alice/settings/publicTypeIndex.ttl"
    await register(
        server, "http://schema.org/TextDigitalDocument", f"{BASE}/alice/notes.ttl", index=public
    )
    await put(server.alice, "/alice/bookmarks/index.ttl", documents.BOOKMARKS)
    await register(server, f"{BOOKMARK}Bookmark", f"{BASE}/alice/bookmarks/index.ttl")
    assert "Carla Diaz" in await text_of(alice, "contacts")
    agenda = await text_of(alice, "calendar")
    assert agenda.index("Dentist") < agenda.index("Picnic")
    assert "Concert" not in agenda  # it is over
    assert "Concert" in await text_of(alice, "calendar", month="2001-01")
    assert "12:30 UTC+02:00" in agenda
    assert "Milk" in await text_of(alice, "notes")
    bookmarks = await text_of(alice, "bookmarks")
    for each in ("https://example.org/", "https://example.net/a", "https://example.com/b"):
        assert f'href="{each}"' in bookmarks
    found = await text_of(alice, "bookmarks", q="inside+nothing")
    assert "Nothing found" in found
    assert "As text" in await text_of(alice, "bookmarks", q="as+text")


async def test_an_address_book_lists_who_is_there_with_an_address(
    server: Server, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_contacts(server)
    people = documents.PEOPLE + '<Person/2/index.ttl#this> vcard:fn "Gone Long Ago".'
    await put(server.alice, "/alice/Contacts/people.ttl", people)
    page = await text_of(alice, "contacts", q="carla%40example")
    assert "Carla Diaz" in page
    assert 'href="mailto:carla@example.org"' in page
    assert "Gone Long Ago" not in await text_of(alice, "contacts")
    monkeypatch.setattr(finder, "MAX_CARDS", 1)  # only the names in the index
    page = await text_of(alice, "contacts")
    assert "Carla Diaz" in page
    assert "Gone Long Ago" in page
    assert "mailto:" not in page


async def test_a_contact_is_shown_and_edited_and_the_address_book_follows(
    server: Server, alice: Browser
) -> None:
    await with_contacts(server)
    page = await alice.get(CARLA)
    assert 'href="mailto:carla@example.org"' in page.text
    assert 'href="tel:+491234"' in page.text
    form = await alice.get(f"{CARLA}&do=edit")
    typed = {"name": "Carla Dias", "note": "Met\r\nin Rome", "birthday": "1955-05-12"}
    page = await alice.send(form, CARLA, change="save", **typed)
    assert page.status == 200
    assert "“Carla Dias” was saved." in page.text
    assert "Met\nin Rome" in page.text
    assert "May 12, 1955" in page.text
    stored = oracle.read(
        (await server.alice.get("/alice/Contacts/Person/1/index.ttl")).text, TURTLE
    )
    before = oracle.read(documents.CONTACT, TURTLE)
    assert len(stored) == len(before) + 1  # the note
    assert "39" in {str(each) for each in stored.objects()}
    assert "Carla Dias" in await text_of(alice, "contacts")
    assert "Carla Diaz" not in await text_of(alice, "contacts")


async def test_an_address_book_follows_however_many_contacts_there_are(
    server: Server, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(8):
        await put(server.alice, f"/alice/cards/{number}.ttl", documents.CONTACT)
    await register(server, f"{VCARD}Individual", f"{BASE}/alice/cards/", "instanceContainer")
    await with_contacts(server)
    monkeypatch.setattr(finder, "MAX_DOCUMENTS", 8)
    form = await alice.get(f"{CARLA}&do=edit")
    await alice.send(form, CARLA, change="save", name="Carla Dias")
    assert "Carla Dias" in (await server.alice.get("/alice/Contacts/people.ttl")).text


async def test_a_deleted_contact_is_in_the_trash_and_no_book_lists_it(
    server: Server, alice: Browser
) -> None:
    await with_contacts(server)
    question = await alice.get(f"{CARLA}&do=delete")
    assert "Delete this contact?" in question.text
    page = await alice.send(question, CARLA, change="delete")
    assert "“Carla Diaz” was deleted." in page.text
    assert "No contacts yet" in page.text
    assert (await server.alice.get("/alice/Contacts/Person/1/index.ttl")).status == 404
    assert "Carla" not in (await server.alice.get("/alice/Contacts/people.ttl")).text


async def test_one_of_several_in_a_document_is_deleted_alone(
    server: Server, alice: Browser
) -> None:
    await put(server.alice, "/alice/notes.ttl", documents.NOTES)
    address = "/.pages/collections/alice/notes.ttl?thing=%231"
    await alice.send(await alice.get(f"{address}&do=delete"), address, change="delete")
    left = (await server.alice.get("/alice/notes.ttl")).text
    assert "Idea" in left
    assert "Milk" not in left


@pytest.mark.parametrize(
    ("view", "typed", "folder", "type_"),
    [
        ("contacts", {"name": "Eve", "email": "e@example.org\r\nf@example.org"}, "contacts/",
         f"{VCARD}Individual"),
        ("calendar", {"name": "Walk", "start": "2099-01-02", "start-time": "10:00"}, "calendar/",
         "http://schema.org/Event"),
        ("notes", {"note": "Remember the milk"}, "notes/",
         "http://schema.org/TextDigitalDocument"),
        ("bookmarks", {"name": "News", "link": "https://news.example/"}, "bookmarks/",
         f"{BOOKMARK}Bookmark"),
    ],
)  # fmt: skip
async def test_new_things_get_a_place_that_applications_find(
    server: Server, alice: Browser, view: str, typed: dict[str, str], folder: str, type_: str
) -> None:
    address = f"{COLLECTIONS}/new?view={view}"
    await alice.send(await alice.get(address), address, **typed)
    page = await alice.send(await alice.get(address), address, **typed)  # into the same place
    assert page.status == 200, page.text
    assert page.text.count(f"<bdi>{next(iter(typed.values()))}</bdi></a></p>") == 2
    stored = (await server.alice.get(INDEX)).text
    index = oracle.read(stored, TURTLE, base_iri=BASE + INDEX)
    registered = f"{BASE}/alice/{folder}{'index.ttl#this' if view == 'contacts' else ''}"
    assert [str(each) for each in index.objects()].count(registered) == 1
    found = re.search(rf'href="{COLLECTIONS}(/alice/{folder}[^?"]+)[?]thing', page.text)
    assert found is not None, page.text
    document = oracle.read((await server.alice.get(found[1])).text, TURTLE)
    assert type_ in {str(each) for each in document.objects()}
    assert (await server.public.get(found[1])).status == 401


async def test_an_event_may_end_later_on_its_day_and_at_a_time_of_another_zone(
    server: Server, alice: Browser
) -> None:
    address = f"{COLLECTIONS}/new?view=calendar"
    typed = {"name": "A", "start": "2099-02-03", "start-time": "10:00", "end": "2099-02-03"}
    page = await alice.send(await alice.get(address), address, **typed)
    assert page.status == 200, page.text
    page = await alice.send(await alice.get(address), address, **typed, **{"end-time": "09:59"})
    assert "The end is before the beginning." in page.text
    for number, (start, end) in enumerate(
        (
            ("2099-06-01T10:00:00+02:00", "2099-06-01T09:30:00Z"),
            ("2099-06-02T00:30:00+02:00", "2099-06-01T23:30:00Z"),
        )
    ):
        path = f"/alice/e{number}.ttl"
        event = (
            "@prefix schema: <http://schema.org/>. "
            "@prefix xsd: <http://www.w3.org/2001/XMLSchema#>. "
            f'<#a> a schema:Event; schema:name "Call"; '
            f'schema:startDate "{start}"^^xsd:dateTime; schema:endDate "{end}"^^xsd:dateTime.'
        )
        await put(server.alice, path, event)
        entry = f"{COLLECTIONS}{path}?thing=%23a"
        form = await alice.get(f"{entry}&do=edit")
        page = await alice.send(form, entry, change="save", name="Talk")
        assert "“Talk” was saved." in page.text
        stored = (await server.alice.get(path)).text
        assert start in stored
        assert end in stored


async def test_malformed_values_are_refused_by_field(alice: Browser) -> None:
    for view, typed, said in (
        ("contacts", {"name": "A", "email": "nobody"}, "This is not an e-mail address."),
        ("contacts", {"name": "A", "email": "a[@b"}, "This is not an e-mail address."),
        ("bookmarks", {"name": "A", "link": "https://x.example/[a]"}, "not the address of a web"),
        ("contacts", {"name": ""}, "This is needed."),
        ("bookmarks", {"name": "A", "link": "javascript:alert(1)"}, "not the address of a web"),
        ("calendar", {"name": "A", "start": "2099-02-31"}, "This is not a day"),
        ("calendar", {"name": "A", "start": "2099-02-03", "end": "2099-02-02"}, "before the beg"),
        ("notes", {"note": " "}, "Type something."),
    ):
        address = f"{COLLECTIONS}/new?view={view}"
        page = await alice.send(await alice.get(address), address, **typed)
        assert page.status == 422
        assert said in page.text
        assert 'aria-invalid="true"' in page.text


async def test_hostile_data_is_text(server: Server, alice: Browser) -> None:
    script = "<script>alert(1)</script>"
    await put(
        server.alice,
        "/alice/b.ttl",
        f"""@prefix b: <{BOOKMARK}>. @prefix d: <http://purl.org/dc/terms/>.
        <#1> a b:Bookmark; d:title "{script}"; b:recalls <javascript:alert(1)>.
        <#2> a b:Bookmark; d:title "data"; b:recalls "data:text/html,x".
        <#3> a b:Bookmark; d:title "own"; b:recalls <{BASE}/.pages/sign-out>.
        """,
    )
    await register(server, f"{BOOKMARK}Bookmark", f"{BASE}/alice/b.ttl")
    for page in (
        await text_of(alice, "bookmarks"),
        (await alice.get("/.pages/collections/alice/b.ttl?thing=%231")).text,
        (await alice.get("/.pages/collections/alice/b.ttl?thing=%231&do=edit")).text,
    ):
        assert script not in page
        for scheme in ('href="javascript:', 'href="data:', f'href="{BASE}/.pages/sign-out'):
            assert scheme not in page.lower()


async def test_what_cannot_be_read_is_said_and_skipped(server: Server, alice: Browser) -> None:
    await put(server.alice, "/alice/notes.ttl", documents.NOTES)
    await put(server.alice, "/alice/notes.txt", "no linked data", "text/plain")
    await put(server.bob, "/bob/private/secret.ttl", documents.NOTES.replace("Idea", "Bob's own"))
    type_ = "http://schema.org/TextDigitalDocument"
    for place in ("/alice/notes.ttl", "/alice/notes.txt", "/bob/private/secret.ttl", "/alice/gone"):
        await register(server, type_, BASE + place)
    await register(server, type_, "https://elsewhere.example/notes.ttl")
    await register(server, type_, f"{BASE}/bob/private/", "instanceContainer")
    page = await text_of(alice, "notes")
    assert "Idea" in page
    assert "Bob" not in page
    assert "3 documents or folders could not be read" in page
    assert "One entry is on another server" in page


async def test_the_limits_of_a_list_are_said(
    server: Server, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        await put(server.alice, f"/alice/n/{number}.ttl", documents.NOTES)
    type_ = "http://schema.org/TextDigitalDocument"
    await register(server, type_, f"{BASE}/alice/n/", "instanceContainer")
    assert "more here than" not in await text_of(alice, "notes")
    monkeypatch.setattr(finder, "MAX_DOCUMENTS", 3)
    assert "There is more here than can be shown." in await text_of(alice, "notes")
    monkeypatch.setattr(finder, "MAX_DOCUMENTS", 300)
    monkeypatch.setattr(finder, "MAX_SECONDS", -1.0)  # 0 is over only once the clock ticks
    assert "There is more here than can be shown." in await text_of(alice, "notes")


async def test_who_may_only_read_gets_no_form(server: Server, alice: Browser) -> None:
    await with_contacts(server)
    person = "/alice/Contacts/Person/1/index.ttl"
    bob = await sign_in_by_token(server, server.bob)
    for address in (CARLA, f"{CARLA}&do=edit", f"{CARLA}&do=delete"):
        assert (await bob.get(address)).status == 403
    await server.put_acl(person, (f"acl:agent <{BASE}/bob/#me>", "Read"))
    page = await bob.get(CARLA)
    for address in (CARLA, f"{CARLA}&do=edit", f"{CARLA}&do=delete"):
        page = await bob.get(address)
        assert page.status == 200
        assert "Carla Diaz" in page.text
        assert "Edit</a>" not in page.text
        assert 'name="change"' not in page.text
    before = await server.alice.get(person)
    etag = before.header("etag") or ""
    for change in ("save", "delete"):
        token = page.text.split('data-csrf-token="')[1].split('"')[0]
        sent = {"csrf_token": token, "etag": etag, "change": change, "name": "Hacked"}
        assert (await bob.post(CARLA, sent)).status == 403
    assert (await server.alice.get(person)).text == before.text
    assert (await Browser(server.application).get(COLLECTIONS)).path == "/.pages/sign-in"


async def test_a_change_of_somebody_else_is_not_overwritten(server: Server, alice: Browser) -> None:
    await with_contacts(server)
    form = await alice.get(f"{CARLA}&do=edit")
    await put(
        server.alice,
        "/alice/Contacts/Person/1/index.ttl",
        documents.CONTACT.replace("1980-05-12", "1980-05-13"),
    )
    page = await alice.send(form, CARLA, name="Mine", change="save")
    assert page.status == 409
    assert "Somebody else has changed this meanwhile." in page.text
    assert 'value="Mine"' in page.text
    page = await alice.send(page, CARLA, change="save")
    assert "“Mine” was saved." in page.text


async def test_a_document_offers_to_be_opened_as_what_it_is(server: Server, alice: Browser) -> None:
    await with_contacts(server)
    page = await alice.get("/.pages/files/alice/Contacts/Person/1/index.ttl")
    assert "Open as contact" in page.text
    assert CARLA in page.text
    assert "Open as" not in (await alice.get("/.pages/files/alice/Contacts/people.ttl")).text


async def test_json_ld_stays_json_ld(server: Server, alice: Browser) -> None:
    note = {
        "@context": {"schema": "http://schema.org/"},
        "@id": "#it",
        "@type": "schema:NoteDigitalDocument",
        "schema:name": "Old",
        "schema:keywords": ["a", "b"],
    }
    await put(server.alice, "/alice/n.jsonld", json.dumps(note), "application/ld+json")
    address = "/.pages/collections/alice/n.jsonld?thing=%23it"
    form = await alice.get(f"{address}&do=edit")
    page = await alice.send(form, address, name="New", change="save")
    assert "“New” was saved." in page.text
    answer = await server.alice.get("/alice/n.jsonld", accept="application/ld+json")
    assert {**note, "schema:name": "New"} == answer.json()


@pytest.mark.parametrize("name", ["contacts", "calendar", "notes", "bookmarks"])
async def test_the_folders_of_entries_are_apart_from_those_of_the_person(
    server: Server, alice: Browser, name: str
) -> None:
    await server.alice.put(f"/alice/{name}/x.txt", "x", "text/plain")
    await server.alice.put("/alice/Recipes/x.txt", "x", "text/plain")
    for page in ("/.pages/files/alice/", "/.pages/"):
        text = (await alice.get(page)).text
        assert 'href="/.pages/files/alice/Recipes/"' in text
        assert f'href="/.pages/files/alice/{name}/"' not in text
    assert (
        f'href="/.pages/files/alice/{name}/"'
        in (await alice.get("/.pages/files/alice/?apps=yes")).text
    )

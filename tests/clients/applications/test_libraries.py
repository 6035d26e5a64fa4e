"""Libraries that use the authenticated fetch of a page, in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.clients.applications.sites import PACKAGES, PAGES, bundled
from tests.clients.applications.test_penny import LIBRARY
from tests.clients.identity.field_notes import (
    Application,
    confine_to_private,
    opened,
    running_application,
)
from tests.support.client import Client
from tests.support.node import APPLICATIONS, install_packages
from tests.support.people import Account
from tests.support.websites import Website

FILES = PACKAGES / "solid-file-client/dist/window/solid-file-client.bundle.js"
IN_THE_TYPE_INDEX = "http://www.w3.org/ns/solid/terms#instance"

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def website() -> Iterator[Website]:
    """Where Field Notes is, and the libraries beside it."""
    install_packages(APPLICATIONS)
    with running_application(LIBRARY) as website:
        website.publish("/contacts.js", bundled(PAGES / "contacts.js"), "text/javascript")
        website.publish("/files.js", FILES.read_bytes(), "text/javascript")
        yield website


@pytest.fixture
def signed_in(page: Page, website: Website, account: Account) -> Page:
    """The page, where somebody has signed in."""
    application = opened(page.context, website, account)
    application.sign_in()
    return application.page


def test_an_address_book_is_kept(signed_in: Page, account: Account, owner: Client) -> None:
    """contacts-rdflib: each contact in a document of its own, and the index beside them."""
    signed_in.add_script_tag(url="/contacts.js", type="module")
    made: dict[str, str] = signed_in.evaluate(
        """async (pod) => {
            const contacts = openContacts(solidClientAuthentication.fetch);
            const book = await contacts.createAddressBook(
                {containerUri: pod + "private/", name: "Friends", ownerWebId: pod + "#me"});
            const group = await contacts.createNewGroup(
                {addressBookUri: book, groupName: "Colleagues"});
            const contact = await contacts.createNewContact({addressBookUri: book, contact:
                {name: "Moss", email: "moss@example.org", phoneNumber: "0118999"}});
            await contacts.addContactToGroup({contactUri: contact, groupUri: group});
            await contacts.renameContact({contactUri: contact, newName: "Maurice Moss"});
            await contacts.addNewEmailAddress(
                {contactUri: contact, newEmailAddress: "maurice@example.org"});
            return {book, group, contact};
        }""",
        account.pod_url,
    )
    read: dict[str, Any] = signed_in.evaluate(
        """async ({webId, book, group, contact}) => {
            const contacts = openContacts(solidClientAuthentication.fetch);
            const {title, contacts: people, groups} = await contacts.readAddressBook(book);
            const {emails, phoneNumbers} = await contacts.readContact(contact);
            const {members} = await contacts.readGroup(group);
            const {privateUris} = await contacts.listAddressBooks(webId);
            return {
                title,
                people: people.map(({name}) => name),
                groups: groups.map(({name}) => name),
                members: members.map(({uri}) => uri),
                emails: emails.map(({value}) => value).sort(),
                phoneNumbers: phoneNumbers.map(({value}) => value),
                privateUris,
            };
        }""",
        {"webId": account.web_id, **made},
    )
    assert read == {
        "title": "Friends",
        "people": ["Maurice Moss"],
        "groups": ["Colleagues"],
        "members": [made["contact"]],
        "emails": ["maurice@example.org", "moss@example.org"],
        "phoneNumbers": ["0118999"],
        "privateUris": [made["book"]],
    }
    index = f"/{account.name}/settings/privateTypeIndex.ttl"
    registered = owner.get(index, Accept="application/n-triples").text
    assert f"<{IN_THE_TYPE_INDEX}> <{made['book']}> ." in registered


def test_files_and_folders_are_copied_moved_and_deleted(
    signed_in: Page, account: Account, owner: Client
) -> None:
    """solid-file-client: whole trees, with what belongs to each of their resources."""
    private = f"/{account.name}/private/"
    signed_in.add_script_tag(url="/files.js")
    seen: dict[str, Any] = signed_in.evaluate(
        """async (folder) => {
            const files = new SolidFileClient(solidClientAuthentication);
            await files.createFile(folder + "a/b/note.txt", "one", "text/plain");
            await files.createFolder(folder + "c/");
            await files.postFile(folder + "posted.ttl", "<#a> <#b> <#c>.", "text/turtle");
            await files.patchFile(folder + "posted.ttl",
                "DELETE DATA { <#a> <#b> <#c> . };\\nINSERT DATA { <#a> <#b> <#d> . }",
                "application/sparql-update");
            await files.copyFolder(folder + "a/", folder + "copy/");
            await files.move(folder + "copy/b/note.txt", folder + "moved.txt");
            await files.deleteFolder(folder + "a/");
            const {files: documents, folders} = await files.readFolder(folder);
            return {
                moved: await files.readFile(folder + "moved.txt"),
                exists: await files.itemExists(folder + "moved.txt"),
                deleted: await files.itemExists(folder + "a/"),
                documents: documents.map(({name}) => name).sort(),
                folders: folders.map(({name}) => name).sort(),
            };
        }""",
        f"{account.pod_url}private/",
    )
    assert seen == {
        "moved": "one",
        "exists": True,
        "deleted": False,
        "documents": ["moved.txt", "posted.ttl"],
        "folders": ["c", "copy"],
    }
    assert owner.members(private) == {
        private + name for name in ("c/", "copy/", "moved.txt", "posted.ttl")
    }
    assert owner.members(f"{private}copy/") == {f"{private}copy/b/"}
    assert owner.members(f"{private}copy/b/") == set()
    posted = f"{account.pod_url}private/posted.ttl"
    statements = owner.get(f"{private}posted.ttl", Accept="application/n-triples").text
    assert statements.strip() == f"<{posted}#a> <{posted}#b> <{posted}#d> ."


@pytest.fixture
def confined(page: Page, website: Website, account: Account, owner: Client) -> Application:
    """An application that the person let into one folder alone, and a letter elsewhere."""
    owner.put(f"/{account.name}/letters/first.txt", "Dear Bob", "text/plain")
    application = opened(page.context, website, account)
    application.sign_in(by=confine_to_private)
    return application


@pytest.mark.feature("access_limits")
def test_inrupts_library_stays_in_the_folder_that_it_was_let_into(
    confined: Application, account: Account
) -> None:
    """It is told why, and where the person can allow more."""
    note, letter = f"{account.pod_url}private/note", f"{account.pod_url}letters/first.txt"
    assert confined.does("Write", note, "mine") == "201"
    assert confined.does("Read", note) == "200 mine"
    for act, url in (("Read", letter), ("Write", letter), ("Write", f"{letter}.2")):
        assert confined.does(act, url).startswith("403 ")
    challenge = confined.page.evaluate(
        """async (url) => {
            const response = await solidClientAuthentication.fetch(url);
            return response.headers.get("www-authenticate");
        }""",
        letter,
    )
    assert 'error="insufficient_scope"' in challenge
    question = confined.page.context.new_page()
    question.goto(challenge.partition('error_uri="')[2].rstrip('"'))
    question.get_by_role("button", name="Allow it", exact=True).click()
    expect(question.get_by_role("button", name="Allow it", exact=True)).to_be_hidden()
    assert confined.does("Read", letter) == "200 Dear Bob"
    assert confined.does("Write", letter).startswith("403 ")


@pytest.mark.feature("access_limits")
def test_solid_file_client_stays_in_the_folder_that_it_was_let_into(
    confined: Application, account: Account, owner: Client
) -> None:
    """It copies and moves access rules as well, unless it is told not to."""
    confined.page.add_script_tag(url="/files.js")
    seen: dict[str, Any] = confined.page.evaluate(
        """async ({inside, outside}) => {
            const files = new SolidFileClient(solidClientAuthentication);
            await files.createFile(inside + "a/note.txt", "one", "text/plain");
            await files.createFolder(inside + "b/");
            const alone = {withAcl: false};
            await files.move(inside + "a/note.txt", inside + "b/note.txt", alone);
            const status = (error) => error.status ?? error.errors?.[0]?.status ?? `${error}`;
            const refused = {};
            for (const [name, act] of Object.entries({
                read: () => files.readFile(outside + "first.txt"),
                list: () => files.readFolder(outside),
                write: () => files.createFile(outside + "new.txt", "x", "text/plain"),
                copyOut: () => files.copyFile(inside + "b/note.txt", outside + "note.txt", alone),
                copyIn: () => files.copyFile(outside + "first.txt", inside + "first.txt", alone),
                rules: () => files.copyFile(inside + "b/note.txt", inside + "c.txt"),
                remove: () => files.deleteFile(outside + "first.txt"),
            })) refused[name] = await act().then(() => "done", status);
            return {kept: await files.readFile(inside + "b/note.txt"), refused};
        }""",
        {"inside": f"{account.pod_url}private/", "outside": f"{account.pod_url}letters/"},
    )
    ways = ("read", "list", "write", "copyOut", "copyIn", "rules", "remove")
    assert seen == {"kept": "one", "refused": dict.fromkeys(ways, 403)}
    assert owner.members(f"/{account.name}/letters/") == {f"/{account.name}/letters/first.txt"}

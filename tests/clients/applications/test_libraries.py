"""Libraries that use the authenticated fetch of a page, in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.clients.applications.sites import PACKAGES, PAGES, bundled
from tests.clients.applications.test_penny import LIBRARY
from tests.clients.identity.field_notes import opened, running_application
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

"""End-to-end encryption is the client's: the documented round trip, by the document's own code.

What the library encrypted is read by another implementation, and what that one encrypted by the
library; the server has exactly the bytes, and does with them nothing that it does to documents.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clients import nostr_encryption as oracle
from tests.clients.client_home import Home, StartClient
from tests.support.client import Pod, create_pod
from tests.support.client_process import CLIENTS, ClientFailed, ClientProcess
from tests.support.nostr import NostrKey
from tests.support.rdf import TURTLE
from tests.support.server import ServerProcess, running_server

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/use/encrypt-content.md"
TEXT = "Grüße \U0001f511\r\n\x00 <#a> <#b> 1 .\n"
LONG = "A long letter. " * 20_000
BEHAVIOURS = """
const bytes = (hex) => Uint8Array.from(Buffer.from(hex, "hex"));
const forms = {
  "NIP-44": [putSealed, getSealed],
  "NIP-04": [putSealedByNip04, getSealedByNip04],
};
export const put = ({ form, secret, other, url, text }) =>
  forms[form][0](bytes(secret), other, url, text);
export const get = ({ form, secret, other, url }) =>
  forms[form][1](bytes(secret), other, url);
"""
"""What lets a test choose among the functions of the document."""

FORMS = pytest.mark.parametrize("form", ["NIP-44", "NIP-04"])


def blocks(language: str) -> list[str]:
    """The examples of the document."""
    text = DOCUMENT.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def client(start_client: StartClient, tmp_path_factory: pytest.TempPathFactory) -> ClientProcess:
    """The document's code, in a folder where the packages are those of the clients."""
    folder = tmp_path_factory.mktemp("document")
    (folder / "node_modules").symlink_to(CLIENTS / "node_modules")
    module = folder / "document.mjs"
    module.write_text("".join(blocks("js")) + BEHAVIOURS, encoding="utf-8")
    return start_client(module)


@dataclass(frozen=True, slots=True)
class Correspondence:
    """Two keys, both let into a container by the document's rules."""

    client: ClientProcess
    writer: NostrKey
    reader: NostrKey
    url: str
    """Of the resource that they write."""

    def put(self, form: str, text: str) -> None:
        keys = {"secret": _hex(self.writer), "other": self.reader.public}
        self.client.run("put", form=form, url=self.url, text=text, **keys)

    def get(self, form: str, key: NostrKey, other: NostrKey) -> str:
        keys = {"secret": _hex(key), "other": other.public}
        return str(self.client.run("get", form=form, url=self.url, **keys).value)

    def read_without_the_library(self, form: str, payload: str) -> str:
        if form == "NIP-44":
            conversation = oracle.conversation_key(self.reader.secret, self.writer.public)
            return oracle.decrypt_44(payload, conversation)
        return oracle.decrypt_04(payload, oracle.shared_x(self.reader.secret, self.writer.public))

    def encrypted_without_the_library(self, form: str, text: str) -> str:
        if form == "NIP-44":
            conversation = oracle.conversation_key(self.writer.secret, self.reader.public)
            return oracle.encrypt_44(text, conversation, secrets.token_bytes(32))
        shared = oracle.shared_x(self.writer.secret, self.reader.public)
        return oracle.encrypt_04(text, shared, secrets.token_bytes(16))


def _hex(key: NostrKey) -> str:
    return f"{key.secret:064x}"


def documented_rules(pod: Pod, key: NostrKey) -> str:
    """The document's access rules, for this pod and key."""
    [rules] = blocks("turtle")
    assert "</alice/#me>" in rules
    rules = rules.replace("</alice/#me>", f"<{pod.web_id}>")
    rules, count = re.subn("did:nostr:[0-9a-f]{64}", key.did, rules)
    assert count == 1
    return rules


@pytest.fixture
def correspondence(client: ClientProcess, home: Home) -> Correspondence:
    writer, reader = NostrKey.new(), NostrKey.new()
    rules = documented_rules(home.pod, writer).replace(
        f"<{writer.did}>", f"<{writer.did}>, <{reader.did}>"
    )
    assert home.owner.put(home.path + ".acl", rules, TURTLE).status == 201
    return Correspondence(client, writer, reader, home.url + "letter")


@FORMS
@pytest.mark.parametrize("text", [TEXT, LONG], ids=["short", "long"])
def test_what_one_key_encrypts_and_stores_the_other_gets_and_reads(
    form: str, text: str, correspondence: Correspondence, home: Home
) -> None:
    """A-152: and so does another implementation, from the bytes that the server has."""
    correspondence.put(form, text)
    assert correspondence.get(form, correspondence.reader, correspondence.writer) == text
    assert correspondence.get(form, correspondence.writer, correspondence.reader) == text
    payload = home.get("letter").text
    assert text not in payload
    assert correspondence.read_without_the_library(form, payload) == text


@FORMS
def test_the_library_reads_what_another_implementation_encrypted(
    form: str, correspondence: Correspondence, home: Home
) -> None:
    payload = correspondence.encrypted_without_the_library(form, TEXT)
    home.put("letter", payload, "text/plain")
    assert correspondence.get(form, correspondence.reader, correspondence.writer) == TEXT


@FORMS
def test_the_server_returns_exactly_the_bytes_to_everyone_and_after_a_restart(
    form: str, client: ClientProcess, tmp_path: Path
) -> None:
    """A-152: the sender's signature is over the hash of what is stored."""
    key = NostrKey.new()
    with running_server(ServerProcess(tmp_path / "root")) as server:
        pod = create_pod(server)
        path = f"{pod.root}private/"
        with pod.owner() as owner:
            rules = documented_rules(pod, key)
            assert owner.put(f"{path}.acl", rules, TURTLE).status in {201, 204}
            letter = Correspondence(client, key, key, f"{server.base_url}{path}letter")
            letter.put(form, LONG)
            stored = owner.get(f"{path}letter", Accept="text/turtle;q=0.5, */*;q=0.1")
            payload = stored.text
            assert letter.read_without_the_library(form, payload) == LONG
            assert stored.headers["content-type"] == "text/plain"
            assert stored.headers["content-length"] == str(len(payload))
            tag = stored.headers["etag"]
            head = owner.head(f"{path}letter").headers
            assert (head["etag"], head["content-length"]) == (tag, str(len(payload)))
            part = owner.get(f"{path}letter", Range="bytes=1000-70000", If_Range=tag)
            assert (part.status, part.text) == (206, payload[1000:70001])
            unchanged = owner.get(f"{path}letter", If_None_Match=tag)
            assert unchanged.status == 304
        server.restart()
        with pod.owner() as owner:
            again = owner.get(f"{path}letter")
            assert (again.text, again.headers["etag"]) == (payload, tag)
            assert again.headers["content-type"] == "text/plain"
        assert letter.get(form, key, key) == LONG


@FORMS
def test_a_key_that_no_rule_names_gets_nothing(form: str, correspondence: Correspondence) -> None:
    correspondence.put(form, TEXT)
    with pytest.raises(ClientFailed, match="not read: 403"):
        correspondence.get(form, NostrKey.new(), correspondence.writer)


def test_bytes_that_somebody_changed_are_not_read(
    correspondence: Correspondence, home: Home
) -> None:
    """By NIP-44; NIP-04 cannot tell."""
    correspondence.put("NIP-44", TEXT)
    content = bytearray(base64.b64decode(home.get("letter").body))
    content[40] ^= 1
    home.put("letter", base64.b64encode(content), "text/plain")
    with pytest.raises(ClientFailed, match="invalid MAC"):
        correspondence.get("NIP-44", correspondence.reader, correspondence.writer)


def test_a_key_that_may_only_read_stores_nothing(
    correspondence: Correspondence, home: Home
) -> None:
    """And what is there stays as it was."""
    correspondence.put("NIP-44", TEXT)
    before = hashlib.sha256(home.get("letter").body).digest()
    rules = documented_rules(home.pod, correspondence.writer).replace(
        "acl:mode acl:Read, acl:Write.", "acl:mode acl:Read."
    )
    assert home.owner.put(home.path + ".acl", rules, TURTLE).status == 204
    with pytest.raises(ClientFailed, match="not stored: 403"):
        correspondence.put("NIP-44", "another")
    assert hashlib.sha256(home.get("letter").body).digest() == before

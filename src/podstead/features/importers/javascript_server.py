"""Reads the data of javascript-solid-server.

Every folder at its top is a pod, except those whose names begin with a dot. RDF is JSON-LD whatever
the extension, and so are ACLs. A profile is an HTML page with JSON-LD in it, and becomes that
JSON-LD. Each account is a JSON file in ``.idp/accounts``. The data does not contain its base URL,
but WebIDs do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from podstead.core.errors import RequestRefused
from podstead.core.identifiers import ACL_SUFFIX
from podstead.core.media_types import HTML, JSON_LD, RDF_TYPES
from podstead.features.importers import folders as importers_folders
from podstead.features.importers import values
from podstead.features.importers.javascript_documents import as_one_document, rules_there
from podstead.rdf.html_islands import data_islands

_ACCOUNTS: Final = (".idp", "accounts")
_INDEX: Final = "_"
_QUOTA: Final = ".quota.json"
_PROFILE: Final = "profile/card#me"
_WITHOUT_EMAIL: Final = "@jss"
_SERVED_DOT_NAMES: Final = frozenset({".acl", ".meta", ".well-known"})
_LOOKED_AT_BYTES: Final = 512
_MAX_DOCUMENT_BYTES: Final = 10 * 1024 * 1024
"""The largest JSON that the server reads."""
_KEYWORD: Final = re.compile(rb"\s*[\[{][^}]*\"@(?:context|id|graph|type)\"")


class JavaScriptServerData(importers_folders.OtherServer):
    """The data of one server."""

    def __init__(self, path: Path, *, base_url: str | None = None) -> None:
        """Raises NotThisServer."""
        super().__init__(path)
        has_root_pod = self._folder.has_file(("profile", "card")) and self._folder.has_file(
            (ACL_SUFFIX,)
        )
        folders = [
            entry
            for entry in self._entries()
            if entry.kind is importers_folders.EntryKind.FOLDER
            and not entry.name.startswith(".")
            and entry.is_text
        ]
        if not folders and not has_root_pod:
            raise values.NotThisServer(
                f"{path} is not the data folder of a javascript-solid-server: there is no pod in "
                "it. Name the folder of its option --root"
            )
        stored = self._read_accounts()
        found = base_url or next(
            filter(None, (_base_url_of(each, at_root=has_root_pod) for each in stored)), None
        )
        self.base_url = importers_folders.checked_base_url(found)
        base = urlsplit(self.base_url)
        pods: list[values.FoundPod] = []
        if has_root_pod:
            pods.append(
                values.FoundPod("", self.base_url, self._owner((), self.base_url, stored), ())
            )
        for entry in () if has_root_pod else folders:
            of_pod = next((each for each in stored if each.podName == entry.name), None)
            url = f"{self.base_url}{importers_folders.segment_of(entry.name)}/"
            subdomain = f"{base.scheme}://{entry.name}.{base.netloc}/"
            if of_pod is not None and of_pod.webId.startswith(subdomain):
                url = subdomain
            owner = self._owner(entry.parts, url, stored)
            pods.append(values.FoundPod(entry.name, url, owner, entry.parts))
        self.pods = pods
        self.accounts = list(self._accounts(stored))
        for entry in self._entries() if not has_root_pod else ():
            if entry not in folders and not entry.name.startswith("."):
                self._leave_out(entry.parts, "It is in no pod")

    def resources(self, pod: values.FoundPod) -> importers_folders.Found:
        """Everything in a pod, containers before their members."""
        profile = (pod.owner or "").partition("#")[0]
        for found in importers_folders.resources_of(self._folder, pod, self, but=frozenset()):
            if isinstance(found, values.LeftOut) or found.parts is None:
                yield found
            elif found.url == profile and found.content_type == HTML:
                yield from self._as_profile(found)
            elif found.path.endswith(ACL_SUFFIX):
                yield from self._as_rules(found)
            elif found.content_type == JSON_LD:
                yield from self._as_document(found)
            else:
                yield found

    def _as_profile(self, found: values.FoundResource) -> importers_folders.Found:
        """A profile that is an HTML page as the JSON-LD in it, which is what the server gave to
        applications; the page itself only draws it."""
        try:
            page = self._folder.read(found.parts or ()).decode()
            islands = [
                importers_folders.json_of(text.encode()) for text in data_islands(page).texts
            ]
            said = json.dumps(islands[0] if len(islands) == 1 else islands, ensure_ascii=False)
        except (importers_folders.Unreadable, ValueError, RecursionError):
            yield found
            return
        if not islands:
            yield found
            return
        as_data = msgspec.structs.replace(found, content_type=JSON_LD)
        yield from self._as_document(as_data, said.encode())

    def _as_rules(self, found: values.FoundResource) -> importers_folders.Found:
        """An ACL that grants what the server granted, and a report of the differences."""
        try:
            read = rules_there(self._folder.read(found.parts or ()), acl_url=found.url)
        except RequestRefused:
            yield found  # for the importer to refuse, with the reason
            return
        yield from (
            values.LeftOut(importers_folders.readable_path(found.parts or ()), each)
            for each in read.differences
        )
        yield msgspec.structs.replace(found, content_type=read.content_type, content=read.content)

    def _as_document(
        self, found: values.FoundResource, there: bytes | None = None
    ) -> importers_folders.Found:
        """JSON-LD as the server reads it."""
        try:
            if there is None:
                there = self._folder.read(found.parts or (), max_bytes=_MAX_DOCUMENT_BYTES)
            read = as_one_document(there)
        except importers_folders.Unreadable:
            yield found
            return
        if read.lost:
            reason = f"Nothing says what {', '.join(read.lost)} means: it is not taken"
            yield values.LeftOut(importers_folders.readable_path(found.parts or ()), reason)
        yield msgspec.structs.replace(found, content=read.content)

    # --- names and types ----------------------------------------------------------------------

    def document_type(self, entry: importers_folders.FolderEntry, _: str) -> str:
        by_name = importers_folders.type_by_extension(importers_folders.extension_of(entry.name))
        if by_name not in (None, *RDF_TYPES):
            return by_name or importers_folders.OCTET_STREAM
        beginning = self._beginning(entry)
        if by_name is not None:
            return JSON_LD if values.rdf_type_of(beginning) == JSON_LD else by_name
        if beginning.lstrip()[:5].lower() in (b"<!doc", b"<html"):
            return HTML
        return JSON_LD if _KEYWORD.match(beginning) else importers_folders.OCTET_STREAM

    def auxiliary_type(self, entry: importers_folders.FolderEntry) -> str:
        return values.rdf_type_of(self._beginning(entry))

    def passed_over(self, entry: importers_folders.FolderEntry) -> str | None:
        if entry.name == _QUOTA:
            return ""
        if entry.name.startswith(".") and entry.name not in _SERVED_DOT_NAMES:
            # In a pod at the root, the server's own records are beside the pod's resources.
            return "" if len(entry.parts) == 1 else "The server did not give it to anybody"
        return None

    def _beginning(self, entry: importers_folders.FolderEntry) -> bytes:
        try:
            return self._folder.beginning(entry.parts, _LOOKED_AT_BYTES)
        except importers_folders.Unreadable:
            return b""

    # --- pods and accounts --------------------------------------------------------------------

    def _entries(self) -> list[importers_folders.FolderEntry]:
        try:
            return self._folder.entries()
        except importers_folders.Unreadable as error:
            raise values.NotThisServer(str(error)) from error

    def _read_accounts(self) -> list[_StoredAccount]:
        accounts: list[_StoredAccount] = []
        if not self._folder.has_folder(_ACCOUNTS):
            return accounts
        for entry in self._folder.entries(_ACCOUNTS):
            if entry.name.startswith(_INDEX):
                continue
            try:
                stored = importers_folders.json_of(self._folder.read(entry.parts))
                accounts.append(msgspec.convert(stored, _StoredAccount))
            except (RequestRefused, msgspec.ValidationError):
                self._leave_out(entry.parts, "The account cannot be read")
        return accounts

    def _owner(
        self, parts: tuple[str, ...], url: str, stored: Sequence[_StoredAccount]
    ) -> str | None:
        account = next((each for each in stored if each.webId.startswith(url)), None)
        if account is not None:
            return account.webId
        try:
            content = self._folder.read((*parts, ACL_SUFFIX))
            return values.owner_by(rules_there(content, acl_url=url + ACL_SUFFIX).rules)
        except RequestRefused:
            return None

    def _accounts(self, stored: Sequence[_StoredAccount]) -> Iterator[values.FoundAccount]:
        for account in stored:
            pods = tuple(
                pod.url
                for pod in self.pods
                if pod.name in ("", account.podName) or account.webId.startswith(pod.url)
            )
            if not pods:
                self._leave_out(_ACCOUNTS, f"There is no pod for the account {account.username}")
                continue
            if account.passkeys:
                reason = "Passkeys belong to the old server: the person adds new ones"
                self.left_out.append(values.LeftOut(f"account of {account.username}", reason))
            email = account.email
            yield values.FoundAccount(
                pods=pods,
                web_ids=(account.webId,),
                email=None if email is None or email.endswith(_WITHOUT_EMAIL) else email,
                password_hash=account.passwordHash,
            )


class _StoredAccount(msgspec.Struct):
    username: str
    webId: str  # noqa: N815 - as the server writes it
    podName: str  # noqa: N815 - as the server writes it
    email: str | None = None
    passwordHash: str | None = None  # noqa: N815 - as the server writes it
    passkeys: list[dict[str, object]] = msgspec.field(default_factory=list)


def _base_url_of(account: _StoredAccount, *, at_root: bool) -> str | None:
    """The base URL that a WebID was made from, with the pod in the path or in the host name, or
    with the only pod at the root."""
    url = urlsplit(account.webId)
    if at_root:
        return f"{url.scheme}://{url.netloc}/" if url.path == "/profile/card" else None
    if f"{url.path}#{url.fragment}" == f"/{account.podName}/{_PROFILE}":
        return f"{url.scheme}://{url.netloc}/"
    if url.netloc.startswith(f"{account.podName}.") and url.path == "/profile/card":
        return f"{url.scheme}://{url.netloc.removeprefix(f'{account.podName}.')}/"
    return None

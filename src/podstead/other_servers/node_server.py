"""What does a folder of Node Solid Server contain? Versions 5 and 6.

The folder of the server has ``data``, with a folder for each host name (``alice.example.org``) or,
with one person only, that person's pod itself, and ``.db``, whose ``oidc/users/users`` has a JSON
file for each login. A document whose extension does not say its media type has another one after a
dollar sign. ACLs and descriptions are ``.acl`` and ``.meta`` files, which may begin their names
with a slash: those are names below the host, not below the folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from podstead.core.errors import RequestRefused
from podstead.core.identifiers import ACL_SUFFIX, DESCRIPTION_SUFFIX
from podstead.core.media_types import TURTLE
from podstead.other_servers.extensions import OCTET_STREAM, extension_of, type_by_extension
from podstead.other_servers.folders import EntryKind, Folder, FolderEntry, Parts, readable_path
from podstead.other_servers.owners import owner_in_acl
from podstead.other_servers.values import (
    FoundAccount,
    FoundPod,
    FoundResource,
    LeftOut,
    NotThisServer,
)
from podstead.other_servers.walking import SUFFIXES, resources_of, segment_of

_DATA: Final = ("data",)
_CONFIGURATION: Final = ("config.json",)
_USERS: Final = (".db", "oidc", "users", "users")
_ACL_OF_ACL: Final = tuple(f"{suffix}{ACL_SUFFIX}" for suffix in SUFFIXES)
_ACL_OF_ROOT: Final = f"{DESCRIPTION_SUFFIX}{ACL_SUFFIX}"
_INACTIVE_RULES: Final = f"serverSide.ttl{ACL_SUFFIX}"
_INACTIVE: Final = "inactive"
"""The extension of a file that the server puts into every pod."""
_KEPT: Final = re.compile(r"%(?:25)*2F", re.IGNORECASE)
_EXTENSION: Final = re.compile(r"\$\.[^$]*\Z")


class NodeServerData:
    """The data of one server."""

    def __init__(self, path: Path, *, base_url: str | None = None) -> None:
        """Raises NotThisServer."""
        self._folder = Folder(path)
        self.left_out: list[LeftOut] = []
        if not self._folder.has_folder(_DATA):
            raise NotThisServer(
                f"{path} is not the folder of a Node Solid Server: it has no 'data'. Name the "
                "folder that has 'data' and '.db'"
            )
        users = self._read_users()
        found = base_url or self._configured() or next((user.idp for user in users if user.idp), "")
        if not urlsplit(found).netloc:
            raise NotThisServer("The data does not say its base URL. Add --from-url")
        self.base_url = found.removesuffix("/") + "/"
        self.pods: Sequence[FoundPod] = list(self._find_pods(users))
        self.accounts: Sequence[FoundAccount] = list(self._accounts(users))

    def resources(self, pod: FoundPod) -> Iterator[FoundResource | LeftOut]:
        """Everything in a pod, containers before their members."""
        for found in resources_of(self._folder, pod, self, but=frozenset()):
            if isinstance(found, FoundResource) and self._is_guess(found):
                yield LeftOut(
                    readable_path(found.parts or ()),
                    f"The media type of its extension is not known; it is {OCTET_STREAM} now",
                )
            yield found

    def content(self, resource: FoundResource) -> AsyncIterator[bytes]:
        """The content of a resource that is not a container."""
        return self._folder.pieces(resource.parts or ())

    # --- names and types ----------------------------------------------------------------------

    suffixes: Sequence[str] = SUFFIXES

    def segment(self, name: str) -> str:
        return segment_of(name, kept=_KEPT)

    def without_extension(self, name: str) -> str:
        return _EXTENSION.sub("", name) or name

    def document_type(self, entry: FolderEntry, _: str) -> str:
        return type_by_extension(extension_of(entry.name)) or OCTET_STREAM

    def auxiliary_type(self, _: FolderEntry) -> str:
        return TURTLE

    def passed_over(self, entry: FolderEntry) -> str | None:
        if entry.name == _INACTIVE_RULES:
            # They are in every pod, mostly without what they are about.
            subject = entry.name.removesuffix(ACL_SUFFIX)
            return None if self._folder.has_file((*entry.parts[:-1], subject)) else ""
        if entry.name.endswith(_ACL_OF_ACL):
            if entry.name == _ACL_OF_ROOT:
                return ""  # every pod has it, and the root's own rules say the same
            return "A description has the access rules of what it describes here, and no others"
        return None

    def _is_guess(self, found: FoundResource) -> bool:
        extension = extension_of(found.parts[-1]) if found.parts else ""
        return (
            found.content_type == OCTET_STREAM
            and extension not in ("", _INACTIVE)
            and type_by_extension(extension) is None
        )

    # --- pods and accounts --------------------------------------------------------------------

    def _configured(self) -> str | None:
        """The base URL in the server's configuration."""
        try:
            return msgspec.json.decode(
                self._folder.read(_CONFIGURATION), type=_Configuration
            ).serverUri
        except (RequestRefused, msgspec.DecodeError):
            return None

    def _read_users(self) -> list[_StoredUser]:
        users: list[_StoredUser] = []
        if not self._folder.has_folder(_USERS):
            return users
        for entry in self._folder.entries(_USERS):
            try:
                record = json.loads(self._folder.read(entry.parts))
                # An alias of another record has only a link to it.
                if "link" not in record:
                    users.append(msgspec.convert(record, _StoredUser))
            except (RequestRefused, ValueError, TypeError):
                reason = "The login cannot be read"
                self.left_out.append(LeftOut(readable_path(entry.parts), reason))
        return users

    def _find_pods(self, users: Sequence[_StoredUser]) -> Iterator[FoundPod]:
        base = urlsplit(self.base_url)
        host = base.hostname or ""
        hosts = [
            entry
            for entry in self._folder.entries(_DATA)
            if entry.kind is EntryKind.FOLDER and entry.is_text
            and entry.name.endswith(f".{host}")
        ]  # fmt: skip
        if not hosts and self._folder.has_file((*_DATA, ACL_SUFFIX)):
            yield FoundPod("", self.base_url, self._owner(_DATA, self.base_url, users), _DATA)
            return
        port = f":{base.port}" if base.port is not None else ""
        for entry in hosts:
            url = f"{base.scheme}://{entry.name}{port}/"
            name = entry.name.removesuffix(f".{host}")
            yield FoundPod(name, url, self._owner(entry.parts, url, users), entry.parts)
        for entry in self._folder.entries(_DATA):
            if entry not in hosts:
                reason = "It belongs to the server's own site, not to a pod"
                self.left_out.append(LeftOut(readable_path(entry.parts), reason))

    def _owner(self, parts: Parts, url: str, users: Sequence[_StoredUser]) -> str | None:
        user = next((user for user in users if user.has_pod(url)), None)
        if user is not None:
            return user.webId
        try:
            return owner_in_acl(self._folder.read((*parts, ACL_SUFFIX)), container_url=url)
        except RequestRefused:
            return None

    def _accounts(self, users: Sequence[_StoredUser]) -> Iterator[FoundAccount]:
        for user in users:
            pods = tuple(pod.url for pod in self.pods if user.has_pod(pod.url))
            if not pods:
                reason = f"There is no pod for the login {user.webId}"
                self.left_out.append(LeftOut(readable_path(_USERS), reason))
                continue
            yield FoundAccount(
                pods=pods,
                web_ids=(user.webId,),
                email=user.email or None,
                password_hash=user.hashedPassword,
            )


class _Configuration(msgspec.Struct):
    serverUri: str | None = None  # noqa: N815 - as the server writes it


class _StoredUser(msgspec.Struct):
    webId: str  # noqa: N815 - as the server writes it
    username: str = ""
    email: str | None = None
    idp: str = ""
    hashedPassword: str | None = None  # noqa: N815 - as the server writes it
    localAccountId: str = ""  # noqa: N815 - as the server writes it

    def has_pod(self, url: str) -> bool:
        """Whether the pod at the URL is this person's: the WebID is in it or, where that is
        elsewhere, the local name of the account."""
        local = f"{urlsplit(url).scheme}://{self.localAccountId}"
        return self.webId.startswith(url) or (bool(self.localAccountId) and local.startswith(url))

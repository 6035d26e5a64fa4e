"""Reads the data of Node Solid Server, versions 5 and 6.

The folder of the server has ``data``, with a folder for each host name (``alice.example.org``) or,
with one person only, that person's pod itself, and ``.db``, whose ``oidc/users/users`` has a JSON
file for each login. A document whose extension does not say its media type has another one after a
dollar sign. ACLs and descriptions are ``.acl`` and ``.meta`` files, which may begin their names
with a slash: those are relative to the host, not to the folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from podstead.core.errors import RequestRefused
from podstead.core.identifiers import ACL_SUFFIX, DESCRIPTION_SUFFIX
from podstead.core.media_types import RDF_TYPES, TURTLE
from podstead.core.vocab import ACL, ACL_ACCESS_TO, ACL_AUTHORIZATION, ACL_DEFAULT, RDF_TYPE
from podstead.features.importers import folders, values
from podstead.rdf.codecs import parse, serialize
from podstead.rdf.graph import Graph, Iri

_DATA: Final = ("data",)
_CONFIGURATION: Final = ("config.json",)
_USERS: Final = (".db", "oidc", "users", "users")
_ACL_OF_ACL: Final = tuple(f"{suffix}{ACL_SUFFIX}" for suffix in folders.SUFFIXES)
_ACL_OF_ROOT: Final = f"{DESCRIPTION_SUFFIX}{ACL_SUFFIX}"
_INACTIVE_RULES: Final = f"serverSide.ttl{ACL_SUFFIX}"
_INACTIVE: Final = "inactive"
"""The extension of a file that the server puts into every pod."""
_KEPT: Final = re.compile(r"%(?:25)*2F", re.IGNORECASE)
_EXTENSION: Final = re.compile(r"\$\.[^$]*\Z")
_TEXT: Final = re.compile(r"text/|application/(?:javascript|json)")
"""The media types to which the server adds that the text is UTF-8."""
_ABOUT: Final = (Iri(ACL_ACCESS_TO), Iri(ACL_DEFAULT))
_FORMER_DEFAULT: Final = Iri(f"{ACL}defaultForNew")


class NodeServerData(folders.OtherServer):
    """The data of one server."""

    def __init__(self, path: Path, *, base_url: str | None = None) -> None:
        """Raises NotThisServer."""
        super().__init__(path)
        if not self._folder.has_folder(_DATA):
            raise values.NotThisServer(
                f"{path} is not the folder of a Node Solid Server: it has no 'data'. Name the "
                "folder that has 'data' and '.db'"
            )
        users = self._read_users()
        found = base_url or self._configured() or next((user.idp for user in users if user.idp), "")
        self.base_url = folders.checked_base_url(found)
        self.pods = list(self._find_pods(users))
        self.accounts = list(self._accounts(users))

    def resources(self, pod: values.FoundPod) -> folders.Found:
        """Everything in a pod, containers before their members."""
        for found in folders.resources_of(self._folder, pod, self, but=frozenset()):
            if isinstance(found, values.FoundResource) and self._is_guess(found):
                yield values.LeftOut(
                    folders.readable_path(found.parts or ()),
                    "The media type of its extension is not known; it is "
                    f"{folders.OCTET_STREAM} now",
                )
            if isinstance(found, values.FoundResource) and found.path.endswith(ACL_SUFFIX):
                yield from self._as_rules(found)
            else:
                yield found

    def _as_rules(self, found: values.FoundResource) -> folders.Found:
        """An ACL that grants what the server granted: it needs no ``acl:Authorization``, knows the
        former name of ``acl:default``, and serves public resources to every application."""
        try:
            there = parse(self._folder.read(found.parts or ()), TURTLE, base_iri=found.url)
        except RequestRefused:
            yield found  # for the importer to refuse, with the reason
            return
        graph = Graph((s, _ABOUT[1] if p == _FORMER_DEFAULT else p, o) for s, p, o in there.graph)
        rules = {subject for about in _ABOUT for subject in graph.subjects(about)}
        graph |= Graph((rule, Iri(RDF_TYPE), Iri(ACL_AUTHORIZATION)) for rule in rules)
        place, subject_url = (
            folders.readable_path(found.parts or ()),
            found.url.removesuffix(ACL_SUFFIX),
        )
        yield from (
            values.LeftOut(place, each)
            for each in values.ignored_origins(graph, subject_url=subject_url, only_public=True)
        )
        if graph != there.graph:
            content = serialize(there.with_graph(graph), TURTLE, base_iri=found.url)
            found = msgspec.structs.replace(found, content=content)
        yield found

    # --- names and types ----------------------------------------------------------------------

    kept = _KEPT

    def without_extension(self, name: str) -> str:
        return _EXTENSION.sub("", name) or name

    def document_type(self, entry: folders.FolderEntry, _: str) -> str:
        media_type = (
            folders.type_by_extension(folders.extension_of(entry.name)) or folders.OCTET_STREAM
        )
        is_text = _TEXT.match(media_type) is not None and media_type not in RDF_TYPES
        return f"{media_type}; charset=utf-8" if is_text else media_type

    def passed_over(self, entry: folders.FolderEntry) -> str | None:
        if entry.name == _INACTIVE_RULES:
            # They are in every pod, mostly without their subject.
            subject = entry.name.removesuffix(ACL_SUFFIX)
            return None if self._folder.has_file((*entry.parts[:-1], subject)) else ""
        if entry.name.endswith(_ACL_OF_ACL):
            if entry.name == _ACL_OF_ROOT:
                return ""  # every pod has it, and the root's own rules say the same
            return "A description has the access rules of what it describes here, and no others"
        return None

    def _is_guess(self, found: values.FoundResource) -> bool:
        extension = folders.extension_of(found.parts[-1]) if found.parts else ""
        return (
            found.content_type == folders.OCTET_STREAM
            and extension not in ("", _INACTIVE)
            and folders.type_by_extension(extension) is None
        )

    # --- pods and accounts --------------------------------------------------------------------

    def _configured(self) -> str | None:
        """The base URL in the server's configuration."""
        try:
            configuration = folders.json_of(self._folder.read(_CONFIGURATION))
            return msgspec.convert(configuration, _Configuration).serverUri
        except (RequestRefused, msgspec.ValidationError):
            return None

    def _read_users(self) -> list[_StoredUser]:
        users: list[_StoredUser] = []
        if not self._folder.has_folder(_USERS):
            return users
        for entry in self._folder.entries(_USERS):
            try:
                record = folders.json_of(self._folder.read(entry.parts))
                # An alias of another record has only a link to it.
                if "link" not in record:
                    users.append(msgspec.convert(record, _StoredUser))
            except (RequestRefused, msgspec.ValidationError, TypeError):
                self._leave_out(entry.parts, "The login cannot be read")
        return users

    def _find_pods(self, users: Sequence[_StoredUser]) -> Iterator[values.FoundPod]:
        base = urlsplit(self.base_url)
        host = base.hostname or ""
        hosts = [
            entry
            for entry in self._folder.entries(_DATA)
            if entry.kind is folders.EntryKind.FOLDER and entry.is_text
            and entry.name.endswith(f".{host}")
        ]  # fmt: skip
        if not hosts and self._folder.has_file((*_DATA, ACL_SUFFIX)):
            yield values.FoundPod(
                "", self.base_url, self._owner(_DATA, self.base_url, users), _DATA
            )
            return
        port = f":{base.port}" if base.port is not None else ""
        for entry in hosts:
            url = f"{base.scheme}://{entry.name}{port}/"
            name = entry.name.removesuffix(f".{host}")
            yield values.FoundPod(name, url, self._owner(entry.parts, url, users), entry.parts)
        for entry in self._folder.entries(_DATA):
            # Beside the pods is the server's own site.
            if entry not in hosts and entry.name != host:
                self._leave_out(entry.parts, "It is in no pod")

    def _owner(self, parts: folders.Parts, url: str, users: Sequence[_StoredUser]) -> str | None:
        user = next((user for user in users if user.has_pod(url)), None)
        return self._owner_in_acl(parts, url) if user is None else user.webId

    def _accounts(self, users: Sequence[_StoredUser]) -> Iterator[values.FoundAccount]:
        for user in users:
            pods = tuple(pod.url for pod in self.pods if user.has_pod(pod.url))
            if not pods:
                self._leave_out(_USERS, f"There is no pod for the login {user.webId}")
                continue
            yield values.FoundAccount(
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

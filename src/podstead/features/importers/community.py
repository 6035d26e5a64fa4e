"""Reads the data of the Community Solid Server, version 7, with its file backend.

A document is a file of its name. If the extension does not say its media type, another one follows
after a dollar sign: ``card$.ttl``. After ``$.unknown``, the description states it. Descriptions are
``.meta`` files, also those of containers, with statements of the server's own among them; ACLs are
``.acl`` files. There is one JSON file for each account, with its logins, pods, their owners, WebIDs
and client credentials.
"""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec

from podstead.core.errors import BadRequest, RequestRefused
from podstead.core.identifiers import ACL_SUFFIX, DESCRIPTION_SUFFIX
from podstead.core.media_types import RDF_TYPES, TURTLE, MediaType, parse_media_type
from podstead.core.vocab import PIM_STORAGE_CLASS, RDF_TYPE, RDFS
from podstead.features.importers import folders as importers_folders
from podstead.features.importers import values
from podstead.rdf.codecs import Document, parse, serialize
from podstead.rdf.graph import Graph, Iri, Literal, Subject

_INTERNAL: Final = ".internal"
_BASE_URL: Final = (_INTERNAL, "setup", "current-base-url$.json")
_VERSION: Final = (_INTERNAL, "setup", "current-server-version$.json")
_ACCOUNTS: Final = (_INTERNAL, "accounts", "data")
_KNOWN_VERSION: Final = "7."
_POLICY_SUFFIX: Final = ".acr"

_FORMAT: Final = "http://www.w3.org/ns/ma-ont#format"
_OF_THE_SERVER: Final = "urn:npm:solid:community-server:meta:"
_PARAMETER: Final = Iri(f"{_OF_THE_SERVER}contentTypeParameter")
_LABEL: Final = Iri(f"{RDFS}label")
_VALUE: Final = Iri(f"{_OF_THE_SERVER}value")

# What stays encoded in file names: separators, and what Windows does not allow.
_KEPT: Final = re.compile(r"%(?:25)*(?:2F|5C)|%(?:3C|3E|3A|22|7C|3F|2A)", re.IGNORECASE)
_UNKNOWN: Final = "unknown"
_WITH_ID: Final = re.compile(r"_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_TYPES: Final = {
    # The differences of its release's table from ours.
    "js": "application/javascript",
    "mjs": "application/javascript",
    "wav": "audio/wave",
    "aac": "audio/x-aac",
    "sql": "application/x-sql",
}


class CommunityServerData(importers_folders.OtherServer):
    """The data of one server."""

    def __init__(self, path: Path, *, base_url: str | None = None) -> None:
        """Raises NotThisServer."""
        super().__init__(path)
        if not self._folder.has_folder((_INTERNAL,)):
            raise values.NotThisServer(
                f"{path} is not the data folder of a Community Solid Server: it has no "
                f"'{_INTERNAL}'. Name the folder of its option --rootFilePath"
            )
        self.base_url = importers_folders.checked_base_url(base_url or self._record(_BASE_URL))
        of_accounts: list[values.FoundPod] = []
        version = self._record(_VERSION)
        if isinstance(version, str) and not version.startswith(_KNOWN_VERSION):
            reason = f"Accounts of version {version} are not read; start version 7 on the folder"
            self._leave_out(_ACCOUNTS, reason)
        else:
            self.accounts, of_accounts = self._read_accounts()
        self.pods = [*of_accounts, *self._further_pods(of_accounts)]
        self._note_what_is_outside()

    def resources(self, pod: values.FoundPod) -> importers_folders.Found:
        """Everything in a pod, containers before their members."""
        others = {each.folder for each in self.pods if each.folder != pod.folder}
        but = frozenset({*others, (_INTERNAL,)})
        for found in importers_folders.resources_of(self._folder, pod, self, but=but):
            if not isinstance(found, values.FoundResource) or found.parts is None:
                yield found
            elif found.path.endswith(DESCRIPTION_SUFFIX):
                # A description with only the server's own statements counts as none.
                if self._description(found) != b"":
                    yield found
            elif found.path.endswith(_POLICY_SUFFIX):
                yield values.LeftOut(
                    importers_folders.readable_path(found.parts),
                    "It has access rules of Access Control Policy, which are not taken: only the "
                    "owner has access",
                )
                yield _closed(found)
            elif found.path.endswith(ACL_SUFFIX):
                document = self._parsed(found.parts, found.url)
                url = found.url.removesuffix(ACL_SUFFIX)
                for reason in (
                    ()
                    if document is None
                    else values.ignored_origins(document.graph, subject_url=url)
                ):
                    yield values.LeftOut(importers_folders.readable_path(found.parts), reason)
                yield found
            else:
                if found.content_type == importers_folders.OCTET_STREAM and not self._says_nothing(
                    found
                ):
                    yield values.LeftOut(
                        importers_folders.readable_path(found.parts),
                        "The media type of its extension is not known; it is"
                        f" {importers_folders.OCTET_STREAM} now",
                    )
                yield found

    async def content(self, resource: values.FoundResource) -> AsyncIterator[bytes]:
        """The content of a resource; of a description, without the server's statements."""
        if resource.content is not None or resource.parts is None:
            yield resource.content or b""
        elif resource.path.endswith(DESCRIPTION_SUFFIX):
            described = self._description(resource)
            yield self._folder.read(resource.parts) if described is None else described
        else:
            async for piece in self._folder.pieces(resource.parts):
                yield piece

    # --- names and types ----------------------------------------------------------------------

    suffixes = (*importers_folders.SUFFIXES, _POLICY_SUFFIX)
    kept = _KEPT

    def without_extension(self, name: str) -> str:
        """Raises BadRequest for a name that this server never creates."""
        extension = name.rpartition(".")[2]
        return name.removesuffix(f"$.{extension}") or name

    def document_type(self, entry: importers_folders.FolderEntry, url: str) -> str:
        extension = importers_folders.extension_of(entry.name)
        media_type = (
            _TYPES.get(extension)
            or importers_folders.type_by_extension(extension)
            or importers_folders.OCTET_STREAM
        )
        description = (
            *entry.parts[:-1],
            f"{self.without_extension(entry.name)}{DESCRIPTION_SUFFIX}",
        )
        if media_type in RDF_TYPES or not self._folder.has_file(description):
            return media_type
        described = self._parsed(description, url)
        return media_type if described is None else _stated_type(described.graph, url, media_type)

    def _says_nothing(self, found: values.FoundResource) -> bool:
        """Whether the file's name means octets, or leaves the type open."""
        extension = importers_folders.extension_of(found.parts[-1]) if found.parts else ""
        return (
            extension in {"", _UNKNOWN}
            or importers_folders.type_by_extension(extension) is not None
        )

    # --- descriptions -------------------------------------------------------------------------

    def _description(self, found: values.FoundResource) -> bytes | None:
        """A description without the statements of the server; empty if it has no others, ``None``
        if it cannot be read as RDF."""
        subject_url = found.url.removesuffix(DESCRIPTION_SUFFIX)
        document = self._parsed(found.parts or (), subject_url)
        if document is None:
            return None
        kept = _without_statements_of_the_server(document.graph, subject_url)
        if not kept:
            return b""
        return serialize(document.with_graph(kept), TURTLE, base_iri=found.url)

    def _parsed(self, parts: importers_folders.Parts, base_iri: str) -> Document | None:
        try:
            return parse(self._folder.read(parts), TURTLE, base_iri=base_iri)
        except RequestRefused:
            return None

    # --- accounts and pods --------------------------------------------------------------------

    def _record(self, parts: importers_folders.Parts) -> Any:  # noqa: ANN401 - any JSON
        """The payload of one of the server's own records, ``None`` if it cannot be read."""
        try:
            return importers_folders.json_of(self._folder.read(parts))["payload"]
        except (RequestRefused, KeyError, TypeError):
            return None

    def _read_accounts(self) -> tuple[list[values.FoundAccount], list[values.FoundPod]]:
        accounts: list[values.FoundAccount] = []
        pods: list[values.FoundPod] = []
        if not self._folder.has_folder(_ACCOUNTS):
            return accounts, pods
        for entry in self._folder.entries(_ACCOUNTS):
            try:
                stored = msgspec.convert(self._record(entry.parts), _StoredAccount)
            except msgspec.ValidationError:
                self._leave_out(entry.parts, "The account cannot be read")
                continue
            of_account = []
            for pod in stored.pods.values():
                found = self._pod(pod, entry)
                if found is not None:
                    of_account.append(found)
            pods += of_account
            accounts += self._accounts(stored, of_account, entry)
        return accounts, pods

    def _accounts(
        self,
        stored: "_StoredAccount",
        pods: Sequence[values.FoundPod],
        entry: importers_folders.FolderEntry,
    ) -> Iterator[values.FoundAccount]:
        logins = [each for each in stored.passwords.values() if each.verified]
        for unverified in stored.passwords.values():
            if not unverified.verified:
                self._leave_out(entry.parts, "The password of this login was never verified")
        for further in logins[1:]:
            reason = f"An account has one e-mail address here: {further.email} is left out"
            self._leave_out(entry.parts, reason)
        if not pods:
            self._leave_out(entry.parts, "The account has no pod, and every account has one here")
            return
        yield values.FoundAccount(
            pods=tuple(pod.url for pod in pods),
            web_ids=tuple(link.webId for link in stored.links.values()),
            email=logins[0].email if logins else None,
            password_hash=logins[0].password if logins else None,
            secrets=tuple(
                values.FoundSecret(each.label, each.secret, _label(each.label), each.webId)
                for each in stored.credentials.values()
            ),
        )

    def _pod(
        self, pod: "_StoredPod", entry: importers_folders.FolderEntry
    ) -> values.FoundPod | None:
        url = pod.baseUrl.removesuffix("/") + "/"
        parts = self._parts_of(url)
        if parts is None or not self._folder.has_folder(parts):
            self._leave_out(entry.parts, f"There are no files for the pod {url}")
            return None
        owners = [each.webId for each in pod.owners.values()]
        for further in owners[1:]:
            reason = f"A pod has one owner here: {further} keeps what access rules grant"
            self._leave_out(parts, reason)
        owner = owners[0] if owners else self._owner_in_acl(parts, url)
        return values.FoundPod(_name_of(parts), url, owner, parts)

    def _parts_of(self, url: str) -> importers_folders.Parts | None:
        """The folder of a pod's files: below its path, or below the subdomain."""
        if url.startswith(self.base_url):
            names = url[len(self.base_url) :].strip("/")
            return tuple(map(unquote, names.split("/"))) if names else ()
        base, host = urlsplit(self.base_url), urlsplit(url)
        subdomain, _, rest = host.netloc.partition(".")
        return (subdomain,) if rest == base.netloc and host.path == base.path else None

    def _further_pods(self, known: Sequence[values.FoundPod]) -> Iterator[values.FoundPod]:
        """Storages without an account: the server's root, and containers in it."""
        folders = {pod.folder for pod in known}
        for parts in ((), *(each.parts for each in self._folder.entries() if _is_folder(each))):
            url = self.base_url + "".join(
                f"{importers_folders.segment_of(part, kept=_KEPT)}/" for part in parts
            )
            if parts in folders or parts == (_INTERNAL,):
                continue
            document = self._parsed((*parts, DESCRIPTION_SUFFIX), url)
            if document is not None and _is_storage(document.graph, url):
                yield values.FoundPod(_name_of(parts), url, self._owner_in_acl(parts, url), parts)

    def _note_what_is_outside(self) -> None:
        folders = {pod.folder for pod in self.pods}
        if () in folders:
            return
        for entry in self._folder.entries():
            inside = any(folder[:1] == entry.parts for folder in folders)
            if entry.name != _INTERNAL and not inside:
                self._leave_out(entry.parts, "It is in no pod")


class _StoredPassword(msgspec.Struct):
    email: str
    password: str
    verified: bool = False


class _StoredLink(msgspec.Struct):
    webId: str  # noqa: N815 - as the server writes it


class _StoredPod(msgspec.Struct):
    baseUrl: str  # noqa: N815 - as the server writes it
    owners: dict[str, _StoredLink] = msgspec.field(default_factory=dict, name="**owner**")


class _StoredCredentials(msgspec.Struct):
    label: str
    webId: str  # noqa: N815 - as the server writes it
    secret: str


class _StoredAccount(msgspec.Struct):
    passwords: dict[str, _StoredPassword] = msgspec.field(default_factory=dict, name="**password**")
    pods: dict[str, _StoredPod] = msgspec.field(default_factory=dict, name="**pod**")
    links: dict[str, _StoredLink] = msgspec.field(default_factory=dict, name="**webIdLink**")
    credentials: dict[str, _StoredCredentials] = msgspec.field(
        default_factory=dict, name="**clientCredentials**"
    )


def _is_folder(entry: importers_folders.FolderEntry) -> bool:
    return entry.kind is importers_folders.EntryKind.FOLDER and entry.is_text


def _is_storage(graph: Graph, url: str) -> bool:
    return (Iri(url), Iri(RDF_TYPE), Iri(PIM_STORAGE_CLASS)) in graph


def _name_of(parts: importers_folders.Parts) -> str:
    """The name of a pod in this folder; empty for the root of the server."""
    return parts[-1] if parts else ""


def _label(credential_id: str) -> str:
    """The person's name for the credentials, without the random ID that the server appends."""
    return credential_id[:-37] if _WITH_ID.search(credential_id) else credential_id


def _stated_type(graph: Graph, url: str, by_name: str) -> str:
    """The media type with its parameters, as a description states them."""
    stated = [*_texts(graph, Iri(url), Iri(_FORMAT)), by_name][0]
    parameters = [
        (name, value)
        for each in graph.objects(Iri(url), _PARAMETER)
        if not isinstance(each, Literal)
        for name in _texts(graph, each, _LABEL)
        for value in _texts(graph, each, _VALUE)
    ]
    try:
        return str(parse_media_type(str(MediaType(stated, tuple(parameters)))))
    except BadRequest:
        return by_name


def _texts(graph: Graph, subject: Subject, predicate: Iri) -> list[str]:
    return [o.value for o in graph.objects(subject, predicate) if isinstance(o, Literal)]


def _without_statements_of_the_server(graph: Graph, url: str) -> Graph:
    subject = Iri(url)
    parameters = {o for o in graph.objects(subject, _PARAMETER) if not isinstance(o, Literal)}
    return Graph(
        (s, p, o)
        for s, p, o in graph
        if not (
            s in parameters
            or (s == subject and p.value in (_FORMAT, _PARAMETER.value))
            or (s == subject and o == Iri(PIM_STORAGE_CLASS))
        )
    )


def _closed(found: values.FoundResource) -> values.FoundResource:
    """An ACL that gives access to nobody but the pod's owner, who has it anyway."""
    return msgspec.structs.replace(
        found,
        path=found.path.removesuffix(_POLICY_SUFFIX) + ACL_SUFFIX,
        url=found.url.removesuffix(_POLICY_SUFFIX) + ACL_SUFFIX,
        parts=None,
        content=b"",
    )

"""Reads and changes the pods and accounts of this server for layers that must not import them.

Requests of the server's own pass the same gate as any other, as the public or as the owner of an
account, and have the same permissions.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from podstead.authn.relying_party.sign_ins import OwnClient
from podstead.core import vocab
from podstead.core.errors import BadRequest, BodyTooLarge, Conflict, OutboundError, RequestRefused
from podstead.core.identifiers import ResourcePath, parse_path
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.core.media_types import JSON_LD, SPARQL_UPDATE, essence
from podstead.core.operation import InMemoryBody, Operation
from podstead.idp.codes import IdpCodes
from podstead.outbound.foreign_documents import FetchedDocument, Purpose
from podstead.resources.outcome import ResourceRequest
from podstead.resources.service import ResourceService
from podstead.storage.protocol import PodRegistry

if TYPE_CHECKING:  # loaded for the provider only
    from podstead.idp.accounts import Accounts
    from podstead.idp.clients import ClientDocuments


class AccountProfiles:
    """Changes the profiles of accounts on behalf of their owners."""

    def __init__(self, *, base_url: str, resources: ResourceService) -> None:
        self._base_url = base_url
        self._resources = resources

    async def add_name(self, web_id: str, name: str) -> None:
        """Add to the profile that the WebID is the same as ``name``. Raises RequestRefused,
        ServerTrouble."""
        await self.patch(web_id, f"INSERT DATA {{ {_same_as(web_id, name)} }}")

    async def remove_name(self, web_id: str, name: str) -> None:
        """Remove that statement from the profile. Raises RequestRefused, ServerTrouble."""
        await self.patch(web_id, f"DELETE DATA {{ {_same_as(web_id, name)} }}")

    async def patch(self, web_id: str, patch: str, media_type: str = SPARQL_UPDATE) -> None:
        """Patch the profile on behalf of its owner. Raises RequestRefused, ServerTrouble."""
        operation = Operation(
            "PATCH",
            self._path_of(web_id),
            InMemoryBody(patch.encode()),
            content_type=media_type,
        )
        owner = Identity(iri=web_id, method=AuthenticationMethod.SESSION, may_state_identity=True)
        await self._resources.handle(ResourceRequest(operation, owner))

    def _path_of(self, web_id: str) -> ResourcePath:
        url = web_id.partition("#")[0]
        if not url.startswith(f"{self._base_url}/"):
            raise Conflict(IdpCodes.PROFILE_ELSEWHERE)
        try:
            return parse_path(url[len(self._base_url) :].encode())
        except (BadRequest, UnicodeEncodeError) as error:
            raise Conflict(IdpCodes.PROFILE_ADDRESS_UNUSABLE) from error


def _same_as(web_id: str, name: str) -> str:
    return f"<{web_id}> <{vocab.OWL_SAME_AS}> <{name}>"


@dataclass(frozen=True, slots=True)
class PodOwners:
    """Implements StorageOwners of ``wac.gate``."""

    pods: PodRegistry

    async def owner_of(self, storage: ResourcePath) -> str | None:
        pod = await self.pods.read_pod(storage.strip("/"))
        return pod.owner if pod is not None and pod.root == storage else None


@dataclass(frozen=True, slots=True)
class AccountEmails:
    """The e-mail addresses of accounts (:class:`podstead.resources.sharing.people.EmailOwners`)."""

    accounts: Accounts

    async def web_id_of(self, email: str) -> str | None:
        """The WebID of the account with this address. Raises StorageError."""
        found = await self.accounts.find(email) if "@" in email else None
        return None if found is None else found.value.web_id


_MAX_CLIENT_DOCUMENT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class ClientDocumentReader:
    """Reads client ID documents: those of this server as the public, others through ``foreign``.

    This server sends no requests to itself over the network (A-190).


    ``own`` describes this server itself as a client.
    """

    base_url: str
    resources: ResourceService
    foreign: ClientDocuments
    _: KW_ONLY
    own: OwnClient

    async def origin_of(self, url: str) -> str | None:
        """The origin that a document is fetched from; ``None`` for a document of this server.
        Raises OutboundError."""
        return None if self._is_own(url) else await self.foreign.origin_of(url)

    def _is_own(self, url: str) -> bool:
        return url.startswith(f"{self.base_url}/")

    async def fetch(self, url: str, purpose: Purpose) -> FetchedDocument:
        """Fetch the document at the URL. Raises OutboundError."""
        if not self._is_own(url):
            return await self.foreign.fetch(url, purpose)
        if url.startswith(self.own.documents):
            content = self.own.document(url.removeprefix(self.own.documents))
            return FetchedDocument(content, JSON_LD, url)
        try:
            path = parse_path(url[len(self.base_url) :].encode())
            operation = Operation("GET", path, accept="*/*")  # as it is stored
            outcome = await self.resources.handle(ResourceRequest(operation, None))
        except (RequestRefused, UnicodeEncodeError) as error:
            raise OutboundError("The client's document cannot be read") from error
        if outcome.representation is None:
            raise OutboundError("The client's document cannot be read")
        representation = outcome.representation
        try:
            content = await representation.read(limit_bytes=_MAX_CLIENT_DOCUMENT_BYTES)
        except BodyTooLarge as error:
            raise OutboundError("The client's document is too large") from error
        return FetchedDocument(content, essence(representation.content_type), url)

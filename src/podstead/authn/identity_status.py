"""Checks whether an identity that was proven a while ago is still valid (N-30, A-32).

A subscriber sends credentials once, when it subscribes. The expiry of its token does not end the
subscription, but a deliberate act does: revoking the token, deleting the pod, disabling the
account.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from podstead.core.errors import BadRequest
from podstead.core.identifiers import ResourcePath, parse_path, storage_root
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.storage.protocol import TokenRegistry


class AccountStatus(Protocol):
    """Knows which accounts the operator has disabled."""

    async def is_disabled(self, storage: ResourcePath) -> bool:
        """Whether the account of a storage is disabled."""


@dataclass(frozen=True, slots=True)
class LocalWebIds:
    """The WebIDs of this server, whose documents are in the storages of accounts.

    ``accounts`` is ``None`` if storages have no accounts.
    """

    base_url: str
    accounts: AccountStatus | None = None

    def holds(self, web_id: str) -> bool:
        """Whether the document of a WebID is on this server."""
        return web_id.startswith(f"{self.base_url}/")

    async def is_disabled(self, web_id: str) -> bool:
        """Whether a WebID belongs to this server and its account is disabled."""
        if self.accounts is None or not self.holds(web_id):
            return False
        path = self.path_of(web_id)
        storage = None if path is None else storage_root(path)
        return storage is not None and await self.accounts.is_disabled(storage)

    def path_of(self, web_id: str) -> ResourcePath | None:
        """The path of the document of a WebID of this server; ``None`` if that is not a path."""
        path = web_id[len(self.base_url) :].partition("#")[0].partition("?")[0]
        try:
            return parse_path(path.encode())
        except (BadRequest, UnicodeEncodeError):
            return None


class IdentityStatus:
    """Checks identities again."""

    def __init__(self, *, tokens: TokenRegistry, web_ids: LocalWebIds) -> None:
        self._tokens = tokens
        self._web_ids = web_ids

    async def is_still_valid(self, identity: Identity, *, before_deletion: bool = False) -> bool:
        """Whether the token has not been revoked and the account has not been disabled.

        With ``before_deletion``, a simple token that was deleted together with its pod is still
        valid (N-18). Raises StorageError.
        """
        if identity.method is AuthenticationMethod.SIMPLE:
            revoked = await self._is_revoked(identity.token_id)
            if revoked or (revoked is None and not before_deletion):
                return False
        return not await self._web_ids.is_disabled(identity.iri)

    async def _is_revoked(self, token_id: str | None) -> bool | None:
        """``None`` if the token does not exist; tokens are deleted with their pod."""
        record = None if token_id is None else await self._tokens.read_token(token_id)
        return None if record is None else record.revoked_s is not None

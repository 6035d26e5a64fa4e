"""``/.well-known/did/nostr/{key}``: the account of a Nostr key, for published keys only (A-129)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from podstead.core.errors import BadRequest, NotFound
from podstead.core.identity import Identity
from podstead.idp.accounts import Accounts
from podstead.idp.nostr.did_document import MEDIA_TYPE, PATH, did_document, key_named
from podstead.idp.nostr.links import NostrLinks
from podstead.web.cors import CorsPolicy
from podstead.web.description_endpoints import public_document
from podstead.web.request import Request
from podstead.web.response import Response
from podstead.web.routes import route

DOCUMENT_PATH: Final = f"{PATH}/{{key}}"
DOCUMENT_AGE_S: Final = 60
"""How long a document may be cached; after that, an unlinked key is gone everywhere."""


@dataclass(frozen=True, slots=True)
class DidDocumentEndpoint:
    """Serves the documents of keys that are linked and published."""

    links: NostrLinks
    accounts: Accounts

    @route(DOCUMENT_PATH, "GET", "HEAD", sharing=CorsPolicy.ANYONE)
    async def get(self, request: Request, _: Identity | None) -> Response:
        """Raises BadRequest if the segment is not a key, NotFound if there is no document."""
        public_key = key_named(request.path.rpartition("/")[2])
        if public_key is None:
            raise BadRequest("A Nostr key must be 64 lowercase hexadecimal digits")
        document = did_document(public_key, web_id=await self._web_id_of(public_key))
        content = msgspec.json.encode(document)
        return public_document(request, content, media_type=MEDIA_TYPE, age_s=DOCUMENT_AGE_S)

    async def _web_id_of(self, public_key: str) -> str:
        link = await self.links.find(public_key)
        if link is not None and link.value.published:
            account = await self.accounts.read(link.value.account_id)
            if account is not None and not account.value.disabled:
                return account.value.web_id
        raise NotFound("No account on this server has published this key")

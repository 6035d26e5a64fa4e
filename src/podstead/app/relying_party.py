"""Signing in at providers elsewhere: this server as a relying party."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from podstead.app.adapters.foreign import ForeignDocuments
from podstead.app.in_process_provider import InProcessProvider
from podstead.authn.relying_party.providers import Providers
from podstead.authn.relying_party.sign_ins import Answered, ExternalSignIns, OwnClient
from podstead.web.authority import is_loopback_url
from podstead.web.pages.addresses import CALLBACK, CLIENT_DOCUMENTS

if TYPE_CHECKING:
    from podstead.app.services import Services


@dataclass(frozen=True, slots=True)
class _Asks:
    """Sends requests to providers."""

    others: ForeignDocuments
    own: InProcessProvider | None

    async def ask(self, url: str, content: bytes, headers: Mapping[str, str]) -> Answered:
        if self.own is not None and self.own.holds(url):
            return await self.own.ask(url, content, headers)
        response = await self.others.ask(url, content, headers)
        return Answered(response.status, response.content, response.fields)


def own_client(base_url: str) -> OwnClient:
    """What this server is to providers."""
    return OwnClient(
        name=f"Podstead ({urlsplit(base_url).netloc})",
        uri=f"{base_url}/",
        callback=base_url + CALLBACK,
        documents=base_url + CLIENT_DOCUMENTS,
        # Nobody else can read a document of this machine.
        has_reachable_documents=not is_loopback_url(base_url),
    )


def external_sign_ins(services: Services) -> ExternalSignIns:
    """What signing in elsewhere consists of."""
    own = None
    if services.settings.idp_base_url and services.provider is not None:
        routes = services.provider.routes
        own = InProcessProvider(services.settings.issuer, routes, services.foreign)
    return ExternalSignIns(
        client=services.own_client,
        providers=Providers(
            documents=own or services.foreign,
            web_ids=services.web_ids,
            lookups=services.lookups,
            rules=services.token_rules,
        ),
        asks=_Asks(services.foreign, own),
        id_tokens=services.id_tokens,
        records=services.records,
    )

"""Checks whether the profile of an account names this provider, and restores the statement (A-109).

A provider speaks for a WebID because the WebID document names it (Solid-OIDC section 6.1). This
provider is no exception: if an owner removes the statement from their profile, or names another
provider instead, no token of this provider is accepted for the WebID. Signing in still leads to the
account page, which offers to restore the statement.
"""

from __future__ import annotations

from typing import Final, Protocol

from podstead.authn.claims import same_issuer
from podstead.authn.web_id_documents import UNLIMITED, ProfileSources, WebIdDocuments
from podstead.core.media_types import SPARQL_UPDATE
from podstead.core.vocab import SOLID_OIDC_ISSUER
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.records import Account
from podstead.rdf.graph import Graph, Iri

_WEIGHT: Final = 1


class ProfilePatcher(Protocol):
    """Changes profiles on behalf of their owners."""

    async def patch(self, web_id: str, patch: str, media_type: str) -> None:
        """Raises RequestRefused, ServerTrouble."""


class ProfileIssuer:
    """Knows whether profiles name this provider.

    The result is cached for each version of a profile, so a request with a token reads no more than
    the version. A profile of any length is read, since an application may make one long; the limits
    on stored documents are sufficient.
    """

    def __init__(self, issuer: str, sources: ProfileSources) -> None:
        self.issuer = issuer
        self._documents = WebIdDocuments[bool](
            sources, extract=self._is_named, weigh=lambda _: _WEIGHT, limits=UNLIMITED
        )

    async def is_named_by(self, web_id: str) -> bool:
        """Whether the WebID document of a WebID of this server names the provider now. Raises
        UnusableDocument if it cannot be read."""
        return await self._documents.stored(web_id) or False

    def _is_named(self, graph: Graph, web_id: str) -> bool:
        named = graph.objects(Iri(web_id), Iri(SOLID_OIDC_ISSUER))
        return any(isinstance(each, Iri) and same_issuer(each.value, self.issuer) for each in named)


class IssuerRestoration:
    """Adds this provider to profiles again."""

    def __init__(self, *, issuer: str, profiles: ProfilePatcher, audit: Audit) -> None:
        self._issuer = issuer
        self._profiles = profiles
        self._audit = audit

    async def restore(self, account: Account) -> None:
        """Add the provider to the profile of an account, besides other providers that it names.

        Raises RequestRefused if the owner may not change the profile, ServerTrouble.
        """
        statement = f"<{account.web_id}> <{SOLID_OIDC_ISSUER}> <{self._issuer}>"
        await self._profiles.patch(account.web_id, f"INSERT DATA {{ {statement} }}", SPARQL_UPDATE)
        self._audit.note(AuditEvent.ISSUER_RESTORED, account_id=account.account_id)

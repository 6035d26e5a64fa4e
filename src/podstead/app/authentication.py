"""How are the verifiers of credentials built, each with the operator's settings?"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from podstead.app.adapters.foreign import ForeignDocuments
from podstead.app.client_certificates import certificate_verifier
from podstead.authn.authenticate import Authenticator, PodTokenVerifier
from podstead.authn.event_uses import EventUses
from podstead.authn.identity_status import AccountStatus, IdentityStatus, LocalWebIds
from podstead.authn.issuers import IssuerKeys
from podstead.authn.lookups import Lookups
from podstead.authn.nonces import Nonces
from podstead.authn.pod_token import SigningKey
from podstead.authn.proofs import Proofs
from podstead.authn.resource_tokens import OwnProvider, ResourceTokens, TokenRules
from podstead.authn.signed_requests import EventRules, LinkedKeys, SignedRequests
from podstead.authn.web_id_documents import ProfileSources
from podstead.authn.web_ids import WebIdIssuers
from podstead.config import Settings
from podstead.core.clock import Clock
from podstead.nostr import schnorr
from podstead.nostr.http_auth import EventScope
from podstead.rdf.parser import RdfParser
from podstead.storage.protocol import Store
from podstead.web.authority import is_loopback_url

_BASIC_REACH = {"safe": EventScope.SAFE, "any": EventScope.ANY, "off": None}
"""By the value of the setting (A-146)."""


class CredentialVerification:
    """The verifiers of one worker's credentials, and the parts of them that others use as well."""

    def __init__(
        self,
        settings: Settings,
        *,
        keys: Sequence[SigningKey],
        own: OwnProvider | None,
        accounts: AccountStatus | None,
        store: Store,
        foreign: ForeignDocuments,
        parse: RdfParser,
        clock: Clock,
    ) -> None:
        """``keys`` sign simple tokens; ``own`` and ``accounts`` belong to this server's provider,
        if it has one."""
        self._settings = settings
        self.own = own
        self._clock = clock
        self.pod_tokens = PodTokenVerifier(
            keys=keys, registries=store, clock=clock, enabled=settings.simple_tokens
        )
        self.lookups = Lookups(store, clock)
        local = LocalWebIds(settings.base_url, accounts)
        self.identity_status = IdentityStatus(tokens=store, web_ids=local)
        self.event_rules = _event_rules(settings)
        self.event_uses = EventUses(used=store, clock=clock, verify=_verify_schnorr)
        self.nonces = Nonces(secret=keys[0], clock=clock) if settings.dpop_nonce else None
        self.proofs = Proofs(
            used=store,
            clock=clock,
            require_ath=settings.require_ath,
            refuse_replay=settings.refuse_replayed_proofs,
            nonces=self.nonces,
        )
        self.profiles = ProfileSources(local, store, foreign, parse, clock)
        self.issuers = IssuerKeys(foreign, self.lookups, clock)
        self.web_ids = WebIdIssuers(self.profiles, self.lookups)
        self.token_rules = _token_rules(settings)
        self.resource_tokens = ResourceTokens(
            issuers=self.issuers,
            web_ids=self.web_ids,
            own=own,
            proofs=self.proofs,
            rules=self.token_rules,
            clock=clock,
        )

    def authenticator(self, *, linked: LinkedKeys | None) -> Authenticator:
        """The authenticator, which passes each credential to its verifier; ``linked`` are the Nostr
        keys of accounts, if any."""
        return Authenticator(
            pod_tokens=self.pod_tokens,
            resource_tokens=self.resource_tokens,
            signed_requests=SignedRequests(
                uses=self.event_uses, clock=self._clock, rules=self.event_rules, linked=linked
            ),
            certificates=certificate_verifier(self._settings, self.profiles, self.lookups),
        )


def _token_rules(settings: Settings) -> TokenRules:
    return TokenRules(
        allow_loopback=is_loopback_url(settings.base_url),
        allowed_issuers=frozenset(settings.accepted_issuers),
        denied_issuers=frozenset(settings.refused_issuers),
    )


def _event_rules(settings: Settings) -> EventRules:
    base_url = settings.base_url
    return EventRules(
        accepted=base_url.startswith("https:") or is_loopback_url(base_url),
        require_payload=settings.nostr_require_payload,
        basic=_BASIC_REACH[settings.nostr_basic],
    )


async def _verify_schnorr(public_key: bytes, message: bytes, signature: bytes) -> bool:
    if schnorr.IS_NATIVE:
        return schnorr.verify(public_key, message, signature)
    return await asyncio.to_thread(schnorr.verify, public_key, message, signature)

"""How do the parts fit together? Every object of a worker, constructed once, top to bottom."""

from __future__ import annotations

import asyncio
import gc
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from podstead import __version__
from podstead.app.bundled_contexts import bundled_contexts
from podstead.app.foreign import ForeignDocuments
from podstead.app.keys import load_token_keys
from podstead.app.system import SystemClock, SystemRandomness
from podstead.authn.authenticate import Authenticator, PodTokens
from podstead.authn.issuers import IssuerKeys
from podstead.authn.nonces import Nonces
from podstead.authn.pod_token import SigningKey
from podstead.authn.proofs import Proofs
from podstead.authn.resource_tokens import ResourceTokens, TokenRules
from podstead.authn.signed_requests import EventRules, SignedRequests
from podstead.authn.web_ids import WebIdIssuers
from podstead.config import Settings
from podstead.core.clock import Clock, Randomness
from podstead.core.errors import ServerTrouble
from podstead.core.identifiers import ROOT, ResourcePath
from podstead.idp.passwords import PasswordHasher
from podstead.nostr import schnorr
from podstead.nostr.http_auth import Reach
from podstead.pods.provision import PodProvisioner, TokenPolicy
from podstead.rdf.graph import Graph
from podstead.rdf.limits import RdfLimits
from podstead.resources.commits import Commits
from podstead.resources.contents import Contents
from podstead.resources.contexts import ContextLibrary
from podstead.resources.documents import Documents
from podstead.resources.listings import Listings
from podstead.resources.patching import Patches
from podstead.resources.reading import Reader
from podstead.resources.received import Receiver
from podstead.resources.renderings import Renderings
from podstead.resources.representations import Representations
from podstead.resources.service import ResourceService
from podstead.storage.layout import RootLayout
from podstead.storage.protocol import PodRegistry, Store
from podstead.storage.sqlite import SqliteStore
from podstead.wac.effective import EffectiveAcls
from podstead.wac.gate import Gate
from podstead.wac.groups import GroupMemberships
from podstead.web.answers import Answers
from podstead.web.application import Application, Lifespan
from podstead.web.authority import Authorities, is_loopback_url, served_hosts
from podstead.web.challenges import Challenges
from podstead.web.limits import InvalidCredentialLimit, PodCreationLimit
from podstead.web.pods_endpoint import PodsAlone, PodsEndpoint
from podstead.web.registration import Registration
from podstead.web.request import RequestLimits
from podstead.web.resource_endpoint import ResourceEndpoint
from podstead.web.response import Responder
from podstead.web.root_endpoint import RootEndpoint
from podstead.web.routes import Access, Route, Routes
from podstead.web.server_description_endpoint import ServerDescriptionEndpoint
from podstead.web.storage_description_endpoint import StorageDescriptionEndpoint

if TYPE_CHECKING:
    from podstead.app.idp import Provider

logger = logging.getLogger("podstead.app")

_SWEEP_PERIOD_S = 600
_BASIC_REACH = {"safe": Reach.SAFE, "any": Reach.ANY, "off": None}
"""By the word in the settings (A-146)."""


@dataclass(frozen=True, slots=True)
class Owners:
    """Who owns each storage, by the registry of pods."""

    pods: PodRegistry

    async def owner_of(self, storage: ResourcePath) -> str | None:
        pod = await self.pods.read_pod(storage.strip("/"))
        return pod.owner if pod is not None and pod.root == storage else None


def build_application(
    settings: Settings,
    *,
    clock: Clock | None = None,
    randomness: Randomness | None = None,
    passwords: PasswordHasher | None = None,
) -> Application:
    """The ASGI application of one worker; opens nothing before its lifespan starts.

    ``passwords`` is given by tests that want cheaper hashes.

    The root must have been prepared and migrated. Raises StorageError if its keys cannot be read.
    """
    clock = clock or SystemClock()
    randomness = randomness or SystemRandomness()
    base_url = settings.base_url
    store = SqliteStore(
        settings.root,
        inline_body_bytes=settings.inline_body_bytes,
        change_log_days=settings.change_log_days,
    )
    keys = settings.token_keys or load_token_keys(RootLayout(settings.root).keys)
    foreign = ForeignDocuments(settings, clock)
    limits = RdfLimits(
        max_bytes=settings.max_rdf_bytes,
        max_depth=settings.max_rdf_depth,
        max_triples=settings.max_rdf_triples,
    )
    contexts = ContextLibrary(
        bundled_contexts(),
        fetcher=foreign,
        allowed_origins=frozenset(settings.context_origins),
        limits=limits,
    )
    documents = Documents(base_url=base_url, store=store, contexts=contexts, limits=limits)

    async def parse_rules(content: bytes, content_type: str, base_iri: str) -> Graph:
        document = await documents.parse_at(content, content_type, base_iri=base_iri)
        return document.graph

    provider = _provider(settings, store, clock, randomness, passwords)
    event_rules = _event_rules(settings)
    challenges = Challenges(
        base_url,
        provider=provider.issuer if provider else None,
        signed_requests=event_rules.accepted,
    )
    nonces = Nonces(secret=keys[0], clock=clock) if settings.dpop_nonce else None

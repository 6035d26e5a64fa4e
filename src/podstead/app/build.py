"""How do the parts fit together? Every object of a worker, constructed once, top to bottom."""

from __future__ import annotations

import asyncio
import gc
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from podstead import __version__
from podstead.app.channels import CHANNEL_TYPES, ChannelParts, state_tag
from podstead.app.client_certificates import certificate_verifier, client_certificates
from podstead.app.documents import build_documents, rdf_limits
from podstead.app.foreign import ForeignDocuments
from podstead.app.git import Answering, RepositorySweep
from podstead.app.keys import load_token_keys
from podstead.app.system import SystemClock, SystemRandomness
from podstead.authn.authenticate import Authenticator, PodTokens
from podstead.authn.event_uses import EventUses
from podstead.authn.issuers import IssuerKeys
from podstead.authn.lookups import Lookups
from podstead.authn.nonces import Nonces
from podstead.authn.pod_token import SigningKey
from podstead.authn.proofs import Proofs
from podstead.authn.resource_tokens import ResourceTokens, TokenRules
from podstead.authn.signed_requests import EventRules, SignedRequests
from podstead.authn.web_id_documents import ProfileSources
from podstead.authn.web_ids import WebIdIssuers
from podstead.config import Settings
from podstead.core.clock import Clock, Randomness
from podstead.core.errors import ServerTrouble
from podstead.core.identifiers import ROOT, ResourcePath
from podstead.git.directories import Directories
from podstead.idp.nostr.profile_keys import ProfileKeyRecords
from podstead.idp.passwords import PasswordHasher
from podstead.nostr import schnorr
from podstead.nostr.http_auth import Reach
from podstead.notifications.deliveries import Delivering
from podstead.notifications.hub import Hub
from podstead.notifications.readers import Readers
from podstead.notifications.webhooks import Webhooks
from podstead.pods.provision import PodProvisioner, TokenPolicy
from podstead.rdf.graph import Graph
from podstead.resources.commits import Commits
from podstead.resources.contents import Contents
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
from podstead.web.body import BodyPace
from podstead.web.challenges import Challenges
from podstead.web.limits import InvalidCredentialLimit, PodCreationLimit
from podstead.web.open_sockets import OpenSockets
from podstead.web.pods_endpoint import PodsAlone, PodsEndpoint
from podstead.web.registration import Registration
from podstead.web.request import RequestLimits
from podstead.web.resource_endpoint import ResourceEndpoint
from podstead.web.response import UPDATES_PATH, Responder
from podstead.web.root_endpoint import RootEndpoint
from podstead.web.routes import Access, Route, Routes
from podstead.web.server_description_endpoint import ServerDescriptionEndpoint
from podstead.web.storage_description_endpoint import StorageDescriptionEndpoint
from podstead.web.updates_socket import SocketRules, UpdatesSocket

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
    documents = build_documents(settings, store=store, foreign=foreign)

    async def parse_rules(content: bytes, content_type: str, base_iri: str) -> Graph:
        document = await documents.parse_at(content, content_type, base_iri=base_iri)
        return document.graph

    provider = _provider(settings, store, clock, randomness, passwords)
    event_rules = _event_rules(settings)
    event_uses = EventUses(used=store, clock=clock, verify=_verify_schnorr)
    challenges = Challenges(
        base_url,
        provider=provider.issuer if provider else None,
        signed_requests=event_rules.accepted,
        passwords=event_rules.accepted and event_rules.basic is not None,
    )
    nonces = Nonces(secret=keys[0], clock=clock) if settings.dpop_nonce else None
    proofs = Proofs(
        used=store,
        clock=clock,
        require_ath=settings.require_ath,
        refuse_replay=settings.refuse_replayed_proofs,
        nonces=nonces,
    )
    owners = Owners(store)
    gate = Gate(
        acls=EffectiveAcls(store, parse_rules, base_url=base_url),
        groups=GroupMemberships(store, parse_rules, foreign, clock, base_url=base_url),
        owners=owners,
    )
    renderings = Renderings(capacity_bytes=settings.rendering_cache_bytes)
    contents = Contents(
        store=store,
        documents=documents,
        gate=gate,
        companions=ProfileKeyRecords(store=store, clock=clock),
    )
    service = ResourceService(
        store=store,
        gate=gate,
        reader=Reader(
            representations=Representations(documents=documents, renderings=renderings),
            listings=Listings(store=store, documents=documents, renderings=renderings),
            named_owners=owners if settings.advertise_owners else None,
        ),
        receiver=Receiver(store=store, documents=documents, max_body_bytes=settings.max_body_bytes),
        contents=contents,
        clock=clock,
        randomness=randomness,
        patches=Patches(
            documents=documents,
            contents=contents,
            limits=replace(rdf_limits(settings), max_bytes=settings.max_patch_bytes),
            budget_steps=settings.max_patch_steps,
        ),
        commits=Commits(store=store, quota_bytes=settings.quota_bytes),
        max_slug_bytes=settings.max_slug_bytes,
    )
    provisioner = PodProvisioner(
        base_url=base_url,
        store=store,
        tokens=_token_policy(settings, keys[0]),
        clock=clock,
        randomness=randomness,
    )
    registration = Registration(
        is_open=settings.registration == "open",
        limit=PodCreationLimit(
            counters=store,
            clock=clock,
            per_hour=settings.pod_creations_per_hour,
            exempt_loopback=is_loopback_url(base_url),
        ),
    )
    pods = PodsEndpoint(
        maker=provider.pod_maker if provider else PodsAlone(provisioner),
        registration=registration,
        max_body_bytes=settings.max_json_bytes,
    )
    readers = Readers(store=store, gate=gate)
    hub = Hub(
        log=store,
        delivering=Delivering(readers=readers, clock=clock, state_of=state_tag),
        max_watches=settings.max_watches,
    )
    sockets = OpenSockets(
        per_address=settings.sockets_per_address,
        per_agent=settings.sockets_per_agent,
        mailbox_capacity=settings.max_waiting_notices,
    )
    updates = UpdatesSocket(
        base_url=base_url,
        hub=hub,
        sockets=sockets,
        clock=clock,
        rules=SocketRules(
            max_urls=settings.subscriptions_per_socket,
            heartbeat_s=settings.heartbeat_s,
            is_open=settings.legacy_notifications_open,
        ),
    )
    channels = ChannelParts(
        settings,
        hub=hub,
        readers=readers,
        sockets=sockets,
        store=store,
        parse=parse_rules,
        foreign=foreign,
        clock=clock,
        randomness=randomness,
    )
    description = StorageDescriptionEndpoint(
        base_url=base_url, store=store, channel_types=CHANNEL_TYPES
    )
    server = ServerDescriptionEndpoint(
        base_url=base_url, named_storages=store if settings.list_storages else None
    )
    root = RootEndpoint(base_url=base_url, version=__version__, has_accounts=settings.idp)
    directories = Directories(RootLayout(settings.root).git)
    repositories = RepositorySweep(directories, store, clock)
    git = None
    if settings.git:
        git = Answering(
            settings,
            directories,
            store=store,
            gate=gate,
            resources=service,
            clock=clock,
            randomness=randomness,
        )
    resources = ResourceEndpoint(
        service=service,
        responder=Responder(base_url=base_url),
        challenges=challenges,
        container_deleted=repositories.soon,
    )
    lookups = Lookups(store, clock)
    profiles = ProfileSources(
        base_url,
        store,
        foreign,
        parse_rules,
        clock,
        standing=provider.accounts.accounts if provider else None,
    )
    resource_tokens = ResourceTokens(
        issuers=IssuerKeys(foreign, clock),
        web_ids=WebIdIssuers(profiles),
        own=provider.own if provider else None,
        proofs=proofs,
        lookups=lookups,
        rules=_token_rules(settings),
        clock=clock,
    )
    authorities = Authorities(
        hosts=served_hosts(base_url, port=settings.port, aliases=settings.host_aliases),
        trusted_proxies=settings.trusted_proxies,
    )
    provider_routes: tuple[Route, ...] = ()
    linked = None
    if provider is not None:
        nostr = None
        if event_rules.accepted:
            nostr = provider.nostr(
                resources=service, parse=parse_rules, documents=foreign, uses=event_uses
            )
            linked = nostr.linked
        provider_routes = provider.routes(
            proofs=proofs,
            resource_tokens=resource_tokens,
            resources=service,
            foreign=foreign,
            parse=parse_rules,
            registration=registration,
            nostr=nostr,
            profiles=profiles,
        )
    return Application(
        base_url=base_url,
        routes=Routes(
            (
                Route(ROOT, {"GET": root.get, "HEAD": root.get}, Access.PUBLIC),
                Route(ResourcePath("/.pods"), {"POST": pods.post}, Access.PUBLIC),
                Route(
                    ResourcePath("/.well-known/solid"),
                    {"GET": server.get, "HEAD": server.get},
                    Access.PUBLIC,
                ),
                Route(
                    UPDATES_PATH,
                    {"GET": updates.get, "HEAD": updates.get},
                    Access.PUBLIC,
                    socket=updates.connect,
                ),
                *channels.routes(),
                *provider_routes,
            ),
            storage_description={"GET": description.get, "HEAD": description.get},
            resources=resources.handle,
        ),
        authenticator=Authenticator(
            pod_tokens=PodTokens(
                keys=keys, registries=store, clock=clock, enabled=settings.simple_tokens
            ),
            resource_tokens=resource_tokens,
            signed_requests=SignedRequests(
                uses=event_uses, clock=clock, rules=event_rules, linked=linked
            ),
            certificates=certificate_verifier(settings, profiles, lookups),
        ),
        challenges=challenges,
        authorities=authorities,
        limits=RequestLimits(
            target_bytes=settings.max_target_bytes,
            body_pace=BodyPace(settings.body_idle_timeout_s, settings.min_upload_bytes_per_s),
        ),
        invalid_credentials=InvalidCredentialLimit(
            counters=store, clock=clock, per_minute=settings.invalid_credentials_per_minute
        ),
        answers=Answers(
            store=store,
            keys=provider.keys if provider else None,
            clock=clock,
            capacity_bytes=settings.rendering_cache_bytes // 4,
        ),
        lifespan=_lifespan(
            store=store,
            hub=hub,
            webhooks=channels.webhooks,
            sockets=sockets,
            foreign=foreign,
            clock=clock,
            provider=provider,
            git=git,
            repositories=repositories,
        ),
        clock=clock,
        nonces=nonces,
        git=None if git is None else git.endpoint,
        certificates=client_certificates(settings, authorities, clock),
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


def _token_policy(settings: Settings, key: SigningKey) -> TokenPolicy | None:
    if not settings.simple_tokens:
        return None
    return TokenPolicy(key=key, lifetime_s=settings.token_lifetime_s)


def _provider(
    settings: Settings,
    store: Store,
    clock: Clock,
    randomness: Randomness,
    passwords: PasswordHasher | None,
) -> Provider | None:
    if not settings.idp:
        return None
    from podstead.app.accounts import build_accounts
    from podstead.app.idp import Provider  # a tenth of a second that others need not wait

    accounts = build_accounts(
        settings,
        store=store,
        clock=clock,
        randomness=randomness,
        passwords=passwords,
    )
    return Provider(settings, store=store, accounts=accounts, clock=clock, randomness=randomness)


def _lifespan(
    *,
    store: Store,
    hub: Hub,
    webhooks: Webhooks,
    sockets: OpenSockets,
    foreign: ForeignDocuments,
    clock: Clock,
    provider: Provider | None,
    git: Answering | None,
    repositories: RepositorySweep,
) -> Lifespan:
    """Open the store and sweep it from time to time; close everything in the end."""
    sweeping: list[asyncio.Task[None]] = []

    async def start() -> None:
        await store.open()
        webhooks.start()
        if provider is not None:
            await asyncio.to_thread(provider.keys.maintain)
        if git is not None:
            await git.open()
        _settle_memory()
        sweeping.append(asyncio.create_task(_sweep_regularly(store, clock, provider, repositories)))

    async def drain() -> None:
        await asyncio.gather(webhooks.stop(), leave())

    async def leave() -> None:
        hub.close()
        await sockets.drain()

    async def stop() -> None:
        for task in sweeping:
            task.cancel()
        await asyncio.gather(*sweeping, return_exceptions=True)
        await drain()
        if git is not None:
            await git.close()
        await repositories.close()
        await foreign.close()
        await store.close()

    return Lifespan(start, stop, drain)


def _settle_memory() -> None:
    """Keep what was loaded at the start out of garbage collection, and collect less often.

    A request leaves no cycles but those of its refusal, and a collection walks everything kept:
    measured at 5 to 10 % of a write's time with Python's own threshold of 700.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


async def _sweep_regularly(
    store: Store, clock: Clock, provider: Provider | None, repositories: RepositorySweep
) -> None:
    while True:
        try:
            await store.sweep(now_ms=clock.now_ms())
            await repositories.now()
            if provider is not None:
                await asyncio.to_thread(provider.keys.maintain)
        except ServerTrouble:  # a store that is too busy among them
            logger.exception("The store could not be swept; it is tried again")
        await asyncio.sleep(_SWEEP_PERIOD_S)

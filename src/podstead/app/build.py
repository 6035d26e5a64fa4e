"""How are the parts connected? Constructs every object of a worker once, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from podstead.app.access_log import application_class, ignored_fields
from podstead.app.adapters.account_emails import AccountEmails
from podstead.app.adapters.bundled_contexts import bundled_contexts
from podstead.app.adapters.engine import key_storage, new_store
from podstead.app.adapters.foreign import ForeignDocuments
from podstead.app.adapters.keys import load_token_keys
from podstead.app.adapters.rdf_processes import RdfProcesses
from podstead.app.adapters.rendering_processes import RenderingProcesses
from podstead.app.adapters.system import SystemClock, SystemRandomness
from podstead.app.adapters.thumbnail_files import ThumbnailFiles
from podstead.app.authentication import CredentialVerification
from podstead.app.channels import CHANNEL_TYPES
from podstead.app.client_certificates import client_certificates
from podstead.app.documents import build_documents
from podstead.app.git import GitServices, RepositorySweep
from podstead.app.lifespan import WorkerLifespan
from podstead.app.live_updates import LiveUpdates
from podstead.app.monitoring.checks import WorkerChecks
from podstead.app.monitoring.readings import WorkerReadings
from podstead.app.monitoring.worker_answers import worker_answers
from podstead.app.pod_account_pages import AccountPageParts
from podstead.app.pod_pages import FileParts, build_pod_pages
from podstead.app.registration import build_registration
from podstead.app.relying_party import ExternalSignIn
from podstead.app.resources import Owners, build_resources
from podstead.app.sharing_pages import SharingParts
from podstead.app.tracing import traced, traced_application
from podstead.authn.pod_token import SigningKey
from podstead.config import Settings
from podstead.core.clock import Clock, Randomness
from podstead.core.identifiers import ROOT, ResourcePath
from podstead.git.directories import Directories
from podstead.pods.provision import PodProvisioner, TokenPolicy
from podstead.rdf.graph import Graph
from podstead.rdf.parser import RdfParser
from podstead.resources.archives import Archives
from podstead.resources.folder_facts import ChangeAuthors, MemberReach
from podstead.resources.incoming_links import IncomingLinks
from podstead.resources.sharing.people import NoAccounts
from podstead.resources.sharing.rules_index import RulesIndex, RulesIndexBuilder
from podstead.resources.sharing.stored_answers import StoredAnswers
from podstead.resources.storage_usage import PodUsage
from podstead.resources.uploads import UploadService
from podstead.storage.capacity import StorageCapacity
from podstead.storage.disk_space import DiskSpace
from podstead.storage.layout import RootLayout
from podstead.storage.protocol import Store
from podstead.storage.record_store import RecordStore
from podstead.wac.effective import EffectiveAcls
from podstead.wac.gate import Gate
from podstead.wac.groups import GroupMemberships
from podstead.web.application import Application
from podstead.web.authentication import LimitedAuthentication
from podstead.web.authority import Authorities, hosts_of, served_hosts
from podstead.web.body import BodyPace
from podstead.web.challenges import AuthenticateChallenges
from podstead.web.favicon_endpoint import FaviconEndpoint
from podstead.web.former_pods import FormerPods
from podstead.web.limits import InvalidCredentialLimit
from podstead.web.pod_pages.routes import asset_route
from podstead.web.pods_endpoint import PodsAlone, PodsEndpoint
from podstead.web.probe_endpoint import ProbeEndpoint
from podstead.web.request_counts import RequestCounts
from podstead.web.request_ids import RequestIds
from podstead.web.resource_endpoint import ResourceEndpoint
from podstead.web.resource_responses import Responder
from podstead.web.response_cache import ResponseCache
from podstead.web.root_endpoint import RootEndpoint
from podstead.web.routes import Access, Route, Routes
from podstead.web.server_description_endpoint import ServerDescriptionEndpoint
from podstead.web.storage_description_endpoint import StorageDescriptionEndpoint
from podstead.web.uploads_endpoint import UploadsEndpoint

if TYPE_CHECKING:
    from podstead.app.idp import Provider
    from podstead.idp.passwords import PasswordHasher


def build_application(
    settings: Settings,
    *,
    clock: Clock | None = None,
    randomness: Randomness | None = None,
    passwords: PasswordHasher | None = None,
) -> Application:
    """The ASGI application of one worker; it opens nothing before its lifespan starts.

    ``passwords`` is for tests that use cheaper hashes.

    The root must have been prepared and migrated. Raises StorageError if its keys cannot be read.
    """
    clock, randomness = clock or SystemClock(), randomness or SystemRandomness()
    base_url = settings.base_url
    space = DiskSpace(settings.root, min_free_bytes=settings.min_free_bytes)
    store = traced("commit", new_store(settings, space=space), "commit")
    capacity = StorageCapacity(usage=store, space=space, quota_bytes=settings.quota_bytes)
    keys = settings.token_keys or load_token_keys(key_storage(settings))
    foreign = traced("outbound request", ForeignDocuments(settings, clock), "fetch", "post", "ask")
    documents = build_documents(
        settings,
        store=store,
        foreign=foreign,
        costly=RdfProcesses(base_url=base_url, bundled=bundled_contexts()),
    )

    async def parse_rules(content: bytes, content_type: str, base_iri: str) -> Graph:
        document = await documents.parse_at(content, content_type, base_iri=base_iri)
        return document.graph

    provider = _provider(
        settings,
        store=store,
        foreign=foreign,
        parse=parse_rules,
        clock=clock,
        randomness=randomness,
        passwords=passwords,
        signing_keys=keys,
    )
    verification = CredentialVerification(
        settings,
        keys=keys,
        own=provider.own if provider else None,
        accounts=provider.accounts.accounts if provider else None,
        store=store,
        foreign=foreign,
        parse=parse_rules,
        clock=clock,
    )
    event_rules = verification.event_rules
    challenges = AuthenticateChallenges(
        base_url,
        provider=provider.issuer if provider else None,
        signed_requests=event_rules.accepted,
        passwords=event_rules.accepted and event_rules.basic is not None,
    )
    owners = Owners(store)
    gate = traced(
        "decision",
        Gate(
            acls=EffectiveAcls(store, parse_rules, base_url=base_url),
            groups=GroupMemberships(store, parse_rules, foreign, clock, base_url=base_url),
            owners=owners,
        ),
        "authorize",
    )
    service = build_resources(
        settings,
        store=store,
        capacity=capacity,
        gate=gate,
        owners=owners,
        documents=documents,
        clock=clock,
        randomness=randomness,
    )
    provisioner = PodProvisioner(
        base_url=base_url,
        store=store,
        tokens=_token_policy(settings, keys[0]),
        clock=clock,
        randomness=randomness,
    )
    registration = build_registration(
        settings,
        records=RecordStore(store, clock, randomness),
        refused=provider.note_refused_invitation if provider else None,
    )
    pods = PodsEndpoint(
        maker=provider.pod_maker if provider else PodsAlone(provisioner),
        registration=registration,
    )
    description = StorageDescriptionEndpoint(
        base_url=base_url, store=store, channel_types=CHANNEL_TYPES
    )
    server = ServerDescriptionEndpoint(
        base_url=base_url, named_storages=store if settings.list_storages else None
    )
    favicon = FaviconEndpoint()
    directories = _directories(RootLayout(settings.root))
    repositories = RepositorySweep(directories, store, clock)
    git = None
    if settings.git:
        git = GitServices(
            settings,
            directories,
            store=store,
            capacity=capacity,
            gate=gate,
            resources=service,
            clock=clock,
            randomness=randomness,
        )
    resources = ResourceEndpoint(
        service=service,
        responder=Responder(
            base_url=base_url, clock=clock, sockets_base_url=settings.sockets_base_url
        ),
        challenges=challenges,
        base_url=base_url,
        container_deleted=repositories.soon,
        redirects_reads=settings.redirect_large_reads,
        former_pods=FormerPods(store, base_url=base_url, clock=clock),
    )
    parted_hosts = hosts_of(settings.issuer) if settings.idp_base_url else frozenset[str]()
    authorities = Authorities(
        hosts=parted_hosts
        | served_hosts(base_url, port=settings.port, aliases=settings.host_aliases)
        | served_hosts(settings.sockets_base_url, port=settings.sockets_port or settings.port),
        trusted_proxies=settings.trusted_proxies,
        former_hosts=frozenset[str]().union(*map(hosts_of, settings.former_base_urls)),
        base_url=base_url,
    )
    provider_routes: tuple[Route, ...] = ()
    linked = None
    if provider is not None:
        nostr = None
        if event_rules.accepted:
            nostr = provider.nostr(
                resources=service,
                parse=parse_rules,
                uses=verification.event_uses,
            )
            linked = nostr.linked
        provider_routes = provider.routes(
            proofs=verification.proofs,
            resource_tokens=verification.resource_tokens,
            resources=service,
            foreign=foreign,
            parse=parse_rules,
            registration=registration,
            nostr=nostr,
            profiles=verification.profiles,
            bundles=None if git is None else git.bundles,
        )
    authenticator = verification.authenticator(linked=linked)
    invalid_credentials = InvalidCredentialLimit(
        counters=store, clock=clock, per_minute=settings.invalid_credentials_per_minute
    )
    live_updates = LiveUpdates(
        settings,
        store=store,
        gate=gate,
        identity_status=verification.identity_status,
        parse=parse_rules,
        foreign=foreign,
        authentication=LimitedAuthentication(authenticator, invalid_credentials),
        clock=clock,
        randomness=randomness,
    )
    uploads = UploadService(
        resources=service,
        records=RecordStore(store, clock, randomness),
        capacity=capacity,
        max_body_bytes=settings.max_body_bytes,
    )
    stored_answers = StoredAnswers(
        RecordStore(store, clock, randomness), profiles=verification.profiles, sending=foreign
    )
    pod_pages = build_pod_pages(
        settings,
        records=RecordStore(store, clock, randomness),
        resources=service,
        uploads=uploads,
        challenges=challenges,
        tokens=verification.pod_tokens,
        accounts=provider.people() if provider and not parted_hosts else None,
        invalid_credentials=invalid_credentials,
        archives=Archives(store=store, gate=gate),
        links=IncomingLinks(store=store, gate=gate, documents=documents, base_url=base_url),
        files=FileParts(
            thumbnails=ThumbnailFiles(RootLayout(settings.root).thumbnails, clock=clock),
            renderer=RenderingProcesses(),
            reach=MemberReach(store=store, gate=gate),
            authors=ChangeAuthors(store),
            streams=live_updates.streams,
            usage=PodUsage(store=store, gate=gate, clock=clock, quotas=capacity.quotas),
            data_version=store.data_version,
        ),
        sharing=SharingParts(
            documents=documents,
            store=store,
            gate=gate,
            owners=owners,
            emails=AccountEmails(provider.accounts.accounts) if provider else NoAccounts(),
            stored_answers=stored_answers,
            notices=provider.request_notices() if provider and settings.mail else None,
            clock=clock,
            randomness=randomness,
        ),
        account=AccountPageParts(
            store=store,
            gate=gate,
            parse=parse_rules,
            own_account=provider.own_account if provider and not parted_hosts else None,
        ),
        visitors=ExternalSignIn(
            settings,
            verification=verification,
            others=foreign,
            provider_routes=provider_routes,
            records=RecordStore(store, clock, randomness),
        ),
        registration=registration,
    )
    root = RootEndpoint(
        base_url=base_url,
        provider=provider.issuer if provider else None,
        provider_hosts=parted_hosts,
        registration=registration,
        page=pod_pages.first,
    )
    everywhere = (
        asset_route(),
        Route(ROOT, {"GET": root.get, "HEAD": root.get}, Access.PUBLIC),
        Route(
            ResourcePath("/favicon.ico"),
            {"GET": favicon.get, "HEAD": favicon.get},
            Access.PUBLIC,
        ),
    )
    parted = Routes((*everywhere, *provider_routes))
    readings = WorkerReadings(
        requests=RequestCounts(),
        responses=ResponseCache(
            store=store if store.prefetch is None else None,
            keys=provider.keys if provider else None,
            clock=clock,
            capacity_bytes=settings.rendering_cache_bytes // 4,
            ignored_fields=ignored_fields(settings),
        ),
        store=store,
        foreign=foreign,
        live_updates=live_updates,
    )
    return traced_application(application_class(settings, clock), authorities.trusts)(
        base_url=base_url,
        routes=Routes(
            (
                *everywhere,
                Route(ResourcePath("/.pods"), {"POST": pods.post}, Access.PUBLIC),
                Route(
                    ResourcePath("/.well-known/solid"),
                    {"GET": server.get, "HEAD": server.get},
                    Access.PUBLIC,
                ),
                ProbeEndpoint(RecordStore(store, clock, randomness)).route(),
                *live_updates.routes(),
                *UploadsEndpoint(
                    service=uploads,
                    challenges=challenges,
                    base_url=base_url,
                    max_bytes=settings.max_body_bytes,
                ).routes(),
                *pod_pages.routes,
                *(() if parted_hosts else provider_routes),
            ),
            storage_description={"GET": description.get, "HEAD": description.get},
            resources=resources.handle,
        ),
        authenticator=authenticator,
        challenges=challenges,
        authorities=authorities,
        body_pace=BodyPace(settings.body_idle_timeout_s),
        invalid_credentials=invalid_credentials,
        responses=readings.responses,
        requests=readings.requests,
        ids=RequestIds(authorities, randomness),
        answers=worker_answers(
            settings,
            readings=readings,
            checks=WorkerChecks(store, space, clock),
            store=store,
        ),
        lifespan=WorkerLifespan(
            store=store,
            live_updates=live_updates,
            foreign=foreign,
            clock=clock,
            provider=provider,
            git=git,
            repositories=repositories,
            stored_answers=stored_answers,
            costly=documents.costly,
            among_nodes=settings.database is not None,
            rules_index=RulesIndexBuilder(
                index=RulesIndex(RecordStore(store, clock, randomness), base_url=base_url),
                documents=documents,
                records=RecordStore(store, clock, randomness),
            ),
        ).span(),
        clock=clock,
        nonces=verification.nonces,
        git=None if git is None else git.endpoint,
        certificates=client_certificates(settings, authorities, clock),
        provider_routes=dict.fromkeys(parted_hosts, parted),
        slow_request=provider.slow_requests.note if provider else None,
        sockets_base_url=settings.sockets_base_url,
        prefetch=store.prefetch,
    )


def _directories(layout: RootLayout) -> Directories:
    return Directories(layout.git, removal_lock=layout.removal_lock)


def _token_policy(settings: Settings, key: SigningKey) -> TokenPolicy | None:
    if not settings.simple_tokens:
        return None
    return TokenPolicy(key=key, lifetime_s=settings.token_lifetime_s)


def _provider(
    settings: Settings,
    *,
    store: Store,
    foreign: ForeignDocuments,
    parse: RdfParser,
    clock: Clock,
    randomness: Randomness,
    passwords: PasswordHasher | None,
    signing_keys: Sequence[SigningKey],
) -> Provider | None:
    if not settings.idp:
        return None
    from podstead.app.accounts import build_accounts
    from podstead.app.adapters.stored_audit import StoredAudit
    from podstead.app.idp import Provider  # a tenth of a second that others need not wait

    audit = StoredAudit(RecordStore(store, clock, randomness))
    accounts = build_accounts(
        settings,
        store=store,
        clock=clock,
        randomness=randomness,
        passwords=passwords,
        audit=audit,
        signing_keys=[bytes(key) for key in signing_keys],
    )
    return Provider(settings, accounts=accounts, audit=audit, foreign=foreign, parse=parse)

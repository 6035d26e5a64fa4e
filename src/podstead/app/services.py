"""The objects of one worker: each is made on first use from those that it works with.

The settings, the clock, the source of randomness and the store exist once. Nothing here is called
by a request: it uses the objects themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from podstead.app.adapters import audit, engine, own_resources, rdf_processes, system
from podstead.app.adapters.bundled_contexts import build_documents, bundled_contexts
from podstead.app.adapters.foreign import ForeignDocuments
from podstead.app.adapters.keys import signing_keys, token_policy
from podstead.app.adapters.registration import about_operator, terms_hash
from podstead.app.lifespan import WorkerLifespan
from podstead.app.live_settings import LiveSettings
from podstead.app.live_updates import LiveUpdates
from podstead.app.monitoring import checks, diagnosis, observability, stored_facts
from podstead.app.monitoring.readings import WorkerReadings
from podstead.app.pages import PodPages
from podstead.app.relying_party import own_client
from podstead.authn import resource_tokens as authn_resource_tokens
from podstead.authn import web_ids as authn_web_ids
from podstead.authn.authenticate import Authenticator, CredentialScheme, PodTokenVerifier
from podstead.authn.credentials import SigningKey
from podstead.authn.issuers import IssuerKeys
from podstead.authn.relying_party.providers import IdTokenVerifier
from podstead.authn.relying_party.sign_ins import OwnClient
from podstead.config import Settings
from podstead.core.clock import Clock, Randomness
from podstead.core.identity import IdentityRefinement
from podstead.features import WorkerFeature, container_hooks, features, only_offer, write_hooks
from podstead.pods.provision import PodProvisioner
from podstead.rdf.graph import Graph
from podstead.resources.context import ResourceContext
from podstead.resources.documents import Documents
from podstead.resources.exporting.contents import RepositoryBundler
from podstead.resources.service import ResourceService
from podstead.resources.sharing.offers import StoredAnswers
from podstead.resources.sharing.rules_index import RulesIndex
from podstead.resources.uploads import UploadService
from podstead.storage import disk_space, invitations, protocol, record_store
from podstead.storage.capacity import StorageCapacity
from podstead.wac.effective import EffectiveAcls, GroupMemberships
from podstead.wac.gate import Gate
from podstead.web import body, description_endpoints, probe_endpoint, request_ids, response
from podstead.web.application import Application
from podstead.web.authentication import AuthenticateChallenges, LimitedAuthentication
from podstead.web.authority import Authorities, hosts_of, is_loopback_url, served_hosts
from podstead.web.limits import InvalidCredentialLimit, InvitationGuessLimit, PodCreationLimit
from podstead.web.pages.notifier import Notifier
from podstead.web.pages.templates import AssetsEndpoint
from podstead.web.registration import PodsEndpoint, PodsWithoutAccounts, Registration
from podstead.web.request_counts import RequestCounts
from podstead.web.resource_endpoint import FormerPods, ResourceEndpoint
from podstead.web.resource_responses import Responder
from podstead.web.response_cache import ResponseCache
from podstead.web.routes import Endpoint, Route, Routes, plain_routes

if TYPE_CHECKING:
    from podstead.app.provider import Provider
    from podstead.idp.passwords import PasswordHasher
    from podstead.web.account.security_page import AppsSection
    from podstead.web.request import ClientCertificates
    from podstead.web.sign_in.authorization import ConsentExtension


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
    return Services(settings, clock, randomness, passwords).application


class Services:
    """The objects of one worker."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        passwords: PasswordHasher | None = None,
    ) -> None:
        self.settings = settings
        self.base_url = settings.base_url
        self.clock: Clock = clock or system.SystemClock()
        self.randomness: Randomness = randomness or system.SystemRandomness()
        self.passwords = passwords
        """Hashes passwords in place of the usual hasher, if it is given."""

    # Storage

    @cached_property
    def space(self) -> disk_space.DiskSpace:
        return disk_space.DiskSpace(self.settings.root, min_free_bytes=self.settings.min_free_bytes)

    @cached_property
    def store(self) -> protocol.Store:
        return observability.traced(
            "commit", engine.new_store(self.settings, space=self.space), "commit"
        )

    @cached_property
    def records(self) -> record_store.RecordStore:
        return record_store.RecordStore(self.store, self.clock, self.randomness)

    @cached_property
    def live(self) -> LiveSettings:
        """The settings in effect."""
        return LiveSettings(self.settings, self.records)

    def quota_bytes(self) -> int:
        """The quota of each pod without one of its own; 0 for none."""
        return self.live.current.quota_bytes

    @cached_property
    def capacity(self) -> StorageCapacity:
        return StorageCapacity(usage=self.store, space=self.space, quota_bytes=self.quota_bytes)

    @cached_property
    def keys(self) -> tuple[SigningKey, ...]:
        """The keys that sign simple tokens, the newest first."""
        return tuple(signing_keys(self.settings))

    # Other servers, and linked data

    @cached_property
    def foreign(self) -> ForeignDocuments:
        documents = ForeignDocuments(self.settings, self.clock)
        return observability.traced("outbound request", documents, "fetch", "post", "ask")

    @cached_property
    def documents(self) -> Documents:
        return build_documents(
            self.settings,
            store=self.store,
            foreign=self.foreign,
            costly=rdf_processes.RdfProcesses(base_url=self.base_url, bundled=bundled_contexts()),
        )

    async def parse(self, content: bytes, content_type: str, base_iri: str) -> Graph:
        """The default graph of a document (:class:`podstead.rdf.graph.RdfParser`)."""
        document = await self.documents.parse_at(content, content_type, base_iri=base_iri)
        return document.graph

    # The identity provider

    @cached_property
    def provider(self) -> Provider | None:
        if not self.settings.idp:
            return None
        from podstead.app.provider import Provider  # a tenth of a second that others need not wait

        return Provider(self)

    @cached_property
    def provider_hosts(self) -> frozenset[str]:
        """The hosts of a provider with an origin of its own; empty if it is at that of the pods."""
        settings = self.settings
        return hosts_of(settings.issuer) if settings.idp_base_url else frozenset()

    @cached_property
    def provider_here(self) -> Provider | None:
        """The provider if it is at the origin of the pods."""
        return None if self.provider_hosts else self.provider

    # Authentication

    @cached_property
    def pod_tokens(self) -> PodTokenVerifier:
        return PodTokenVerifier(
            keys=self.keys,
            registries=self.store,
            clock=self.clock,
            enabled=self.settings.simple_tokens,
            refinements=self._refinements,
        )

    @cached_property
    def _refinements(self) -> Sequence[IdentityRefinement]:
        return tuple(each.refinement for each in self.features if each.refinement is not None)

    @cached_property
    def lookups(self) -> authn_web_ids.LookupLimits:
        return authn_web_ids.LookupLimits(self.store, self.clock)

    @cached_property
    def local_web_ids(self) -> authn_web_ids.LocalWebIds:
        accounts = self.provider.accounts.accounts if self.provider else None
        return authn_web_ids.LocalWebIds(self.base_url, accounts)

    @cached_property
    def identity_status(self) -> authn_web_ids.IdentityStatus:
        return authn_web_ids.IdentityStatus(
            tokens=self.store, web_ids=self.local_web_ids, refinements=self._refinements
        )

    @cached_property
    def nonces(self) -> authn_resource_tokens.DpopNonces | None:
        if not self.settings.dpop_nonce:
            return None
        return authn_resource_tokens.DpopNonces(secret=self.keys[0], clock=self.clock)

    @cached_property
    def proofs(self) -> authn_resource_tokens.ProofVerifier:
        return authn_resource_tokens.ProofVerifier(
            used=self.store,
            clock=self.clock,
            require_ath=self.settings.require_ath,
            refuse_replay=self.settings.refuse_replayed_proofs,
            nonces=self.nonces,
        )

    @cached_property
    def profiles(self) -> authn_web_ids.ProfileSources:
        return authn_web_ids.ProfileSources(
            self.local_web_ids, self.store, self.foreign, self.parse, self.clock
        )

    @cached_property
    def issuers(self) -> IssuerKeys:
        return IssuerKeys(self.foreign, self.lookups, self.clock)

    @cached_property
    def web_ids(self) -> authn_web_ids.WebIdIssuers:
        return authn_web_ids.WebIdIssuers(self.profiles, self.lookups)

    @cached_property
    def token_rules(self) -> authn_resource_tokens.TokenRules:
        return authn_resource_tokens.TokenRules(
            allow_loopback=is_loopback_url(self.base_url),
            allowed_issuers=frozenset(self.settings.accepted_issuers),
            denied_issuers=frozenset(self.settings.refused_issuers),
        )

    @cached_property
    def resource_tokens(self) -> authn_resource_tokens.AccessTokenVerifier:
        return authn_resource_tokens.AccessTokenVerifier(
            issuers=self.issuers,
            web_ids=self.web_ids,
            own=self.provider.own if self.provider else None,
            proofs=self.proofs,
            rules=self.token_rules,
            clock=self.clock,
        )

    @cached_property
    def id_tokens(self) -> IdTokenVerifier:
        """Verifies the ID tokens of people who sign in at other providers."""
        return IdTokenVerifier(
            issuers=self.issuers,
            web_ids=self.web_ids,
            own=self.provider.own if self.provider else None,
            rules=self.token_rules,
            clock=self.clock,
        )

    @cached_property
    def own_client(self) -> OwnClient:
        """What this server is to providers."""
        return own_client(self.base_url)

    @cached_property
    def client_certificates(self) -> ClientCertificates | None:
        """Finds client certificates in requests; ``None`` if they are ignored."""
        return only_offer(each.client_certificates for each in self.features)

    @cached_property
    def authenticator(self) -> Authenticator:
        return Authenticator(
            pod_tokens=self.pod_tokens,
            resource_tokens=self.resource_tokens,
            schemes=self._credential_schemes,
            refinements=self._refinements,
        )

    @cached_property
    def _credential_schemes(self) -> Sequence[CredentialScheme]:
        return tuple(scheme for each in self.features for scheme in each.credentials)

    @cached_property
    def invalid_credentials(self) -> InvalidCredentialLimit:
        return InvalidCredentialLimit(
            counters=self.store,
            clock=self.clock,
            per_minute=self.settings.invalid_credentials_per_minute,
        )

    @cached_property
    def challenges(self) -> AuthenticateChallenges:
        return AuthenticateChallenges(
            self.base_url,
            provider=self.settings.issuer if self.settings.idp else None,
            schemes=self._credential_schemes,
        )

    # Authorization, and operations on resources

    @cached_property
    def owners(self) -> own_resources.PodOwners:
        return own_resources.PodOwners(self.store)

    @cached_property
    def gate(self) -> Gate:
        gate = Gate(
            acls=EffectiveAcls(self.store, self.parse, base_url=self.base_url),
            groups=GroupMemberships(
                self.store, self.parse, self.foreign, self.clock, base_url=self.base_url
            ),
            owners=self.owners,
            clock=self.clock,
            restrictions=[each.restriction for each in self.features if each.restriction],
        )
        return observability.traced("decision", gate, "authorize")

    @cached_property
    def rules_index(self) -> RulesIndex:
        return RulesIndex(self.records, base_url=self.base_url)

    @cached_property
    def resource_context(self) -> ResourceContext:
        return ResourceContext(
            records=self.records,
            gate=self.gate,
            documents=self.documents,
            quota_bytes=self.quota_bytes,
            write_hooks=(*write_hooks(self.records), self.rules_index),
            container_hooks=container_hooks(self.records),
            read_observers=[each.read_observer for each in self.features if each.read_observer],
        )

    @cached_property
    def resources(self) -> ResourceService:
        settings = self.settings
        return ResourceService(
            self.resource_context,
            capacity=self.capacity,
            max_body_bytes=settings.max_body_bytes,
            rendering_cache_bytes=settings.rendering_cache_bytes,
            named_owners=self.owners if settings.advertise_owners else None,
            acl_listener=audit.AclAudit(),
            observers=[each.observer for each in self.features if each.observer is not None],
            extensions=[each.write_extension for each in self.features if each.write_extension],
        )

    @cached_property
    def uploads(self) -> UploadService:
        return UploadService(
            resources=self.resources,
            records=self.records,
            capacity=self.capacity,
            max_body_bytes=self.settings.max_body_bytes,
        )

    @cached_property
    def stored_answers(self) -> StoredAnswers:
        return StoredAnswers(self.records, profiles=self.profiles, sending=self.foreign)

    @cached_property
    def live_updates(self) -> LiveUpdates:
        return LiveUpdates(self)

    # Features

    @cached_property
    def features(self) -> Sequence[WorkerFeature]:
        """What features do in this worker. Raises StartRefused."""
        found = [each.in_worker(self) for each in features()]
        return tuple(each for each in found if each is not None)

    @cached_property
    def bundler(self) -> RepositoryBundler | None:
        """What archives of pods contain besides the resources."""
        return only_offer(each.bundler for each in self.features)

    @property
    def apps_sections(self) -> Sequence[AppsSection]:
        """What features add to the page about the applications of a person."""
        return [each.apps_section for each in self.features if each.apps_section is not None]

    @cached_property
    def consent(self) -> ConsentExtension | None:
        """What people decide on the consent page besides the scopes."""
        return only_offer(each.consent for each in self.features)

    @cached_property
    def notifier(self) -> Notifier:
        """Takes what people are told."""
        return only_offer(each.notifier for each in self.features) or Notifier()

    # New pods

    @cached_property
    def provisioner(self) -> PodProvisioner:
        """Creates pods whose owners get a simple token."""
        return PodProvisioner(
            base_url=self.base_url,
            store=self.store,
            tokens=token_policy(self.settings),
            clock=self.clock,
            randomness=self.randomness,
        )

    @cached_property
    def registration(self) -> Registration:
        """Who may register, and on which terms."""
        settings, now = self.settings, self.live.now
        return Registration(
            read_mode=lambda: now().registration,
            limit=PodCreationLimit(
                counters=self.store,
                clock=self.clock,
                per_hour=settings.pod_creations_per_hour,
                exempt_loopback=is_loopback_url(self.base_url),
            ),
            invitations=invitations.Invitations(self.records),
            wrong_codes=InvitationGuessLimit(self.store, self.clock),
            refused=self.provider.note_refused_invitation if self.provider else None,
            read_about=lambda: about_operator(now()),
            terms_hash=terms_hash(settings),
        )

    # HTTP

    @cached_property
    def authorities(self) -> Authorities:
        """The hosts that requests may name, and the proxies that are believed."""
        settings = self.settings
        sockets_port = settings.sockets_port or settings.port
        return Authorities(
            hosts=self.provider_hosts
            | served_hosts(self.base_url, port=settings.port, aliases=settings.host_aliases)
            | served_hosts(settings.sockets_base_url, port=sockets_port),
            trusted_proxies=settings.trusted_proxies,
            former_hosts=frozenset[str]().union(*map(hosts_of, settings.former_base_urls)),
            base_url=self.base_url,
        )

    @cached_property
    def pages(self) -> PodPages:
        return PodPages(self)

    @cached_property
    def readings(self) -> WorkerReadings:
        """What the worker counts."""
        return WorkerReadings(
            requests=RequestCounts(),
            responses=ResponseCache(
                store=self.store if self.store.prefetch is None else None,
                keys=self.provider.keys if self.provider else None,
                settings=self.live,
                clock=self.clock,
                capacity_bytes=self.settings.rendering_cache_bytes // 4,
                ignored_fields=observability.ignored_fields(self.settings),
            ),
            store=self.store,
            foreign=self.foreign,
            live_updates=self.live_updates,
        )

    @cached_property
    def feature_health(self) -> diagnosis.FeatureHealth:
        return diagnosis.FeatureHealth(self.live.now, self.records)

    @cached_property
    def _resource_headers(self) -> Sequence[response.HeaderField]:
        return tuple(field for each in self.features for field in each.resource_headers)

    @cached_property
    def _queries(self) -> Mapping[str, Endpoint]:
        """What answers queries to containers, by the media type of their content."""
        return {type_: answer for each in self.features for type_, answer in each.queries.items()}

    @cached_property
    def _accept_query(self) -> bytes:
        return ", ".join(self._queries).encode("ascii")

    @cached_property
    def responder(self) -> Responder:
        links = [link for each in self.features for link in each.document_links]
        return Responder(
            base_url=self.base_url,
            clock=self.clock,
            further=self._resource_headers,
            document_links=links,
            accept_query=self._accept_query,
        )

    @cached_property
    def resource_endpoint(self) -> ResourceEndpoint:
        settings, base_url = self.settings, self.base_url
        return ResourceEndpoint(
            service=self.resources,
            responder=self.responder,
            challenges=self.challenges,
            base_url=base_url,
            redirects_reads=settings.redirect_large_reads,
            queries=self._queries,
            former_pods=FormerPods(self.store, base_url=base_url, clock=self.clock),
        )

    @cached_property
    def _routes_at_every_origin(self) -> tuple[Route, ...]:
        root = description_endpoints.RootEndpoint(
            base_url=self.base_url,
            provider=self.settings.issuer if self.settings.idp else None,
            provider_hosts=self.provider_hosts,
            registration=self.registration,
            page=self.pages.first,
        )
        return plain_routes(AssetsEndpoint(), root, description_endpoints.FaviconEndpoint())

    @cached_property
    def routes(self) -> Routes:
        """All routes of the origin of the pods."""
        settings, base_url = self.settings, self.base_url
        description = description_endpoints.StorageDescriptionEndpoint(
            base_url=base_url,
            store=self.store,
            channel_types=[each.type for each in self.live_updates.handlers],
            links=[link for each in self.features for link in each.storage_links],
        )
        pods = PodsEndpoint(
            maker=self.provider.pod_maker
            if self.provider
            else PodsWithoutAccounts(self.provisioner),
            registration=self.registration,
        )
        server = description_endpoints.ServerDescriptionEndpoint(
            base_url=base_url, named_storages=self.store if settings.list_storages else None
        )
        return Routes(
            (
                *self._routes_at_every_origin,
                *plain_routes(pods, server),
                probe_endpoint.ProbeEndpoint(self.records).route(),
                *self.live_updates.routes(),
                *self.pages.routes,
                *(route for each in self.features for route in each.routes),
                *(self.provider_here.routes if self.provider_here else ()),
            ),
            storage_description={"GET": description.get, "HEAD": description.get},
            resources=self.resource_endpoint.handle,
        )

    @cached_property
    def _provider_routes(self) -> Routes:
        """Those of a provider with an origin of its own."""
        routes = self.provider.routes if self.provider else ()
        return Routes((*self._routes_at_every_origin, *routes))

    @cached_property
    def application(self) -> Application:
        make = observability.traced_application(
            observability.application_class(self.settings, self.clock), self.authorities.trusts
        )
        return make(
            base_url=self.base_url,
            routes=self.routes,
            authenticator=self.authenticator,
            challenges=self.challenges,
            authorities=self.authorities,
            body_pace=body.BodyPace(self.settings.body_idle_timeout_s),
            invalid_credentials=self.invalid_credentials,
            responses=self.readings.responses,
            requests=self.readings.requests,
            ids=request_ids.RequestIds(self.authorities, self.randomness),
            answers=stored_facts.worker_answers(
                self.live.now,
                readings=self.readings,
                checks=checks.WorkerChecks(self.store, self.space, self.clock),
                store=self.store,
                health=self.feature_health,
            ),
            lifespan=WorkerLifespan(self).span(),
            clock=self.clock,
            nonces=self.nonces,
            claims=tuple(each.claim for each in self.features if each.claim is not None),
            certificates=self.client_certificates,
            provider_routes=dict.fromkeys(self.provider_hosts, self._provider_routes),
            slow_request=self.provider.slow_requests.note if self.provider else None,
            resource_headers=self._resource_headers,
            accept_query=self._accept_query,
            prefetch=self.store.prefetch,
        )

    def limited_authentication(self) -> LimitedAuthentication:
        """Verifies credentials that clients send on a socket."""
        return LimitedAuthentication(self.authenticator, self.invalid_credentials)

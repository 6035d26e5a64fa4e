"""The pages on which people use their pods."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

from podstead import __version__
from podstead.app.adapters.own_resources import AccountEmails
from podstead.app.adapters.registration import is_markdown
from podstead.app.adapters.rendering_processes import RenderingProcesses, ThumbnailFiles
from podstead.app.relying_party import external_sign_ins
from podstead.resources.activity import ChangeAuthors, MemberAudiences, PodActivity
from podstead.resources.archives import Archives
from podstead.resources.incoming_links import IncomingLinks
from podstead.resources.sharing.access_requests import AccessRequests, PendingRequests
from podstead.resources.sharing.documents import AgentDocuments
from podstead.resources.sharing.people import Contacts, GroupNames, NoAccounts, PeopleDirectory
from podstead.resources.sharing.service import SharingService
from podstead.resources.sharing.shared import SharedLists
from podstead.resources.storage_usage import PodUsage
from podstead.storage.layout import RootLayout
from podstead.web.pages import addresses
from podstead.web.pages.cookies import Cookies
from podstead.web.pages.guard import Guard
from podstead.web.pages.rendering import PageRenderer
from podstead.web.pages.request import People, PeopleByAnySession
from podstead.web.pages.site import Site
from podstead.web.pod_pages.account.activity_page import ActivityPage
from podstead.web.pod_pages.account.home_page import HomePage
from podstead.web.pod_pages.account.profile_page import ProfilePage
from podstead.web.pod_pages.account.profiles import Profiles
from podstead.web.pod_pages.account.security_page import SecurityPage
from podstead.web.pod_pages.account.storage_page import StoragePage
from podstead.web.pod_pages.components_page import ComponentsPage
from podstead.web.pod_pages.files.container_page import ContainerPage
from podstead.web.pod_pages.files.contents import DocumentContents
from podstead.web.pod_pages.files.creation import Creation
from podstead.web.pod_pages.files.document_page import DocumentPage
from podstead.web.pod_pages.files.events import PageEvents
from podstead.web.pod_pages.files.files_page import FilesPage
from podstead.web.pod_pages.files.members import MemberLists
from podstead.web.pod_pages.files.page_cache import PageCache
from podstead.web.pod_pages.files.raw import RawContent
from podstead.web.pod_pages.files.saving import Saving
from podstead.web.pod_pages.files.search import Search
from podstead.web.pod_pages.files.thumbnails import Thumbnails
from podstead.web.pod_pages.first_page import FirstPage
from podstead.web.pod_pages.organize.archive_download import ArchiveDownload
from podstead.web.pod_pages.organize.delete_page import DeletePage
from podstead.web.pod_pages.organize.rename_page import RenamePage
from podstead.web.pod_pages.organize.transfer_page import TransferPage
from podstead.web.pod_pages.page_sessions import PeopleByPodToken
from podstead.web.pod_pages.pod_sessions import PodSessions
from podstead.web.pod_pages.shared.shared_page import SharedPage
from podstead.web.pod_pages.sharing.request_pages import AskPage, RequestsPage
from podstead.web.pod_pages.sharing.sentences import Names, NamesByReader
from podstead.web.pod_pages.sharing.share_page import SharePage
from podstead.web.pod_pages.sharing.why_page import WhyPage
from podstead.web.pod_pages.sign_in.external_provider_page import (
    ClientDocument,
    ExternalProviderPage,
)
from podstead.web.pod_pages.sign_in.external_sessions import PeopleByExternalSession
from podstead.web.pod_pages.sign_in.language import LanguageChoice
from podstead.web.pod_pages.sign_in.sign_in_page import SignInPage
from podstead.web.pod_pages.storage_notes import StorageNotes
from podstead.web.pod_pages.terms_page import TermsPage
from podstead.web.pod_pages.transfers.page_uploads import PageUploads
from podstead.web.pod_pages.transfers.upload_page import UploadPage
from podstead.web.resource_responses import Responder
from podstead.web.routes import REST, Endpoint, Route, plain_routes

if TYPE_CHECKING:
    from podstead.app.services import Services


class PodPages:
    """The pages of one worker, at the origin of the pods."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._base_url = services.base_url
        self._cookies = Cookies(secure=services.base_url.startswith("https:"))
        self._content_renderer = RenderingProcesses()

    # Who is signed in

    @cached_property
    def _people_by_token(self) -> PeopleByPodToken:
        return PeopleByPodToken(
            records=self._services.records,
            tokens=self._services.pod_tokens,
            cookies=self._cookies,
        )

    @cached_property
    def _people_from_elsewhere(self) -> PeopleByExternalSession:
        return PeopleByExternalSession(
            records=self._services.records,
            id_tokens=self._services.id_tokens,
            local=self._services.local_web_ids,
            cookies=self._cookies,
        )

    @cached_property
    def _people(self) -> PeopleByAnySession:
        provider = self._services.provider_here
        accounts: list[People] = [] if provider is None else [provider.people]
        return PeopleByAnySession([*accounts, self._people_by_token, self._people_from_elsewhere])

    @cached_property
    def site(self) -> Site:
        return Site(self._base_url, self._people, self._services.randomness)

    @cached_property
    def _guard(self) -> Guard:
        return self.site.guard

    @cached_property
    def renderer(self) -> PageRenderer:
        return self.site.renderer

    # What several pages show

    @cached_property
    def _reach(self) -> MemberAudiences:
        return MemberAudiences(store=self._services.store, gate=self._services.gate)

    @cached_property
    def _authors(self) -> ChangeAuthors:
        return ChangeAuthors(self._services.store)

    @cached_property
    def _usage(self) -> PodUsage:
        services = self._services
        return PodUsage(
            store=services.store,
            gate=services.gate,
            clock=services.clock,
            quotas=services.capacity.quotas,
        )

    @cached_property
    def _storage_notes(self) -> StorageNotes:
        return StorageNotes(self._usage)

    @cached_property
    def _contents(self) -> DocumentContents:
        return DocumentContents(
            resources=self._services.resources,
            renderer=self._content_renderer,
            base_url=self._base_url,
        )

    @cached_property
    def _document_page(self) -> DocumentPage:
        return DocumentPage(
            resources=self._services.resources,
            contents=self._contents,
            reach=self._reach,
            authors=self._authors,
            renderer=self.renderer,
            base_url=self._base_url,
        )

    @cached_property
    def _links(self) -> IncomingLinks:
        return IncomingLinks(self._services.resource_context)

    @cached_property
    def _sharing(self) -> SharingService:
        services = self._services
        return SharingService(services.resource_context, services.resources, services.owners)

    @cached_property
    def _access_requests(self) -> AccessRequests:
        services = self._services
        return AccessRequests(
            context=services.resource_context,
            resources=services.resources,
            owners=services.owners,
            stored_answers=services.stored_answers,
            notices=services.provider.request_notices if services.provider else None,
        )

    @cached_property
    def _shared_lists(self) -> SharedLists:
        services = self._services
        return SharedLists(services.resource_context, services.owners)

    @cached_property
    def _requests_page(self) -> RequestsPage:
        return RequestsPage(
            requests=self._access_requests,
            waiting=PendingRequests(self._access_requests, self._services.store),
            sharing=self._sharing,
            names=Names(self._base_url),
            guard=self._guard,
            renderer=self.renderer,
        )

    # Routes

    @cached_property
    def routes(self) -> tuple[Route, ...]:
        """All routes of the pages."""
        guard, features = self._guard, self._services.features
        pages = (
            *self._file_pages(),
            *self._sign_in_pages(),
            *self._sharing_pages(),
            *self._person_pages(),
            ComponentsPage(self.renderer),
            self._terms_page(),
            *(page for each in features for page in each.pages),
        )
        routes = (
            *guard.routes(*pages),
            *self._organizing_routes(),
            *plain_routes(ClientDocument(self._services.own_client)),
        )
        guard.announce(self._requests_page.count)
        here = self._services.provider_here
        all_routes = (*routes, *(here.pages.routes if here else ()))
        rows = [row for each in features for row in each.navigation]
        self.renderer.link_to((route.path for route in all_routes), rows)
        return routes

    @cached_property
    def first(self) -> Endpoint:
        """The first page of the server."""
        settings, is_here = self._services.settings, self._services.provider_here is not None
        page = FirstPage(
            self.renderer,
            version=__version__,
            provider=settings.issuer if settings.idp else None,
            at_provider=settings.issuer if settings.idp and not is_here else "",
            registration=self._services.registration,
            cookies=self._cookies,
        )
        return self._guard.endpoint(page.get)

    def _file_pages(self) -> tuple[object, ...]:
        services, resources = self._services, self._services.resources
        containers = ContainerPage(
            lists=MemberLists(resources),
            page_cache=PageCache(services.store.data_version),
            reach=self._reach,
            authors=self._authors,
            storage_notes=self._storage_notes,
            renderer=self.renderer,
            base_url=self._base_url,
        )
        thumbnails = ThumbnailFiles(
            RootLayout(services.settings.root).thumbnails, clock=services.clock
        )
        return (
            FilesPage(containers=containers, documents=self._document_page),
            Thumbnails(resources=resources, renderer=self._content_renderer, store=thumbnails),
            Saving(
                resources=resources,
                documents=self._document_page,
                contents=self._contents,
                renderer=self.renderer,
                cookies=self._cookies,
            ),
            Creation(
                resources=resources,
                renderer=self.renderer,
                cookies=self._cookies,
                base_url=self._base_url,
            ),
            Search(resources=resources, renderer=self.renderer),
            PageEvents(services.live_updates.streams),
            RawContent(
                resources=resources,
                responder=Responder(base_url=self._base_url, clock=services.clock),
            ),
            UploadPage(
                resources=resources,
                uploads=services.uploads,
                storage_notes=self._storage_notes,
                renderer=self.renderer,
                see_other=self._guard.see_other,
            ),
            PageUploads(services.uploads_endpoint(addresses.UPLOADS, for_own_pages=True)),
        )

    def _sign_in_pages(self) -> tuple[object, ...]:
        services, settings = self._services, self._services.settings
        return (
            SignInPage(
                by_token=self._people_by_token.sign_in if settings.simple_tokens else None,
                account_sign_in=None if services.provider_here is None else "/idp/login",
                account_provider=settings.issuer if settings.idp_base_url else None,
                people=self._people,
                invalid_credentials=services.invalid_credentials,
                renderer=self.renderer,
                cookies=self._cookies,
            ),
            ExternalProviderPage(
                visits=external_sign_ins(services),
                people=self._people_from_elsewhere,
                everybody=self._people,
                renderer=self.renderer,
                cookies=self._cookies,
                randomness=services.randomness,
            ),
            LanguageChoice(secure=self._cookies.secure),
        )

    def _sharing_pages(self) -> tuple[object, ...]:
        services, provider = self._services, self._services.provider
        documents = AgentDocuments(services.resources, services.documents)
        people = PeopleDirectory(
            documents,
            services.records,
            emails=AccountEmails(provider.accounts.accounts) if provider else NoAccounts(),
        )
        groups = GroupNames(documents)
        names = NamesByReader(self._base_url, groups)
        return (
            SharePage(
                sharing=self._sharing,
                people=people,
                requests=self._access_requests,
                contacts=Contacts(documents),
                names=names,
                guard=self._guard,
                renderer=self.renderer,
            ),
            WhyPage(sharing=self._sharing, people=people, names=names, renderer=self.renderer),
            AskPage(requests=self._access_requests, guard=self._guard, renderer=self.renderer),
            SharedPage(
                lists=self._shared_lists,
                requests=self._access_requests,
                names=names,
                renderer=self.renderer,
            ),
            self._requests_page,
        )

    def _person_pages(self) -> tuple[object, ...]:
        services, settings = self._services, self._services.settings
        provider = services.provider_here
        activity = PodActivity(store=services.store, gate=services.gate)
        profiles = Profiles(
            resources=services.resources, parse=services.parse, base_url=self._base_url
        )
        return (
            HomePage(
                activity=activity,
                usage=self._usage,
                shared=self._shared_lists,
                requests=self._requests_page.waiting,
                renderer=self.renderer,
                base_url=self._base_url,
                issuer=settings.issuer if settings.idp else None,
            ),
            ActivityPage(activity=activity, renderer=self.renderer, base_url=self._base_url),
            StoragePage(usage=self._usage, renderer=self.renderer),
            ProfilePage(profiles=profiles, renderer=self.renderer, guard=self._guard),
            SecurityPage(
                sessions=PodSessions(services.records, self._cookies),
                guard=self._guard,
                own_account=provider.pages.own_account(self.renderer) if provider else None,
                renderer=self.renderer,
            ),
        )

    def _organizing_routes(self) -> tuple[Route, ...]:
        services, guard = self._services, self._guard
        resources, links = services.resources, self._links
        renderer, cookies = self.renderer, self._cookies

        def transfer(method: Literal["COPY", "MOVE"], address: str) -> Route:
            page = TransferPage(
                method,
                resources=resources,
                links=links,
                renderer=renderer,
                cookies=cookies,
                base_url=self._base_url,
            )
            return guard.route(address + REST, GET=page.get, POST=page.post)

        return (
            transfer("MOVE", addresses.MOVE),
            transfer("COPY", addresses.COPY),
            *guard.routes(
                RenamePage(resources=resources, links=links, renderer=renderer, cookies=cookies),
                DeletePage(resources=resources, links=links, renderer=renderer, cookies=cookies),
                ArchiveDownload(Archives(services.resource_context)),
            ),
        )

    def _terms_page(self) -> TermsPage:
        settings = self._services.settings
        return TermsPage(
            text=settings.terms_text,
            is_markdown=is_markdown(settings),
            about=self._services.registration.about,
            content=self._content_renderer,
            renderer=self.renderer,
            base_url=self._base_url,
        )

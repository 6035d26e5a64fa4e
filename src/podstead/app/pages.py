"""The pages on which people use their pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from podstead import __version__
from podstead.app.adapters import own_resources, registration
from podstead.app.relying_party import external_sign_ins
from podstead.features import only_offer
from podstead.resources import archives, incoming_links, storage_usage
from podstead.resources.activity import ChangeAuthors, MemberAudiences, PodActivity
from podstead.resources.sharing import people as sharing_people
from podstead.resources.sharing.access_requests import AccessRequests, PendingRequests
from podstead.resources.sharing.documents import AgentDocuments
from podstead.resources.sharing.service import SharingService
from podstead.resources.sharing.shared import SharedLists
from podstead.web.account.actor_names import ActorNames
from podstead.web.account.home import ActivityPage, HomePage, StorageNotes, StoragePage
from podstead.web.account.profile import ProfilePage, Profiles
from podstead.web.account.security_page import SecurityPage
from podstead.web.files import actions, content, editing, members, search, transfer, uploads
from podstead.web.files.documents import ContentPreviews, DocumentContents, DocumentPage
from podstead.web.files.folders import ContainerPage, FilesPage, PageCache
from podstead.web.files.organize import ArchiveDownload, DeletePage, Organizer, RenamePage
from podstead.web.files.starred import StarredResources
from podstead.web.pages import addresses, cookies, request
from podstead.web.pages.addresses import REQUESTS, shown_name
from podstead.web.pages.notifier import ALLOWED, REFUSED, Notifier, PersonNotice
from podstead.web.pages.site import Site
from podstead.web.routes import Endpoint, Route, plain_routes
from podstead.web.sharing.groups import GroupsPage
from podstead.web.sharing.people_field import PeopleField
from podstead.web.sharing.pod_front import PodFront
from podstead.web.sharing.reminders import Reminders, RuleReminders
from podstead.web.sharing.requests import AskPage, RequestsPage, WhyPage
from podstead.web.sharing.share_page import SectionNames, SharePage, SharingSection
from podstead.web.sharing.shared import SharedPage
from podstead.web.sharing.views import Names, NamesByReader
from podstead.web.sign_in import pages
from podstead.web.sign_in.people import PeopleByExternalSession, PeopleByPodToken, PodSessions

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.core.identifiers import ResourcePath
    from podstead.idp.request_notices import AccessRequestMails


@dataclass(frozen=True, slots=True)
class RequestNotifier:
    """Tells people of requests for access, by ``mails``, and of answers
    (:class:`RequestNotices`)."""

    notifier: Notifier
    mails: AccessRequestMails | None

    async def asked(self, storage: ResourcePath, *, by: str, about: ResourcePath) -> None:
        """Requests themselves wait in the inbox of the owner, and pages say so."""
        if self.mails is not None:
            await self.mails.asked(storage, by=by, about=about)

    async def answered(self, person: str, *, by: str, about: ResourcePath, allowed: bool) -> None:
        kind, address = (ALLOWED, addresses.files_url(about)) if allowed else (REFUSED, REQUESTS)
        await self.notifier.tell(person, PersonNotice(kind, address, shown_name(about), by))


class PodPages:
    """The pages of one worker, at the origin of the pods."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._cookies = cookies.Cookies(secure=services.base_url.startswith("https:"))

    @cached_property
    def site(self) -> Site:
        services, provider = self._services, self._services.provider_here
        accounts: list[request.People] = [] if provider is None else [provider.people]
        return Site(
            services.base_url,
            pods_url=services.base_url,
            people=request.PeopleByAnySession(
                [*accounts, self._people_by_token, self._people_from_elsewhere]
            ),
            registration=services.registration,
            randomness=services.randomness,
        )

    @cached_property
    def _people_by_token(self) -> PeopleByPodToken:
        return PeopleByPodToken(self._services.records, self._services.pod_tokens, self._cookies)

    @cached_property
    def _people_from_elsewhere(self) -> PeopleByExternalSession:
        services = self._services
        return PeopleByExternalSession(
            services.records, services.id_tokens, services.local_web_ids, self._cookies
        )

    @cached_property
    def routes(self) -> tuple[Route, ...]:
        """All routes of the pages."""
        services, site = self._services, self.site
        routes = (
            *site.guard.routes(
                *self._file_pages(),
                *self._sign_in_pages(),
                *self._sharing_pages(),
                *self._account_pages(),
                pages.ComponentsPage(site),
                pages.TermsPage(
                    site,
                    services.settings.terms_text,
                    registration.is_markdown(services.settings),
                    self.previews.markdown,
                ),
                *(page for each in services.features for page in each.pages),
            ),
            *plain_routes(pages.ClientDocument(services.own_client)),
        )
        provider = services.provider_here
        at_this_origin = (*routes, *(provider.pages.routes if provider else ()))
        rows = [row for each in services.features for row in each.navigation]
        site.renderer.link_to(
            (route.path for route in at_this_origin),
            rows,
            content=[row for each in services.features for row in each.content_navigation],
            notices_address=services.notifier.address,
        )
        site.renderer.page_heads = [f.page_head for f in services.features if f.page_head]
        return routes

    @cached_property
    def first(self) -> Endpoint:
        """The first page of the server."""
        settings, is_here = self._services.settings, self._services.provider_here is not None
        issuer = settings.issuer if settings.idp else None
        page = pages.FirstPage(self.site, __version__, issuer, "" if is_here else issuer or "")
        return self.site.guard.endpoint(page.get)

    @cached_property
    def archives(self) -> archives.Archives:
        """Makes archives of folders."""
        return archives.Archives(self._services.resource_context)

    @cached_property
    def previews(self) -> ContentPreviews:
        """What the pages show of stored content."""
        found = (each.previews for each in self._services.features)
        return only_offer(found) or ContentPreviews()

    @cached_property
    def starred(self) -> StarredResources:
        """What people have starred."""
        found = (each.starred for each in self._services.features)
        return only_offer(found) or StarredResources()

    @cached_property
    def _usage(self) -> storage_usage.PodUsage:
        services = self._services
        return storage_usage.PodUsage(
            store=services.store,
            gate=services.gate,
            clock=services.clock,
            quotas=services.capacity.quotas,
        )

    @cached_property
    def actor_names(self) -> ActorNames:
        """What pages call people and applications."""
        provider, base_url = self._services.provider_here, self._services.base_url
        names = SectionNames(self._sections)
        if provider is None:
            return ActorNames(names, base_url, None, None)
        credentials = provider.accounts.credentials
        return ActorNames(names, base_url, provider.connected_clients, credentials)

    def _kept_days(self, path: ResourcePath) -> int:
        return max((each.kept_days(path) for each in self._services.features), default=0)

    def _file_pages(self) -> tuple[object, ...]:
        """The pages about files and folders."""
        services, site, resources = self._services, self.site, self._services.resources
        notes = StorageNotes(self._usage)
        reach = MemberAudiences(store=services.store, gate=services.gate)
        authors = ChangeAuthors(services.store)
        contents, previews = DocumentContents(resources), self.previews
        offers = [each.document_offers for each in services.features if each.document_offers]
        documents = DocumentPage(site, resources, contents, previews, reach, authors, offers)
        page_cache = PageCache(services.store.data_version)
        lists = members.MemberLists(resources)
        found = (each.search_results for each in services.features)
        results = only_offer(found)
        organizer = Organizer(
            resources,
            incoming_links.IncomingLinks(services.resource_context),
        )
        return (
            FilesPage(
                ContainerPage(
                    site, lists, reach, authors, notes, page_cache, previews, self.starred
                ),
                documents,
                PodFront(site, self._profiles, self._shared_lists),
            ),
            editing.Saving(site, resources, documents, contents),
            editing.Creation(site, resources),
            search.Search(site, resources, results),
            content.PageEvents(services.live_updates.streams),
            content.RawContent(resources, services.responder),
            uploads.UploadPage(site, resources, services.uploads, notes),
            transfer.TransferPage(site, organizer),
            RenamePage(site, organizer),
            actions.ActionsPage(site, resources, self.starred),
            DeletePage(site, organizer, self._kept_days),
            ArchiveDownload(self.archives),
        )

    def _sign_in_pages(self) -> tuple[object, ...]:
        services, settings = self._services, self._services.settings
        external = pages.ExternalProviderPage(
            self.site, external_sign_ins(services), self._people_from_elsewhere
        )
        return (
            pages.SignInPage(
                self.site,
                self._people_by_token.sign_in if settings.simple_tokens else None,
                services.invalid_credentials,
                have_accounts=services.provider_here is not None,
                account_provider=settings.issuer if settings.idp_base_url else None,
                external=external if settings.idp_base_url else None,
            ),
            external,
            pages.LanguageChoice(self.site),
        )

    @cached_property
    def sharing(self) -> SharingService:
        """Shows and changes who has access to resources."""
        services = self._services
        return SharingService(services.resource_context, services.resources, services.owners)

    @cached_property
    def _agent_documents(self) -> AgentDocuments:
        return AgentDocuments(self._services.resources, self._services.documents)

    @cached_property
    def _access_requests(self) -> AccessRequests:
        services = self._services
        notices = services.provider.request_notices if services.provider else None
        return AccessRequests(
            services.resource_context,
            self._agent_documents,
            services.owners,
            services.stored_answers,
            RequestNotifier(services.notifier, notices),
        )

    @cached_property
    def _profiles(self) -> Profiles:
        services = self._services
        return Profiles(services.resources, services.parse, services.base_url)

    @cached_property
    def _shared_lists(self) -> SharedLists:
        services = self._services
        return SharedLists(services.resource_context, services.owners)

    @cached_property
    def _sections(self) -> Sequence[SharingSection]:
        features = self._services.features
        return [each.sharing_section for each in features if each.sharing_section]

    @cached_property
    def _reminders(self) -> Reminders:
        services = self._services
        of_features = [each.access_reminders for each in services.features if each.access_reminders]
        return Reminders((RuleReminders(self._shared_lists), *of_features), services.clock)

    @cached_property
    def _activity(self) -> PodActivity:
        return PodActivity(store=self._services.store, gate=self._services.gate)

    @cached_property
    def _requests_page(self) -> RequestsPage:
        page = RequestsPage(
            self.site,
            self._access_requests,
            PendingRequests(self._access_requests, self._services.store),
            self.sharing,
            Names(self._services.base_url),
            self._reminders,
            self._services.notifier,
        )
        self.site.guard.announce(page.count)
        return page

    def _sharing_pages(self) -> tuple[object, ...]:
        services, provider, site = self._services, self._services.provider, self.site
        documents = self._agent_documents
        emails = (
            own_resources.AccountEmails(provider.accounts.accounts)
            if provider
            else sharing_people.NoAccounts()
        )
        people = sharing_people.PeopleDirectory(documents, services.records, emails=emails)
        requests = self._access_requests
        contacts = sharing_people.Contacts(documents)
        names = NamesByReader(services.base_url, sharing_people.GroupNames(documents), contacts)
        groups = sharing_people.OwnGroups(documents, services.randomness)
        known = sharing_people.KnownPeople(contacts, groups, self._shared_lists, services.owners)
        field = PeopleField(people, known, self._sections)
        return (
            SharePage(
                site,
                self.sharing,
                requests,
                field,
                names,
                services.notifier,
                self._sections,
            ),
            GroupsPage(site, groups, field, names, self._shared_lists, self.sharing),
            WhyPage(site, self.sharing, people, names),
            AskPage(site, requests),
            SharedPage(
                site,
                self._shared_lists,
                requests,
                names,
                self.sharing,
                self._activity,
                self._sections,
            ),
            self._requests_page,
        )

    def _account_pages(self) -> tuple[object, ...]:
        """The pages about a person and their pod."""
        services, settings, site = self._services, self._services.settings, self.site
        provider = services.provider_here
        activity, agent_names = self._activity, self.actor_names.agents
        return (
            HomePage(
                site,
                members.MemberLists(services.resources),
                self.starred,
                activity,
                self._usage,
                self._shared_lists,
                self._requests_page.waiting,
                self._reminders,
                services.notifier,
                agent_names,
                settings.issuer if settings.idp else None,
                provider.pages.first_steps if provider else None,
            ),
            ActivityPage(site, activity, agent_names),
            StoragePage(site, self._usage),
            ProfilePage(
                site,
                self._profiles,
                self.previews,
            ),
            SecurityPage(
                site,
                provider.pages.own_account if provider else None,
                PodSessions(services.records, self._cookies),
                services.consent,
                services.apps_sections,
            ),
        )

"""How are the pages on which people use their pods built?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from podstead import __version__
from podstead.app.pod_account_pages import AccountPageParts, build_account_pages
from podstead.app.registration import is_markdown
from podstead.app.relying_party import ExternalSignIn
from podstead.app.sharing_pages import SharingParts, build_sharing_pages, shared_lists
from podstead.config import Settings
from podstead.previews.rendering import ContentRenderer
from podstead.resources.archives import Archives
from podstead.resources.folder_facts import ChangeAuthors, MemberReach
from podstead.resources.incoming_links import IncomingLinks
from podstead.resources.service import ResourceService
from podstead.resources.storage_usage import PodUsage
from podstead.resources.uploads import UploadService
from podstead.storage.record_store import RecordStore
from podstead.web.challenges import AuthenticateChallenges
from podstead.web.cookies import CookieJar
from podstead.web.limits import InvalidCredentialLimit
from podstead.web.pod_pages.addresses import PREFIX, UPLOADS
from podstead.web.pod_pages.components_page import ComponentsPage
from podstead.web.pod_pages.files.container_page import ContainerPage
from podstead.web.pod_pages.files.contents import DocumentContents
from podstead.web.pod_pages.files.creation import Creation
from podstead.web.pod_pages.files.document_page import DocumentPage
from podstead.web.pod_pages.files.events import ChangeStreams, PageEvents
from podstead.web.pod_pages.files.files_page import FilesPage
from podstead.web.pod_pages.files.members import MemberLists
from podstead.web.pod_pages.files.page_cache import PageCache
from podstead.web.pod_pages.files.raw import RawContent
from podstead.web.pod_pages.files.saving import Saving
from podstead.web.pod_pages.files.search import Search
from podstead.web.pod_pages.files.thumbnails import Thumbnails, ThumbnailStore
from podstead.web.pod_pages.first_page import FirstPage
from podstead.web.pod_pages.guard import PageGuard
from podstead.web.pod_pages.organize.archive_download import ArchiveDownload
from podstead.web.pod_pages.organize.delete_page import DeletePage
from podstead.web.pod_pages.organize.rename_page import RenamePage
from podstead.web.pod_pages.organize.routes import OrganizePages
from podstead.web.pod_pages.organize.transfer_page import TransferPage
from podstead.web.pod_pages.page_sessions import PeopleByPodToken, TypedTokens
from podstead.web.pod_pages.people import People, PeopleByAnySession
from podstead.web.pod_pages.pod_sessions import PodSessions
from podstead.web.pod_pages.rendering import PageRenderer
from podstead.web.pod_pages.routes import PodPages, pod_page_routes
from podstead.web.pod_pages.sign_in.language import LanguageChoice
from podstead.web.pod_pages.sign_in.sign_in_page import SignInPage
from podstead.web.pod_pages.storage_notes import StorageNotes
from podstead.web.pod_pages.terms_page import TermsPage
from podstead.web.pod_pages.transfers.page_uploads import PageUploads
from podstead.web.pod_pages.transfers.upload_page import UploadPage
from podstead.web.registration import Registration
from podstead.web.resource_responses import Responder
from podstead.web.routes import Endpoint, Route
from podstead.web.uploads_endpoint import UploadsEndpoint


@dataclass(frozen=True, slots=True)
class BuiltPages:
    """The routes of the pages, and the endpoint of the first page of the server."""

    routes: tuple[Route, ...]
    first: Endpoint


@dataclass(frozen=True, slots=True)
class FileParts:
    """What the pages about files need besides the resources."""

    thumbnails: ThumbnailStore
    renderer: ContentRenderer
    reach: MemberReach
    authors: ChangeAuthors
    streams: ChangeStreams
    usage: PodUsage
    data_version: Callable[[], int | None]


def build_pod_pages(
    settings: Settings,
    *,
    records: RecordStore,
    resources: ResourceService,
    uploads: UploadService,
    challenges: AuthenticateChallenges,
    tokens: TypedTokens,
    accounts: People | None,
    invalid_credentials: InvalidCredentialLimit,
    archives: Archives,
    links: IncomingLinks,
    files: FileParts,
    sharing: SharingParts,
    account: AccountPageParts,
    visitors: ExternalSignIn,
    registration: Registration,
) -> BuiltPages:
    """All pages of one worker. ``accounts`` finds people by the sessions of the provider, if it is
    at this origin."""
    base_url = settings.base_url
    url = urlsplit(base_url)
    cookies = CookieJar(secure=url.scheme == "https", path=PREFIX)
    renderer = PageRenderer(server_name=url.netloc, base_url=base_url)
    by_token = PeopleByPodToken(records=records, tokens=tokens, cookies=cookies)
    from_elsewhere = visitors.people(cookies)
    kinds = [*([] if accounts is None else [accounts]), by_token, from_elsewhere]
    people = PeopleByAnySession(kinds)
    guard = PageGuard(origin=base_url, people=people, cookies=cookies, renderer=renderer)
    contents = DocumentContents(resources=resources, renderer=files.renderer, base_url=base_url)
    documents = DocumentPage(
        resources=resources,
        contents=contents,
        reach=files.reach,
        authors=files.authors,
        renderer=renderer,
        base_url=base_url,
    )
    storage_notes = StorageNotes(files.usage)
    containers = ContainerPage(
        lists=MemberLists(resources),
        page_cache=PageCache(files.data_version),
        reach=files.reach,
        authors=files.authors,
        storage_notes=storage_notes,
        renderer=renderer,
        base_url=base_url,
    )
    pages = PodPages(
        files=FilesPage(containers=containers, documents=documents),
        thumbnails=Thumbnails(resources=resources, renderer=files.renderer, store=files.thumbnails),
        saving=Saving(
            resources=resources,
            documents=documents,
            contents=contents,
            renderer=renderer,
            cookies=cookies,
        ),
        creation=Creation(
            resources=resources, renderer=renderer, cookies=cookies, base_url=base_url
        ),
        search=Search(resources=resources, renderer=renderer),
        events=PageEvents(files.streams),
        raw=RawContent(resources=resources, responder=Responder(base_url=base_url, clock=records)),
        upload=UploadPage(
            resources=resources,
            uploads=uploads,
            storage_notes=storage_notes,
            renderer=renderer,
            see_other=guard.see_other,
        ),
        uploads=PageUploads(
            UploadsEndpoint(
                service=uploads,
                challenges=challenges,
                base_url=base_url,
                max_bytes=settings.max_body_bytes,
                place=UPLOADS,
                for_own_pages=True,
            )
        ),
        sign_in=SignInPage(
            by_token=by_token.sign_in if settings.simple_tokens else None,
            account_sign_in=None if accounts is None else "/idp/login",
            account_provider=settings.issuer if settings.idp_base_url else None,
            people=people,
            invalid_credentials=invalid_credentials,
            renderer=renderer,
            cookies=cookies,
        ),
        elsewhere=visitors.page(
            people=from_elsewhere, everybody=people, renderer=renderer, cookies=cookies
        ),
        client_document=visitors.document,
        language=LanguageChoice(secure=cookies.secure),
        components=ComponentsPage(renderer),
        terms=TermsPage(
            text=settings.terms_text,
            is_markdown=is_markdown(settings),
            about=registration.about,
            content=files.renderer,
            renderer=renderer,
            base_url=base_url,
        ),
        organizing=OrganizePages(
            rename=RenamePage(resources=resources, links=links, renderer=renderer, cookies=cookies),
            move=TransferPage(
                "MOVE",
                resources=resources,
                links=links,
                renderer=renderer,
                cookies=cookies,
                base_url=base_url,
            ),
            copy=TransferPage(
                "COPY",
                resources=resources,
                links=links,
                renderer=renderer,
                cookies=cookies,
                base_url=base_url,
            ),
            delete=DeletePage(resources=resources, links=links, renderer=renderer, cookies=cookies),
            archive=ArchiveDownload(archives),
        ),
        sharing=build_sharing_pages(
            sharing, base_url=base_url, resources=resources, guard=guard, renderer=renderer
        ),
    )
    routes = (
        *pod_page_routes(guard, pages),
        *build_account_pages(
            settings,
            account,
            resources=resources,
            guard=guard,
            renderer=renderer,
            shared=shared_lists(sharing, base_url),
            usage=files.usage,
            sessions=PodSessions(records, cookies),
            requests=pages.sharing.requests,
        ),
    )
    guard.announce(pages.sharing.requests.count)
    renderer.link_to(route.path for route in routes)
    first = FirstPage(
        renderer,
        version=__version__,
        provider=settings.issuer if settings.idp else None,
        at_provider=settings.issuer if settings.idp and accounts is None else "",
        registration=registration,
        secure=cookies.secure,
    )
    return BuiltPages(routes, guard.endpoint(first.get))

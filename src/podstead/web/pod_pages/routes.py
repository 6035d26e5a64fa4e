"""Which addresses do the pages have? All of them, in one list."""

from __future__ import annotations

from dataclasses import dataclass

from podstead.core.identifiers import ResourcePath
from podstead.web.cors import Sharing
from podstead.web.pod_pages import addresses
from podstead.web.pod_pages.assets import AssetsEndpoint
from podstead.web.pod_pages.components_page import ComponentsPage
from podstead.web.pod_pages.files.creation import Creation
from podstead.web.pod_pages.files.events import PageEvents
from podstead.web.pod_pages.files.files_page import FilesPage
from podstead.web.pod_pages.files.raw import RawContent
from podstead.web.pod_pages.files.saving import Saving
from podstead.web.pod_pages.files.search import Search
from podstead.web.pod_pages.files.thumbnails import Thumbnails
from podstead.web.pod_pages.guard import PageGuard
from podstead.web.pod_pages.organize.routes import OrganizePages, organize_routes
from podstead.web.pod_pages.sharing.routes import SharingPages, sharing_routes
from podstead.web.pod_pages.sign_in.external_provider_page import (
    ClientDocument,
    ExternalProviderPage,
)
from podstead.web.pod_pages.sign_in.language import LanguageChoice
from podstead.web.pod_pages.sign_in.sign_in_page import SignInPage
from podstead.web.pod_pages.terms_page import TermsPage
from podstead.web.pod_pages.transfers.page_uploads import PageUploads
from podstead.web.pod_pages.transfers.upload_page import UploadPage
from podstead.web.routes import Access, Route

REST = "/{path...}"


@dataclass(frozen=True, slots=True)
class PodPages:
    """Who answers."""

    files: FilesPage
    raw: RawContent
    upload: UploadPage
    uploads: PageUploads
    thumbnails: Thumbnails
    saving: Saving
    creation: Creation
    search: Search
    events: PageEvents
    sign_in: SignInPage
    elsewhere: ExternalProviderPage
    client_document: ClientDocument
    language: LanguageChoice
    components: ComponentsPage
    terms: TermsPage
    sharing: SharingPages
    organizing: OrganizePages


def pod_page_routes(guard: PageGuard, pages: PodPages) -> tuple[Route, ...]:
    """The routes of all pages, each behind ``guard``."""
    route = guard.route
    return (
        route(addresses.HOME, GET=pages.files.home),
        route(addresses.FILES + REST, GET=pages.files.get),
        route(addresses.RAW + REST, GET=pages.raw.get),
        route(addresses.UPLOAD + REST, GET=pages.upload.get, POST=pages.upload.post),
        route(addresses.UPLOADS, POST=pages.uploads.create),
        route(
            f"{addresses.UPLOADS}{{upload}}",
            HEAD=pages.uploads.inspect,
            PATCH=pages.uploads.append,
            DELETE=pages.uploads.cancel,
        ),
        route(addresses.THUMBNAIL + REST, GET=pages.thumbnails.get),
        route(addresses.SAVE + REST, POST=pages.saving.post),
        route(addresses.NEW + REST, GET=pages.creation.get, POST=pages.creation.post),
        route(addresses.SEARCH, GET=pages.search.get),
        route(addresses.EVENTS + REST, GET=pages.events.get),
        route(addresses.SIGN_IN, GET=pages.sign_in.get, POST=pages.sign_in.post),
        route(addresses.ELSEWHERE, GET=pages.elsewhere.get, POST=pages.elsewhere.post),
        route(f"{addresses.CALLBACK}{{provider}}", GET=pages.elsewhere.callback),
        client_document_route(pages.client_document),
        route(addresses.SIGN_OUT, POST=pages.sign_in.sign_out),
        route(addresses.LANGUAGE, POST=pages.language.post),
        route(addresses.COMPONENTS, GET=pages.components.get),
        route(addresses.TERMS, GET=pages.terms.get),
        *organize_routes(guard, pages.organizing),
        *sharing_routes(guard, pages.sharing),
    )


def client_document_route(document: ClientDocument) -> Route:
    """What this server is to each provider elsewhere."""
    path = ResourcePath(f"{addresses.CLIENT_DOCUMENTS}{{provider}}")
    return Route(path, {"GET": document.get, "HEAD": document.get}, Access.OWN)


def asset_route() -> Route:
    """The style sheets and scripts, which anyone may read at every origin of the server."""
    endpoint = AssetsEndpoint()
    path = ResourcePath(f"{addresses.ASSETS}/{{hash}}/{{file}}")
    handlers = {"GET": endpoint.get, "HEAD": endpoint.get}
    return Route(path, handlers, Access.OWN, Sharing.NOBODY)

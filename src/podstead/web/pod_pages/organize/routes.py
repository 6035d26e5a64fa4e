"""Which addresses do the pages for organizing files have?"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.web.pod_pages import addresses
from podstead.web.pod_pages.guard import PageGuard
from podstead.web.pod_pages.organize.archive_download import ArchiveDownload
from podstead.web.pod_pages.organize.delete_page import DeletePage
from podstead.web.pod_pages.organize.rename_page import RenamePage
from podstead.web.pod_pages.organize.transfer_page import TransferPage
from podstead.web.routes import Route

_REST = "/{path...}"


@dataclass(frozen=True, slots=True)
class OrganizePages:
    """Who answers."""

    rename: RenamePage
    move: TransferPage
    copy: TransferPage
    delete: DeletePage
    archive: ArchiveDownload


def organize_routes(guard: PageGuard, pages: OrganizePages) -> tuple[Route, ...]:
    """The routes of these pages."""
    route = guard.route
    return (
        route(addresses.RENAME + _REST, GET=pages.rename.get, POST=pages.rename.post),
        route(addresses.MOVE + _REST, GET=pages.move.get, POST=pages.move.post),
        route(addresses.COPY + _REST, GET=pages.copy.get, POST=pages.copy.post),
        route(addresses.DELETE + _REST, GET=pages.delete.get, POST=pages.delete.post),
        route(addresses.ZIP + _REST, GET=pages.archive.get, POST=pages.archive.post),
    )

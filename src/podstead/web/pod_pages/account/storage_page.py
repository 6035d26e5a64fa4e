"""``/.pages/storage``: what takes the space of the person's pod."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from podstead.core.identifiers import ResourcePath, parent_container
from podstead.core.media_types import essence
from podstead.resources.storage_usage import MediaCategory, PodUsage, StorageUsage, UsedSpace
from podstead.web.pages import addresses
from podstead.web.pages.addresses import files_url
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.pod_pages.account.pods import chosen_pod
from podstead.web.pod_pages.files.names import shown_name
from podstead.web.pod_pages.storage_notes import percent_used
from podstead.web.response import Response
from podstead.web.routes import route

SHOWN_FOLDERS: Final = 30

_FAMILIES: Final = {
    MediaCategory.IMAGE: N_("Pictures"),
    MediaCategory.VIDEO: N_("Videos"),
    MediaCategory.AUDIO: N_("Music and audio"),
    MediaCategory.DOCUMENT: N_("Texts and documents"),
    MediaCategory.DATA: N_("Linked data"),
    MediaCategory.OTHER: N_("Other files"),
}


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a chart that is a table, too."""

    name: str
    size_bytes: int
    resources: int | None
    address: str | None = None


@dataclass(frozen=True, slots=True)
class StoragePage:
    """Shows how much of the quota is used, and by what."""

    site: Site
    usage: PodUsage

    @route(addresses.STORAGE, "GET")
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, AccessDenied, NotFound."""
        pod = chosen_pod(page, page.signed_in())
        usage = await self.usage.of(page.identity, pod.root)
        breakdown = usage.breakdown
        return self.site.page(
            page,
            "account/storage.html",
            pod=pod,
            usage=usage,
            percent=percent_used(usage.used_bytes, usage.quota_bytes),
            is_complete=breakdown.is_complete,
            counted=breakdown.counted,
            counted_ms=breakdown.at_ms,
            families=_by_size(
                Bar(_(_FAMILIES[family]), share.size_bytes, share.resources)
                for family, share in breakdown.categories.items()
            ),
            folders=_folders(pod.root, usage),
            largest=[
                {
                    "name": shown_name(each.path),
                    "folder": unquote(parent_container(each.path) or ""),
                    "address": files_url(each.path),
                    "media_type": essence(each.content_type),
                    "size_bytes": each.size_bytes,
                }
                for each in breakdown.largest
            ],
        )


def _folders(root: ResourcePath, usage: StorageUsage) -> list[Bar]:
    """The folders by size, and what is charged besides resources."""
    breakdown = usage.breakdown
    bars = _by_size(_folder_bar(root, path, share) for path, share in breakdown.folders.items())
    further = bars[SHOWN_FOLDERS:]
    shown = bars[:SHOWN_FOLDERS]
    if further:
        sizes = sum(each.size_bytes for each in further)
        resources = sum(each.resources or 0 for each in further)
        shown.append(Bar(_("All other folders"), sizes, resources))
    charged = sum(usage.charges.values())
    if charged:
        shown.append(Bar(_("Versions of git repositories"), charged, None))
    rest = usage.used_bytes - charged - sum(each.size_bytes for each in bars)
    if rest > 0 and breakdown.is_complete:
        shown.append(Bar(_("Names of all items, and what was deleted a moment ago"), rest, None))
    return shown


def _folder_bar(root: ResourcePath, path: ResourcePath, share: UsedSpace) -> Bar:
    name = _("In no folder") if path == root else shown_name(path)
    return Bar(name, share.size_bytes, share.resources, files_url(path))


def _by_size(bars: Iterable[Bar]) -> list[Bar]:
    return sorted(bars, key=lambda each: (-each.size_bytes, each.name))

"""``/.pages/photos``: the pictures of a pod, whatever folder they are in, the newest first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import groupby
from typing import Final
from urllib.parse import urlencode

from podstead.app.services import Services
from podstead.core import date_times, identifiers, media_types, numbers
from podstead.features import WorkerFeature
from podstead.resources.costly_work import AgentSemaphores
from podstead.resources.entity_tags import last_modified_ms
from podstead.resources.trees import tree_pages
from podstead.storage.protocol import Store
from podstead.storage.records import Metadata
from podstead.wac.gate import Gate
from podstead.web import response, routes
from podstead.web.account.home import ChosenPod, chosen_pod
from podstead.web.files.documents import ContentPreviews
from podstead.web.pages import addresses, formats, kinds, rendering, request, texts
from podstead.web.pages.site import Site

PHOTOS: Final = f"{addresses.PREFIX}/photos"
SHOWN: Final = 200
"""How many photos a page has."""
MAX_RESOURCES: Final = 50_000
"""The number of resources of a pod among which photos are looked for."""
MAX_DATED: Final = 5_000
"""The number of photos whose dates are looked up."""
_PAGE_RESOURCES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Photo:
    """A picture, and when it was taken in Unix milliseconds, or when it was changed if that is not
    known."""

    metadata: Metadata
    at_ms: int

    @property
    def month(self) -> str:
        """Such as ``2026-07``."""
        return date_times.day_of(self.at_ms)[:7]


@dataclass(frozen=True, slots=True)
class ShownPhoto:
    """A tile."""

    name: str
    address: str
    picture: str | None


@dataclass(frozen=True, slots=True)
class PhotosPage:
    """Shows the photos of one of the person's own pods."""

    site: Site
    gate: Gate
    store: Store
    previews: ContentPreviews
    _turns: AgentSemaphores = field(init=False, default_factory=AgentSemaphores)

    @routes.route(PHOTOS, "GET")
    async def get(self, page: request.PageRequest) -> response.Response:
        pod = chosen_pod(page, page.signed_in())
        # As for the used space; each picture is asked for by itself, with the rules for it.
        await self.gate.require_control(page.identity, pod.root)
        async with self._turns.of(page.identity):
            photos, is_complete = await self._photos(pod.root)
        month = page.query_text("month")
        start = next((i for i, each in enumerate(photos) if each.month <= month), len(photos))
        start = start if month else 0
        given = numbers.whole_number(page.query_text("from"), 999_999)
        start = start if given is None else given
        part = photos[start : start + SHOWN]
        following = start + SHOWN
        return self.site.page(
            page,
            "photos/photos.html",
            pod=pod,
            action=PHOTOS,
            years=_years(photos, pod),
            chosen=month,
            months=[
                (formats.month_text(_first_ms(each)), [self._shown(photo) for photo in photos_of])
                for each, photos_of in groupby(part, key=lambda photo: photo.month)
            ],
            newer=_address(pod) if start else None,
            more=_address(pod, **{"from": str(following)}) if following < len(photos) else None,
            is_complete=is_complete,
        )

    def _shown(self, photo: Photo) -> ShownPhoto:
        stored = photo.metadata
        return ShownPhoto(
            addresses.shown_name(stored.path),
            addresses.files_url(stored.path),
            self.previews.picture(stored),
        )

    async def _photos(self, root: identifiers.ResourcePath) -> tuple[Sequence[Photo], bool]:
        """The photos, the newest first, and whether these are all."""
        found: list[Metadata] = []
        seen = 0
        async for resources in tree_pages(self.store, root, page_resources=_PAGE_RESOURCES):
            seen += len(resources)
            found += [
                each
                for each in resources
                if each.kind.is_member
                and not addresses.is_for_apps(each.path)
                and kinds.is_photo(media_types.essence(each.content_type))
            ]
            if seen >= MAX_RESOURCES:
                break
        found.sort(key=last_modified_ms, reverse=True)
        taken: Mapping[identifiers.ResourcePath, int] = await self.previews.taken(found[:MAX_DATED])
        photos = [Photo(each, taken.get(each.path, last_modified_ms(each))) for each in found]
        photos.sort(key=lambda each: (-each.at_ms, each.metadata.path))
        return photos, seen < MAX_RESOURCES


def _years(
    photos: Sequence[Photo], pod: ChosenPod
) -> Sequence[tuple[str, Sequence[tuple[str, str, str]]]]:
    """The years with their months, the newest first: for each its name and its address."""
    months = sorted({each.month for each in photos}, reverse=True)
    return [
        (
            year,
            [
                (each, formats.day_text(_first_ms(each), "LLL"), _address(pod, month=each))
                for each in months_of
            ],
        )
        for year, months_of in groupby(months, key=lambda month: month[:4])
    ]


def _first_ms(month: str) -> int:
    # Photos may have been taken before 1970.
    return int(datetime.fromisoformat(f"{month}-01").replace(tzinfo=UTC).timestamp()) * 1000


def _address(pod: ChosenPod, **query: str) -> str:
    fields = {**({"pod": pod.name} if len(pod.pods) > 1 else {}), **query}
    return f"{PHOTOS}?{urlencode(fields)}" if fields else PHOTOS


class PhotosInWorker(WorkerFeature):
    """The page in one worker."""

    content_navigation: Sequence[rendering.NavigationRow] = ((PHOTOS, "image", texts.N_("Photos")),)

    def __init__(self, services: Services) -> None:
        self._services = services

    @cached_property
    def pages(self) -> tuple[object, ...]:  # type: ignore[override]
        services, pages = self._services, self._services.pages
        return (PhotosPage(pages.site, services.gate, services.store, pages.previews),)

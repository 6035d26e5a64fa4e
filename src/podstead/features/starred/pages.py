"""``/.pages/star/<path>``, by which a person stars something, and ``/.pages/starred``, which lists
it."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from podstead.app.services import Services
from podstead.core.errors import AccessDenied, BadRequest, NotAuthenticated, NotFound
from podstead.core.identifiers import ROOT, ResourcePath, parent_container
from podstead.features import WorkerFeature
from podstead.features.starred.stars import MAX_STARRED, STARS, Stars
from podstead.resources.service import ResourceService
from podstead.storage.record_store import Changes, RecordStore
from podstead.web.codes import WebCodes
from podstead.web.files.starred import StarredResources
from podstead.web.pages.addresses import PREFIX, files_url, shown_name
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages
from podstead.web.pages.request import PageRequest, Person
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_
from podstead.web.response import Response
from podstead.web.routes import REST, route

STAR: Final = f"{PREFIX}/star"
STARRED: Final = f"{PREFIX}/starred"

add_flash_messages(
    Tone.DONE,
    starred=N_("%(subject)s is starred."),
    unstarred=N_("%(subject)s is no longer starred."),
)
add_flash_messages(
    Tone.PROBLEM,
    too_many_stars=N_("You can star up to 500 files and folders. Remove a star first."),
)


class StarredInWorker(WorkerFeature):
    """Starred files and folders in one worker."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @cached_property
    def starred(self) -> "StarredByPeople":  # type: ignore[override]
        return StarredByPeople(self._services.records, self._services.resources)

    @cached_property
    def pages(self) -> tuple[object, ...]:  # type: ignore[override]
        return (StarPages(self._services.pages.site, self.starred),)


@dataclass(frozen=True, slots=True)
class StarredByPeople(StarredResources):
    """Reads and changes the records of people with a pod here."""

    records: RecordStore
    resources: ResourceService

    async def of(self, page: PageRequest) -> AbstractSet[ResourcePath]:
        return frozenset(await self._paths(page.person))

    async def newest(self, page: PageRequest, *, limit: int) -> Sequence[ResourcePath]:
        found: list[ResourcePath] = []
        for path in reversed(await self._paths(page.person)):
            if len(found) >= limit:
                break
            try:
                await self.resources.handle(page.operation("HEAD", path))
            except (AccessDenied, NotAuthenticated, NotFound):
                continue  # gone, or no longer shared
            found.append(path)
        return found

    async def _paths(self, person: Person | None) -> Sequence[ResourcePath]:
        if person is None or not person.pods:
            return ()
        stored = await self.records.read(STARS, person.pods[0])
        return [ResourcePath(each) for each in stored.value.paths] if stored else ()

    async def star(self, person: Person, path: ResourcePath, *, is_starred: bool) -> bool:
        """Give a resource a star or take it away; ``False`` if there are too many. Raises NotFound
        for a person without a pod, Contention, StorageError."""
        if not person.pods:
            raise NotFound(WebCodes.NO_POD)
        pod = person.pods[0]

        async def changed() -> Changes[bool]:
            stored = await self.records.read(STARS, pod)
            before = stored.value.paths if stored else ()
            rest = tuple(each for each in before if each != path)
            if is_starred and len(rest) >= MAX_STARRED:
                return Changes(False)
            after = Stars((*rest, path) if is_starred else rest)
            precondition = stored.unchanged if stored else STARS.absent(pod)
            return Changes(True, [STARS.put(pod, after, owner=pod)], [precondition])

        return await self.records.transact(changed)


@dataclass(frozen=True, slots=True)
class StarPages:
    """Stars resources that the person may read, and lists them."""

    site: Site
    starred: StarredByPeople

    @route(STAR + REST, "POST")
    async def post(self, page: PageRequest) -> Response:
        sent = await page.form()
        person, target = page.signed_in(), page.target
        on = sent.text("on")
        if on not in {"yes", "no"}:
            raise BadRequest(WebCodes.FORM_MALFORMED)
        if on == "yes":
            await self.starred.resources.handle(page.operation("HEAD", target))
        is_done = await self.starred.star(person, target, is_starred=on == "yes")
        name = "too-many-stars" if not is_done else "starred" if on == "yes" else "unstarred"
        folder = parent_container(target) or ROOT
        back = target if folder == ROOT else folder
        return self.site.see_other(files_url(back), FlashMessage(name, shown_name(target)))

    @route(STARRED, "GET")
    async def get(self, page: PageRequest) -> Response:
        page.signed_in()
        return self.site.page(
            page,
            "starred/starred.html",
            starred=await self.starred.rows(page, limit=MAX_STARRED),
        )

"""``/.pages/versions``: the versions of a document, to be compared and restored."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from podstead.core.conditional import Conditions
from podstead.core.errors import NotFound, PreconditionFailed, RequestRefused
from podstead.core.identifiers import ResourcePath, storage_root
from podstead.core.media_types import N_TRIPLES, essence
from podstead.features.history.memento import Version, Versions
from podstead.features.history.past import write_again
from podstead.resources.documents import Documents, is_rdf
from podstead.resources.entity_tags import stored_tag
from podstead.storage.open_body import whole_body
from podstead.web.account.actor_names import ActorNames
from podstead.web.files.content import as_raw
from podstead.web.files.editing import ComparedLine, compared
from podstead.web.files.text import MAX_TEXT_BYTES, decode_text
from podstead.web.pages.addresses import PREFIX, breadcrumb, files_url, shown_name
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_
from podstead.web.response import Response, content_response
from podstead.web.routes import REST, route

VERSIONS: Final = f"{PREFIX}/versions"
COMPARE: Final = f"{PREFIX}/compare"
CONTENT: Final = f"{PREFIX}/version"

add_flash_messages(
    Tone.DONE,
    version_restored=N_("The version has been restored."),
)
add_flash_messages(
    Tone.PROBLEM,
    version_changed=N_("Somebody has changed the document in the meantime, so nothing was done."),
)


@dataclass(frozen=True, slots=True)
class VersionPages:
    """Lists, shows, compares and restores versions."""

    site: Site
    versions: Versions
    documents: Documents
    names: ActorNames

    @route(VERSIONS + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        path = page.target
        found = await self.versions.of(page.identity, None, path)
        present = found[-1].metadata
        root = storage_root(path) or path
        named = await self.names.of(page, root, [each.agent for each in found])
        return self.site.page(
            page,
            "history/versions.html",
            target=path,
            name=shown_name(path),
            breadcrumb=breadcrumb(path),
            versions=[
                (each, who if each.agent else "", application)
                for each in reversed(found)
                for who, application in [named(each.agent, each.client)]
            ],
            tag=stored_tag(present),
            restore=VERSIONS + path,
            compare=COMPARE + path,
            content=CONTENT + path,
        )

    @route(VERSIONS + REST, "POST")
    async def post(self, page: PageRequest) -> Response:
        """Restore a version by an ordinary write. Raises what a PUT raises."""
        sent = await page.form()
        path = page.target
        version = await self._version(page, path, sent.text("version"))
        body = await self.versions.open(version)
        resources, unchanged = self.versions.resources, Conditions(if_match=sent.text("tag"))
        try:
            await write_again(resources, page.identity, version.metadata, body, unchanged)
        except PreconditionFailed:
            return self.site.see_other(VERSIONS + path, FlashMessage("version-changed"))
        return self.site.see_other(files_url(path), FlashMessage("version-restored"))

    @route(CONTENT + REST, "GET")
    async def content(self, page: PageRequest) -> Response:
        """The bytes of a version. Raises NotFound."""
        version = await self._version(page, page.target, page.query_text("version"))
        body = await self.versions.open(version)
        self.versions.resources.note_read(page.identity, page.target)
        content_type, size_bytes = version.metadata.content_type, version.metadata.size_bytes
        response = content_response(body, content_type, method="GET", size_bytes=size_bytes)
        return as_raw(page, page.target, response, content_type)

    @route(COMPARE + REST, "GET")
    async def compare(self, page: PageRequest) -> Response:
        """Two versions beside each other: by default one and the present one. Raises NotFound."""
        path = page.target
        found = await self.versions.of(page.identity, None, path)
        before = _of(found, page.query_text("version"))
        after = _of(found, page.query_text("to")) if page.query_text("to") else found[-1]
        self.versions.resources.note_read(page.identity, path)
        lines, statements = None, False
        types = [essence(each.metadata.content_type) for each in (before, after)]
        if all(map(is_rdf, types)):
            lines = await self._statements(path, before, after)
            statements = lines is not None
        if lines is None:
            lines = await self._lines(before, after)
        return self.site.page(
            page,
            "history/compare.html",
            target=path,
            name=shown_name(path),
            breadcrumb=breadcrumb(path),
            before=before,
            after=after,
            lines=lines,
            statements=statements,
            pictures=all(each.startswith("image/") for each in types),
            content=CONTENT + path,
            back=VERSIONS + path,
        )

    async def _version(self, page: PageRequest, path: ResourcePath, wanted: str) -> Version:
        return _of(await self.versions.of(page.identity, None, path), wanted)

    async def _lines(self, before: Version, after: Version) -> Sequence[ComparedLine] | None:
        """The lines of two texts; ``None`` if they are too long, or no texts."""
        texts = []
        for each in (before, after):
            if each.metadata.size_bytes > MAX_TEXT_BYTES:
                return None
            decoded = decode_text(await whole_body(await self.versions.open(each)))
            if decoded is None:
                return None
            texts.append(decoded.text)
        return await asyncio.to_thread(compared, *texts)

    async def _statements(
        self, path: ResourcePath, before: Version, after: Version
    ) -> Sequence[ComparedLine] | None:
        """The statements that only one of two documents has."""
        found = []
        for each in (before, after):
            if each.metadata.size_bytes > MAX_TEXT_BYTES:
                return None
            content = await whole_body(await self.versions.open(each))
            try:
                document = await self.documents.parse(
                    content, each.metadata.content_type, path=path
                )
                written = await self.documents.write(document, N_TRIPLES, path=path)
            except RequestRefused:
                return None
            found.append(set(written.decode("utf-8").splitlines()))
        removed, added = sorted(found[0] - found[1]), sorted(found[1] - found[0])
        return [ComparedLine(*each, differs=True) for each in zip_longest(removed, added)]


def _of(versions: Sequence[Version], wanted: str) -> Version:
    """Raises NotFound."""
    for each in versions:
        if each.metadata.version == wanted:
            return each
    raise NotFound

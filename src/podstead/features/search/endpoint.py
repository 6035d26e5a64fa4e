"""Search over HTTP.

``GET /.search/in{container}?q=…`` finds documents below a container; the QUERY method on the
container does the same with the parameters as a form. The answer is JSON-LD, page by page.
``GET /.search/description{container}`` describes the first address for OpenSearch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote, urlencode
from xml.sax.saxutils import escape

import msgspec

from podstead.core.errors import BadRequest, NotFound
from podstead.core.identifiers import ResourcePath, is_container
from podstead.core.identity import Identity
from podstead.core.media_types import JSON_LD
from podstead.core.numbers import whole_number
from podstead.features.search.finder import CONSIDERED, PAGE, Asker, Finder, Hit
from podstead.notifications.answers import AnswerState, AskedQuery
from podstead.web.forms import Fields, only, parse_fields, read_form, read_query
from podstead.web.pages.addresses import shown_name
from podstead.web.pages.formats import iso_time
from podstead.web.request import Request
from podstead.web.response import NO_STORE, HeaderField, Response, content_response
from podstead.web.routes import REST, Access, is_reserved, rest_of_path, route

SEARCH_API: Final = "/.search/in"
DESCRIPTION: Final = "/.search/description"
_LOOKED_THROUGH: Final = 100
_OPENSEARCH: Final = "application/opensearchdescription+xml"
_CONTEXT: Final = {
    "@vocab": "https://schema.org/",
    "id": "@id",
    "type": "@type",
    "items": {"@id": "itemListElement", "@container": "@list"},
    "modified": {"@id": "dateModified", "@type": "http://www.w3.org/2001/XMLSchema#dateTime"},
    "mediaType": "encodingFormat",
    "size": "contentSize",
    "excerpt": "description",
    "complete": None,
    "marks": None,
}


@dataclass(frozen=True, slots=True)
class SearchEndpoint:
    """Answers applications."""

    finder: Finder
    base_url: str
    address = SEARCH_API
    """Of live queries."""

    @route(SEARCH_API + REST, "GET", "HEAD", access=Access.PUBLIC)
    async def get(self, request: Request, agent: Identity | None) -> Response:
        below = _container(request)
        return await self._answer(request, agent, below, read_query(request))

    async def query(self, request: Request, agent: Identity | None) -> Response:
        """The same for the QUERY method of a container, with a form. Raises as :meth:`get` and
        :func:`read_form` do."""
        return await self._answer(request, agent, request.path, await read_form(request))

    @route(DESCRIPTION + REST, "GET", "HEAD", access=Access.PUBLIC)
    async def description(self, request: Request, agent: Identity | None) -> Response:  # noqa: ARG002
        """The description for OpenSearch, which says nothing that is stored. Raises NotFound."""
        below = _container(request)
        template = f"{self.base_url}{SEARCH_API}{below}?q={{searchTerms}}&page={{startPage?}}"
        content = (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">\n'
            f"  <ShortName>{escape(shown_name(below)[:16]) or 'Search'}</ShortName>\n"
            f"  <Description>Search below {escape(self.base_url + below)}</Description>\n"
            f'  <Url type="{JSON_LD}" pageOffset="1" template="{escape(template)}"/>\n'
            "  <InputEncoding>UTF-8</InputEncoding>\n"
            "</OpenSearchDescription>\n"
        )
        return content_response(content.encode(), _OPENSEARCH, method=request.method)

    async def _answer(
        self, request: Request, agent: Identity | None, below: ResourcePath, fields: Fields
    ) -> Response:
        asker = Asker(agent, request.fields.get(b"origin"))
        content, more = await self._found(asker, below, fields)
        headers: list[HeaderField] = [NO_STORE]
        if more is not None:
            headers.append((b"link", f'<{more}>; rel="next"'.encode()))
        return content_response(content, JSON_LD, method=request.method, headers=headers)

    async def _found(
        self, asker: Asker, below: ResourcePath, fields: Fields
    ) -> tuple[bytes, str | None]:
        """A page of the answer, and the address of the next one."""
        text, sort = only(fields, "q") or "", only(fields, "sort") or "relevance"
        if sort not in ("relevance", "newest"):
            raise BadRequest("The parameter sort is relevance or newest")
        number = _page_number(only(fields, "page"))
        answer = await self.finder.find(
            asker, [below], text, newest=sort == "newest", page=number - 1
        )
        more = self._address(below, text, sort, number + 1) if answer.has_more else None
        content = {
            "@context": _CONTEXT,
            "id": self._address(below, text, sort, number),
            "type": "ItemList",
            "items": [self._described(each) for each in answer.hits],
            "complete": answer.is_complete,
        }
        return msgspec.json.encode(content), more

    async def answer(
        self,
        watched: AskedQuery,
        known: AnswerState | None,  # noqa: ARG002
    ) -> AnswerState | None:
        """The answer to a live query: as it is, or once the index has all changes
        below the container."""
        fields = parse_fields(watched.query.encode())
        position = await self.finder.index.position()
        sequence = -1 if position is None or position.cursor is not None else position.sequence
        if sequence < watched.after:
            return None
        asker = Asker(watched.agent, watched.origin)
        found = await self._found(asker, watched.container, fields)
        if watched.after:
            rows = await self.finder.store.changes_after(sequence, limit=_LOOKED_THROUGH)
            if len(rows) == _LOOKED_THROUGH or any(
                row.change.path.startswith(watched.container) for row in rows
            ):
                return None  # some of it may be of the time before, and some of that after
        return AnswerState(sha256(msgspec.json.encode(found)).hexdigest()[:32])

    def _address(self, below: ResourcePath, text: str, sort: str, page: int) -> str:
        """The address of a page of the answer."""
        parameters = {"q": text}
        if sort != "relevance":
            parameters["sort"] = sort
        if page > 1:
            parameters["page"] = str(page)
        return f"{self.base_url}{SEARCH_API}{below}?{urlencode(parameters, quote_via=quote)}"

    def _described(self, hit: Hit) -> Mapping[str, Any]:
        found: dict[str, Any] = {
            "id": self.base_url + hit.path,
            "name": shown_name(hit.path),
            "modified": iso_time(hit.modified_ms),
        }
        if is_container(hit.path):
            found["type"] = "http://www.w3.org/ns/ldp#Container"
        else:
            found |= {"mediaType": hit.media_type, "size": hit.size_bytes}
        if hit.excerpt:
            found["excerpt"] = "".join(part for part, _ in hit.excerpt)
            found["marks"] = [part for part, is_hit in hit.excerpt if is_hit]
        return found


def _container(request: Request) -> ResourcePath:
    """Raises NotFound."""
    path = rest_of_path(request.path)
    if not is_container(path) or is_reserved(path):
        raise NotFound
    return path


def _page_number(text: str | None) -> int:
    """Raises BadRequest."""
    if text is None:
        return 1
    number = whole_number(text, CONSIDERED // PAGE)
    if not number:
        raise BadRequest(f"The parameter page is a number from 1 to {CONSIDERED // PAGE}")
    return number

"""How is a page sent? Rendered from a template, with the policy that it needs.

A page loads nothing from elsewhere, and runs only the scripts of this server's package; neither
scripts nor styles stand in the page itself. Pages depend on the cookie and must not be cached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core.errors import PodsteadError
from podstead.core.identifiers import ResourcePath
from podstead.web.browsers import VARY_BY_COOKIE
from podstead.web.pages import HTML, render
from podstead.web.pod_pages import addresses, formats
from podstead.web.pod_pages.navigation import (
    ENTRIES,
    NavigationEntry,
    NavigationRow,
    entries,
    with_waiting,
)
from podstead.web.pod_pages.notices import NOTICES, Notice, Tone
from podstead.web.pod_pages.page_request import PageRequest
from podstead.web.pod_pages.people import Person
from podstead.web.pod_pages.problems import further_text, problem
from podstead.web.pod_pages.refusals import is_translated
from podstead.web.pod_pages.texts import ENGLISH, LANGUAGES, _, texts_in, use_texts
from podstead.web.response import NO_STORE, HeaderField, Response, content_response

_VARY: Final = VARY_BY_COOKIE + b", Accept-Language"
_POLICY: Final = (
    b"content-security-policy",
    (
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        b"media-src 'self' blob:; frame-src 'self'; object-src 'self'; connect-src 'self'; "
        b"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
)


@dataclass(frozen=True, slots=True)
class ShownNotice:
    """A notice as the page shows it."""

    tone: Tone
    text: str


class PageRenderer:
    """Creates the responses of pages."""

    def __init__(self, *, server_name: str, base_url: str) -> None:
        """``server_name`` is the name of the server for people: the host of its base URL."""
        self._server_name = server_name
        self._base_url = base_url
        self._entries: Callable[[str], Sequence[NavigationEntry]] = entries(frozenset())
        self._actions: frozenset[str] = frozenset()

    def link_to(self, paths: Iterable[str], among: Sequence[NavigationRow] = ENTRIES) -> None:
        """Let the navigation link to those of its pages that are among ``paths``."""
        existing = frozenset(paths)
        self._entries = entries(existing, among)
        below = [path.removeprefix(f"{addresses.PREFIX}/") for path in existing]
        self._actions = frozenset(path.partition("/")[0] for path in below)

    def _navigation(self, page: PageRequest) -> Sequence[NavigationEntry]:
        person = page.person
        if person is None:
            return ()
        shown = self._entries(page.request.path)
        if page.waiting:
            shown = with_waiting(shown, page.waiting)
        return shown if person.pods else [entry for entry in shown if not entry.needs_pod]

    def page(
        self,
        page: PageRequest,
        template: str,
        *,
        status: int = 200,
        notice: Notice | None = None,
        headers: Sequence[HeaderField] = (),
        offers_sign_in: bool = True,
        **context: object,
    ) -> Response:
        """A page from a template in ``templates/pods``; ``notice`` replaces that of the cookie."""
        body = render_in_layout(
            template,
            server_name=self._server_name,
            person=page.person,
            language=page.texts.language,
            address=page.address,
            navigation=self._navigation(page),
            notice=_shown(notice or page.notice),
            offers_sign_in=offers_sign_in and page.request.path != addresses.SIGN_IN,
            values={
                "status": status,
                "base_url": self._base_url,
                "actions": self._actions,
                **context,
            },
        )
        return content_response(
            body,
            HTML,
            method=page.request.method,
            status=status,
            headers=[_POLICY, NO_STORE, *headers],
            vary=_VARY,
        )


def render_in_layout(
    template: str,
    *,
    server_name: str,
    address: str,
    language: str,
    person: Person | None = None,
    navigation: Sequence[NavigationEntry] = (),
    notice: ShownNotice | None = None,
    offers_sign_in: bool = True,
    with_scripts: bool = True,
    values: Mapping[str, object],
) -> bytes:
    """A page from a template that extends ``layout.html``, with ``values`` of its own.
    ``with_scripts`` if its policy lets it run scripts and send forms."""
    return render(
        f"pods/{template}",
        server_name=server_name,
        address=address,
        language=language,
        languages=LANGUAGES,
        person=person,
        navigation=navigation,
        notice=notice,
        offers_sign_in=offers_sign_in,
        with_scripts=with_scripts,
        addresses=addresses,
        formats=formats,
        **{"csrf_token": person.csrf_token if person else "", **values},
    )


def error_page(
    *,
    status: int,
    reason: str,
    error: PodsteadError,
    server_name: str = "Podstead",
    target: ResourcePath | None = None,
    language: str = ENGLISH,
) -> bytes:
    """The page that describes an error outside the pages, where it is not known who is signed
    in."""
    use_texts(texts_in(language))
    return render_in_layout(
        "problem.html",
        server_name=server_name,
        address=addresses.HOME if target is None else addresses.files_url(target),
        language=language,
        offers_sign_in=False,
        with_scripts=False,
        values={
            "actions": frozenset(),
            "status": status,
            "reason": reason,
            "message": "" if status == 500 else further_text(error),
            "is_translated": is_translated(error),
            "problem": problem(status, target, signed_in=False),
        },
    )


def _shown(notice: Notice | None) -> ShownNotice | None:
    if notice is None:
        return None
    tone, text = NOTICES[notice.name]
    return ShownNotice(tone, _(text, subject=notice.subject))

"""``/.pages/security`` and ``/.pages/apps``: how the person signs in, and what acts for them.

Who has an account here sees everything about it. Who has signed in with the token of a pod has only
this session to end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from podstead.web.browsers import browser_name
from podstead.web.pod_pages import addresses
from podstead.web.pod_pages.account.security_views import SecurityView, view_of
from podstead.web.pod_pages.addresses import HOME, SECURITY
from podstead.web.pod_pages.guard import PageGuard
from podstead.web.pod_pages.notices import Notice, Tone, add_notices
from podstead.web.pod_pages.page_request import PageRequest
from podstead.web.pod_pages.people import Person
from podstead.web.pod_pages.pod_sessions import PodBrowser, PodSessions
from podstead.web.pod_pages.rendering import PageRenderer
from podstead.web.pod_pages.texts import N_
from podstead.web.response import Response
from podstead.web.routes import route

add_notices(Tone.DONE, browser_signed_out=N_("That browser has been signed out."))


class ShownAccount(Protocol):
    """Renders the pages about an account of the provider."""

    async def apps(self, page: PageRequest) -> Response: ...

    async def welcome(self, page: PageRequest) -> Response: ...

    async def security(
        self, page: PageRequest, view: SecurityView, browsers: Sequence[PodBrowser]
    ) -> Response: ...


class SecurityPage:
    """Leads to the page for the kind of the session."""

    def __init__(
        self,
        *,
        own_account: ShownAccount | None,
        sessions: PodSessions,
        guard: PageGuard,
        renderer: PageRenderer,
    ) -> None:
        """``own_account`` is ``None`` if no provider is at this origin."""
        self._own_account = own_account
        self._sessions = sessions
        self._guard = guard
        self._renderer = renderer

    @route(addresses.SECURITY, "GET")
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, StorageError."""
        person = page.signed_in()
        if person.account_id is not None and self._own_account is not None:
            view = view_of(page.query_text("view"))
            return await self._own_account.security(page, view, await self._browsers(person))
        return self._renderer.page(
            page,
            "account/session.html",
            signed_in_by=person.signed_in_by.value,
            pod_browsers=await self._browsers(person),
            current_browsers=self._sessions.current(page.request),
            pod_tokens=[token for pod in person.pods for token in await self._sessions.tokens(pod)],
            browser_name=browser_name,
        )

    @route(addresses.WELCOME, "GET")
    async def welcome(self, page: PageRequest) -> Response:
        """``/.pages/welcome``: the first page after registration. Raises NotAuthenticated,
        StorageError."""
        person = page.signed_in()
        if person.account_id is not None and self._own_account is not None:
            return await self._own_account.welcome(page)
        return self._guard.see_other(HOME)

    @route(addresses.BROWSERS, "POST")
    async def sign_out_browser(self, page: PageRequest) -> Response:
        """End a session that the page lists. Raises NotAuthenticated, WrongFormToken."""
        person = page.signed_in()
        sent = await page.form()
        for pod in person.pods:
            await self._sessions.end(person.web_id, pod, sent.text("session"))
        return self._guard.see_other(SECURITY, Notice("browser-signed-out"))

    async def _browsers(self, person: Person) -> Sequence[PodBrowser]:
        return [
            browser
            for pod in person.pods
            for browser in await self._sessions.of(person.web_id, pod)
        ]

    @route(addresses.APPS, "GET")
    async def apps(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, StorageError."""
        person = page.signed_in()
        if person.account_id is not None and self._own_account is not None:
            return await self._own_account.apps(page)
        return self._renderer.page(page, "account/no_apps.html")

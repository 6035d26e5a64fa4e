"""``/.pages/security`` and ``/.pages/apps``: how the person signs in, and what acts for them.

Who has an account here sees everything about it. Who has signed in with the token of a pod has only
this session to end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from podstead.idp.codes import IdpCodes
from podstead.web.browsers import browser_name
from podstead.web.codes import WebCodes
from podstead.web.pages import addresses
from podstead.web.pages.addresses import HOME, SECURITY
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages, add_refusals
from podstead.web.pages.request import PageRequest, Person
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_
from podstead.web.response import Response
from podstead.web.routes import route
from podstead.web.sign_in.people import PodBrowser, PodSessions

if TYPE_CHECKING:  # loaded for the provider only
    from podstead.idp.sessions import OpenSession
    from podstead.web.sign_in.authorization import ClientTerms, ConsentExtension


class SecurityView(Enum):
    """A part of the page, as its address names it."""

    SIGN_IN = "sign-in"
    BROWSERS = "browsers"
    PROGRAMS = "programs"
    EVENTS = "events"
    ACCOUNT = "account"


class SecuritySection:
    """A part of the page that a feature adds."""

    def __init__(
        self,
        template: str,
        *,
        view: SecurityView = SecurityView.SIGN_IN,
        comes_first: bool = False,
        script: str | None = None,
    ) -> None:
        """``script`` is the name of its script. A section ``comes_first`` if it is above what the
        server itself shows; ``view`` is ``SIGN_IN`` or ``PROGRAMS``."""
        self.template = template
        self.view = view
        self.comes_first = comes_first
        self.script = script

    async def facts(self, owner: OpenSession) -> Mapping[str, object]:  # noqa: ARG002
        """What the template shows besides the entries of collections, by name. Raises
        StorageError."""
        return {}


class AppsSection(Protocol):
    """A part of the page about the applications of a person that a feature adds."""

    @property
    def template(self) -> str: ...

    def facts(self, person: Person) -> Mapping[str, Any]:
        """What the template shows, by name."""


def view_of(text: str) -> SecurityView:
    """The part that an address names; the first one if it names none."""
    names = {each.value for each in SecurityView}
    return SecurityView(text) if text in names else SecurityView.SIGN_IN


add_flash_messages(
    Tone.DONE,
    browser_signed_out=N_("That browser has been signed out."),
    first_steps_hidden=N_("The first steps are hidden."),
    disconnected=N_("The application has been disconnected."),
    email_changed=N_("Your e-mail address has been changed."),
    mail_changed=N_("What you are told by mail has been changed."),
    email_asked=N_("A message with a link is on its way to your e-mail address."),
    password_changed=N_(
        "Your password has been changed. All other browsers and all applications are signed out."
    ),
    token_revoked=N_("The token has been revoked. Programs can no longer use it."),
    session=N_("That browser has been signed out."),
    issuer_restored=N_("Your profile names this server as your identity provider again."),
    credential_removed=N_(
        "The client credentials have been removed. Scripts can no longer use them."
    ),
)
add_refusals(
    IdpCodes.EMAIL_MISSING,
    IdpCodes.EMAIL_TAKEN,
    IdpCodes.EMAIL_UNUSABLE,
    IdpCodes.PASSWORD_MISSING,
    IdpCodes.PASSWORD_NOT_UNICODE,
    IdpCodes.PASSWORD_TOO_LONG,
    IdpCodes.PASSWORD_TOO_SHORT,
    WebCodes.PASSWORDS_DIFFER,
    WebCodes.WRONG_CURRENT_PASSWORD,
)


class ShownAccount(Protocol):
    """Renders the pages about an account of the provider."""

    async def apps(self, page: PageRequest, sections: Mapping[str, Any]) -> Response: ...

    async def welcome(self, page: PageRequest) -> Response: ...

    async def hide_first_steps(self, page: PageRequest) -> None: ...

    async def security(
        self, page: PageRequest, view: SecurityView, browsers: Sequence[PodBrowser]
    ) -> Response: ...


@dataclass(frozen=True, slots=True)
class SecurityPage:
    """Leads to the page for the kind of the session.

    ``own_account`` is ``None`` if no provider is at this origin.
    """

    site: Site
    own_account: ShownAccount | None
    sessions: PodSessions
    consent: ConsentExtension | None = None
    apps_sections: Sequence[AppsSection] = ()

    @route(addresses.SECURITY, "GET")
    async def get(self, page: PageRequest) -> Response:
        person = page.signed_in()
        if person.account_id is not None and self.own_account is not None:
            view = view_of(page.query_text("view"))
            return await self.own_account.security(page, view, await self._browsers(person))
        return self.site.page(
            page,
            "account/session.html",
            signed_in_by=person.signed_in_by.value,
            pod_browsers=await self._browsers(person),
            current_browsers=self.sessions.current(page.request),
            pod_tokens=[token for pod in person.pods for token in await self.sessions.tokens(pod)],
            browser_name=browser_name,
        )

    @route(addresses.WELCOME, "GET")
    async def welcome(self, page: PageRequest) -> Response:
        """``/.pages/welcome``: the first page after registration. Raises NotAuthenticated,
        StorageError."""
        person = page.signed_in()
        if person.account_id is not None and self.own_account is not None:
            return await self.own_account.welcome(page)
        return self.site.see_other(HOME)

    @route(addresses.WELCOME, "POST")
    async def hide_first_steps(self, page: PageRequest) -> Response:
        """Home reminds of the first steps no longer. Raises NotAuthenticated, WrongFormToken,
        StorageError, Overloaded."""
        await page.submission()
        if self.own_account is not None:
            await self.own_account.hide_first_steps(page)
        return self.site.see_other(HOME, FlashMessage("first-steps-hidden"))

    @route(addresses.BROWSERS, "POST")
    async def sign_out_browser(self, page: PageRequest) -> Response:
        """End a session that the page lists. Raises NotAuthenticated, WrongFormToken."""
        person = page.signed_in()
        sent = await page.form()
        for pod in person.pods:
            await self.sessions.end(person.web_id, pod, sent.text("session"))
        return self.site.see_other(SECURITY, FlashMessage("browser-signed-out"))

    async def _browsers(self, person: Person) -> Sequence[PodBrowser]:
        return [
            browser for pod in person.pods for browser in await self.sessions.of(person.web_id, pod)
        ]

    @route(addresses.APPS, "GET")
    async def apps(self, page: PageRequest) -> Response:
        person = page.signed_in()
        sections: dict[str, Any] = {"apps_sections": [each.template for each in self.apps_sections]}
        for each in self.apps_sections:
            sections |= each.facts(person)
        if person.account_id is not None and self.own_account is not None:
            return await self.own_account.apps(page, sections)
        further: Mapping[str, ClientTerms] = {}
        if self.consent is not None:
            further = await self.consent.shown(person, ())
        return self.site.page(page, "account/no_apps.html", further=further, **sections)

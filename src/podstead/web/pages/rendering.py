"""Renders pages from templates: their layout and navigation, what they say about errors, and the
policy that each needs."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from podstead.core.clock import Randomness
from podstead.core.codes import CoreCodes
from podstead.core.errors import PodsteadError
from podstead.core.identifiers import ROOT, ResourcePath, parent_container
from podstead.web import browsers, routes
from podstead.web.pages import addresses, formats
from podstead.web.pages.cookies import FLASH_MESSAGES, FlashMessage, Tone
from podstead.web.pages.formats import number_text, size_text
from podstead.web.pages.people import use_faces_of
from podstead.web.pages.request import NOTHING_WAITS, SAFE, PageRequest, Person, Waiting
from podstead.web.pages.templates import HTML, render
from podstead.web.pages.texts import ENGLISH, LANGUAGES, N_, _, current_texts, texts_in, use_texts
from podstead.web.response import NO_STORE, HeaderField, Response, content_response


def refusal_text(error: PodsteadError) -> str:
    """What a page says about an error; its message if it has no code."""
    if error.code is None:
        return str(error)
    shown = {name: _shown_value(name, value) for name, value in error.parameters.items()}
    text = current_texts().get(error.code.text)
    return text % shown if shown else text


def refusal_message(error: PodsteadError, subject: str = "") -> FlashMessage:
    """What the next page says about an error whose code was passed to :func:`add_refusals`."""
    parameters = {name: _shown_value(name, value) for name, value in error.parameters.items()}
    return FlashMessage("" if error.code is None else error.code.name, subject, parameters)


def is_translated(error: PodsteadError) -> bool:
    """Whether :func:`refusal_text` is in the language of the page."""
    return error.code is not None or current_texts().language == ENGLISH


def _shown_value(name: str, value: str | int) -> str:
    if isinstance(value, str):
        return value
    return size_text(value) if name.endswith("_bytes") else number_text(value)


NavigationRow = tuple[str, str, str]
"""An address, an icon and a title."""

FIRST_ENTRIES: Final[Sequence[NavigationRow]] = (
    (addresses.HOME, "home", N_("Home")),
    (f"{addresses.FILES}/", "folder", N_("Files")),
    (addresses.SHARED, "people", N_("Shared")),
    (f"{addresses.PREFIX}/apps", "apps", N_("Apps")),
)
"""What people open every day: on a phone, the first five entries are the bar."""
LAST_ENTRIES: Final[Sequence[NavigationRow]] = (
    (f"{addresses.PREFIX}/activity", "activity", N_("Activity")),
    (f"{addresses.PREFIX}/storage", "disk", N_("Storage")),
    (f"{addresses.PREFIX}/profile", "person", N_("Profile")),
    (f"{addresses.PREFIX}/security", "shield", N_("Security")),
)
CONSOLE_ENTRIES: Final[Sequence[NavigationRow]] = (
    (f"{addresses.CONSOLE}accounts", "people", N_("Accounts")),
    (f"{addresses.CONSOLE}invitations", "share", N_("Invitations")),
    (f"{addresses.CONSOLE}log", "activity", N_("Log")),
    (f"{addresses.CONSOLE}health", "pod", N_("Health")),
    (f"{addresses.CONSOLE}settings", "apps", N_("Settings")),
    (f"{addresses.FILES}/", "folder", N_("Your files")),
)
_WITHOUT_NAVIGATION: Final = (addresses.LINK, addresses.FORGOT, addresses.VERIFY)
_PLAIN_ACTIONS: Final = frozenset({"", "files"})
"""What pages that are about no pod lead to: no search, for example."""
_ABOUT_FILES: Final = (
    addresses.UPLOAD,
    addresses.NEW,
    addresses.SAVE,
    addresses.SEARCH,
    addresses.RENAME,
    addresses.MOVE,
    addresses.COPY,
    addresses.DELETE,
    addresses.SHARE,
    addresses.WHY,
    addresses.ASK,
)
_BELOW: Final = {
    f"{addresses.FILES}/": _ABOUT_FILES,
    addresses.SHARED: (addresses.REQUESTS, addresses.GROUPS),
}
"""Pages that belong to an entry though their addresses are not below it."""


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """One link; ``is_current`` on the page that it leads to, and on those below."""

    address: str
    icon: str
    title: str
    is_current: bool
    waiting: Waiting = NOTHING_WAITS
    """What waits behind the link."""

    @property
    def needs_pod(self) -> bool:
        """Whether the page shows something only to people with a pod on this server."""
        return self.address != addresses.SHARED and not self.address.startswith(addresses.CONSOLE)


def entries(
    paths: frozenset[str], among: Sequence[NavigationRow] = ()
) -> Callable[[str], Sequence[NavigationEntry]]:
    """The entries whose pages are among ``paths``, for each page that shows them."""
    existing = [entry for entry in among if entry[0] in paths or entry[0] + "{path...}" in paths]

    def on(path: str) -> Sequence[NavigationEntry]:
        return [
            NavigationEntry(address, icon, _(title), is_current=_is_at(path, address))
            for address, icon, title in existing
        ]

    return on


def with_waiting(shown: Sequence[NavigationEntry], waiting: Waiting) -> Sequence[NavigationEntry]:
    """The entries, of which the one for what is shared leads to what waits."""
    return [
        replace(entry, address=addresses.REQUESTS, waiting=waiting)
        if entry.address == addresses.SHARED
        else entry
        for entry in shown
    ]


def _is_at(path: str, address: str) -> bool:
    return any(
        path == each
        or (each != addresses.HOME and path.startswith(each if each.endswith("/") else f"{each}/"))
        for each in (address, *_BELOW.get(address, ()))
    )


_OTHER: Final = (N_("This did not work"), N_("The server could not do what was asked."))
_TROUBLE: Final = (
    N_("The server has a problem"),
    N_("Nothing was changed. Try again in a moment, and tell the operator if it stays like this."),
)
_TEXTS: Final = {
    401: (N_("Sign in first"), N_("Sign in, and you come back to this address.")),
    403: (
        N_("You have no access"),
        N_("The server knows who you are, but you have not been given access."),
    ),
    404: (
        N_("There is nothing here"),
        N_("It may have been moved or deleted, or the address may contain a mistake."),
    ),
    413: (N_("This is too large"), N_("The server does not accept files of this size.")),
    429: (N_("Too many requests"), N_("Wait a moment, and try again.")),
    507: (N_("There is no room left"), N_("Delete what you no longer need, or ask the operator.")),
}


_SAID: Final = frozenset(
    {CoreCodes.ACCESS_DENIED, CoreCodes.NO_SUCH_RESOURCE, CoreCodes.SIGN_IN_REQUIRED}
)
"""What says no more than the texts."""


@dataclass(frozen=True, slots=True)
class Step:
    """A link to what a person can do next."""

    address: str
    title: str


@dataclass(frozen=True, slots=True)
class Problem:
    """What the page says in the language of its reader."""

    title: str
    text: str
    steps: Sequence[Step]


def further_text(error: PodsteadError) -> str:
    """What an error says besides the text of the page."""
    return "" if error.code in _SAID else refusal_text(error)


def problem(status: int, target: ResourcePath | None, *, signed_in: bool) -> Problem:
    """The page about a refusal with this status; ``target`` is the resource that was asked for, if
    there can be one at the address. Nothing here depends on whether the target exists."""
    title, text = _TEXTS.get(status, _TROUBLE if status >= 500 else _OTHER)
    return Problem(_(title), _(text), _steps(status, target, signed_in=signed_in))


def _steps(status: int, target: ResourcePath | None, *, signed_in: bool) -> list[Step]:
    about = None if target is None or routes.is_reserved(target) else target
    steps = []
    if status in {401, 403} and not signed_in:
        page = f"{addresses.FILES}/" if about is None else addresses.files_url(about)
        steps.append(Step(addresses.sign_in_url(page), _("Sign in")))
    if status == 403 and signed_in and about is not None and about != ROOT:
        steps.append(Step(addresses.ask_url(about), _("Ask for access")))
    above = None if about is None else parent_container(about)
    if status in {403, 404} and above is not None and above != ROOT:
        steps.append(Step(addresses.files_url(above), _("Go up one folder")))
    if signed_in:
        steps.append(Step(f"{addresses.FILES}/", _("Back to your files")))
    return steps or [Step("/", _("Home"))]


_VARY: Final = browsers.VARY_BY_COOKIE + b", Accept-Language"
_POLICY: Final = (
    b"content-security-policy",
    (
        b"default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
        b"img-src 'self' data: blob:; media-src 'self' blob:; frame-src 'self'; object-src 'self'; "
        b"connect-src 'self'; manifest-src 'self'; form-action 'self'; frame-ancestors 'none'; "
        b"base-uri 'none'"
    ),
)
_NONCE_BYTES: Final = 16
_REFUSED: Final = 400
_PLAIN_AUTHORITY: Final = re.compile(r"[A-Za-z0-9.-]+(?::[0-9]+)?")


@dataclass(frozen=True, slots=True)
class ShownFlashMessage:
    """A flash message as the page shows it."""

    name: str
    tone: Tone
    text: str


class PageRenderer:
    """Creates the responses of the pages of one origin.

    A page loads nothing from elsewhere. Pages depend on the cookie and must not be cached, since
    URLs and pages contain secrets (A-45).
    """

    def __init__(self, *, server_name: str, base_url: str, randomness: Randomness) -> None:
        """``server_name`` is the name of the server for people: the host of its base URL."""
        self.server_name = server_name
        self._base_url = base_url
        self._randomness = randomness
        self._entries: Callable[[str], Sequence[NavigationEntry]] = entries(frozenset())
        self._of_console = self._entries
        self._actions: frozenset[str] = frozenset()
        self._notices_address = ""
        self._base_url_of_faces = ""
        self.page_heads: Sequence[str] = ()
        """Templates for the head of the pages of people who are signed in."""

    def link_to(
        self,
        paths: Iterable[str],
        further: Sequence[NavigationRow] = (),
        *,
        content: Sequence[NavigationRow] = (),
        notices_address: str = "",
    ) -> None:
        """Let the navigation link to those of its pages that are among ``paths``, with those of
        ``content`` after the files, and the head of pages to the notices of the person."""
        self._notices_address = notices_address
        existing = frozenset(paths)
        self._base_url_of_faces = self._base_url if addresses.FACE in existing else ""
        first = (*FIRST_ENTRIES[:2], *content, *FIRST_ENTRIES[2:])
        self._entries = entries(existing, (*first, *further, *LAST_ENTRIES))
        self._of_console = entries(existing, CONSOLE_ENTRIES)
        prefix = f"{addresses.PREFIX}/"
        below = [path.removeprefix(prefix) for path in existing if path.startswith(prefix)]
        self._actions = frozenset(path.partition("/")[0] for path in below)

    def _navigation(self, page: PageRequest) -> Sequence[NavigationEntry]:
        person, path = page.person, page.request.path
        if person is None or path.startswith(_WITHOUT_NAVIGATION):
            return ()
        shown = (self._of_console if path.startswith(addresses.CONSOLE) else self._entries)(path)
        waiting = page.waiting._replace(unread=0)  # which the head of the page shows
        if any(waiting):
            shown = with_waiting(shown, waiting)
        return shown if person.pods else [entry for entry in shown if not entry.needs_pod]

    def page(
        self,
        page: PageRequest,
        template: str,
        *,
        status: int = 200,
        flash_message: FlashMessage | None = None,
        headers: Sequence[HeaderField] = (),
        offers_sign_in: bool = True,
        **context: object,
    ) -> Response:
        """A page from a template in ``templates/pods``; ``flash_message`` replaces that of the
        cookie. It runs only the scripts of this server's package: neither scripts nor styles stand
        in the page itself."""
        person = page.person
        use_faces_of(self._base_url_of_faces)
        is_plain = page.request.path.startswith((addresses.CONSOLE, *_WITHOUT_NAVIGATION))
        body = render_in_layout(
            template,
            server_name=self.server_name,
            person=page.person,
            language=page.texts.language,
            address=page.address,
            navigation=self._navigation(page),
            flash_message=_shown(flash_message or page.flash_message),
            offers_sign_in=offers_sign_in and page.request.path != addresses.SIGN_IN,
            values={
                "status": status,
                "base_url": self._base_url,
                "actions": self._actions & _PLAIN_ACTIONS if is_plain else self._actions,
                "notices_address": self._notices_address if person and person.pods else "",
                "unread": page.waiting.unread,
                "page_heads": self.page_heads if person else (),
                **context,
            },
        )
        return _response(page, body, _POLICY, status, headers)

    def account_page(
        self,
        page: PageRequest,
        template: str,
        *,
        status: int = 200,
        headers: Sequence[HeaderField] = (),
        **values: object,
    ) -> Response:
        """A page of ``templates/pods`` in answer to a form about the account of a person
        who is signed in. It may show a secret, and runs no script. Raises NotAuthenticated."""
        owner = page.owner()
        body = render_in_layout(
            template,
            server_name=self.server_name,
            address=addresses.SECURITY,
            language=page.texts.language,
            offers_sign_in=False,
            with_scripts=False,
            values={
                "status": status,
                "actions": frozenset[str](),
                "account": owner.account,
                "csrf_token": owner.session.csrf_token,
                **values,
            },
        )
        return _response(page, body, _policy(self._nonce(), ()), status, headers)

    def sign_in_page(
        self,
        page: PageRequest,
        template: str,
        *,
        status: int = 200,
        form_targets: Sequence[str] = (),
        headers: Sequence[HeaderField] = (),
        **context: object,
    ) -> Response:
        """A page that extends ``sign_in/page.html``, which runs only its own script.
        ``form_targets`` are the URLs besides this server to which its forms may lead.

        It leads back to itself after the choice of another language. In answer to a form, only a
        page that refuses what was sent does: others may show a secret once.
        """
        nonce = self._nonce()
        is_answer = page.request.method not in SAFE and status < _REFUSED
        body = render(
            f"pods/{template}",
            nonce=nonce,
            server_name=self.server_name,
            status=status,
            page_address=page.address if page.is_shown_again and not is_answer else None,
            languages=LANGUAGES,
            flash_message=_shown(page.flash_message),
            **context,
        )
        return _response(page, body, _policy(nonce, form_targets), status, headers)

    def refusal(
        self,
        page: PageRequest,
        error: PodsteadError,
        status: int,
        reason: str = "",
        headers: Sequence[HeaderField] = (),
        *,
        unusable_client: bool = False,
    ) -> Response:
        """The page that describes an error and names the next step."""
        is_of_language = is_translated(error)
        if page.is_of_provider:
            return self.sign_in_page(
                page,
                "sign_in/problem.html",
                status=status,
                headers=headers,
                message=refusal_text(error),
                is_translated=is_of_language,
                unusable_client=unusable_client,
            )
        target = addresses.target_or_none(page.request)
        return self.page(
            page,
            "problem.html",
            status=status,
            headers=headers,
            reason=reason,
            message=further_text(error),
            is_translated=is_of_language,
            problem=problem(status, target, signed_in=page.person is not None),
        )

    def _nonce(self) -> str:
        return self._randomness.token_hex(_NONCE_BYTES)


def _response(
    page: PageRequest,
    body: bytes,
    policy: HeaderField,
    status: int,
    headers: Sequence[HeaderField],
) -> Response:
    fields = [policy, NO_STORE, *headers]
    method = page.request.method
    return content_response(body, HTML, method=method, status=status, headers=fields, vary=_VARY)


def _policy(nonce: str, form_targets: Sequence[str]) -> HeaderField:
    """The Content-Security-Policy of A-45.

    Chromium checks every redirect after a form against ``form-action``, so it must contain the
    application's URL.
    """
    targets = " ".join(["'self'", *map(form_source, form_targets)])
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; "
        f"font-src 'self'; img-src 'self' data:; connect-src 'self'; form-action {targets}; "
        "frame-ancestors 'none'; base-uri 'none'"
    )
    return b"content-security-policy", policy.encode("ascii")


def form_source(url: str) -> str:
    """A URL as a source of ``form-action``: its origin, or its scheme if a policy cannot express
    the origin, as for a private scheme or an IPv6 address (CSP Level 3, 2.3.1)."""
    parts = urlsplit(url)
    if parts.scheme in ("http", "https") and _PLAIN_AUTHORITY.fullmatch(parts.netloc):
        return f"{parts.scheme}://{parts.netloc}"
    return f"{parts.scheme}:"


def render_in_layout(
    template: str,
    *,
    server_name: str,
    address: str,
    language: str,
    person: Person | None = None,
    navigation: Sequence[NavigationEntry] = (),
    flash_message: ShownFlashMessage | None = None,
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
        flash_message=flash_message,
        offers_sign_in=offers_sign_in,
        with_scripts=with_scripts,
        addresses=addresses,
        formats=formats,
        **{
            "csrf_token": person.csrf_token if person else "",
            "notices_address": "",
            "page_heads": (),
            **values,
        },
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


def _shown(message: FlashMessage | None) -> ShownFlashMessage | None:
    if message is None:
        return None
    tone, text = FLASH_MESSAGES[message.name]
    shown = _(text, **message.parameters, subject=message.subject)
    return ShownFlashMessage(message.name, tone, shown if shown[-1:] in ".?!" else shown + ".")

"""The addresses of the pages, most of them below one reserved name."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from podstead.core import identifiers
from podstead.core.errors import BadRequest, NotFound
from podstead.web.codes import WebCodes
from podstead.web.request import Request
from podstead.web.routes import is_reserved, rest_of_path

PREFIX: Final = "/.pages"
HOME: Final = f"{PREFIX}/"
FILES: Final = f"{PREFIX}/files"
RAW: Final = f"{PREFIX}/raw"
UPLOAD: Final = f"{PREFIX}/upload"
UPLOADS: Final = f"{PREFIX}/uploads/"
THUMBNAIL: Final = f"{PREFIX}/thumbnail"
FACE: Final = f"{PREFIX}/face"
"""Where the photos of people are, if this server shows any."""
SAVE: Final = f"{PREFIX}/save"
NEW: Final = f"{PREFIX}/new"
SEARCH: Final = f"{PREFIX}/search"
EVENTS: Final = f"{PREFIX}/events"
ACTIVITY: Final = f"{PREFIX}/activity"
APPS: Final = f"{PREFIX}/apps"
PROFILE: Final = f"{PREFIX}/profile"
SECURITY: Final = f"{PREFIX}/security"
BROWSERS: Final = f"{PREFIX}/security/browsers"
"""Where a browser is signed out."""
STORAGE: Final = f"{PREFIX}/storage"
WELCOME: Final = f"{PREFIX}/welcome"
"""What people see first who have just registered."""
SIGN_IN: Final = f"{PREFIX}/sign-in"
OTHER_WAYS: Final = f"{SIGN_IN}?ways=all"
SIGNED_OUT: Final = f"{OTHER_WAYS}&signed-out=yes"
"""Where a browser goes whose person has signed out at the origin of the provider."""
ELSEWHERE: Final = f"{PREFIX}/sign-in/elsewhere"
CALLBACK: Final = f"{PREFIX}/sign-in/callback/"
CLIENT_DOCUMENTS: Final = f"{PREFIX}/client/"
SIGN_OUT: Final = f"{PREFIX}/sign-out"
RENAME: Final = f"{PREFIX}/rename"
MOVE: Final = f"{PREFIX}/move"
COPY: Final = f"{PREFIX}/copy"
DELETE: Final = f"{PREFIX}/delete"
ACTIONS: Final = f"{PREFIX}/actions"
ZIP: Final = f"{PREFIX}/zip"
LANGUAGE: Final = f"{PREFIX}/language"
COMPONENTS: Final = f"{PREFIX}/components"
SHARE: Final = f"{PREFIX}/share"
WHY: Final = f"{PREFIX}/why"
ASK: Final = f"{PREFIX}/ask"
REQUESTS: Final = f"{PREFIX}/requests"
SHARED: Final = f"{PREFIX}/shared"
GROUPS: Final = f"{PREFIX}/groups"
CONSOLE: Final = f"{PREFIX}/console/"
LINK: Final = f"{PREFIX}/link"
TERMS: Final = f"{PREFIX}/terms"
PROVIDER: Final = "/idp/"
"""What the addresses of the provider's own pages begin with."""
LOGIN: Final = "/idp/login"
"""Where people sign in to their accounts."""
ACCOUNT: Final = "/idp/account"
"""The account of a person, for programs; browsers are led to the page about security."""
NEW_TERMS: Final = "/idp/terms"
"""Where the identity provider asks people who have not accepted the present terms."""
FORGOT: Final = f"{PREFIX}/forgot"
VERIFY: Final = f"{PREFIX}/verify"
ASSETS: Final = f"{PREFIX}/assets"


def files_url(path: identifiers.ResourcePath) -> str:
    """The page about a resource."""
    return FILES + path


def rename_url(path: identifiers.ResourcePath) -> str:
    """The form for another name."""
    return RENAME + path


def delete_url(path: identifiers.ResourcePath) -> str:
    """The question before a resource, or selected members of a container, are deleted."""
    return DELETE + path


def actions_url(path: identifiers.ResourcePath) -> str:
    """The page that lists what can be done with a resource."""
    return ACTIONS + path


def zip_url(path: identifiers.ResourcePath) -> str:
    """A container as a ZIP archive."""
    return ZIP + path


def raw_url(path: identifiers.ResourcePath) -> str:
    """The bytes of a document, for the pages themselves."""
    return RAW + path


def share_url(path: identifiers.ResourcePath) -> str:
    """The page on which access to a resource is shown and changed."""
    return SHARE + path


def why_url(path: identifiers.ResourcePath) -> str:
    """The page that explains who can do what with a resource."""
    return WHY + path


def ask_url(path: identifiers.ResourcePath) -> str:
    """The page on which people ask the owner of a resource for access."""
    return ASK + path


def link_url(secret: str) -> str:
    """The page that a one-time link leads to."""
    return f"{LINK}/{secret}"


def verify_url(secret: str) -> str:
    """The page that a link for confirming an e-mail address leads to."""
    return f"{VERIFY}/{secret}"


def sign_in_url(afterwards: str) -> str:
    """The page for signing in, which leads to ``afterwards``."""
    return with_next(SIGN_IN, afterwards)


def with_next(address: str, afterwards: str | None) -> str:
    """An address that leads to ``afterwards`` if there is such a page."""
    if afterwards is None:
        return address
    return f"{address}{'&' if '?' in address else '?'}next={quote(afterwards, safe='/')}"


def other_ways_url(afterwards: str | None) -> str:
    """The ways to sign in without an account, where the page for signing in is its form."""
    return with_next(OTHER_WAYS, afterwards)


def login_url(afterwards: str | None) -> str:
    """The form for signing in to an account, which leads to ``afterwards``."""
    return with_next(LOGIN, afterwards)


AGAIN: Final[dict[str, str]] = {
    "delete": f"{ACCOUNT}/delete",
    "credentials": f"{ACCOUNT}?view=programs#scripts",
    "export": f"{ACCOUNT}?view=account#export",
    "issuer": f"{ACCOUNT}?view=account#you",
    "console": CONSOLE,
}
"""The addresses that signing in again leads to, by its purpose. Features add theirs."""

AGAIN_REASONS: Final[dict[str, str]] = {}
"""What the sign-in page says about a purpose of a feature that is not how people sign in."""


def again_url(purpose: str, afterwards: str | None = None) -> str:
    """The page for signing in again for a purpose in ``AGAIN``; it may lead to another page
    ``afterwards``."""
    return with_next(f"{LOGIN}?again={purpose}", afterwards)


def new_terms_url(afterwards: str) -> str:
    """The page that asks for the acceptance of the terms, and leads to ``afterwards``."""
    return with_next(NEW_TERMS, afterwards)


def elsewhere_url(afterwards: str | None) -> str:
    """The page for signing in with an identity of another server."""
    return with_next(ELSEWHERE, afterwards)


def target_of(request: Request) -> identifiers.ResourcePath:
    """The resource that a page is about, by the address of the page. Raises NotFound where there
    can be none."""
    path = rest_of_path(request.path)
    if path != "/" and is_reserved(path):
        raise NotFound(WebCodes.NO_SUCH_PAGE)
    return path


def target_or_none(request: Request) -> identifiers.ResourcePath | None:
    """The resource that a page is about; ``None`` for a page that is about none."""
    try:
        path = target_of(request)
    except NotFound:
        return None
    return path if path.startswith("/") else None


def local_address(text: str | None, *, below: str = HOME) -> str | None:
    """A text as the address of one of the pages to continue at; ``None`` if it is another one. The
    pages are ``below`` their prefix.

    A link could otherwise lead people from the sign-in to any place (open redirect).
    """
    if text is None or not text.startswith(below) or not text.isascii():
        return None
    path, question_mark, query = text.partition("?")
    try:
        canonical = identifiers.parse_path(path.encode("ascii"))
    except BadRequest:
        return None
    return canonical + question_mark + quote(query, safe="&=%/:@+-._~")


def shown_name(path: identifiers.ResourcePath) -> str:
    """The name of a resource as people read it, without the slash of a container."""
    return unquote(identifiers.segment_name(path).removesuffix("/"))


FOLDERS_FOR_APPS: Final = {"groups", "inbox", "profile", "settings"}
"""The names of the folders of a pod that applications need and people rarely open. Features add
those that they make."""


def is_for_apps(path: identifiers.ResourcePath) -> bool:
    """Whether a resource is in a folder of a pod that applications need and people rarely open."""
    root = identifiers.storage_root(path) or identifiers.ROOT
    folder, slash, _rest = path[len(root) :].partition("/")
    return bool(slash) and (folder in FOLDERS_FOR_APPS or folder.startswith("."))


@dataclass(frozen=True, slots=True)
class Crumb:
    """One step on the way to a resource."""

    name: str
    path: identifiers.ResourcePath


def breadcrumb(path: identifiers.ResourcePath) -> list[Crumb]:
    """The way from the storage to a resource, both included."""
    above = [each for each in reversed(identifiers.ancestors(path)) if each != identifiers.ROOT]
    return [Crumb(shown_name(each), each) for each in (*above, path)]

"""Says on a page that a request failed, and what the next step is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core.codes import CoreCodes
from podstead.core.errors import PodsteadError
from podstead.core.identifiers import ROOT, ResourcePath, parent_container
from podstead.web.pod_pages.addresses import FILES, ask_url, files_url, sign_in_url
from podstead.web.pod_pages.refusals import refusal_text
from podstead.web.pod_pages.texts import N_, _
from podstead.web.routes import is_reserved

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
    about = None if target is None or is_reserved(target) else target
    steps = []
    if status in {401, 403} and not signed_in:
        page = f"{FILES}/" if about is None else files_url(about)
        steps.append(Step(sign_in_url(page), _("Sign in")))
    if status == 403 and signed_in and about is not None and about != ROOT:
        steps.append(Step(ask_url(about), _("Ask for access")))
    above = None if about is None else parent_container(about)
    if status in {403, 404} and above is not None and above != ROOT:
        steps.append(Step(files_url(above), _("Go up one folder")))
    if signed_in:
        steps.append(Step(f"{FILES}/", _("Back to your files")))
    return steps

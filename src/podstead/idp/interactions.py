"""Determines the next stage of an authorization before the client gets its code (A-55 to A-57).

Pure. The person signs in and then consents; both may have happened before, and then no page
appears. A session alone never implies consent. Signing in on the page that names the client and
what it asks for is consent for once, unless the client could influence whether that page or the
consent page appears. Even then it does not include lasting access.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from podstead.core.identity import IDENTITY_SCOPE
from podstead.idp.records import AuthorizationRequest, BrowserSession, Consent, Interaction
from podstead.idp.redirects import is_on_this_device
from podstead.idp.scopes import OFFLINE, OPENID, WEBID, permissions

_BY_SIGNING_IN: Final = frozenset({OPENID, WEBID, OFFLINE})
_FRESH_SIGN_IN: Final = frozenset({"login", "select_account", "create"})


class Stage(Enum):
    """The next thing to do. The values are the error codes for ``prompt=none``."""

    SIGN_IN = "login_required"
    CONSENT = "consent_required"
    DONE = "done"


def begun(
    request: AuthorizationRequest,
    session: BrowserSession | None,
    *,
    had_session: bool = False,
    browser_hash: str,
    now_s: int,
) -> Interaction:
    """The interaction of a new request, already signed in if the session is sufficient for it.
    ``had_session`` means that the browser is signed in, possibly to an account that was not asked
    for."""
    interaction = Interaction(
        request=request,
        browser_hash=browser_hash,
        began_s=now_s,
        had_session=had_session or session is not None,
    )
    if session is None or not _FRESH_SIGN_IN.isdisjoint(request.prompts):
        return interaction
    if request.max_age_s is not None and now_s - session.authenticated_s > request.max_age_s:
        return interaction
    return Interaction(
        request=request,
        browser_hash=browser_hash,
        began_s=now_s,
        had_session=True,
        account_id=session.account_id,
        authenticated_s=session.authenticated_s,
        amr=session.amr,
        sign_in_method=session.sign_in_method,
    )


def stage_of(interaction: Interaction, consent: Consent | None) -> Stage:
    """The next stage; ``consent`` is what the account has allowed this client before."""
    if interaction.account_id is None:
        return Stage.SIGN_IN
    if interaction.consented:
        return Stage.DONE
    if "consent" in interaction.request.prompts:
        return Stage.CONSENT
    if (interaction.here and signing_in_consents(interaction)) or _covers(
        consent, interaction.request
    ):
        return Stage.DONE
    return Stage.CONSENT


def signing_in_consents(interaction: Interaction) -> bool:
    """Whether signing in on the page that names the client and what it asks for is consent.

    It is if the person came without a session, so that the client could not choose this page
    instead of the consent page; only for the scopes of a Solid application; and only for a redirect
    URI on the web, because any program on the person's device can receive the others.
    """
    request = interaction.request
    return (
        not interaction.had_session
        and set(request.prompts) <= {"none"}
        and _BY_SIGNING_IN.issuperset(request.scopes)
        and not is_on_this_device(request.redirect_uri)
    )


def granted_scopes(interaction: Interaction, consent: Consent | None) -> tuple[str, ...]:
    """The scopes that a finished interaction grants. Lasting access requires that a page asked for
    it, now or before (A-56). Changes of identity require that the person ticked the box on the last
    page that had it."""
    allowed_before = consent.scopes if consent is not None else ()
    withheld = set()
    if not interaction.consented and OFFLINE not in allowed_before:
        withheld.add(OFFLINE)
    may_state_identity = (
        interaction.may_state_identity
        if interaction.consented
        else IDENTITY_SCOPE in allowed_before
    )
    if not may_state_identity:
        withheld.add(IDENTITY_SCOPE)
    return tuple(scope for scope in interaction.request.scopes if scope not in withheld)


def remembered_scopes(
    interaction: Interaction, consent: Consent | None, granted: tuple[str, ...]
) -> tuple[str, ...]:
    """The scopes that a consent contains from now on: those allowed before, and those allowed now.
    A person who sees the box for changes of identity and leaves it empty withdraws an earlier
    permission for later sign-ins; to end what the application already has, they disconnect it."""
    before = consent.scopes if consent is not None else ()
    withdrawn = interaction.consented and IDENTITY_SCOPE in interaction.request.scopes
    kept = [scope for scope in before if not (withdrawn and scope == IDENTITY_SCOPE)]
    return tuple(dict.fromkeys((*kept, *permissions(granted))))


def _covers(consent: Consent | None, request: AuthorizationRequest) -> bool:
    asked = {scope for scope in permissions(request.scopes) if scope != OFFLINE}
    return consent is not None and asked.issubset(consent.scopes)

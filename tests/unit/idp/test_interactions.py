"""Every stage of an authorization, by everything that it depends on (A-55, A-56)."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from podstead.idp.interactions import (
    Stage,
    begun,
    granted_scopes,
    remembered_scopes,
    stage_of,
)
from podstead.idp.records import AuthorizationRequest, BrowserSession, Consent, Interaction

NOW_S = 1_800_000_000
PROMPTS = [(), ("none",), ("login",), ("consent",), ("select_account",), ("create",)]
PROMPTS += [("login", "consent")]
ASKED = ("openid", "webid", "offline_access")
CONSENTS = {
    "none": None,
    "all": ("openid", "webid", "offline_access"),
    "all but lasting access": ("openid", "webid"),
    "less": ("openid", "offline_access"),
}


def request(**changes: object) -> AuthorizationRequest:
    members = {
        "client_id": "c",
        "redirect_uri": "https://app.example/",
        "scopes": ASKED,
        "code_challenge": "x" * 43,
    }
    return AuthorizationRequest(**{**members, **changes})  # type: ignore[arg-type]


def session(*, authenticated_s: int = NOW_S - 100) -> BrowserSession:
    return BrowserSession("alice", authenticated_s, authenticated_s, "password", "", lasting=False)


def consent(scopes: tuple[str, ...] | None) -> Consent | None:
    return None if scopes is None else Consent("c", None, "app.example", scopes, NOW_S - 1000)


def interaction(prompts: tuple[str, ...], *, here: bool, consented: bool) -> Interaction:
    return Interaction(
        request=request(prompts=prompts),
        browser_hash="b",
        began_s=NOW_S,
        account_id="alice",
        authenticated_s=NOW_S,
        here=here,
        consented=consented,
    )


@pytest.mark.parametrize("prompts", PROMPTS, ids=" ".join)
@pytest.mark.parametrize("consented", [True, False])
@pytest.mark.parametrize("name", CONSENTS)
def test_without_an_account_the_person_signs_in_first(
    prompts: tuple[str, ...], consented: bool, name: str
) -> None:
    waiting = Interaction(request(prompts=prompts), "b", NOW_S, consented=consented)
    assert stage_of(waiting, consent(CONSENTS[name])) is Stage.SIGN_IN


def expected_stage(prompts: tuple[str, ...], consents: str, *, here: bool, agreed: bool) -> Stage:
    """A-56 as it is written: an explicit page if ``prompt=consent`` or no record covers the
    scopes, but for who signs in on the page that names the client."""
    if agreed:
        return Stage.DONE
    if "consent" in prompts:
        return Stage.CONSENT
    recorded = consents in ("all", "all but lasting access")
    return Stage.DONE if recorded or here else Stage.CONSENT


CASES = list(itertools.product(PROMPTS, CONSENTS, [True, False], [True, False]))


@pytest.mark.parametrize(("prompts", "consents", "here", "agreed"), CASES)
def test_every_stage(prompts: tuple[str, ...], consents: str, here: bool, agreed: bool) -> None:
    """A-56, D-4, W-5"""
    waiting = interaction(prompts, here=here, consented=agreed)
    expected = expected_stage(prompts, consents, here=here, agreed=agreed)
    assert stage_of(waiting, consent(CONSENTS[consents])) is expected


@pytest.mark.parametrize(("prompts", "consents", "here", "agreed"), CASES)
def test_lasting_access_needs_a_page_that_asked_for_it(
    prompts: tuple[str, ...], consents: str, here: bool, agreed: bool
) -> None:
    """A-56: it is dropped, never an error"""
    granted = granted_scopes(
        interaction(prompts, here=here, consented=agreed), consent(CONSENTS[consents])
    )
    lasting = agreed or consents in ("all", "less")
    assert granted == (ASKED if lasting else ("openid", "webid"))


def test_scopes_that_were_not_asked_for_are_not_given() -> None:
    asked = Interaction(request(scopes=("openid",)), "b", NOW_S, account_id="alice", consented=True)
    assert granted_scopes(asked, consent(CONSENTS["all"])) == ("openid",)


FRESH = {"login", "select_account", "create"}


@pytest.mark.parametrize("prompts", PROMPTS, ids=" ".join)
def test_a_session_is_taken_unless_a_fresh_sign_in_is_asked_for(prompts: tuple[str, ...]) -> None:
    """OIDC Core section 3.1.2.1"""
    new = begun(request(prompts=prompts), session(), browser_hash="b", now_s=NOW_S)
    taken = FRESH.isdisjoint(prompts)
    assert new.account_id == ("alice" if taken else None)
    assert new.authenticated_s == (NOW_S - 100 if taken else None)
    assert not any((new.here, new.consented, new.finished))


@pytest.mark.parametrize(
    ("max_age_s", "taken"), [(99, False), (100, True), (0, False), (None, True)]
)
def test_a_session_that_is_too_old_is_not_taken(max_age_s: int | None, taken: bool) -> None:
    """``max_age``"""
    new = begun(request(max_age_s=max_age_s), session(), browser_hash="b", now_s=NOW_S)
    assert (new.account_id is not None) is taken


def test_without_a_session_nobody_is_signed_in() -> None:
    assert begun(request(), None, browser_hash="b", now_s=NOW_S).account_id is None


# --- the scope that lets an application change who can act as the person --------------------------

IDENTITY_ASKED = (*ASKED, "webid:write")


@pytest.mark.parametrize("ticked", [True, False])
@pytest.mark.parametrize("before", [None, ASKED, IDENTITY_ASKED])
@pytest.mark.parametrize("asked", [ASKED, IDENTITY_ASKED])
def test_identity_is_stated_only_by_who_asked_and_was_let_on_the_last_page(
    ticked: bool, before: tuple[str, ...] | None, asked: tuple[str, ...]
) -> None:
    known = consent(before)
    shown = msgspec.structs.replace(
        interaction((), here=False, consented=True),
        request=request(scopes=asked),
        may_state_identity=ticked,
    )
    granted = granted_scopes(shown, known)
    assert ("webid:write" in granted) is (ticked and "webid:write" in asked)
    remembered = remembered_scopes(shown, known, granted)
    kept = before is not None and "webid:write" in before and "webid:write" not in asked
    assert ("webid:write" in remembered) is ("webid:write" in granted or kept)

    unseen = msgspec.structs.replace(shown, consented=False, may_state_identity=False)
    again = granted_scopes(unseen, known)
    assert ("webid:write" in again) is (
        "webid:write" in asked and known is not None and "webid:write" in known.scopes
    )


def test_signing_in_on_the_page_of_an_application_does_not_let_it_state_identity() -> None:
    here = msgspec.structs.replace(
        interaction((), here=True, consented=False), request=request(scopes=IDENTITY_ASKED)
    )
    assert stage_of(here, None) is Stage.CONSENT
    assert stage_of(here, consent(ASKED)) is Stage.CONSENT
    assert stage_of(here, consent(IDENTITY_ASKED)) is Stage.DONE

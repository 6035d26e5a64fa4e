"""Every stage of an authorization, by everything that it depends on (A-55, A-56)."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from msgspec.structs import replace

from podstead.idp.grants import (
    Stage,
    granted_scopes,
    new_interaction,
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
    scopes, but for who signs in on the page that names the client, if no prompt brought them
    there."""
    if agreed:
        return Stage.DONE
    if "consent" in prompts:
        return Stage.CONSENT
    recorded = consents in ("all", "all but lasting access")
    by_signing_in = here and FRESH.isdisjoint(prompts)
    return Stage.DONE if recorded or by_signing_in else Stage.CONSENT


FRESH = {"login", "select_account", "create"}
CASES = list(itertools.product(PROMPTS, CONSENTS, [True, False], [True, False]))


def test_every_stage() -> None:
    """A-56"""
    for prompts, consents, here, agreed in CASES:
        waiting = interaction(prompts, here=here, consented=agreed)
        expected = expected_stage(prompts, consents, here=here, agreed=agreed)
        stage = stage_of(waiting, consent(CONSENTS[consents]))
        assert stage is expected, (prompts, consents, here, agreed)


ASKED_ON_A_PAGE: dict[str, dict[str, object]] = {
    "a name": {"scopes": ("openid", "webid", "profile")},
    "an e-mail address": {"scopes": ("openid", "webid", "email")},
    "a scheme of its own": {"redirect_uri": "org.example.app:/back"},
    "localhost": {"redirect_uri": "http://localhost:8080/"},
    "a name below localhost": {"redirect_uri": "https://app.localhost./"},
    "another loopback address": {"redirect_uri": "http://127.9.9.9/"},
    "a loopback address of IPv6": {"redirect_uri": "http://[::1]:8080/"},
}


@pytest.mark.parametrize("changes", ASKED_ON_A_PAGE.values(), ids=ASKED_ON_A_PAGE)
def test_the_person_who_signs_in_is_still_asked(changes: dict[str, object]) -> None:
    """RFC 8252 section 8.6 for the addresses."""
    asked = request(**changes)
    waiting = Interaction(asked, "b", NOW_S, "alice", NOW_S, here=True)
    assert stage_of(waiting, None) is Stage.CONSENT
    assert stage_of(waiting, consent(asked.scopes)) is Stage.DONE


def test_a_client_does_not_choose_the_page_to_sign_in_on_instead_of_the_one_for_consent() -> None:
    """By ``prompt``, ``max_age`` or ``id_token_hint``: whoever had a session is asked."""
    for had_session in (False, True):
        new = new_interaction(
            request(), None, had_session=had_session, browser_hash="b", now_s=NOW_S
        )
        here = replace(new, account_id="alice", here=True)
        assert stage_of(here, None) is (Stage.CONSENT if had_session else Stage.DONE)
    old = new_interaction(request(max_age_s=0), session(), browser_hash="b", now_s=NOW_S)
    assert stage_of(replace(old, account_id="alice", here=True), None) is Stage.CONSENT


def test_openid_alone_is_shown_as_access_and_does_not_follow_from_less() -> None:
    """Solid clients that know no ``webid`` scope get access by it, if they bind their tokens."""
    alone = Interaction(request(scopes=("openid",)), "b", NOW_S, "alice")
    assert stage_of(alone, consent(("openid", "profile"))) is Stage.CONSENT
    assert stage_of(alone, consent(("openid", "webid"))) is Stage.DONE


def test_lasting_access_requires_a_page_that_requested_it() -> None:
    """A-56: it is dropped, never an error"""
    for prompts, consents, here, agreed in CASES:
        waiting = interaction(prompts, here=here, consented=agreed)
        granted = granted_scopes(waiting, consent(CONSENTS[consents]))
        lasting = agreed or consents in ("all", "less")
        expected = ASKED if lasting else ("openid", "webid")
        assert granted == expected, (prompts, consents, here, agreed)


def test_scopes_that_were_not_requested_are_not_granted() -> None:
    asked = Interaction(request(scopes=("openid",)), "b", NOW_S, account_id="alice", consented=True)
    assert granted_scopes(asked, consent(CONSENTS["all"])) == ("openid",)


@pytest.mark.parametrize("prompts", PROMPTS, ids=" ".join)
def test_a_session_is_used_unless_a_fresh_sign_in_is_requested(prompts: tuple[str, ...]) -> None:
    """OpenID Connect Core section 3.1.2.1"""
    new = new_interaction(request(prompts=prompts), session(), browser_hash="b", now_s=NOW_S)
    taken = FRESH.isdisjoint(prompts)
    assert new.account_id == ("alice" if taken else None)
    assert new.authenticated_s == (NOW_S - 100 if taken else None)
    assert not any((new.here, new.consented, new.finished))


@pytest.mark.parametrize(
    ("max_age_s", "taken"), [(99, False), (100, True), (0, False), (None, True)]
)
def test_a_session_that_is_too_old_is_not_taken(max_age_s: int | None, taken: bool) -> None:
    """``max_age``"""
    new = new_interaction(request(max_age_s=max_age_s), session(), browser_hash="b", now_s=NOW_S)
    assert (new.account_id is not None) is taken


def test_without_a_session_nobody_is_signed_in() -> None:
    assert new_interaction(request(), None, browser_hash="b", now_s=NOW_S).account_id is None


# --- the scope that lets an application change who can act as the person --------------------------

IDENTITY_ASKED = (*ASKED, "webid:write")


@pytest.mark.parametrize("ticked", [True, False])
@pytest.mark.parametrize("before", [None, ASKED, IDENTITY_ASKED])
@pytest.mark.parametrize("asked", [ASKED, IDENTITY_ASKED])
def test_only_an_application_with_permission_on_the_last_page_can_state_identity(
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


def test_signing_in_for_an_application_does_not_permit_it_to_state_identity() -> None:
    here = msgspec.structs.replace(
        interaction((), here=True, consented=False), request=request(scopes=IDENTITY_ASKED)
    )
    assert stage_of(here, None) is Stage.CONSENT
    assert stage_of(here, consent(ASKED)) is Stage.CONSENT
    assert stage_of(here, consent(IDENTITY_ASKED)) is Stage.DONE

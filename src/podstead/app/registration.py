"""Who may register, and on which terms? From the settings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from podstead.config import Settings
from podstead.storage.invitations import Invitations
from podstead.storage.record_store import RecordStore
from podstead.web.about_operator import AboutOperator
from podstead.web.authority import is_loopback_url
from podstead.web.limits import InvitationGuessLimit, PodCreationLimit
from podstead.web.pod_pages.addresses import TERMS
from podstead.web.registration import Registration


def build_registration(
    settings: Settings, *, records: RecordStore, refused: Callable[[], None] | None
) -> Registration:
    """The rules for registering; ``refused`` is told of wrong codes."""
    return Registration(
        mode=settings.registration,
        limit=PodCreationLimit(
            counters=records.store,
            clock=records.clock,
            per_hour=settings.pod_creations_per_hour,
            exempt_loopback=is_loopback_url(settings.base_url),
        ),
        invitations=Invitations(records),
        wrong_codes=InvitationGuessLimit(records.store, records.clock),
        refused=refused,
        about=about_operator(settings),
        terms_hash=terms_hash(settings),
    )


def terms_hash(settings: Settings) -> str:
    """The SHA-256 of the present terms, empty if there are none: what accounts remember of them."""
    text = settings.terms_text
    return hashlib.sha256(text.encode()).hexdigest() if text else ""


def about_operator(settings: Settings) -> AboutOperator:
    """What pages and messages say about the operator."""
    return AboutOperator(
        name=settings.operator_name or "",
        contact=settings.operator_contact or "",
        terms_url=settings.base_url + TERMS if settings.terms_text else "",
    )


def is_markdown(settings: Settings) -> bool:
    """Whether the terms are Markdown, by the name of their file."""
    return settings.terms is not None and settings.terms.suffix.lower() in (".md", ".markdown")

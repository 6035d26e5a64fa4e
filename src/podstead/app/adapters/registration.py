"""What the settings say about the operator and the terms."""

import hashlib

from podstead.config import Settings
from podstead.web.pages.addresses import TERMS
from podstead.web.registration import AboutOperator


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

"""Says in the language of the page why something was refused, from the code of the error."""

from __future__ import annotations

from podstead.core.errors import PodsteadError
from podstead.web.pod_pages.formats import number_text, size_text
from podstead.web.pod_pages.texts import ENGLISH, current_texts


def refusal_text(error: PodsteadError) -> str:
    """What a page says about an error; its message if it has no code."""
    if error.code is None:
        return str(error)
    shown = {name: _shown(name, value) for name, value in error.parameters.items()}
    text = current_texts().get(error.code.text)
    return text % shown if shown else text


def is_translated(error: PodsteadError) -> bool:
    """Whether :func:`refusal_text` is in the language of the page."""
    return error.code is not None or current_texts().language == ENGLISH


def _shown(name: str, value: str | int) -> str:
    if isinstance(value, str):
        return value
    return size_text(value) if name.endswith("_bytes") else number_text(value)

"""Chooses the language in which a person reads the pages of the server."""

from __future__ import annotations

from typing import Final

from podstead.web.browsers import CookieJar
from podstead.web.pod_pages.texts import LANGUAGES, Texts, preferred_language, texts_in, use_texts
from podstead.web.request import Request

LANGUAGE_COOKIE: Final = "podstead-language"


def use_language_of(request: Request, *, secure: bool) -> Texts:
    """The texts in the language that the person has chosen, or that the browser prefers; they are
    used for the rest of the request. ``secure`` if the server is reached over https."""
    chosen = CookieJar(secure).value(request, LANGUAGE_COOKIE)
    if chosen is None or chosen not in LANGUAGES:
        chosen = preferred_language(request.fields.get(b"accept-language"))
    texts = texts_in(chosen)
    use_texts(texts)
    return texts

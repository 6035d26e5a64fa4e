"""The files of the pages, and their languages."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jinja2 import Environment

import podstead
from podstead.web.pages.templates import load_assets
from podstead.web.pages.texts import LANGUAGES, preferred_language, texts_in
from tests.support.application import Server, Start
from tests.support.browser import Browser

MAX_SCRIPT_BYTES = 95_000


async def test_files_are_stored_for_good_at_addresses_of_their_content(
    server: Server, browser: Browser
) -> None:
    page = await browser.get("/.pages/sign-in")
    addresses = re.findall(r'"(/\.pages/assets/[^"]+)"', page.text)
    assert len(addresses) == 5
    for address in addresses:
        answer = await server.public.get(address)
        assert answer.status == 200
        assert answer.header("cache-control") == "public, max-age=31536000, immutable"
        changed = re.sub("assets/.", "assets/-", address)
        assert (await server.public.get(changed)).status == 404


def test_all_scripts_together_are_small() -> None:
    scripts = [content for name, content in load_assets().items() if name.endswith(".js")]
    assert sum(map(len, scripts)) < MAX_SCRIPT_BYTES


@pytest.mark.parametrize(
    ("header", "language"),
    [
        (None, "en"),
        ("de", "de"),
        ("de-AT,de;q=0.9,en;q=0.8", "de"),
        ("fr, nl;q=0.5, es;q=0.7", "es"),
        ("fr", "en"),
        ("*", "en"),
        ("de;q=0, nl", "nl"),
        ("de;q=x", "en"),
        ("de;q=nan, nl;q=0.1", "nl"),
        ("," * 1000, "en"),
    ],
)
def test_the_language_is_the_one_that_the_browser_prefers(
    header: str | None, language: str
) -> None:
    assert preferred_language(header) == language


SOURCES = Path(podstead.__file__).parent
TEMPLATES = sorted(
    path
    for path in SOURCES.rglob("templates/**/*.html")
    if path.name != "components_page.html"  # for whoever works on the pages
)
NOT_TRANSLATED = {"Podstead", "RSA", "bit", "SHA-256", "autofocus", "required"}
"""Names, what is the same in every language, and attributes of tags."""


class ShownText(HTMLParser):
    """What a template shows apart from its expressions, except code that people copy."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.words: list[str] = []
        self._inside = 0
        lexed = Environment(extensions=["jinja2.ext.i18n"]).lex(path.read_text("utf-8"))
        html = "".join(value if kind == "data" else " " for _, kind, value in lexed)
        # A block of a template may be no more than the attributes of a tag of its layout.
        self.feed(re.sub(r'\s[\w-]+="[^"<>]*"(?=[^<>]*(?:<|$))', "", html))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside += tag in {"pre", "svg"}
        for name, value in attrs:
            if name in {"alt", "aria-label", "title"}:
                self.handle_data(value or "")

    def handle_endtag(self, tag: str) -> None:
        self._inside -= tag in {"pre", "svg"}

    def handle_data(self, data: str) -> None:
        if not self._inside and self.cdata_elem is None:
            self.words += re.findall(r"[^\W\d_][\w-]+", data)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_template_has_no_text_that_is_not_translated(path: Path) -> None:
    assert set(ShownText(path).words) <= NOT_TRANSLATED


async def test_a_page_has_the_language_of_its_reader(browser: Browser) -> None:
    page = await browser.get("/.pages/sign-in", Accept_Language="de")
    assert '<html lang="de">' in page.text
    assert "Anmelden" in page.text
    assert "Accept-Language" in (page.answer.header("vary") or "")
    page = await browser.send(page, "/.pages/language", language="nl")
    assert page.path == "/.pages/sign-in"
    assert "Inloggen" in page.text
    assert "Inloggen" in (await browser.get("/.pages/sign-in", Accept_Language="de")).text


async def test_two_requests_do_not_mix_their_languages(browser: Browser) -> None:
    german = await browser.get("/.pages/sign-in", Accept_Language="de")
    english = await browser.get("/.pages/sign-in", Accept_Language="en")
    assert "Anmelden" in german.text
    assert "Anmelden" not in english.text


@pytest.mark.parametrize("language", LANGUAGES)
def test_plural_forms_are_those_of_the_language(language: str) -> None:
    texts = texts_in(language)
    assert texts.get_plural("%(n)s of nothing", "%(n)s of nothings", 1) == "%(n)s of nothing"
    assert texts.get_plural("%(n)s of nothing", "%(n)s of nothings", 0) == "%(n)s of nothings"


async def test_the_sign_in_to_an_account_is_in_the_language_of_its_reader(start: Start) -> None:
    server = await start(idp=True)
    browser = Browser(server.application)
    for path, text in (("/idp/login", "Passwort"), ("/idp/register", "Konto und Pod anlegen")):
        page = await browser.get(path, Accept_Language="de")
        assert '<html lang="de">' in page.text
        assert text in page.text
    await browser.post("/.pages/language", {"language": "es", "next": "/"})
    page = await browser.get("/idp/login", Accept_Language="de")
    assert "Contraseña" in page.text

"""Links in content lead where Chromium would go, and never to the server's own pages."""

from __future__ import annotations

import json
import random
from typing import Final
from urllib.parse import urlsplit

from playwright.sync_api import Browser

from podstead.core.identifiers import ResourcePath
from podstead.web.pages.links import FILES, Links

BASE: Final = "http://localhost:3000"
PAGE: Final = f"{BASE}{FILES}/alice/card"
LINKS: Final = Links(BASE, ResourcePath("/alice/card"))

STARTS: Final = (
    *(f"{BASE}/", BASE, BASE.upper() + "/", "http://localhost:3000@evil.example/", " \t" + BASE),
    *("http://localhost/", "http://127.0.0.1:3000/", "https://localhost:3000/", "http:", "http:/"),
    *("", "/", "//", "\\", "\\\\", "/\\", "///", "?", "#", "//localhost:3000/", "//evil.example/"),
    *("http:\\\\localhost:3000\\", "http:///localhost:3000/", "ht\ntp://localhost:3000/"),
    *("http://LOCAL\tHOST:03000/", "http://loc%61lhost:3000/", "http://\uff4cocalhost:3000/"),
    *("https://other.example/", "javascript:", "data:", "mailto:a@b.example", "ftp://x.example/"),
)
PIECES: Final = (
    *(".", "..", "%2e", "%2E", "%2e%2E", ".%2e", ".pages", "%2epages", ".pa\nges", "\uff0e", "..;"),
    *(
        "alice",
        "a b",
        "\u00e9",
        "%C3%A9",
        "%zz",
        "%00",
        "%2f",
        "%5c",
        "%252e",
        "",
        "\t",
        "\x7f",
        "x:y",
    ),
    *(
        "?",
        "#",
        "?..",
        "#..",
        "sign-out",
        "files",
        "\U0001f600",
        "'",
        '"',
        "<b>",
        "|",
        "^",
        "`",
        "{}",
    ),
)
JOINTS: Final = ("/", "/", "/", "\\", "//", "")

IN_CHROMIUM: Final = """([texts, base]) => texts.map(text => {
    try { const u = new URL(text, base); return [u.protocol, u.origin, u.pathname, u.href]; }
    catch { return null; }
})"""


def references(number: int) -> list[str]:
    """Hostile references, always the same."""
    chance = random.Random(20261123)
    made = [
        chance.choice(STARTS)
        + "".join(chance.choice(PIECES) + chance.choice(JOINTS) for _ in range(chance.randrange(6)))
        for _ in range(number)
    ]
    return list(dict.fromkeys(made))


def test_links_are_read_as_the_browser_reads_them(chromium: Browser) -> None:
    page = chromium.new_page()
    texts = references(20_000)
    resolved = [LINKS.resolve(text) for text in texts]
    expected = page.evaluate(IN_CHROMIUM, [texts, LINKS.document_url])
    different = [
        (text, ours, theirs)
        for text, ours, theirs in zip(texts, resolved, expected, strict=True)
        # Chromium goes beyond the standard: it escapes "|", and takes hosts with spaces.
        if ours is not None
        and ours.startswith("http")
        and ours.replace("|", "%7C") != (theirs and theirs[3].replace("|", "%7C"))
    ]
    assert not different, different[:5]
    links = [None if iri is None else LINKS.of(iri) for iri in resolved]
    hrefs = ["" if link is None else link.href for link in links]
    followed = page.evaluate(IN_CHROMIUM, [hrefs, PAGE])
    own = 0
    every = zip(texts, resolved, links, expected, followed, strict=True)
    for text, iri, link, theirs, end in every:
        shown = json.dumps([text, None if link is None else link.href])
        if link is None:
            # What is a page about a resource here, or another site, is linked to.
            assert (
                theirs is None
                or theirs[0] not in ("http:", "https:")
                or theirs[1] == BASE
                or "@" in urlsplit(theirs[3]).netloc
                or iri is None
            ), shown
            continue
        protocol, origin, path, _ = end
        assert protocol in ("http:", "https:", "mailto:"), shown
        assert link.external == (origin != BASE), shown
        if origin == BASE:
            own += 1
            assert path.startswith(f"{FILES}/"), shown
            assert not path.startswith(f"{FILES}/."), shown
        else:
            assert origin == theirs[1], shown
    assert own > 100
    page.close()

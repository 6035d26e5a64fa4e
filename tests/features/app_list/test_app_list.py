"""Applications that the operator suggests, on the page about applications."""

from __future__ import annotations

import html
import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from podstead.config import StartRefused, read_settings
from tests.support.application import Start, password_of
from tests.support.browser import Browser, Page
from tests.support.pod_pages import sign_in_by_token, sign_in_to_account

APPS = "/.pages/apps"
LIST = """
[[app]]
name = "Field <Notes>"
url = "https://notes.example:8443/open?view=all&x=1#top"
description = "Notes & lists"
provider-parameter = "idp"
webid-parameter = "me"

[[app]]
name = "Plain"
url = "http://localhost:4000/"
description = "Knows nobody"
"""
ENTRY = {"name": '"A"', "url": '"https://a.example/"', "description": '"B"'}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A list of two applications."""
    path = tmp_path / "apps.toml"
    path.write_text(LIST)
    return path


def links(page: Page) -> list[str]:
    """What the tiles lead to."""
    assert page.status == 200
    found: list[str] = re.findall(r'<a class="button" href="([^"]*)" target="_blank"', page.text)
    return [html.unescape(each) for each in found]


async def test_applications_open_with_what_the_list_says(start: Start, file: Path) -> None:
    browser = await sign_in_to_account(await start(idp=True, apps=file))
    page = await browser.get(APPS)
    assert "Field &lt;Notes&gt;" in page.text
    assert "notes.example:8443" in page.text
    assert "Notes &amp; lists" in page.text
    notes, plain = links(page)
    assert notes.startswith("https://notes.example:8443/open?view=all&x=1&")
    assert parse_qsl(urlsplit(notes).query)[2:] == [
        ("idp", "http://localhost:3000"),
        ("me", "http://localhost:3000/alice/#me"),
    ]
    assert urlsplit(notes).fragment == "top"
    assert plain == "http://localhost:4000/"
    assert page.text.count('rel="noopener" referrerpolicy="no-referrer"') == 2


async def test_at_a_provider_with_an_origin_of_its_own_that_is_named(
    start: Start, file: Path
) -> None:
    provider = "http://idp.localhost:3000"
    server = await start(idp=True, idp_base_url=provider, apps=file)
    browser = Browser(server.application, base_url=provider)
    page = await browser.get(f"/idp/login?next={APPS}")
    typed = {"username": "alice", "password": password_of("alice")}
    notes, _ = links(await browser.send(page, "/idp/login", **typed))
    assert parse_qsl(urlsplit(notes).query)[2:] == [
        ("idp", provider),
        ("me", "http://localhost:3000/alice/#me"),
    ]


async def test_suggestions_come_before_the_news_that_there_is_nothing(
    start: Start, file: Path
) -> None:
    page = await (await sign_in_to_account(await start(idp=True, apps=file))).get(APPS)
    assert 0 < page.text.index("Apps to try") < page.text.index("No application is connected")


async def test_without_an_account_no_provider_is_named(start: Start, file: Path) -> None:
    server = await start(apps=file)
    browser = await sign_in_by_token(server, server.alice)
    notes, _ = links(await browser.get(APPS))
    assert parse_qsl(urlsplit(notes).query)[2:] == [("me", server.alice_web_id)]


@pytest.mark.parametrize("idp", [True, False])
async def test_without_a_list_nothing_is_suggested(start: Start, idp: bool) -> None:
    server = await start(idp=idp)
    browser = await (sign_in_to_account(server) if idp else sign_in_by_token(server, server.alice))
    page = await browser.get(APPS)
    assert links(page) == []
    assert "Apps to try" not in page.text


def refusal(path: Path) -> str:
    """Why a server does not start with this list."""
    with pytest.raises(StartRefused) as caught:
        read_settings({"apps": str(path)}, {}, folder=path.parent)
    return str(caught.value)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"icon": '"x"'}, "application 1 has the key 'icon'"),
        ({"name": '"' + "n" * 61 + '"'}, "name of application 1"),
        ({"name": "1"}, "name of application 1"),
        ({"name": '" "'}, "name of application 1"),
        ({"description": '"' + "d" * 201 + '"'}, "description of application 1"),
        ({"description": '"a\\nb"'}, "description of application 1"),
        ({"url": '"https://a.example/' + "u" * 1_983 + '"'}, "url of application 1"),
        ({"url": '"http://a.example/"'}, "url of application 1"),
        ({"url": '"http://localhost.example/"'}, "url of application 1"),
        ({"url": '"javascript:alert(1)"'}, "url of application 1"),
        ({"url": '"https://a.example:x/"'}, "url of application 1"),
        ({"url": '"https://[a/"'}, "url of application 1"),
        ({"url": '"https://a@b.example/"'}, "url of application 1"),
        ({"url": '"https://:443/"'}, "url of application 1"),
        ({"provider-parameter": '"a b"'}, "provider-parameter of application 1"),
        ({"webid-parameter": '""'}, "webid-parameter of application 1"),
    ],
)
def test_an_entry_that_cannot_be_used_is_refused(
    tmp_path: Path, changed: dict[str, str], said: str
) -> None:
    path = tmp_path / "apps.toml"
    lines = [f"{key} = {value}" for key, value in (ENTRY | changed).items()]
    path.write_text("\n".join(["[[app]]", *lines]))
    assert said in refusal(path)


@pytest.mark.parametrize("missing", ENTRY)
def test_an_entry_without_a_key_is_refused(tmp_path: Path, missing: str) -> None:
    path = tmp_path / "apps.toml"
    lines = [f"{key} = {value}" for key, value in ENTRY.items() if key != missing]
    path.write_text("\n".join(["[[app]]", *lines]))
    assert f"application 1 has no {missing}" in refusal(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"app = 1", "tables [[app]] and nothing else"),
        (b"app = [1]", "tables [[app]] and nothing else"),
        (b"port = 1", "tables [[app]] and nothing else"),
        (b"app = [", "is not valid TOML"),
        (b"\xff", "is not UTF-8 text"),
        (b"#" * 500_001, "more than 500000 bytes"),
        (
            b'[[app]]\nname = "A"\nurl = "https://a.example/"\ndescription = "B"\n' * 51,
            "more than 50 applications",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "apps.toml"
    path.write_bytes(content)
    assert said in refusal(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "apps.toml"
    assert refusal(path) == f"Cannot read apps {path}: No such file or directory."


def test_most_applications_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "apps.toml"
    entry = '[[app]]\nname = "A"\nurl = "https://a.example/"\ndescription = "B"\n'
    path.write_text(entry * 50)
    read_settings({"apps": str(path)}, {}, folder=tmp_path)

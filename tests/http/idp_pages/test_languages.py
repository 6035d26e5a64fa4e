"""The pages of the provider have the header, the footer and the languages of all others."""

from __future__ import annotations

import pytest

from tests.support.browser import Browser

PAGES = ("/idp/login", "/idp/register", "/idp/login?next=/.pages/files/")


@pytest.mark.parametrize("path", PAGES)
async def test_the_language_is_chosen_in_the_footer(browser: Browser, path: str) -> None:
    page = await browser.get(path)
    assert '<a class="brand" href="/">' in page.text
    page = await browser.send(page, "/.pages/language", language="de")
    assert page.url.endswith(path)
    assert '<html lang="de">' in page.text
    assert 'value="de" selected' in page.text


@pytest.mark.parametrize(
    "asked",
    ["https://evil.example/idp/", "//evil.example/idp/", "/idp/..//evil.example"],
)
async def test_the_choice_leads_to_no_other_place(browser: Browser, asked: str) -> None:
    page = await browser.get("/idp/login")
    fields = {**page.form("/.pages/language").fields, "next": asked, "language": "nl"}
    reached = await browser.post("/.pages/language", fields)
    assert reached.url.startswith("http://localhost:3000/")
    assert "evil" not in reached.url


async def test_a_form_that_was_refused_leads_to_itself_in_another_language(
    browser: Browser,
) -> None:
    page = await browser.send(await browser.get("/idp/register"), "/idp/register", username="a b")
    assert page.status == 400
    page = await browser.send(page, "/.pages/language", language="de")
    assert page.url.endswith("/idp/register")
    assert '<html lang="de">' in page.text

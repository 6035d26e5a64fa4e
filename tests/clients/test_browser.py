"""An application in a browser, on a page of another origin.

The browser decides by what the server answers whether the page's script may ask, and what of an
answer it sees; no other client does that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.clients.client_home import Home
from tests.support.application_page import running_application
from tests.support.client_process import Agent
from tests.support.rdf import triples

FETCH = """async ({url, method, headers, body}) => {
    const response = await fetch(url, {method, headers, body});
    return {
        status: response.status,
        url: response.url,
        redirected: response.redirected,
        headers: Object.fromEntries(response.headers),
        text: await response.text(),
    };
}"""
TURTLE = {"Content-Type": "text/turtle"}
DOCUMENT = "<#me> a <#it>."

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def application() -> Iterator[str]:
    """The URL of the application's page."""
    with running_application() as url:
        yield url


@dataclass(frozen=True, slots=True)
class Seen:
    """What a script in the page sees of an answer."""

    status: int
    url: str
    redirected: bool
    headers: Mapping[str, str]
    text: str


@dataclass(frozen=True, slots=True)
class Script:
    """The script of the application's page, for one agent or for nobody."""

    page: Page
    agent: Agent | None = None

    def fetch(
        self,
        method: str,
        url: str,
        body: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Seen:
        """Ask as scripts do. Raises playwright's Error when the browser does not let the page."""
        credentials = {"Authorization": f"Bearer {self.agent.token}"} if self.agent else {}
        seen: dict[str, Any] = self.page.evaluate(
            FETCH,
            {"url": url, "method": method, "headers": {**credentials, **(headers or {})}}
            | ({} if body is None else {"body": body}),
        )
        return Seen(**seen)


@pytest.fixture
def page(chromium: Browser, application: str) -> Iterator[Page]:
    """The application's page, in a browser that has been nowhere yet."""
    context = chromium.new_context()
    page = context.new_page()
    page.goto(application)
    yield page
    context.close()


@pytest.fixture
def script(page: Page, home: Home) -> Script:
    return Script(page, home.agent)


def test_a_page_creates_reads_changes_lists_and_deletes(script: Script, home: Home) -> None:
    """Each of these methods is preceded by a preflight that has no credentials."""
    url = home.url + "card"
    assert script.fetch("PUT", url, DOCUMENT, TURTLE).status == 201
    assert home.triples("card") == triples(DOCUMENT, "text/turtle", url)
    assert script.fetch("GET", url).text == DOCUMENT
    update = {"Content-Type": "application/sparql-update"}
    assert script.fetch("PATCH", url, "INSERT DATA { <#me> <#name> 'Al' }", update).status == 204
    assert home.triples("card") == triples(DOCUMENT + "<#me> <#name> 'Al'.", "text/turtle", url)
    assert url in script.fetch("GET", home.url, headers={"Accept": "application/ld+json"}).text
    assert script.fetch("DELETE", url).status == 204
    assert home.members() == set()


def test_a_page_sends_the_headers_of_solid(script: Script, home: Home) -> None:
    """Slug, Link and preconditions are none that browsers send without asking."""
    headers = TURTLE | {
        "Slug": "box",
        "Link": '<http://www.w3.org/ns/ldp#BasicContainer>; rel="type"',
    }
    assert script.fetch("POST", home.url, "", headers).headers["location"] == home.url + "box/"
    home.put("card", DOCUMENT)
    again = TURTLE | {"If-None-Match": "*"}
    assert script.fetch("PUT", home.url + "card", DOCUMENT, again).status == 412
    entity_tag = script.fetch("HEAD", home.url + "card").headers["etag"]
    unchanged = TURTLE | {"If-Match": entity_tag}
    assert script.fetch("PUT", home.url + "card", "", unchanged).status == 204


def test_a_page_sees_what_the_answer_says(script: Script, home: Home) -> None:
    """All headers that applications read are exposed, with what the server sent."""
    url = home.put("card", DOCUMENT)
    seen = script.fetch("GET", url).headers
    sent = home.get("card").headers
    for name in (
        "accept-patch",
        "accept-put",
        "allow",
        "content-type",
        "etag",
        "last-modified",
        "link",
        "wac-allow",
    ):
        assert seen[name] == sent[name], name
    container = script.fetch("GET", home.url).headers
    assert container["accept-post"] == home.get().headers["accept-post"]
    part = script.fetch("GET", url, headers={"Range": "bytes=0-3"})
    assert (part.status, part.text) == (206, DOCUMENT[:4])
    assert part.headers["content-range"] == f"bytes 0-3/{len(DOCUMENT)}"


@pytest.mark.parametrize("accept", ["text/turtle", "application/ld+json", "image/*", "*/*"])
def test_a_page_without_a_token_sees_a_401_and_no_page_to_sign_in_on(
    page: Page, home: Home, accept: str
) -> None:
    """No redirect, no HTML, and the challenge is exposed."""
    url = home.put("card", DOCUMENT)
    seen = Script(page).fetch("GET", url, headers={"Accept": accept})
    assert (seen.status, seen.url, seen.redirected) == (401, url, False)
    assert seen.headers["content-type"] == "application/json"
    assert "Bearer realm=" in seen.headers["www-authenticate"]
    assert 'user=""' in seen.headers["wac-allow"]


def test_a_page_sees_403_404_and_409_as_they_are(page: Page, home: Home, other: Agent) -> None:
    """A refusal is an answer for the script, too."""
    home.put("box/card", DOCUMENT)
    assert Script(page, other).fetch("GET", home.url + "box/card").status == 403
    owner = Script(page, home.agent)
    assert owner.fetch("GET", home.url + "nothing").status == 404
    assert owner.fetch("GET", home.url + "nothing").headers["accept-patch"]
    assert owner.fetch("DELETE", home.url + "box/").status == 409


def test_a_page_with_a_wrong_token_sees_the_401(page: Page, home: Home) -> None:
    url = home.put("card", DOCUMENT)
    script = Script(page, Agent(home.pod.web_id, "wrong"))
    assert script.fetch("GET", url).status == 401


def test_a_page_follows_the_redirect_to_a_container(script: Script, home: Home) -> None:
    """From the name without its slash, with the credentials, and lets the script read."""
    home.put("box/", "")
    seen = script.fetch("GET", home.url + "box")
    assert (seen.status, seen.url) == (200, home.url + "box/")


def test_what_was_stored_as_html_has_no_power_over_the_pod(chromium: Browser, home: Home) -> None:
    """A page out of a pod has an origin of its own, which no other page shares."""
    home.put("page.html", "<!doctype html><title>x</title>", "text/html")
    home.put("page.html.acl", home.pod.acl(home.path + "page.html", public=["Read"]))
    context = chromium.new_context()
    page = context.new_page()
    page.goto(home.url + "page.html")
    assert page.title() == "x"
    assert page.evaluate("self.origin") == "null"
    context.close()

"""People at the identity provider: their accounts, and a browser without scripts to sign in with.

Applications lead a person to the provider and wait until they come back. Here the person reads the
pages, fills in the forms that are there and presses the buttons, over HTTP.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

from tests.support import asgi
from tests.support.browser import FORM, HTML, Page
from tests.support.client import Client
from tests.support.server import ServerProcess

PASSWORD = "a few words in a row"
_MAX_REDIRECTS = 10
_JSON = {"Content-Type": "application/json"}
_OF_A_PAGE = {"Sec-Fetch-Site": "same-origin", "Content-Type": FORM}

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Account:
    """An account with its pod."""

    provider: ServerProcess
    name: str
    web_id: str
    pod_url: str
    """With a slash at the end."""

    @property
    def email(self) -> str:
        return f"{self.name}@example.org"

    @property
    def token(self) -> str:
        """A new access token, as a script gets it by the password."""
        sent = json.dumps({"email": self.email, "password": PASSWORD})
        answer = self.provider.request("POST", "/idp/credentials", sent, _JSON)
        assert answer.status == 200, answer.text
        token: str = json.loads(answer.body)["access_token"]
        return token

    @contextlib.contextmanager
    def owner(self) -> Iterator[Client]:
        """A client for the person, with such a token."""
        with Client(self.provider, token=self.token) as client:
            yield client


@dataclass
class Person:
    """The owner of an account, who has a browser with its cookies."""

    account: Account
    cookies: dict[str, str] = field(default_factory=dict)

    def connect(self, url: str) -> str:
        """Do what the provider asks for, until it leads to an application; the address there."""
        page = self.open(url)
        if page.path.startswith("/idp/interaction/") and 'type="password"' in page.text:
            page = self.sign_in(page)
        if page.path.startswith("/idp/interaction/"):
            page = self.allow(page)
        assert not self._is_providers(page.url), f"{page.url}: {page.text}"
        return page.url

    def open(self, url: str) -> Page:
        """Follow a link, and redirects up to a page, or to an application."""
        return self._go("GET", url, {"Sec-Fetch-Site": "cross-site"})

    def go_on(self, page: Page) -> str:
        """Where the link leads of a page that names an address before it sends anybody there."""
        [link] = re.findall(r'<a class="button" href="([^"]+)">Continue to', page.text)
        return unescape(link)

    def sign_in(self, page: Page) -> Page:
        """Fill in the form to sign in."""
        action = urlsplit(page.url).path
        return self._send(page, action, username=self.account.email, password=PASSWORD)

    def allow(self, page: Page) -> Page:
        """Press the button of the page that asks for consent."""
        return self._send(page, f"{page.path}/confirm")

    def refuse(self, page: Page) -> Page:
        """Press the other one."""
        return self._send(page, f"{page.path}/abort")

    def press(self, page: Page, action: str) -> Page:
        """Send the form of a page that goes to ``action`` as it is."""
        return self._send(page, action)

    def fill_in(self, page: Page, action: str, **typed: str) -> Page:
        """Send the form of a page that goes to ``action``, with what the person types."""
        return self._send(page, action, **typed)

    def make_credential(self) -> tuple[str, str]:
        """Client credentials for a script, made on the account page: id and secret."""
        page = self.open(f"{self.account.provider.base_url}/idp/login")
        if page.path == "/idp/login":
            self.sign_in(page)
        page = self.open(f"{self.account.provider.base_url}/.pages/security?view=programs")
        action = "/idp/account/client-credentials"
        form = page.form(f"{action}?")
        answer = self._ask(
            "POST", action, {"Accept": "application/json", **_OF_A_PAGE}, urlencode(form.fields)
        )
        assert answer.status == 201, answer.text
        return answer.json()["id"], answer.json()["secret"]

    # --- the browser --------------------------------------------------------------------------

    def _send(self, page: Page, action: str, **typed: str) -> Page:
        form = page.form(action)
        assert form.method == "post"
        return self._go(
            "POST", urljoin(page.url, form.action), _OF_A_PAGE, urlencode({**form.fields, **typed})
        )

    def _go(self, method: str, url: str, headers: Mapping[str, str], body: str = "") -> Page:
        answer = self._ask(method, url, headers, body)
        for _ in range(_MAX_REDIRECTS):
            location = answer.header("location")
            if answer.status not in {302, 303} or location is None:
                return Page(url, answer)
            url = urljoin(url, location)
            if not self._is_providers(url):
                return Page(url, answer)
            answer = self._ask("GET", url, {"Sec-Fetch-Site": "same-origin"})
        raise AssertionError(f"redirected in a circle: {url}")

    def _ask(
        self, method: str, url: str, headers: Mapping[str, str], body: str = ""
    ) -> asgi.Answer:
        parts = urlsplit(url)
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        fields = {"Accept": HTML, **({"Cookie": cookies} if cookies else {}), **headers}
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        with contextlib.closing(self.account.provider.connect()) as connection:
            connection.request(method, target, body=body.encode() or None, headers=fields)
            response = connection.getresponse()
            lines = [(name.lower(), value) for name, value in response.getheaders()]
            answer = asgi.Answer(response.status, lines, response.read())
        self._keep_cookies(answer)
        return answer

    def _keep_cookies(self, answer: asgi.Answer) -> None:
        for line in answer.header_lines("set-cookie"):
            pair, *attributes = line.split("; ")
            name, _, value = pair.partition("=")
            self.cookies.pop(name, None)
            if "Max-Age=0" not in attributes:
                self.cookies[name] = value

    def _is_providers(self, url: str) -> bool:
        return url.startswith(f"{self.account.provider.base_url}/")


def create_account(provider: ServerProcess) -> Account:
    """An account with a name and a pod of its own."""
    name = f"person{next(_numbers)}"
    sent = {"name": name, "email": f"{name}@example.org", "password": PASSWORD}
    answer = provider.request("POST", "/.pods", json.dumps(sent), _JSON)
    assert answer.status == 201, answer.text
    made = json.loads(answer.body)
    return Account(provider, name, made["webId"], made["podUri"])


def answered(url: str) -> dict[str, str]:
    """What the provider answered, by the address at the application."""
    return {name: value for name, [value] in parse_qs(urlsplit(url).query).items()}

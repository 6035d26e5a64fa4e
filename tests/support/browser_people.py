"""People with accounts who use a real browser, and an application that they sign in to."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlencode

from playwright.sync_api import Page

from tests.support.client import Client
from tests.support.server import ServerProcess

PASSWORD = "a few words in a row"
CHECK = """() => axe.run(document, {resultTypes: ["violations"]}).then(found =>
    found.violations.map(each => ({
        rule: each.id, help: each.help, where: each.nodes.map(node => node.html),
    })))"""
"""What axe finds on a page."""
ON_THE_WEB = "https://notes.example/back"
"""A redirect URI on the web, where the others of these tests are on this device."""
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with an account."""

    name: str
    web_id: str

    @property
    def email(self) -> str:
        return f"{self.name}@example.org"


class ApplicationPage(BaseHTTPRequestHandler):
    """The application's page: its title says that the person is back, its text with what."""

    def do_GET(self) -> None:
        self._answer(self.path)

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self._answer(self.rfile.read(length).decode())

    def _answer(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        shown = text.replace("&", "&amp;").replace("<", "&lt;")
        self.wfile.write(f"<!doctype html><title>Back</title><p>{shown}</p>".encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


def new_person(provider: ServerProcess) -> Person:
    """Make an account with a pod."""
    name = f"person{next(_numbers)}"
    sent = {"name": name, "email": f"{name}@example.org", "password": PASSWORD}
    with Client(provider) as client:
        answer = client.request(
            "POST", "/.pods", json.dumps(sent), {"Content-Type": "application/json"}
        )
    assert answer.status == 201, answer.text
    return Person(name, json.loads(answer.body)["webId"])


def allow(page: Page) -> None:
    """Allow the application on the page that asks, as it does for one on this device."""
    page.get_by_role("button", name="Allow", exact=True).click()


@dataclass(frozen=True, slots=True)
class App:
    """An application that has registered itself."""

    provider: ServerProcess
    redirect_uri: str
    client_id: str

    def request(self, **changes: str) -> str:
        """Where the application sends a browser."""
        challenge = hashlib.sha256(b"v" * 43).digest()
        parameters = {
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "response_type": "code",
            "scope": "openid webid offline_access",
            "state": "the-state",
            "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        } | changes
        return f"{self.provider.base_url}/idp/auth?{urlencode(parameters)}"

    def signing_out(self) -> str:
        """Where the application sends a browser that is to be signed out, without an ID token."""
        parameters = {
            "client_id": self.client_id,
            "post_logout_redirect_uri": self.redirect_uri,
        }
        return f"{self.provider.base_url}/idp/session/end?{urlencode(parameters)}"


def sign_in(page: Page, provider: ServerProcess, person: Person) -> None:
    """Sign in without an application; the account page shows."""
    page.goto(f"{provider.base_url}/idp/login")
    page.get_by_label("E-mail address or pod name").fill(person.name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/idp/account")

"""A browser with cookies, which asks a server process for its pages."""

from __future__ import annotations

import re
import urllib.error
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar

from tests.support.client import Pod

FORM = "application/x-www-form-urlencoded"


class WebBrowser:
    """A browser with cookies, on connections of their own."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        cookies = urllib.request.HTTPCookieProcessor(CookieJar())
        self._opener = urllib.request.build_opener(cookies)

    def at(self, base_url: str) -> WebBrowser:
        """The same browser at another node."""
        other = WebBrowser(base_url)
        other._opener = self._opener
        return other

    def ask(self, path: str, **fields: str) -> tuple[int, str]:
        """The status and the page; a form is sent if there are fields."""
        body = urllib.parse.urlencode(fields).encode() if fields else None
        headers = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin", "Content-Type": FORM}
        request = urllib.request.Request(self._base_url + path, body, headers)
        try:
            with self._opener.open(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()


def signed_in(base_url: str, pod: Pod) -> WebBrowser:
    browser = WebBrowser(base_url)
    status, _page = browser.ask("/.pages/sign-in", token=pod.token)
    assert status == 200
    return browser


def token_of(page: str) -> str:
    found = re.search(r'data-csrf-token="([0-9a-f]+)"', page)
    assert found is not None, page
    return found[1]

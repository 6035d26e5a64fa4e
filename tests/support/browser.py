"""A browser without scripts, in this process: it keeps cookies, follows links and sends forms.

It says where its requests come from, as browsers do, and minds what a page's policy lets a form do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlencode, urljoin, urlsplit

from podstead.web.application import Application
from tests.support.asgi import Answer, Client

HTML = "text/html,application/xhtml+xml,*/*;q=0.8"
FORM = "application/x-www-form-urlencoded"
_MAX_REDIRECTS = 10


@dataclass(frozen=True)
class Form:
    """A form of a page, filled in as the page has it."""

    method: str
    action: str
    fields: Mapping[str, str]
    buttons: Sequence[str]
    repeated: Sequence[tuple[str, str]]
    """Further hidden fields with a name that occurs before."""


@dataclass(frozen=True)
class Page:
    """What the browser shows."""

    url: str
    answer: Answer

    @property
    def status(self) -> int:
        return self.answer.status

    @property
    def path(self) -> str:
        """Without the query."""
        return urlsplit(self.url).path

    @property
    def text(self) -> str:
        return self.answer.text

    @property
    def forms(self) -> list[Form]:
        return _Forms(self.text).forms

    def form(self, action: str) -> Form:
        """The form that goes to an action, or the first to one that begins with it."""
        forms = self.forms
        found = [each for each in forms if action in (each.action, each.action.partition("?")[0])]
        found += [each for each in forms if each.action.startswith(action)]
        assert found, f"no form for {action} on {self.url}: {self.text}"
        return found[0]


@dataclass
class Browser:
    """One browser, with its cookies by name, and the path for which it got each."""

    application: Application
    base_url: str = "http://localhost:3000"
    cookies: dict[str, str] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    peer: str = "127.0.0.1"
    user_agent: str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

    async def get(self, url: str, **headers: str) -> Page:
        """Open an address and follow where it leads, as far as this server answers."""
        return await self.go("GET", url, headers={"Sec-Fetch-Site": "none", **_named(headers)})

    async def send(self, page: Page, action: str, **typed: str) -> Page:
        """Send the form of a page that goes to ``action``, with what a person typed."""
        form = page.form(action)
        assert form.method == "post"
        fields = [*{**form.fields, **typed}.items(), *form.repeated]
        return await self.post(urljoin(page.url, form.action), fields)

    async def post(
        self, url: str, fields: Mapping[str, str] | Sequence[tuple[str, str]], **headers: str
    ) -> Page:
        """Send a form as a page of this server does."""
        sent = {
            "Sec-Fetch-Site": "same-origin",
            "Origin": self.base_url,
            "Content-Type": FORM,
            **_named(headers),
        }
        return await self.go("POST", url, headers=sent, body=urlencode(fields).encode())

    async def go(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None = None
    ) -> Page:
        """Ask, and follow redirects until a page, or an address of somebody else."""
        target = urljoin(self.base_url + "/", url)
        answer = await self.ask(method, target, headers=headers, body=body)
        for _ in range(_MAX_REDIRECTS):
            location = answer.header("location")
            if answer.status != 303 or location is None:
                return Page(target, answer)
            target = urljoin(target, location)
            if not self._is_ours(target):
                return Page(target, answer)
            answer = await self.ask("GET", target, headers={"Sec-Fetch-Site": "same-origin"})
        raise AssertionError(f"redirected in a circle: {target}")

    async def ask(
        self, method: str, url: str, *, headers: Mapping[str, str] = {}, body: bytes | None = None
    ) -> Answer:
        """One request with this browser's cookies, and one answer."""
        parts = urlsplit(urljoin(self.base_url + "/", url))
        fields = {"Accept": HTML, "User-Agent": self.user_agent, **headers}
        if cookies := self._cookies_for(parts.path):
            fields["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
        client = Client(self.application, host=urlsplit(self.base_url).netloc)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        answer = await client.request(method, target, headers=fields, body=body, peer=self.peer)
        self._keep_cookies(answer)
        return answer

    def _cookies_for(self, path: str) -> Mapping[str, str]:
        """Those whose path matches (RFC 6265 section 5.1.4)."""
        return {
            name: value
            for name, value in self.cookies.items()
            if f"{path}/".startswith(self.paths.get(name, "/").rstrip("/") + "/")
        }

    def _keep_cookies(self, answer: Answer) -> None:
        for line in answer.header_lines("set-cookie"):
            pair, *attributes = line.split("; ")
            name, _, value = pair.partition("=")
            if "Max-Age=0" in attributes:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
                paths = [each for each in attributes if each.startswith("Path=")]
                self.paths[name] = paths[0].removeprefix("Path=")

    def _is_ours(self, url: str) -> bool:
        return url.startswith(f"{self.base_url}/")


class _Forms(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._open: tuple[str, str, dict[str, str], list[str], list[tuple[str, str]]] | None = None
        self._area: str | None = None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = (named.get("method", "get").lower(), named.get("action", ""), {}, [], [])
        elif self._open is not None and tag == "input":
            ticked = named.get("type") not in ("checkbox", "radio") or "checked" in named
            if ticked and "name" in named:
                name, value = named["name"], named.get("value", "")
                if name in self._open[2]:
                    self._open[4].append((name, value))
                else:
                    self._open[2][name] = value
        elif self._open is not None and tag == "textarea":
            self._area = named.get("name", "")
            self._open[2][self._area] = ""
        elif self._open is not None and tag == "button":
            self._open[3].append(named.get("name", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._open is not None and self._area is not None:
            # The first line end is none of the text, and each is sent as CR LF.
            text = self._open[2][self._area].removeprefix("\n")
            self._open[2][self._area] = text.replace("\n", "\r\n")
            self._area = None
        if tag == "form" and self._open is not None:
            self.forms.append(Form(*self._open))
            self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is not None and self._area is not None:
            self._open[2][self._area] += data


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}

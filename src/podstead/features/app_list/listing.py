"""The list of the operator, and what the page about applications shows of it."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from podstead.core.errors import StartRefused
from podstead.features import WorkerFeature
from podstead.web.pages.request import Person

MAX_APPS: Final = 50
MAX_BYTES: Final = 500_000
_URL = re.compile(r"(https://[^\s/?#@\\]+|http://localhost(:[0-9]+)?)([/?#]\S*)?")
_PARAMETER = re.compile(r"[A-Za-z0-9_.-]{1,40}")
_MOST: Final = {"name": 60, "url": 2_000, "description": 200}
"""The keys that each application has, with how many characters their values may have."""
_PARAMETERS: Final = ("provider-parameter", "webid-parameter")


@dataclass(frozen=True, slots=True)
class ListedApp:
    """An application. The parameters are those of its query that take the address of the person's
    identity provider and the WebID."""

    name: str
    url: str
    description: str
    provider_parameter: str | None
    webid_parameter: str | None

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def address(self, web_id: str, provider: str | None) -> str:
        """Where it opens for a person."""
        given = {self.provider_parameter: provider, self.webid_parameter: web_id}
        query = urlencode({key: value for key, value in given.items() if key and value})
        parts = urlsplit(self.url)
        joined = "&".join(each for each in (parts.query, query) if each)
        return parts._replace(query=joined).geturl()


@cache  # workers that start later have the list that the server was started with
def read_list(path: Path) -> Sequence[ListedApp]:
    """The applications in a file. Raises StartRefused."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES} bytes")
        return _parsed(tomllib.loads(content.decode()))
    except OSError as error:
        raise StartRefused(f"Cannot read apps {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise StartRefused(f"apps {path} is not UTF-8 text.") from error
    except tomllib.TOMLDecodeError as error:
        raise StartRefused(f"apps {path} is not valid TOML: {error}.") from error
    except ValueError as error:
        raise StartRefused(f"apps {path} cannot be used: {error}.") from error


def _parsed(content: Mapping[str, object]) -> Sequence[ListedApp]:
    entries = content.get("app", [])
    are_tables = isinstance(entries, list) and all(isinstance(each, dict) for each in entries)
    if content.keys() - {"app"} or not isinstance(entries, list) or not are_tables:
        raise ValueError("it must contain tables [[app]] and nothing else")
    if len(entries) > MAX_APPS:
        raise ValueError(f"it has more than {MAX_APPS} applications")
    return tuple(_app(entry, f"application {at}") for at, entry in enumerate(entries, 1))


def _app(entry: Mapping[str, Any], which: str) -> ListedApp:
    for key in entry.keys() - {*_MOST, *_PARAMETERS}:
        known = ", ".join((*_MOST, *_PARAMETERS))
        raise ValueError(f"{which} has the key '{key}', which is none of {known}")
    for key, most in _MOST.items():
        if key not in entry:
            raise ValueError(f"{which} has no {key}")
        value = entry[key]
        text = value.strip() if isinstance(value, str) else ""
        if text != value or not text.isprintable() or not 0 < len(text) <= most:
            raise ValueError(f"{key} of {which} must be one line of at most {most} characters")
    for key in _PARAMETERS:
        if not _PARAMETER.fullmatch(str(entry.get(key, "none"))):
            raise ValueError(f"{key} of {which} must be 1 to 40 letters, digits, '_', '.' and '-'")
    if not _URL.fullmatch(entry["url"]) or not _is_parsed(entry["url"]):
        raise ValueError(f"url of {which} must begin with https://, or with http://localhost")
    return ListedApp(*(entry[key] for key in _MOST), *(entry.get(key) for key in _PARAMETERS))


def _is_parsed(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class AppListSection:
    """Shows the applications, with the address at which each opens for the person."""

    apps: Sequence[ListedApp]
    issuer: str
    """The identity provider of accounts of this server."""
    template: str = "app_list/section.html"

    def facts(self, person: Person) -> Mapping[str, Any]:
        provider = self.issuer if person.session else person.identity.issuer
        return {
            "listed_apps": [(each, each.address(person.web_id, provider)) for each in self.apps]
        }


class AppListInWorker(WorkerFeature):
    """The feature in one worker."""

    def __init__(self, apps: Sequence[ListedApp], issuer: str) -> None:
        self.apps_section = AppListSection(apps, issuer)

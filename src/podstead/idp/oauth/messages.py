"""How does the library see a request, and what does it answer with?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from authlib.oauth2.rfc6749 import OAuth2Payload, OAuth2Request

Parameters = Mapping[str, Sequence[str]]
"""The parameters of a query or form: every value of each name."""


@dataclass(frozen=True, slots=True)
class OAuthAnswer:
    """A JSON answer of a protocol endpoint."""

    status: int
    body: Mapping[str, object]
    headers: Sequence[tuple[str, str]] = ()


class _Payload(OAuth2Payload):
    def __init__(self, parameters: Parameters) -> None:
        self._first = {name: values[0] for name, values in parameters.items()}
        self._all = {name: list(values) for name, values in parameters.items()}

    @property
    def data(self) -> dict[str, str]:
        return self._first

    @property
    def datalist(self) -> dict[str, list[str]]:
        return self._all


class LibraryRequest(OAuth2Request):
    """A request as the library reads it.

    Whether plain http may be used is decided for the whole server, so the library sees no
    address of ours.
    """

    def __init__(self, method: str, parameters: Parameters) -> None:
        super().__init__(method, "https://provider.invalid/")
        self.payload = _Payload(parameters)

    @property
    def form(self) -> dict[str, str]:
        data: dict[str, str] = self.payload.data
        return data

    @property
    def args(self) -> dict[str, str]:
        return self.form


def repeated(parameters: Parameters) -> str | None:
    """A parameter that is given more than once, which no request may (RFC 6749 section 3.1)."""
    return next((name for name, values in parameters.items() if len(values) > 1), None)


@dataclass(frozen=True, slots=True)
class LibraryAnswer:
    """What the library answers, before it is one of ours."""

    status: int
    body: Any
    headers: list[tuple[str, str]] = field(default_factory=list)

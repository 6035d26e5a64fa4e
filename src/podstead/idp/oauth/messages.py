"""Requests and responses in the form that the library expects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from authlib.oauth2.rfc6749 import OAuth2Payload, OAuth2Request

Parameters = Mapping[str, Sequence[str]]
"""The parameters of a query or a form: all values of each name."""


@dataclass(frozen=True, slots=True)
class OAuthAnswer:
    """A JSON response of a protocol endpoint."""

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
    """A request in the form that the library expects.

    Whether plain http may be used is decided for the whole server, so the library never sees the
    server's URL.
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
    """A parameter that occurs more than once, which is not allowed (RFC 6749 section 3.1)."""
    return next((name for name, values in parameters.items() if len(values) > 1), None)


@dataclass(frozen=True, slots=True)
class LibraryAnswer:
    """A response of the library, before it is converted."""

    status: int
    body: Any
    headers: list[tuple[str, str]] = field(default_factory=list)

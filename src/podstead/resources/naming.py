"""Names new members after their Slug if that name is free, otherwise randomly (C-3 to C-5)."""

from __future__ import annotations

from podstead.core.clock import Randomness
from podstead.core.header_fields import proposed_name
from podstead.core.identifiers import ResourcePath
from podstead.core.operation import Operation

_RANDOM_BYTES = 16


class NameProposal:
    """The URL to try for a POST, until one is found that is free."""

    def __init__(
        self,
        operation: Operation,
        *,
        wants_container: bool,
        randomness: Randomness,
    ) -> None:
        """Raises AccessDenied for a Slug that names an auxiliary resource (C-5), and BadRequest for
        a Slug longer than ``max_slug_bytes``."""
        self._container = operation.target
        self._slash = "/" if wants_container else ""
        self._slug = proposed_name(operation.slug, wants_container=wants_container)
        self._randomness = randomness
        self._name = self._slug or self._random() + self._slash

    def path(self) -> ResourcePath:
        """The member URL to try."""
        return ResourcePath(self._container + self._name)

    def propose_another(self) -> None:
        """Propose another name: the slug with a random prefix, which keeps its file extension."""
        ending = self._slash if self._slug is None else f"-{self._slug}"
        self._name = self._random() + ending

    def _random(self) -> str:
        hexadecimal = self._randomness.token_hex(_RANDOM_BYTES)
        parts = (hexadecimal[:8], hexadecimal[8:12], hexadecimal[12:16], hexadecimal[16:20])
        return "-".join((*parts, hexadecimal[20:]))

"""May anyone create a pod, and an account with it? (A-96, A-181)"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.core.errors import AccessDenied
from podstead.web.limits import PodCreationLimit


class RegistrationClosed(AccessDenied):
    """Only the operator creates the pods of this server (A-96)."""

    known_text = "Registration disabled"

    def __init__(self) -> None:
        super().__init__(
            "Registration is disabled: only the operator of this server creates pods and accounts"
        )


@dataclass(frozen=True, slots=True)
class Registration:
    """Whether anyone may register, and how often."""

    is_open: bool
    limit: PodCreationLimit

    def check_open(self) -> None:
        """Raises RegistrationClosed."""
        if not self.is_open:
            raise RegistrationClosed

    async def count(self, address: str) -> None:
        """Count one attempt from an address. Raises RateLimited, StorageError."""
        await self.limit.count(address)

"""Data roots of servers with the usual settings and the two pods, which are made once for all tests
of a process, and copied for each.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from podstead.app.adapters.keys import ensure_token_key
from podstead.config import Settings
from podstead.core.clock import Clock
from podstead.storage.keys import KeyFiles
from podstead.storage.root import prepare_root
from tests.support.application import BASE, Owners, new_pods, running
from tests.support.clock import FakeClock


@dataclass(frozen=True)
class UsualRoots:
    """For servers with and without accounts, by the clock of the system and by that of tests."""

    made: Mapping[tuple[bool, bool], tuple[Path, Owners]]

    @classmethod
    def make(cls, folder: Path) -> Self:
        """Make them in an empty folder, between tests: what a test replaces is not in them."""
        made: dict[tuple[bool, bool], tuple[Path, Owners]] = {}
        for idp in (False, True):
            for clock in (None, FakeClock()):
                root = folder / str(len(made))
                made[idp, clock is None] = root, asyncio.run(_fill(root, clock, idp=idp))
        return cls(made)

    def copy(self, settings: Settings, clock: Clock | None, changes: Mapping[str, Any]) -> Owners:
        """Prepare a root that does not exist; the owners of its pods, of whom there are none if its
        server has other settings than usual."""
        is_usual = changes.keys() <= {"idp"} and clock in (None, FakeClock())
        if is_usual and settings.bodies is None and not settings.root.exists():
            root, owners = self.made[settings.idp, clock is None]
            shutil.copytree(root, settings.root)
            return owners
        ensure_token_key(KeyFiles(prepare_root(settings.root).keys))
        return {}


async def _fill(root: Path, clock: Clock | None, *, idp: bool) -> Owners:
    settings = usual_settings(root, idp=idp)
    ensure_token_key(KeyFiles(prepare_root(root).keys))
    async with running(settings, clock=clock) as application:
        return await new_pods(application)


def usual_settings(root: Path, **others: Any) -> Settings:  # noqa: ANN401 - any of the settings
    return Settings(root=root, base_url=BASE, pod_creations_per_hour=0, workers=1, **others)

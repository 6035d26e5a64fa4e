"""Which engine, and which store of large bodies, does the test that runs now use?

That is chosen for a whole run, by ``TEST_ENGINE=postgresql`` and ``TEST_BODIES=s3``. A test that is
about one of them keeps it: those that look into a data root are marked ``embedded``, and so are
those that set the engine of each server themselves.
"""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass
class EngineChoice:
    """Without either, records are in SQLite and large bodies in files, as by default."""

    on_postgresql: bool = False
    with_s3: bool = False

    def choose(self, *, is_embedded: bool) -> None:
        """Use what the run has chosen, or the embedded default, from now on."""
        self.on_postgresql = not is_embedded and os.environ.get("TEST_ENGINE") == "postgresql"
        self.with_s3 = not is_embedded and os.environ.get("TEST_BODIES") == "s3"


CHOICE = EngineChoice()

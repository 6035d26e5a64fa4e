"""What every check of a data root gets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from podstead.app.operator.backup import OnStep
from podstead.app.operator.checking.repairs import Repairs
from podstead.config import Settings
from podstead.core.identifiers import ResourcePath
from podstead.storage.inspection import Inspection
from podstead.storage.layout import RootLayout
from podstead.storage.protocol import Store


@dataclass(frozen=True, slots=True)
class CheckContext:
    """A data root as of one moment, and the means to look at it again and to repair it."""

    settings: Settings
    layout: RootLayout
    store: Store
    records: Inspection
    base_url: str
    repairs: Repairs
    on_step: OnStep
    is_quick: bool
    damaged: set[ResourcePath] = field(default_factory=set)
    """The resources whose bodies were found to be damaged or missing."""

    @contextmanager
    def look_again(self) -> Iterator[Inspection]:
        """The records as of now."""
        with closing(self.store.inspect()) as records:
            yield records

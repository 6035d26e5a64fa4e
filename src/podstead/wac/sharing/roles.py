"""Maps combinations of modes to the roles that people know them by.

Pure. A role adds nothing to the modes: rules that grant another combination are shown with the
modes that they grant (``Role.OTHER``), never rounded to the nearest role.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from podstead.wac.modes import ALL_MODES, Mode, Modes, with_entailed


class Role(Enum):
    """What somebody can do with a resource, from little to much."""

    VIEW = "view"
    ADD = "add"
    EDIT = "edit"
    MANAGE = "manage"
    OTHER = "other"
    """Any other combination of modes, such as Append alone."""


ROLE_MODES: Final[Mapping[Role, Modes]] = MappingProxyType(
    {
        Role.VIEW: frozenset({Mode.READ}),
        Role.ADD: frozenset({Mode.READ, Mode.APPEND}),
        Role.EDIT: frozenset({Mode.READ, Mode.APPEND, Mode.WRITE}),
        Role.MANAGE: ALL_MODES,
    }
)
"""The modes of each role, with the entailed ones."""

_BY_MODES: Final = {modes: role for role, modes in ROLE_MODES.items()}


def role_of(modes: Modes) -> Role | None:
    """The role that amounts to exactly these modes; ``None`` if there are none."""
    held = with_entailed(modes)
    return _BY_MODES.get(held, Role.OTHER) if held else None

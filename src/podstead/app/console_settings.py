"""How does the console describe the settings? Row by row of the table, without secrets."""

from __future__ import annotations

from collections.abc import Sequence

from podstead.config import Settings
from podstead.config.settings import TABLE
from podstead.config.table import Group
from podstead.web.idp.console.settings_page import SettingGroup, ShownSetting


def shown_settings(settings: Settings) -> Sequence[SettingGroup]:
    """All settings with their values and sources."""
    sources = dict(settings.set_by)
    groups = []
    for group in Group:
        shown = [
            ShownSetting(
                name=row.name,
                value=None if row.secret else _text(getattr(settings, row.field)),
                source=sources.get(row.field, ""),
                meaning=row.meaning,
            )
            for row in TABLE
            if row.group is group
        ]
        if shown:
            groups.append(SettingGroup(group.value, shown))
    return groups


def _text(value: object) -> str:
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value)

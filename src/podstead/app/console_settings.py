"""How does the console describe the settings? Row by row of the table, without secrets."""

from __future__ import annotations

from collections.abc import Sequence

from podstead.config import Settings
from podstead.config.settings import settings_table
from podstead.config.table import groups_of
from podstead.web.idp.console.settings_page import SettingGroup, ShownSetting


def shown_settings(settings: Settings) -> Sequence[SettingGroup]:
    """All settings with their values and sources."""
    sources = dict(settings.set_by)
    groups = []
    for group in groups_of(settings_table()):
        shown = [
            ShownSetting(
                name=row.name,
                value=None if row.secret else _text(settings.value(row)),
                source=sources.get(row.field, ""),
                meaning=row.meaning,
            )
            for row in settings_table()
            if row.group == group
        ]
        groups.append(SettingGroup(group, shown))
    return groups


def _text(value: object) -> str:
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value)

"""Reads the settings from four sources into one table, and validates them once.

The table (``settings/``) is the only place that defines the names, defaults and meanings.
The options of ``podstead start``, the environment variables, the keys of the TOML file, the
messages and the reference page all come from it.
"""

from podstead.config.settings import Settings
from podstead.config.sources import read_settings, unknown_variables
from podstead.core.errors import StartRefused

__all__ = ["Settings", "StartRefused", "read_settings", "unknown_variables"]

"""What did the operator choose? One table of settings, read from four sources, validated once.

The table (``settings/``) is the only place that knows a setting's name, default and meaning; the
options of ``podstead start``, the variables of the environment, the keys of the TOML file, the
messages and the reference page are made from it.
"""

from podstead.config.errors import StartRefused
from podstead.config.settings import Settings
from podstead.config.sources import read_settings

__all__ = ["Settings", "StartRefused", "read_settings"]

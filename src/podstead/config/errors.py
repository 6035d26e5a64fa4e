"""The error that stops the server before it runs."""

from __future__ import annotations

from podstead.core.errors import PodsteadError


class StartRefused(PodsteadError):
    """The operator must change something first: a setting, the port or the data root.

    ``str()`` is a message that says what is wrong and how to correct it. The command exits with
    code 2.
    """

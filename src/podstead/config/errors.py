"""What stops the server before it runs?"""

from __future__ import annotations

from podstead.core.errors import PodsteadError


class StartRefused(PodsteadError):
    """The operator has to change something first: a setting, the port, the data folder.

    ``str()`` is one sentence saying what is wrong and what to do instead. The command line ends
    with exit code 2.
    """

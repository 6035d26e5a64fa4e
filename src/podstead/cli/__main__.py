"""``python -m podstead.cli`` is the command ``podstead``."""

from podstead.cli.commands import main

main()

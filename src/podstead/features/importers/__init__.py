"""Imports what other Solid servers and file systems have stored: ``podstead import``."""

from podstead.features import Feature


class ImportersFeature(Feature):
    """The command; a server has nothing of it."""

    commands = {"import": "podstead.features.importers.command:import_"}


FEATURE = ImportersFeature()

"""Watches resources of any Solid server, as its client: ``podstead watch``."""

from podstead.features import Feature


class WatchFeature(Feature):
    """The command; a server has nothing of it."""

    commands = {"watch": "podstead.features.watch.command:watch"}


FEATURE = WatchFeature()

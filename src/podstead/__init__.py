"""Podstead: a Solid pod server."""

__version__ = "0.1.0"

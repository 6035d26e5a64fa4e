"""Errors in signed events."""

from __future__ import annotations


class InvalidEvent(Exception):
    """The event is not valid for its purpose; the message is public and contains no client data."""

"""What goes wrong with signed events."""

from __future__ import annotations


class InvalidEvent(Exception):
    """The event does not prove what it should; the text is public and repeats nothing sent."""

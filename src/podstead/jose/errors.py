"""What can be wrong with a token, a key or a proof?"""

from __future__ import annotations


class InvalidJose(Exception):
    """A token, key or proof is not acceptable; ``str()`` is a fixed public phrase (A-186)."""

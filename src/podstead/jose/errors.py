"""Errors in tokens, keys and proofs."""

from __future__ import annotations


class InvalidJose(Exception):
    """A token, key or proof is not acceptable; ``str()`` is a fixed public message (A-186)."""

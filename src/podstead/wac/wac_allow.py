"""Serializes the ``WAC-Allow`` header.

Web Access Control, section 6.1 "wac-allow HTTP Header"; sent with every response to GET and HEAD
(W-50). It lists the modes on that resource alone: Write is listed even if the rules of the parent
forbid a DELETE (W-56).
"""

from __future__ import annotations

from functools import lru_cache

from podstead.wac.modes import Mode, Modes


@lru_cache(maxsize=256)  # every pair of sets of four modes
def wac_allow(user: Modes, public: Modes) -> str:
    """The header value: both groups, even if empty, modes in one fixed order (W-51, W-52).

    ``user`` are the modes of the requesting agent, the public ones included. Both sets include
    entailed modes, so Append is listed with Write (W-54).
    """
    return f'user="{_listed(user)}",public="{_listed(public)}"'


def _listed(modes: Modes) -> str:
    return " ".join(mode for mode in Mode if mode in modes)

"""What does ``WAC-Allow`` say? The header text for the modes that are held on a resource.

Web Access Control, section 6.1 "wac-allow HTTP Header"; sent on every answer to GET and HEAD
(W-50). The modes are those on that resource alone: a DELETE that the parent forbids takes nothing
away (W-56).
"""

from __future__ import annotations

from functools import lru_cache

from podstead.wac.modes import Mode, Modes


@lru_cache(maxsize=256)  # every pair of sets of four modes
def wac_allow(user: Modes, public: Modes) -> str:
    """The header value: both groups, even if empty, modes in one fixed order (W-51, W-52).

    ``user`` are the modes of the requesting agent, the public ones included. Both are complete,
    so Append stands beside Write (W-54).
    """
    return f'user="{_listed(user)}",public="{_listed(public)}"'


def _listed(modes: Modes) -> str:
    return " ".join(mode for mode in Mode if mode in modes)

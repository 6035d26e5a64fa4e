"""The challenges that Nostr events sign where their URL alone is not unique (A-126).

The URL of an event for an interaction contains the interaction's uid, which serves as a challenge.
Everywhere else the event needs a ``challenge`` tag with one of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from podstead.idp.challenges import Challenges, IssuedChallenge
from podstead.idp.records import NOSTR_CHALLENGES
from podstead.nostr.http_auth import KIND
from podstead.storage.record_store import RecordStore

CHALLENGE_S: Final = 120
"""How long a person may take to sign; the event itself is valid for a shorter time (A-143)."""

LINKING: Final = "link"
SIGNING_IN: Final = "sign-in"


def nostr_challenges(records: RecordStore) -> Challenges:
    """The challenges of this kind."""
    return Challenges(NOSTR_CHALLENGES, lifetime_s=CHALLENGE_S, records=records)


def described(issued: IssuedChallenge, *, url: str) -> Mapping[str, object]:
    """What the event must contain; ``url`` is where to send it."""
    return {
        "challenge": issued.challenge_key,
        "u": url,
        "method": "POST",
        "kind": KIND,
        "expires_in": CHALLENGE_S,
    }

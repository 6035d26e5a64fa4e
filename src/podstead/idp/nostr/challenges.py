"""What does an event sign where its address alone tells nothing new? Challenges of Nostr (A-126).

Where an event is for an interaction, its address holds the interaction's uid, which is a challenge
already. Everywhere else the event needs a ``challenge`` tag with one of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from podstead.idp.challenges import Challenges, Issued
from podstead.idp.records import NOSTR_CHALLENGES
from podstead.nostr.http_auth import KIND
from podstead.storage.record_store import RecordStore

CHALLENGE_S: Final = 120
"""How long a person may take to sign; the event itself counts for less (A-143)."""

LINKING: Final = "link"
SIGNING_IN: Final = "sign-in"


def nostr_challenges(records: RecordStore) -> Challenges:
    """The challenges of this kind."""
    return Challenges(NOSTR_CHALLENGES, lifetime_s=CHALLENGE_S, records=records)


def described(issued: Issued, *, url: str) -> Mapping[str, object]:
    """What the event that answers must say; ``url`` is where it is to be sent."""
    return {
        "challenge": issued.challenge_key,
        "u": url,
        "method": "POST",
        "kind": KIND,
        "expires_in": CHALLENGE_S,
    }

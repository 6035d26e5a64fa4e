"""How are the services for the Nostr keys of accounts built?"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.app.accounts import AccountServices
from podstead.app.adapters.profile_patches import AccountProfiles
from podstead.authn.event_uses import EventUses
from podstead.idp.challenges import Challenges
from podstead.idp.nostr.allowed_keys import AllowedKeys
from podstead.idp.nostr.challenges import nostr_challenges
from podstead.idp.nostr.events import SignedEvents
from podstead.idp.nostr.key_owners import KeyOwners
from podstead.idp.nostr.linked import LinkedWebIds
from podstead.idp.nostr.links import NostrLinks
from podstead.idp.nostr.profile_keys import ProfileKeys
from podstead.idp.nostr.proven_keys import ProvenKeys
from podstead.idp.nostr.sign_in import NostrSignIn
from podstead.rdf.parser import RdfParser
from podstead.resources.service import ResourceService


@dataclass(frozen=True, slots=True)
class NostrServices:
    """The services for keys, if the server accepts signed events."""

    links: NostrLinks
    stated: ProfileKeys
    allowed: AllowedKeys
    linked: LinkedWebIds
    challenges: Challenges
    events: SignedEvents
    sign_in: NostrSignIn
    proven: ProvenKeys


def build_nostr(
    base_url: str,
    *,
    accounts: AccountServices,
    resources: ResourceService,
    parse: RdfParser,
    uses: EventUses,
) -> NostrServices:
    """The services of one worker."""
    records = accounts.records
    links = NostrLinks(
        records=records,
        profiles=AccountProfiles(base_url=base_url, resources=resources),
        audit=accounts.audit,
    )
    stated = ProfileKeys(
        base_url=base_url, records=records, accounts=accounts.accounts, parse=parse
    )
    allowed = AllowedKeys(records=records, stated=stated, audit=accounts.audit)
    challenges = nostr_challenges(records)
    return NostrServices(
        links=links,
        stated=stated,
        linked=LinkedWebIds(KeyOwners(links=links, stated=stated, accounts=accounts.accounts)),
        challenges=challenges,
        events=SignedEvents(uses=uses, challenges=challenges, clock=records.clock),
        allowed=allowed,
        sign_in=NostrSignIn(
            links=links,
            allowed=allowed,
            accounts=accounts.accounts,
            records=records,
            audit=accounts.audit,
        ),
        proven=ProvenKeys(records=records, audit=accounts.audit),
    )

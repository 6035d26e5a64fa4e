"""How do the parts fit together that know the Nostr keys of accounts?"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.app.accounts import AccountServices
from podstead.app.adapters.profile_patches import AccountProfiles
from podstead.authn.event_uses import EventUses
from podstead.core.clock import Clock, Randomness
from podstead.idp.challenges import Challenges
from podstead.idp.nostr.allowed_keys import AllowedKeys
from podstead.idp.nostr.challenges import nostr_challenges
from podstead.idp.nostr.events import SignedEvents
from podstead.idp.nostr.finding import KeyOwners
from podstead.idp.nostr.linked import LinkedWebIds
from podstead.idp.nostr.links import NostrLinks
from podstead.idp.nostr.profile_keys import ProfileKeys
from podstead.idp.nostr.proven_keys import ProvenKeys
from podstead.idp.nostr.sign_in import NostrSignIn
from podstead.rdf.parser import RdfParser
from podstead.resources.service import ResourceService
from podstead.storage.protocol import Store


@dataclass(frozen=True, slots=True)
class NostrServices:
    """What knows keys, where signed events are accepted."""

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
    store: Store,
    resources: ResourceService,
    parse: RdfParser,
    uses: EventUses,
    clock: Clock,
    randomness: Randomness,
) -> NostrServices:
    """The services of one worker."""
    links = NostrLinks(
        store=store,
        profiles=AccountProfiles(base_url=base_url, resources=resources),
        audit=accounts.audit,
        clock=clock,
        randomness=randomness,
    )
    stated = ProfileKeys(
        base_url=base_url, store=store, accounts=accounts.accounts, parse=parse, clock=clock
    )
    allowed = AllowedKeys(
        store=store, stated=stated, audit=accounts.audit, clock=clock, randomness=randomness
    )
    challenges = nostr_challenges(store, clock=clock, randomness=randomness)
    return NostrServices(
        links=links,
        stated=stated,
        linked=LinkedWebIds(KeyOwners(links=links, stated=stated, accounts=accounts.accounts)),
        challenges=challenges,
        events=SignedEvents(uses=uses, challenges=challenges, clock=clock),
        allowed=allowed,
        sign_in=NostrSignIn(
            links=links, allowed=allowed, accounts=accounts.accounts, audit=accounts.audit
        ),
        proven=ProvenKeys(store=store, audit=accounts.audit, clock=clock, randomness=randomness),
    )

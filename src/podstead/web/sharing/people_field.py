"""The field in which people say whom they mean, with its suggestions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podstead.core.errors import Conflict, NotAuthenticated, RateLimited
from podstead.core.identity import Identity
from podstead.resources.sharing import people as sharing_people
from podstead.wac.sharing.rules import Grantee, GranteeKind, agent
from podstead.web.codes import WebCodes
from podstead.web.forms import FormSubmission
from podstead.web.pages.formats import name_sort_key
from podstead.web.pages.request import PageRequest
from podstead.web.pages.texts import _
from podstead.web.sharing.views import Names

if TYPE_CHECKING:
    from podstead.web.sharing.share_page import SharingSection


class SeveralFound(Conflict):
    """The typed name means more than one."""

    code = WebCodes.SEVERAL_FOUND

    def __init__(self, found: Sequence[Grantee]) -> None:
        super().__init__()
        self.found = found


NOT_FOUND = (sharing_people.NobodyFound, sharing_people.UnusableIri, RateLimited, SeveralFound)
"""Why the field means nobody."""


@dataclass(frozen=True, slots=True)
class PeopleField:
    """Finds whom people mean, and suggests whom they know."""

    people: sharing_people.PeopleDirectory
    known: sharing_people.KnownPeople
    sections: Sequence[SharingSection]
    """Whose agents, such as links, are none that people share with by name."""

    async def meant(self, page: PageRequest, sent: FormSubmission) -> Grantee:
        """Whom the person means by what they typed as ``who``, or have chosen among several.
        Raises NobodyFound, UnusableIri, RateLimited, SeveralFound."""
        identity, typed = identity_of(page), sent.text("who").strip()
        wanted = typed.casefold()
        # Whoever gives a contact its name must not make an address mean somebody else.
        is_address = "://" in typed or typed.startswith("did:")
        found = {
            each.grantee
            for each in await self.known.named(identity, page.signed_in().pods)
            if wanted
            and (each.grantee.iri == typed if is_address else each.name.casefold() == wanted)
        }
        try:
            if "://" not in typed or not found:
                found.add(agent(await self.people.find(identity, typed)))
        except (sharing_people.NobodyFound, sharing_people.UnusableIri):
            if not found:
                raise
        except RateLimited as error:
            if not found:
                raise RateLimited(
                    WebCodes.TOO_MANY_LOOKED_UP, retry_after_s=error.retry_after_s
                ) from error
        # A choice counts for the name that it was offered for.
        chosen = [
            each
            for each in found
            if " ".join(sharing_people.by_address(each)) == sent.text("choice")
        ]
        if len(chosen or found) > 1:
            raise SeveralFound(sorted(found, key=sharing_people.by_address))
        return (chosen or list(found))[0]

    async def suggested(self, page: PageRequest) -> Sequence[sharing_people.Known]:
        """Whom the person may mean. Raises ServerTrouble."""
        known = await self.known.suggested(identity_of(page), page.signed_in().pods)
        return [
            each
            for each in known
            if not any(section.shows(each.grantee.iri) for section in self.sections)
        ]


def offered(known: Sequence[sharing_people.Known], names: Names) -> Sequence[tuple[str, str]]:
    """What the field offers: what it means, and what is said beside it. Who has no name of their
    own, or shares it with another, is meant by their address."""
    called = [(each, names.grantee(each.grantee)) for each in known]
    count = Counter(name.casefold() for _each, name in called)
    by_name = name_sort_key()
    found = []
    for each, name in sorted(
        called, key=lambda pair: (by_name(pair[1]), sharing_people.by_address(pair[0].grantee))
    ):
        is_group = each.grantee.kind is GranteeKind.GROUP
        is_unique = count[name.casefold()] == 1
        means_it = bool(each.name) or (not is_group and names.is_here(each.grantee.iri))
        if is_unique and means_it:
            found.append((name, _("Group") if is_group else ""))
        elif not is_group:
            found.append((each.grantee.iri, name))
    return found


def identity_of(page: PageRequest) -> Identity:
    """The identity of whoever is signed in. Raises NotAuthenticated."""
    identity = page.identity
    if identity is None:
        raise NotAuthenticated(WebCodes.SIGN_IN_FIRST)
    return identity

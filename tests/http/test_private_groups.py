"""Nobody learns who is a member of a private group by naming it in access rules of their own."""

from __future__ import annotations

from tests.support.application import BASE, Server
from tests.support.asgi import Answer

GROUP = "/alice/private/team"
PROBE = "/bob/private/probe"
MEMBERS = "<#a> <http://www.w3.org/2006/vcard/ns#hasMember> <{}>."


async def probed(server: Server) -> Answer:
    """What Bob gets of his own document, which he may read as a member of Alice's group only."""
    assert (await server.bob.put(PROBE, "text", "text/plain")).status in {201, 204}
    rules = f"""
        @prefix acl: <http://www.w3.org/ns/auth/acl#>.
        [] a acl:Authorization; acl:agent <{server.bob_web_id}>; acl:accessTo <{BASE}{PROBE}>;
            acl:mode acl:Write, acl:Control.
        [] a acl:Authorization; acl:agentGroup <{BASE}{GROUP}#a>; acl:accessTo <{BASE}{PROBE}>;
            acl:mode acl:Read.
    """
    assert (await server.bob.put(f"{PROBE}.acl", rules, "text/turtle")).status in {201, 204}
    return await server.bob.get(PROBE)


async def is_member(server: Server, *, listed: bool) -> None:
    text = MEMBERS.format(server.bob_web_id if listed else "https://nobody.example/#me")
    assert (await server.alice.put(GROUP, text, "text/turtle")).status in {201, 204}


def described(answer: Answer) -> tuple[int, list[tuple[str, str]], bytes]:
    return answer.status, [line for line in answer.headers if line[0] != "date"], answer.body


async def test_membership_of_a_private_group_does_not_show_to_who_names_it(server: Server) -> None:
    answers = []
    for listed in (True, False):
        await is_member(server, listed=listed)
        answers.append(described(await probed(server)))
    assert answers[0] == answers[1]
    assert answers[0][0] == 403


async def test_a_group_that_its_owner_shares_with_the_owner_of_the_rules_applies(
    server: Server,
) -> None:
    await is_member(server, listed=True)
    shared = ("acl:agentClass foaf:Agent", "Read")
    assert (await server.put_acl(GROUP, shared)).status == 201
    assert (await probed(server)).status == 200
    only_bob = (f"acl:agent <{server.bob_web_id}>", "Read")
    await server.put_acl(GROUP, only_bob)
    assert (await server.bob.get(PROBE)).status == 200
    await server.put_acl(GROUP)
    assert (await server.bob.get(PROBE)).status == 403

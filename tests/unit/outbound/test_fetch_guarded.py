"""What a fetch never reaches, seen from the peer: refused means no connection (A-187 to A-190)."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address

import pytest

from podstead.outbound.errors import (
    BadStatus,
    Refusal,
    Refused,
    Unreachable,
)
from podstead.outbound.urls import IPAddress, parse_origin
from tests.support.peer import (
    AUTHORITY_FILE,
    FOLLOWING,
    PATIENT,
    Deployment,
    Peer,
    ScriptedResolver,
    answer,
    redirect,
)

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "url",
    [
        "https://localhost:{port}/",
        "https://a.localhost:{port}/",
        "https://127.0.0.1:{port}/",
        "https://[::1]:{port}/",
        "https://[::ffff:127.0.0.1]:{port}/",
        "https://[::ffff:7f00:1]:{port}/",
        "https://[::127.0.0.1]:{port}/",
        "https://[64:ff9b::7f00:1]:{port}/",
        "https://[2002:7f00:1::]:{port}/",
        "https://0.0.0.0:{port}/",
        "https://0x7f.1:{port}/",
        "https://0x7f000001:{port}/",
        "https://2130706433:{port}/",
        "https://017700000001:{port}/",
        "https://127.1:{port}/",
        "https://\uff11\uff12\uff17.0.0.1:{port}/",
        "https://localhost.:{port}/",
        "https://private.example:{port}/",
        "https://mixed.example:{port}/",
        "https://mapped.example:{port}/",
        "https://pod.example@127.0.0.1:{port}/",
        "https://pod.example\\@127.0.0.1:{port}/",
        "http://127.0.0.1:{port}/",
    ],
)
async def test_a_strict_deployment_never_connects_to_this_machine(
    deployment: Deployment, peer: Peer, url: str
) -> None:
    """A-187, A-190."""
    names = ScriptedResolver(
        {
            "private.example": [["127.0.0.1"]],
            "mixed.example": [["8.8.8.8", "127.0.0.1"]],
            "mapped.example": [["::ffff:127.0.0.1"]],
        }
    )
    fetcher = deployment.fetcher(loopback=False, names=names)
    with pytest.raises(Refused):
        await fetcher.fetch(url.format(port=peer.port), PATIENT)
    assert peer.connections == 0


@pytest.mark.parametrize(
    "location",
    [
        "https://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "https://192.168.0.1/",
        "http://0x7f.1:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://rebound.example:{port}/",
        "https://rebound.example:{port}/",
        "//user@localhost:{port}/",
        "\\\\localhost:{port}/",
        "https:localhost:{port}/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://localhost:{port}/\x85",
    ],
)
async def test_a_redirect_to_a_forbidden_place_is_not_followed(
    deployment: Deployment, peer: Peer, other_peer: Peer, location: str
) -> None:
    """A-189: A-187 is run again per hop."""
    peer.replies["/"] = redirect(location.format(port=other_peer.port))
    fetcher = deployment.fetcher(names=ScriptedResolver({"rebound.example": [["127.0.0.1"]]}))
    with pytest.raises(Refused):
        await fetcher.fetch(peer.url(), FOLLOWING)
    assert (peer.connections, other_peer.connections) == (1, 0)


async def test_a_name_that_changes_its_address_after_the_check_stays_pinned(
    deployment: Deployment, peer: Peer
) -> None:
    """A-187, rebinding: the name is looked up once per hop and never again."""
    trap = Peer("127.0.0.2")
    await trap.start(peer.port)
    try:
        peer.replies["/"] = answer()
        names = ScriptedResolver({"rebinding.example": [["127.0.0.1"], ["127.0.0.2"]]})
        origin = f"http://rebinding.example:{peer.port}"
        fetcher = deployment.fetcher(
            loopback=False, names=names, private_origins=frozenset({parse_origin(origin)})
        )
        await fetcher.fetch(f"{origin}/", PATIENT)
        assert names.asked == ["rebinding.example"]
        assert (peer.connections, trap.connections) == (1, 0)
    finally:
        await trap.stop()


async def test_a_name_that_is_rebound_between_two_fetches_is_refused(
    deployment: Deployment, peer: Peer
) -> None:
    """A-187: every fetch checks anew; no connection is kept from an earlier check."""
    peer.replies["/"] = answer()
    origin = f"http://rebinding.example:{peer.port}"
    fetcher = deployment.fetcher(
        loopback=False,
        names=ScriptedResolver({"rebinding.example": [["127.0.0.1"], ["169.254.169.254"]]}),
        private_origins=frozenset({parse_origin(origin)}),
    )
    await fetcher.fetch(f"{origin}/", PATIENT)
    with pytest.raises(Refused):
        await fetcher.fetch(f"{origin}/", PATIENT)
    assert peer.connections == 1


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "me.localhost"])
async def test_the_own_origin_is_never_fetched(
    deployment: Deployment, peer: Peer, host: str
) -> None:
    """A-190: in any mode."""
    own = frozenset({parse_origin(peer.url("", host="localhost"))})
    with pytest.raises(Refused) as caught:
        await deployment.fetcher(own_origins=own).fetch(peer.url(host=host), PATIENT)
    assert caught.value.refusal is Refusal.OWN_ORIGIN
    assert peer.connections == 0


@pytest.mark.parametrize("host", ["localhost", "idp.localhost", "127.0.0.1"])
async def test_a_loopback_deployment_reaches_stub_servers(
    deployment: Deployment, peer: Peer, host: str
) -> None:
    """A-190: the other side of the refusals."""
    peer.replies["/"] = answer()
    document = await deployment.fetcher().fetch(peer.url(host=host), PATIENT)
    assert document.final_url == peer.url(host=host)


async def test_an_origin_outside_a_policys_list_gets_no_request(
    deployment: Deployment, peer: Peer, other_peer: Peer
) -> None:
    """R-11: only origins listed by the operator, on every hop."""
    peer.replies["/"] = redirect(other_peer.url())
    listed = replace(FOLLOWING, only_origins=frozenset({parse_origin(peer.url(""))}))
    fetcher = deployment.fetcher()
    for url in (other_peer.url(), peer.url()):
        with pytest.raises(Refused) as caught:
            await fetcher.fetch(url, listed)
        assert caught.value.refusal is Refusal.ORIGIN_NOT_LISTED
    assert (peer.connections, other_peer.connections) == (1, 0)


def _ip(text: str) -> IPAddress:
    return ip_address(text)


# TLS


async def test_a_peer_with_a_certificate_of_the_extra_bundle_is_trusted(
    deployment: Deployment, secure_peer: Peer
) -> None:
    """A-190, extra CA bundle."""
    secure_peer.replies["/"] = answer()
    fetcher = deployment.fetcher(extra_ca_file=AUTHORITY_FILE)
    document = await fetcher.fetch(secure_peer.url(), PATIENT)
    assert document.final_url == secure_peer.url()


async def test_a_peer_with_an_unknown_authority_gets_no_request(
    deployment: Deployment, secure_peer: Peer
) -> None:
    """A-187, normal certificate verification."""
    secure_peer.replies["/"] = answer()
    with pytest.raises(Unreachable):
        await deployment.fetcher().fetch(secure_peer.url(), PATIENT)
    assert secure_peer.requests == []


async def test_a_peer_with_a_certificate_for_another_name_gets_no_request(
    deployment: Deployment, secure_peer: Peer
) -> None:
    """A-187: the name in the URL is the one verified, although the address is pinned."""
    secure_peer.replies["/"] = answer()
    fetcher = deployment.fetcher(extra_ca_file=AUTHORITY_FILE)
    with pytest.raises(Unreachable):
        await fetcher.fetch(secure_peer.url(host="other.localhost"), PATIENT)
    assert secure_peer.requests == []


async def test_a_redirect_from_https_to_http_is_refused(
    deployment: Deployment, secure_peer: Peer, peer: Peer
) -> None:
    """A-189: never, although both ends would be allowed alone."""
    secure_peer.replies["/"] = redirect(peer.url())
    fetcher = deployment.fetcher(extra_ca_file=AUTHORITY_FILE)
    with pytest.raises(Refused) as caught:
        await fetcher.fetch(secure_peer.url(), FOLLOWING)
    assert caught.value.refusal is Refusal.REDIRECT
    assert peer.connections == 0


async def test_a_redirect_from_http_to_https_is_followed(
    deployment: Deployment, secure_peer: Peer, peer: Peer
) -> None:
    """A-189: the other side."""
    peer.replies["/"] = redirect(secure_peer.url())
    secure_peer.replies["/"] = answer()
    fetcher = deployment.fetcher(extra_ca_file=AUTHORITY_FILE)
    assert (await fetcher.fetch(peer.url(), FOLLOWING)).final_url == secure_peer.url()


# Redirects


@pytest.mark.parametrize(
    "status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"]
)
async def test_a_redirect_is_followed_and_the_final_url_returned(
    deployment: Deployment, peer: Peer, other_peer: Peer, status: str
) -> None:
    """A-189; the final URL is the base of relative references."""
    peer.replies["/a/b"] = redirect("c#part", status)
    peer.replies["/a/c"] = redirect(other_peer.url("/d"), status)
    other_peer.replies["/d"] = answer()
    document = await deployment.fetcher().fetch(peer.url("/a/b"), FOLLOWING)
    assert document.final_url == other_peer.url("/d")


@pytest.mark.parametrize(("hops", "followed"), [(3, True), (4, False)])
async def test_the_number_of_redirects_is_limited(
    deployment: Deployment, peer: Peer, *, hops: int, followed: bool
) -> None:
    """A-189, max 3: at the limit and one past it."""
    for hop in range(hops):
        peer.replies[f"/{hop}"] = redirect(f"/{hop + 1}")
    peer.replies[f"/{hops}"] = answer()
    fetching = deployment.fetcher().fetch(peer.url("/0"), FOLLOWING)
    if followed:
        assert (await fetching).final_url == peer.url(f"/{hops}")
    else:
        with pytest.raises(Refused) as caught:
            await fetching
        assert caught.value.refusal is Refusal.REDIRECT
        assert f"/{hops}" not in [request.path for request in peer.requests]


async def test_a_policy_without_redirects_follows_none(deployment: Deployment, peer: Peer) -> None:
    """A-189: 0 for discovery, keys and DID documents."""
    peer.replies["/"] = redirect("/elsewhere")
    with pytest.raises(Refused):
        await deployment.fetcher().fetch(peer.url(), PATIENT)
    assert len(peer.requests) == 1


async def test_a_same_origin_policy_stays_in_the_origin(
    deployment: Deployment, peer: Peer, other_peer: Peer
) -> None:
    """A-189: same-origin only for client documents."""
    same_origin = replace(PATIENT, max_redirects=1)
    peer.replies["/near"] = redirect("/target")
    peer.replies["/far"] = redirect(other_peer.url("/target"))
    peer.replies["/target"] = other_peer.replies["/target"] = answer()
    fetcher = deployment.fetcher()
    assert (await fetcher.fetch(peer.url("/near"), same_origin)).final_url == peer.url("/target")
    with pytest.raises(Refused) as caught:
        await fetcher.fetch(peer.url("/far"), same_origin)
    assert caught.value.refusal is Refusal.REDIRECT
    assert other_peer.connections == 0


async def test_a_redirect_without_a_location_is_a_bad_status(
    deployment: Deployment, peer: Peer
) -> None:
    """RFC 9110 section 15.4."""
    peer.replies["/"] = answer("302 Found")
    with pytest.raises(BadStatus) as caught:
        await deployment.fetcher().fetch(peer.url(), FOLLOWING)
    assert caught.value.status == 302

"""Certificates that a reverse proxy forwards in a header field (A-171)."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from ipaddress import ip_network
from urllib.parse import quote

import pytest

from podstead.config.settings import settings_table
from podstead.features.webid_tls.presented import CertificateForm
from tests.features.webid_tls.world import (
    EXPIRED,
    NO_CERTIFICATE,
    NO_FORM,
    NO_KEY,
    PRIVATE,
    PUBLIC,
    WEB_ID,
    World,
    assert_public,
    assert_refused,
    prepared,
)
from tests.support.application import Start
from tests.support.asgi import Answer
from tests.support.certificates import Holder, key_turtle, rsa_key
from tests.support.clock import FakeClock
from tests.support.provider import Page, Provider
from tests.support.rdf import TURTLE

PROXY, STRANGER = "192.0.2.7", "192.0.2.8"
FIELD = "Client-Cert"

WRITTEN: dict[str, Callable[[Holder], str]] = {
    "rfc9440": lambda shown: f":{base64.b64encode(shown.der).decode()}:",
    "pem-urlencoded": lambda shown: quote(shown.pem, safe=""),
    "pem": lambda shown: shown.pem.replace("\n", " "),
    "base64der": lambda shown: base64.b64encode(shown.der).decode(),
}


async def behind(start: Start, clock: FakeClock, form: str = "rfc9440", **more: object) -> World:
    return await prepared(
        start,
        clock,
        trusted_proxies=(ip_network(PROXY),),
        client_cert_header=FIELD.lower(),
        client_cert_format=form,
        **more,
    )


async def passed_on(
    world: World, *values: str, peer: str = PROXY, target: str = PRIVATE, name: str = FIELD
) -> Answer:
    fields = [(name, value) for value in values]
    return await world.server.public.request("GET", target, headers=fields, peer=peer)


@pytest.mark.parametrize("form", WRITTEN)
async def test_a_trusted_proxy_passes_a_certificate_on(
    start: Start, clock: FakeClock, form: str
) -> None:
    """In each of the forms, and in no other than the one that was agreed on."""
    world = await behind(start, clock, form)
    write = WRITTEN[form]
    assert (await passed_on(world, write(world.holder()))).status == 200
    assert_refused(await passed_on(world, write(world.holder(key=rsa_key(1)))), NO_KEY)
    assert_refused(await passed_on(world, write(world.holder(ends_s=-100)), target=PUBLIC), EXPIRED)
    assert_public(await passed_on(world, write(world.holder("urn:x"))))
    others = {write(world.holder()) for other, write in WRITTEN.items() if other != form}
    if form == "pem-urlencoded":  # of which the plain forms are special cases
        others = {WRITTEN["rfc9440"](world.holder())}
    for other in others:
        assert_refused(await passed_on(world, other, target=PUBLIC), NO_FORM)


async def test_from_anybody_else_it_is_ignored_and_that_is_logged_once_in_a_while(
    start: Start, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A-12: it is not even refused, and the log does not fill up."""
    world = await behind(start, clock)
    good, bad = world.holder(), world.holder(ends_s=-1000)
    caplog.set_level(logging.WARNING, "podstead.web")
    for moved, lines in ((0, 1), (59, 1), (1, 2)):
        clock.advance(moved)
        for peer in (STRANGER, "127.0.0.1", "::1"):
            assert_public(await passed_on(world, WRITTEN["rfc9440"](good), peer=peer))
            answer = await passed_on(
                world, WRITTEN["rfc9440"](bad), "rubbish", peer=peer, target=PUBLIC
            )
            assert answer.status == 200
        assert len(caplog.records) == lines
    assert STRANGER in caplog.text
    assert good.pem.splitlines()[1] not in caplog.text


@pytest.mark.parametrize(
    "values",
    [
        ["{}", "{}"],
        ["{}, {}"],
        ["{};a=1"],
        ["({})"],
        ["x{}"],
        ["{}x"],
        [":{}"],
        ["rubbish"],
        ["::"],
        [":====:"],
        [":AAAAA:"],
    ],
)
async def test_what_is_not_in_the_right_form_is_refused(
    start: Start, clock: FakeClock, values: list[str]
) -> None:
    """A-171: nothing is skipped, and of two certificates none counts."""
    world = await behind(start, clock)
    text = WRITTEN["rfc9440"](world.holder())
    assert_refused(await passed_on(world, *(value.format(text, text) for value in values)), NO_FORM)


async def test_an_invalid_certificate_is_refused(start: Start, clock: FakeClock) -> None:
    world = await behind(start, clock)
    assert_refused(await passed_on(world, ":AAAA:"), NO_CERTIFICATE)


@pytest.mark.parametrize("form", WRITTEN)
async def test_an_empty_field_is_not_a_certificate(
    start: Start, clock: FakeClock, form: str
) -> None:
    """Proxies send it for clients that have none."""
    world = await behind(start, clock, form)
    for value in ("", " "):
        assert_public(await passed_on(world, value))


async def test_other_fields_of_proxies_say_nothing(start: Start, clock: FakeClock) -> None:
    """A-171: a check of somebody else's is no identity."""
    world = await behind(start, clock)
    written = WRITTEN["rfc9440"](world.holder())
    for name, value in (
        ("X-SSL-Client-Verify", "SUCCESS"),
        ("X-SSL-Client-S-DN", f"CN={WEB_ID}"),
        ("X-WebID", WEB_ID),
        ("Client-Cert-Chain", written),
        ("X-Client-Cert", written),
        ("Client_Cert", written),
    ):
        assert_public(await passed_on(world, value, name=name))


async def test_the_certificate_of_a_proxy_is_not_that_of_its_clients(
    start: Start, clock: FakeClock
) -> None:
    """A-2: a proxy may have one to show who it is itself."""
    world = await behind(start, clock)
    own = world.holder()
    assert_public(await world.send(own, peer=PROXY))
    assert (await world.send(own, peer=STRANGER)).status == 200
    client = world.server.public.with_certificate(own.pem)
    other = WRITTEN["rfc9440"](world.holder(key=rsa_key(1)))
    answer = await client.request("GET", PRIVATE, headers={FIELD: other}, peer=PROXY)
    assert_refused(answer, NO_KEY)
    # And who has one of their own need not mind what they send besides.
    answer = await client.request("GET", PRIVATE, headers={FIELD: other}, peer=STRANGER)
    assert answer.status == 200


async def test_a_cached_response_is_sent_to_no_other_agent(start: Start, clock: FakeClock) -> None:
    """Answers are kept by their header fields; a key may go while the store stands still."""
    world = await behind(start, clock)
    written = WRITTEN["rfc9440"](world.holder(ends_s=100))
    for _ in range(2):
        assert (await passed_on(world, written)).status == 200
        assert_public(await passed_on(world, written, peer=STRANGER))
    clock.advance(161)
    assert_refused(await passed_on(world, written), EXPIRED)


async def test_an_answer_does_not_outlast_what_another_server_said(
    start: Start, clock: FakeClock, elsewhere: Provider
) -> None:
    """A-168: nothing is committed here when a key goes there."""
    world = await behind(start, clock)
    web_id = f"{elsewhere.issuer}/carol#me"
    elsewhere.pages["/carol"] = Page(key_turtle(world.key).encode(), TURTLE)
    await world.let_in(web_id)
    written = WRITTEN["rfc9440"](world.holder(web_id))
    for _ in range(2):
        assert (await passed_on(world, written)).status == 200
    elsewhere.pages["/carol"] = Page(b"<> a <#x>.", TURTLE)
    clock.advance(300)
    assert_refused(await passed_on(world, written), NO_KEY)


async def test_requests_of_other_sites_are_the_publics_here_too(
    start: Start, clock: FakeClock
) -> None:
    """A-170."""
    world = await behind(start, clock)
    fields = {FIELD: WRITTEN["rfc9440"](world.holder()), "Origin": "https://app.example"}
    assert_public(await world.server.public.request("GET", PRIVATE, headers=fields, peer=PROXY))
    del fields["Origin"]
    answer = await world.server.public.request("GET", PRIVATE, headers=fields, peer=PROXY)
    assert answer.status == 200


async def test_a_header_decides_here_too(start: Start, clock: FakeClock) -> None:
    """A-172: what a proxy passes on is not even read then."""
    world = await behind(start, clock)
    fields = {FIELD: "rubbish", "Authorization": world.server.alice.authorization}
    answer = await world.server.public.request("GET", PRIVATE, headers=fields, peer=PROXY)
    assert answer.status == 200


def test_the_forms_are_the_ones_of_the_settings() -> None:
    row = next(row for row in settings_table() if row.name == "client-cert-format")
    assert {row.kind.parse(form.value) for form in CertificateForm} == set(WRITTEN)

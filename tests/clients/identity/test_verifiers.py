"""Other libraries verify the tokens: jose, and those of Solid servers (A-40, A-70, A-71)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients.client_home import StartClient
from tests.support.client_process import ClientFailed, ClientProcess
from tests.support.people import Account, Person, create_account
from tests.support.server import ServerProcess, run_command, running_server
from tests.support.signing import Signer, decoded, encoded, with_other_signature

ISSUER = "http://www.w3.org/ns/solid/terms#oidcIssuer"
ANYWHERE = "https://storage.example/somebodys/document"


@pytest.fixture(scope="module")
def verifiers(start_client: StartClient) -> ClientProcess:
    return start_client("verifiers.mjs")


@dataclass(frozen=True, slots=True)
class Held:
    """What an application holds for somebody."""

    account: Account
    client_id: str
    access_token: str
    id_token: str
    key: dict[str, str]


def hold(verifiers: ClientProcess, person: Person) -> Held:
    """The tokens of a script that has signed in as somebody."""
    client_id, secret = person.make_credential()
    signed_in = verifiers.run(
        "signsIn",
        issuer=person.account.provider.base_url,
        clientId=client_id,
        clientSecret=secret,
    ).value
    return Held(
        person.account, client_id, signed_in["accessToken"], signed_in["idToken"], signed_in["key"]
    )


@pytest.fixture(scope="module")
def held(verifiers: ClientProcess, provider: ServerProcess) -> Held:
    return hold(verifiers, Person(create_account(provider)))


def judge(verifiers: ClientProcess, held: Held, token: str, **given: object) -> Any:  # noqa: ANN401
    """What the verifier of other Solid servers reads in a token that it accepts."""
    return verifiers.run(
        "judges", **{"token": token, "key": held.key, "url": ANYWHERE} | given
    ).value


def verify(verifiers: ClientProcess, held: Held, token: str, type_: str | None) -> Any:  # noqa: ANN401
    """What jose reads in a token that it accepts."""
    issuer = held.account.provider.base_url
    return verifiers.run("verifies", token=token, issuer=issuer, audience="solid", type=type_).value


def test_jose_reads_every_published_key(verifiers: ClientProcess, provider: ServerProcess) -> None:
    """A-42: they are public, and named by their content."""
    keys = verifiers.run("readsKeys", issuer=provider.base_url).value
    assert {key["type"] for key in keys} == {"public"}
    assert [key["named"] for key in keys] == [key["thumbprint"] for key in keys]
    assert {"ES256", "RS256"} <= {key["algorithm"] for key in keys}


def test_jose_verifies_tokens_of_before_and_after_new_keys(
    verifiers: ClientProcess, tmp_path: Path
) -> None:
    """A-44: but for those that somebody else may have signed as well."""
    with running_server(ServerProcess(root=tmp_path / "root", options=["--idp"])) as provider:
        person = Person(create_account(provider))
        before = hold(verifiers, person)
        replace_keys(provider)
        after = hold(verifiers, person)
        for held in (before, after):
            verify(verifiers, held, held.access_token, "at+jwt")
        replace_keys(provider, "--compromised")
        safe = hold(verifiers, person)
        verify(verifiers, safe, safe.access_token, "at+jwt")
        for held in (before, after):
            with pytest.raises(ClientFailed, match="no applicable key"):
                verify(verifiers, held, held.access_token, "at+jwt")


def replace_keys(provider: ServerProcess, *options: str) -> None:
    """By the command line; a restart spares waiting for the server to look again."""
    done = run_command("keys", "rotate", *options, "--root", str(provider.root))
    assert done.returncode == 0, done.stderr
    provider.restart()


def test_jose_verifies_access_tokens(verifiers: ClientProcess, held: Held) -> None:
    """A-70."""
    read = verify(verifiers, held, held.access_token, "at+jwt")
    assert read["header"]["alg"] == "RS256"
    claims = read["claims"]
    assert claims["webid"] == held.account.web_id
    assert claims["client_id"] == claims["azp"] == held.client_id
    assert claims["aud"] == "solid"
    assert claims["exp"] - claims["iat"] == 3600
    assert claims["cnf"] == {"jkt": verifiers.run("thumbprint", key=held.key).value}
    assert "email" not in claims


def test_jose_verifies_id_tokens(verifiers: ClientProcess, held: Held) -> None:
    """A-71."""
    claims = verify(verifiers, held, held.id_token, None)["claims"]
    assert claims["webid"] == held.account.web_id
    assert claims["aud"] == [held.client_id, "solid"]
    assert claims["azp"] == held.client_id
    assert claims["cnf"] == {"jkt": verifiers.run("thumbprint", key=held.key).value}


@pytest.mark.parametrize("kind", ["access_token", "id_token"])
def test_another_solid_server_accepts_our_tokens(
    verifiers: ClientProcess, held: Held, kind: str
) -> None:
    """A-40, A-74: it asks the WebID's document, here, which issuers it trusts, and the keys."""
    read = judge(verifiers, held, getattr(held, kind))
    assert read["webid"] == held.account.web_id
    assert read["iss"] == held.account.provider.base_url
    assert read["client_id" if kind == "access_token" else "azp"] == held.client_id


@pytest.mark.parametrize("kind", ["access_token", "id_token"])
def test_another_solid_server_refuses_what_we_did_not_sign(
    verifiers: ClientProcess, held: Held, kind: str
) -> None:
    """A signature that is off by a bit, claims of somebody else, and a key that is not ours."""
    token = getattr(held, kind)
    header, claims, signature = token.split(".")
    other = decoded(claims) | {"exp": decoded(claims)["exp"] + 1}
    for forged in (
        with_other_signature(token),
        f"{header}.{encoded(other)}.{signature}",
        Signer.new("RS256").sign(decoded(header), decoded(claims)),
    ):
        with pytest.raises(ClientFailed, match="signature"):
            judge(verifiers, held, forged)


def test_another_solid_server_refuses_our_token_with_a_proof_of_somebody_else(
    verifiers: ClientProcess, held: Held
) -> None:
    """A-106: ``cnf`` binds it to the key."""
    thief = dataclasses.replace(held, key=verifiers.run("makesAKey").value)
    with pytest.raises(ClientFailed, match="thumbprint"):
        judge(verifiers, thief, held.access_token)


def test_another_solid_server_refuses_our_token_where_the_profile_does_not_name_us(
    verifiers: ClientProcess, person: Person
) -> None:
    """A-98, A-109: what a new profile says is what the others were accepted for."""
    held = hold(verifiers, person)
    judge(verifiers, held, held.access_token)
    change = (
        f"DELETE DATA {{ <{held.account.web_id}> <{ISSUER}> <{held.account.provider.base_url}> }}"
    )
    with person.account.owner() as owner:
        sent = {"Content-Type": "application/sparql-update"}
        assert owner.request("PATCH", f"/{held.account.name}/", change, sent).status == 204
    with pytest.raises(ClientFailed, match="trusted OIDC issuers"):
        judge(verifiers, held, held.access_token)

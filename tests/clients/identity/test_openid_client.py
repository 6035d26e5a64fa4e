"""openid-client: a certified client of OpenID Connect and OAuth, which knows nothing of Solid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.clients.client_home import StartClient
from tests.support.client_process import ClientFailed, ClientProcess
from tests.support.people import Person, answered

APPLICATION = "http://localhost:9/back"
SIGNED_OUT = "http://localhost:9/signed-out"
ALL = "openid webid offline_access profile email"


@pytest.fixture(scope="module")
def openid(start_client: StartClient) -> ClientProcess:
    return start_client("openid-client.mjs")


def register(
    openid: ClientProcess, person: Person, name: str = "app", metadata: Mapping[str, object] = {}
) -> dict[str, Any]:
    """What provider and application say of each other."""
    told: dict[str, Any] = openid.run(
        "registers",
        name=own(person, name),
        issuer=person.account.provider.base_url,
        metadata={
            "client_name": "Field Notes",
            "redirect_uris": [APPLICATION],
            "grant_types": ["authorization_code", "refresh_token"],
            **metadata,
        },
    ).value
    return told


def own(person: Person, name: str) -> str:
    """An application's name, such that tests have their own."""
    return f"{person.account.name} {name}"


def ask(
    openid: ClientProcess,
    person: Person,
    name: str = "app",
    *,
    binds_code: bool = False,
    parameters: Mapping[str, str] = {},
) -> str:
    """Where the application sends the person."""
    url = openid.run(
        "asks",
        name=own(person, name),
        redirectUri=APPLICATION,
        bindsCode=binds_code,
        parameters={"scope": ALL, "prompt": "consent", **parameters},
    ).value
    assert isinstance(url, str)
    return url


def do(openid: ClientProcess, behaviour: str, person: Person, **given: object) -> Any:  # noqa: ANN401
    return openid.run(behaviour, **{"name": own(person, "app")} | given).value


def sign_in(openid: ClientProcess, person: Person, **metadata: object) -> Any:  # noqa: ANN401 - JSON
    """The tokens of an application that has registered."""
    register(openid, person, metadata=metadata)
    url = person.connect(ask(openid, person))
    return do(openid, "takes", person, url=url)


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post", "none"])
def test_an_application_signs_somebody_in(
    openid: ClientProcess, person: Person, method: str
) -> None:
    """A-62: by each way to prove itself; with PKCE, a nonce, a proof, and the issuer it asked."""
    told = register(openid, person, metadata={"token_endpoint_auth_method": method})
    assert told["server"]["authorization_response_iss_parameter_supported"], "and so checked"
    assert told["server"]["issuer"] == person.account.provider.base_url
    assert ("client_secret" in told["client"]) == (method != "none")
    back = person.connect(ask(openid, person, binds_code=True, parameters={"max_age": "60"}))
    tokens = do(openid, "takes", person, url=back, maxAge=60)
    assert tokens["type"] == "dpop"
    assert tokens["expiresInS"] == 3600
    assert set(tokens["scope"].split()) == set(ALL.split())
    assert tokens["claims"]["webid"] == person.account.web_id
    assert tokens["claims"]["aud"] == [told["client"]["client_id"], "solid"]
    url = person.account.pod_url + "private/"
    assert do(openid, "gets", person, url=url) == 200


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_id_tokens_are_signed_as_the_application_wants(
    openid: ClientProcess, person: Person, algorithm: str
) -> None:
    """A-47: the library refuses any other algorithm than the one that it registered."""
    tokens = sign_in(openid, person, id_token_signed_response_alg=algorithm)
    assert tokens["claims"]["webid"] == person.account.web_id


def test_the_answer_comes_by_a_form(openid: ClientProcess, person: Person) -> None:
    """OAuth 2.0 Form Post Response Mode."""
    register(openid, person)
    page = person.sign_in(
        person.open(ask(openid, person, parameters={"response_mode": "form_post"}))
    )
    page = person.allow(page)
    [form] = [each for each in page.forms if each.action == APPLICATION]
    tokens = do(openid, "takes", person, url=APPLICATION, form=dict(form.fields))
    assert tokens["claims"]["webid"] == person.account.web_id


def test_a_code_is_useless_without_the_key_it_was_requested_with(
    openid: ClientProcess, person: Person
) -> None:
    """A-53: RFC 9449 section 10."""
    register(openid, person)
    back = person.connect(ask(openid, person, binds_code=True))
    do(openid, "losesItsKey", person)
    with pytest.raises(ClientFailed, match="invalid_grant"):
        do(openid, "takes", person, url=back)


def test_a_code_that_comes_twice_ends_what_came_of_it(
    openid: ClientProcess, person: Person
) -> None:
    """A-64."""
    register(openid, person)
    back = person.connect(ask(openid, person))
    tokens = do(openid, "takes", person, url=back)
    url = person.account.pod_url + "private/"
    assert do(openid, "gets", person, url=url) == 200
    with pytest.raises(ClientFailed, match="invalid_grant"):
        do(openid, "takes", person, url=back)
    assert do(openid, "gets", person, url=url) == 401
    with pytest.raises(ClientFailed, match="invalid_grant"):
        do(openid, "refreshes", person, refreshToken=tokens["refreshToken"])


def test_tokens_are_refreshed(openid: ClientProcess, person: Person) -> None:
    """A-66: with a new refresh token, and an ID token about the same sign-in."""
    first = sign_in(openid, person, token_endpoint_auth_method="none")
    second = do(openid, "refreshes", person, refreshToken=first["refreshToken"])
    assert second["refreshToken"] != first["refreshToken"]
    assert second["claims"]["sub"] == first["claims"]["sub"]
    assert second["claims"]["auth_time"] == first["claims"]["auth_time"]
    assert do(openid, "gets", person, url=person.account.pod_url + "private/") == 200


def test_a_refresh_token_is_of_no_use_without_its_key(
    openid: ClientProcess, person: Person
) -> None:
    """A-66: where nothing else tells a public client from a thief."""
    tokens = sign_in(openid, person, token_endpoint_auth_method="none")
    do(openid, "losesItsKey", person)
    with pytest.raises(ClientFailed, match="invalid_grant"):
        do(openid, "refreshes", person, refreshToken=tokens["refreshToken"])


def test_an_access_token_is_revoked(openid: ClientProcess, person: Person) -> None:
    """A-83: resources refuse it, and the provider says so."""
    tokens = sign_in(openid, person)
    url = person.account.pod_url + "private/"
    assert do(openid, "gets", person, url=url) == 200
    assert do(openid, "introspects", person, token=tokens["accessToken"])["active"]
    do(openid, "revokes", person, token=tokens["accessToken"])
    assert do(openid, "gets", person, url=url) == 401
    assert do(openid, "introspects", person, token=tokens["accessToken"]) == {"active": False}


def test_a_refresh_token_is_revoked(openid: ClientProcess, person: Person) -> None:
    tokens = sign_in(openid, person)
    do(openid, "revokes", person, token=tokens["refreshToken"])
    with pytest.raises(ClientFailed, match="invalid_grant"):
        do(openid, "refreshes", person, refreshToken=tokens["refreshToken"])


def test_the_provider_tells_an_application_about_its_own_tokens(
    openid: ClientProcess, person: Person
) -> None:
    """A-83: and nobody else."""
    tokens = sign_in(openid, person)
    told = do(openid, "introspects", person, token=tokens["accessToken"])
    assert told["active"]
    assert told["webid"] == person.account.web_id
    assert told["iss"] == person.account.provider.base_url
    register(openid, person, name="other")
    other = own(person, "other")
    asked = openid.run("introspects", name=other, token=tokens["accessToken"]).value
    assert asked == {"active": False}
    openid.run("revokes", name=other, token=tokens["accessToken"])
    assert do(openid, "gets", person, url=person.account.pod_url + "private/") == 200


def test_an_application_can_ask_for_its_identity(openid: ClientProcess, person: Person) -> None:
    """A-82: the library compares the subject with the ID token's."""
    tokens = sign_in(openid, person)
    told = do(openid, "asksWhoItIs", person)
    assert told["sub"] == tokens["claims"]["sub"]
    assert told["webid"] == person.account.web_id
    assert told["email"] == person.account.email


def test_an_application_ends_the_session_at_the_provider(
    openid: ClientProcess, person: Person
) -> None:
    """A-84: with its ID token at once, and back where it registered to be."""
    sign_in(openid, person, post_logout_redirect_uris=[SIGNED_OUT])
    after = {"post_logout_redirect_uri": SIGNED_OUT, "state": "of mine"}
    url = do(openid, "signsOut", person, parameters=after)
    assert person.open(url).url == f"{SIGNED_OUT}?state=of+mine"
    assert person.open(f"{person.account.provider.base_url}/idp/account").path == "/idp/login"


def test_an_application_asks_without_a_page(openid: ClientProcess, person: Person) -> None:
    """A-55: it gets a code only while its person is signed in, and for itself."""
    register(openid, person)
    quiet = {"prompt": "none", "scope": "openid webid"}
    back = person.go_on(person.open(ask(openid, person, parameters=quiet)))
    with pytest.raises(ClientFailed, match="login_required"):
        do(openid, "takes", person, url=back)
    person.connect(ask(openid, person))
    back = person.open(ask(openid, person, parameters=quiet)).url
    assert do(openid, "takes", person, url=back)["claims"]["webid"] == person.account.web_id
    register(openid, person, name="other")
    refused = person.open(ask(openid, person, name="other", parameters=quiet))
    assert answered(person.go_on(refused))["error"] == "consent_required"


def test_a_script_signs_in(openid: ClientProcess, person: Person) -> None:
    """A-67: with an ID token if it wants one."""
    client_id, secret = person.make_credential()
    tokens = do(
        openid,
        "signsIn",
        person,
        issuer=person.account.provider.base_url,
        clientId=client_id,
        clientSecret=secret,
        scope="openid webid",
    )
    assert tokens["refreshToken"] is None
    assert tokens["claims"]["webid"] == person.account.web_id
    assert do(openid, "gets", person, url=person.account.pod_url + "private/") == 200

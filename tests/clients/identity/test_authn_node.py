"""@inrupt/solid-client-authn-node, by which applications on servers and scripts sign in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.clients.client_home import StartClient
from tests.support.client_process import ClientFailed, ClientProcess
from tests.support.people import Person, answered
from tests.support.server import ServerProcess, run_command
from tests.support.signing import Json, decoded
from tests.support.websites import Website, client_document

APPLICATION = "http://localhost:9/signed-in"
"""Where nobody listens: the test brings the person back."""
SIGNED_OUT = "http://localhost:9/signed-out"
NOTE = "<> a <#note>."


@pytest.fixture(scope="module")
def authn(start_client: StartClient) -> ClientProcess:
    return start_client("authn-node.mjs")


def begin(authn: ClientProcess, person: Person, **options: str) -> str:
    """Where the application sends the person; its session has the name of their account."""
    return sent_to(
        authn,
        "begins",
        person,
        oidcIssuer=person.account.provider.base_url,
        redirectUrl=APPLICATION,
        **({"clientName": "Field Notes"} | options),
    )


def sent_to(authn: ClientProcess, behaviour: str, person: Person, **options: str) -> str:
    url = authn.run(behaviour, name=person.account.name, **options).value
    assert isinstance(url, str)
    return url


def sign_in(authn: ClientProcess, person: Person, **options: str) -> Any:  # noqa: ANN401 - JSON
    """The session that the person has afterwards."""
    came_back = person.connect(begin(authn, person, **options))
    return authn.run("comesBack", name=person.account.name, url=came_back).value


def writes_and_reads(authn: ClientProcess, person: Person) -> bool:
    """Whether the session may do in the pod what the public may not."""
    account = person.account
    url = f"{account.pod_url}private/{account.name}-note"
    assert account.provider.get(f"/{account.name}/private/{account.name}-note").status == 401
    status = authn.run("puts", name=account.name, url=url, body=NOTE).value
    if status == 401:
        return False
    assert status in {201, 204}
    assert authn.run("gets", name=account.name, url=url).value == {"status": 200, "text": NOTE}
    return True


def header(token: str) -> Json:
    return decoded(token.split(".", maxsplit=1)[0])


def claims(token: str) -> Json:
    return decoded(token.split(".")[1])


def test_an_application_registers_itself_and_signs_somebody_in(
    authn: ClientProcess, person: Person
) -> None:
    """The code flow with consent, then private documents by the session's fetch."""
    came_back = person.connect(begin(authn, person))
    assert came_back.startswith(f"{APPLICATION}?")
    assert answered(came_back)["iss"] == person.account.provider.base_url
    session = authn.run("comesBack", name=person.account.name, url=came_back).value
    assert session == {"isLoggedIn": True, "webId": person.account.web_id}
    assert writes_and_reads(authn, person)


def test_somebody_does_not_want_to(authn: ClientProcess, person: Person) -> None:
    """A-59: the application is told; the library lets nobody in."""
    page = person.sign_in(person.open(begin(authn, person)))
    came_back = person.refuse(page).url
    assert answered(came_back)["error"] == "access_denied"
    session = authn.run("comesBack", name=person.account.name, url=came_back).value
    assert session == {"isLoggedIn": False, "webId": None}


@pytest.mark.parametrize("home", ["on its own site", "in a pod"])
def test_an_application_is_known_by_its_client_id_document(
    authn: ClientProcess, person: Person, website: Website, home: str
) -> None:
    """A-51: the ID token is signed with ES256, which the library takes for granted."""
    if home == "in a pod":
        client_id = publish_in_pod(person)
    else:
        client_id = website.publish_client(f"/{person.account.name}", APPLICATION)
    assert sign_in(authn, person, clientId=client_id)["webId"] == person.account.web_id
    assert writes_and_reads(authn, person)
    tokens = authn.run("tokensAre", name=person.account.name).value
    assert header(tokens["idToken"])["alg"] == "ES256"
    assert claims(tokens["idToken"])["aud"] == [client_id, "solid"]
    assert claims(tokens["accessToken"])["client_id"] == client_id


def test_the_error_names_the_unusable_document(
    authn: ClientProcess, person: Person, website: Website
) -> None:
    """A-51: on a page, and not by the application, whose address nobody vouches for."""
    client_id = f"{website.origin}/missing"
    page = person.open(begin(authn, person, clientId=client_id))
    assert page.status == 400
    assert client_id in page.text


def publish_in_pod(person: Person) -> str:
    """A client ID document that everybody may read, in the person's own pod."""
    client_id = f"{person.account.pod_url}public/app"
    with person.account.owner() as owner:
        path = f"/{person.account.name}/public/app"
        document = client_document(client_id, APPLICATION)
        assert owner.put(path, document, "application/ld+json").status == 201
    return client_id


@pytest.mark.parametrize("made", ["on the account page", "by the operator"])
def test_a_script_signs_in_with_client_credentials(
    authn: ClientProcess, person: Person, made: str
) -> None:
    """Nobody is asked anything."""
    if made == "by the operator":
        client_id, secret = operator_makes_credentials(person)
    else:
        client_id, secret = person.make_credential()
    session = authn.run(
        "signsIn",
        name=person.account.name,
        oidcIssuer=person.account.provider.base_url,
        clientId=client_id,
        clientSecret=secret,
    ).value
    assert session == {"isLoggedIn": True, "webId": person.account.web_id}
    assert writes_and_reads(authn, person)


def operator_makes_credentials(person: Person) -> tuple[str, str]:
    """Id and secret, by the command line."""
    root = person.account.provider.root
    made = run_command("account", "credentials", person.account.name, "--json", "--root", str(root))
    assert made.returncode == 0, made.stderr
    told = json.loads(made.stdout)
    assert told["issuer"] == person.account.provider.base_url
    return told["id"], told["secret"]


def test_a_script_with_a_wrong_secret_is_nobody(authn: ClientProcess, person: Person) -> None:
    client_id, secret = person.make_credential()
    with pytest.raises(ClientFailed, match="invalid_client"):
        authn.run(
            "signsIn",
            name=person.account.name,
            oidcIssuer=person.account.provider.base_url,
            clientId=client_id,
            clientSecret=secret[:-1],
        )


def test_an_application_keeps_somebody_signed_in(authn: ClientProcess, person: Person) -> None:
    """What it has stored, its registration and a refresh token, is enough."""
    sign_in(authn, person)
    first = authn.run("tokensAre", name=person.account.name).value
    session = authn.run("isFoundAgain", name=person.account.name).value
    assert session == {"isLoggedIn": True, "webId": person.account.web_id}
    assert authn.run("tokensAre", name=person.account.name).value == first, "it tells nobody"
    assert writes_and_reads(authn, person)


def test_somebody_stays_signed_in_when_the_server_dies(
    authn: ClientProcess, person: Person, provider: ServerProcess
) -> None:
    """The access token, the refresh token, the client and the browser's session are on disk."""
    sign_in(authn, person)
    provider.kill()
    provider.start()
    assert writes_and_reads(authn, person)
    session = authn.run("isFoundAgain", name=person.account.name).value
    assert session == {"isLoggedIn": True, "webId": person.account.web_id}
    assert person.open(f"{provider.base_url}/idp/login").path == "/.pages/security"


def test_tokens_are_exchanged_for_new_ones(
    authn: ClientProcess, person: Person, website: Website
) -> None:
    """With an ID token, without which the library fails, and another refresh token."""
    client_id = website.publish_client(f"/{person.account.name}", APPLICATION)
    sign_in(authn, person, clientId=client_id)
    first = authn.run("tokensAre", name=person.account.name).value
    second = authn.run("refreshesTokens", name=person.account.name).value
    assert first["refreshToken"] != second["refreshToken"]
    assert claims(second["idToken"])["webid"] == person.account.web_id
    assert claims(second["idToken"])["iat"] >= claims(first["idToken"])["iat"]
    third = authn.run("refreshesTokens", name=person.account.name).value
    assert third["refreshToken"] not in {first["refreshToken"], second["refreshToken"]}


def test_a_refresh_token_that_comes_back_ends_all(
    authn: ClientProcess, person: Person, website: Website
) -> None:
    """One of two holders has stolen it, so neither goes on."""
    client_id = website.publish_client(f"/{person.account.name}", APPLICATION)
    sign_in(authn, person, clientId=client_id)
    name = person.account.name
    first = authn.run("tokensAre", name=name).value
    authn.run("refreshesTokens", name=name)
    with pytest.raises(ClientFailed, match="invalid_grant"):
        authn.run("refreshesTokensWith", name=name, refreshToken=first["refreshToken"])
    with pytest.raises(ClientFailed, match="invalid_grant"):
        authn.run("refreshesTokens", name=name)


def test_a_session_of_tokens_that_presents_the_id_token_gets_no_access(
    authn: ClientProcess, person: Person, website: Website
) -> None:
    """OpenID Connect Core section 2: ``Session.fromTokens`` sends the ID token to resources. The
    library has the access token and refreshes it; an application sends that one itself."""
    client_id = website.publish_client(f"/{person.account.name}", APPLICATION)
    sign_in(authn, person, clientId=client_id)
    session = authn.run("isMadeOfTokens", name=person.account.name).value
    assert session == {"isLoggedIn": True, "webId": person.account.web_id}
    assert not writes_and_reads(authn, person)


def test_an_application_forgets_somebody(authn: ClientProcess, person: Person) -> None:
    """The provider is not asked: the person is still signed in there."""
    sign_in(authn, person)
    session = authn.run("signsOutOfTheApplication", name=person.account.name).value
    assert not session["isLoggedIn"]
    assert not writes_and_reads(authn, person)
    assert person.open(f"{person.account.provider.base_url}/idp/login").path == "/.pages/security"


def test_an_application_has_the_provider_forget_somebody(
    authn: ClientProcess, person: Person, website: Website
) -> None:
    """A-84: at once, since it shows the session's ID token; and back to the application."""
    client_id = website.publish_client(
        f"/{person.account.name}", APPLICATION, post_logout_redirect_uris=[SIGNED_OUT]
    )
    sign_in(authn, person, clientId=client_id)
    end = sent_to(authn, "endsTheSessionOfTokens", person, postLogoutUrl=SIGNED_OUT)
    assert person.open(end).url == SIGNED_OUT
    assert person.open(f"{person.account.provider.base_url}/idp/account").path == "/idp/login"


def test_an_application_that_registered_no_way_back_leads_to_the_provider(
    authn: ClientProcess, person: Person
) -> None:
    """As every application that registers itself by this library."""
    sign_in(authn, person)
    end = sent_to(authn, "signsOutOfTheProvider", person, postLogoutUrl=SIGNED_OUT)
    page = person.open(end)
    assert page.path == "/idp/session/end"
    assert "signed out" in page.text
    assert person.open(f"{person.account.provider.base_url}/idp/account").path == "/idp/login"

"""A provider with one account, and clients that go through its flows without pages."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from podstead.app.adapters.provider_keys import KeyFolder
from podstead.app.adapters.system import SystemRandomness
from podstead.config import Settings
from podstead.core.errors import OutboundError
from podstead.idp.authorizations import (
    AuthorizationReply,
    Authorizations,
    InteractionRequired,
    Next,
)
from podstead.idp.clients import ClientDirectory
from podstead.idp.records import ACCOUNTS, CREDENTIALS, Account, BrowserSession, ClientCredential
from podstead.outbound.foreign_documents import FetchedDocument, Purpose
from podstead.rdf.codecs import parse
from podstead.rdf.graph import Graph
from podstead.storage.keys import KeyFiles
from podstead.storage.layout import RootLayout
from podstead.storage.record_store import RecordKind, RecordStore, secret_key
from podstead.storage.records import Record, Version, Write
from podstead.storage.sqlite import SqliteStore
from tests.support.application import BASE
from tests.support.asgi import Answer, Client
from tests.support.clock import FakeClock
from tests.support.oauth import authorization_parameters, basic
from tests.support.signing import Json, Signer, proof_claims

FORM = "application/x-www-form-urlencoded"
TOKEN_URL = f"{BASE}/idp/token"
START_MS = 1_800_000_000_000
CALLBACK = "https://app.example/callback?flow=1"
PRIVATE = "/alice/private/"


@dataclass(frozen=True)
class App:
    """A registered client, and the key it proves to have."""

    metadata: Json
    key: Signer = field(default_factory=Signer.new)
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    @property
    def client_id(self) -> str:
        return str(self.metadata["client_id"])

    @property
    def secret(self) -> str | None:
        return self.metadata.get("client_secret")

    @property
    def authorization(self) -> dict[str, str]:
        return {} if self.secret is None else basic(self.client_id, self.secret)

    def with_key(self, key: Signer) -> App:
        return replace(self, key=key)


@dataclass
class Provider:
    """The server, and what a test does with it."""

    public: Client
    store: SqliteStore
    clock: FakeClock
    account: Account
    authorizations: Authorizations
    keys: KeyFolder
    root: Path

    # --- what is stored -----------------------------------------------------------------------

    async def commit(self, *records: Record) -> None:
        await self.store.commit(
            Write(Version(secrets.token_hex(8)), self.clock.now_ms(), records=records)
        )

    async def change_account(self, **changes: Any) -> None:  # noqa: ANN401 - any of its members
        self.account = _replaced(self.account, **changes)
        account_id = self.account.account_id
        await self.commit(ACCOUNTS.put(account_id, self.account, owner=account_id))

    async def add_credential(self, secret: str, *, name: str = "script_1") -> str:
        credential = ClientCredential(
            name,
            name,
            self.account.account_id,
            self.account.web_id,
            secret_key(secret),
            self.clock.now_s(),
        )
        await self.commit(CREDENTIALS.put(name, credential, owner=self.account.account_id))
        return name

    async def count(self, records: RecordKind[Any]) -> int:
        return len(await records.page(self.store, now_ms=self.clock.now_ms()))

    # --- what applications do -----------------------------------------------------------------

    async def register(self, **metadata: object) -> App:
        answer = await self.send_registration({"redirect_uris": [CALLBACK], **metadata})
        assert answer.status == 201, answer.text
        return App(answer.json())

    async def send_registration(self, metadata: object, **headers: str) -> Answer:
        return await self.public.post(
            "/idp/reg", json.dumps(metadata), "application/json", **headers
        )

    def session(self) -> BrowserSession:
        return BrowserSession(
            account_id=self.account.account_id,
            authenticated_s=self.clock.now_s(),
            created_s=self.clock.now_s(),
            factor="password",
            csrf_token="",
            lasting=False,
            public_id="session-1",
        )

    async def begin(self, app: App, **changes: str | None) -> Next:
        """Send the authorization request of an application for the person who is signed in;
        ``None`` leaves a parameter out."""
        return await self.begin_in(self.session(), app, **changes)

    async def begin_in(
        self, session: BrowserSession | None, app: App, **changes: str | None
    ) -> Next:
        """The same in another session, or in none."""
        parameters = authorization_parameters(
            app.client_id,
            app.metadata["redirect_uris"][0],
            app.verifier,
            **{"state": "s+1 /é", **changes},
        )
        given = {name: [value] for name, value in parameters.items()}
        return await self.authorizations.begin(given, session=session, browser="browser-1")

    async def authorize(self, app: App, **changes: str | None) -> AuthorizationReply:
        """The answer to the request of an application that the person lets act for them."""
        following = await self.begin(app, **changes)
        if isinstance(following, InteractionRequired):
            pending = await self.authorizations.pending(following.uid, browser="browser-1")
            await self.authorizations.consented(pending)
            pending = await self.authorizations.pending(following.uid, browser="browser-1")
            following = await self.authorizations.proceed(pending, self.session())
        assert isinstance(following, AuthorizationReply)
        return following

    async def code(self, app: App, **changes: str | None) -> str:
        return (await self.authorize(app, **changes)).parameters["code"]

    def proof(self, key: Signer, *, method: str = "POST", url: str = TOKEN_URL) -> str:
        return key.proof(proof_claims(method, url, self.clock.now_s()))

    async def token(
        self,
        form: Mapping[str, str | None],
        *,
        key: Signer | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask the token endpoint; with a key, with a proof of having it."""
        fields = {"Content-Type": FORM, **(headers or {})}
        if key is not None:
            fields["DPoP"] = self.proof(key)
        sent = {name: value for name, value in form.items() if value is not None}
        body = urlencode(sent).encode()
        return await self.public.request("POST", "/idp/token", headers=fields, body=body)

    async def redeem(self, app: App, code: str, **changes: str | None) -> Answer:
        return await self.token(
            {
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": app.metadata["redirect_uris"][0],
                "code_verifier": app.verifier,
                "client_id": app.client_id,
                **changes,
            },
            key=app.key,
            headers=app.authorization,
        )

    async def refresh(self, app: App, refresh_token: str, **changes: str | None) -> Answer:
        return await self.token(
            {
                "grant_type": "refresh_token",
                "refresh_token": refresh_token,
                "client_id": app.client_id,
                **changes,
            },
            key=app.key,
            headers=app.authorization,
        )

    async def tokens(self, app: App, **changes: str | None) -> Json:
        """The token answer of a whole flow."""
        answer = await self.redeem(app, await self.code(app, **changes))
        assert answer.status == 200, answer.text
        body: Json = answer.json()
        return body

    async def ask(self, app: App, path: str, form: Mapping[str, str], **headers: str) -> Answer:
        """Ask another endpoint as a client."""
        fields = {"Content-Type": FORM, **app.authorization, **headers}
        body = urlencode({"client_id": app.client_id, **form}).encode()
        return await self.public.request("POST", path, headers=fields, body=body)

    async def get(self, token: str, key: Signer | None, path: str = PRIVATE) -> int:
        """The status of a GET with an access token."""
        return (await self.get_answer(token, key, path)).status

    async def get_answer(self, token: str, key: Signer | None, path: str = PRIVATE) -> Answer:
        if key is None:
            return await self.public.get(path, authorization=f"Bearer {token}")
        headers = {
            "Authorization": f"DPoP {token}",
            "DPoP": self.proof(key, method="GET", url=BASE + path),
        }
        return await self.public.request("GET", path, headers=headers)

    async def claims(self, token: str) -> Json:
        """The claims of a token whose signature holds by the published keys."""
        return (await self.verified(token))[1]

    async def verified(self, token: str) -> tuple[Json, Json]:
        """Header and claims of a token, verified without our code."""
        published = (await self.public.get("/.well-known/jwks.json")).json()["keys"]
        signed, _, signature = token.rpartition(".")
        header, claims = (json.loads(_decoded(part)) for part in signed.split("."))
        (jwk,) = [each for each in published if each["kid"] == header["kid"]]
        assert jwk["alg"] == header["alg"]
        _verify(jwk, signed.encode(), _decoded(signature))
        return header, claims


def _replaced(account: Account, **changes: Any) -> Account:  # noqa: ANN401
    members = {name: getattr(account, name) for name in account.__struct_fields__}
    return Account(**{**members, **changes})


def _verify(jwk: Json, signed: bytes, signature: bytes) -> None:
    """Raises InvalidSignature (RFC 7518 sections 3.3 and 3.4)."""
    number = {
        name: int.from_bytes(_decoded(jwk[name])) for name in ("x", "y", "n", "e") if name in jwk
    }
    if jwk["kty"] == "RSA":
        public = rsa.RSAPublicNumbers(number["e"], number["n"]).public_key()
        public.verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
        return
    point = ec.EllipticCurvePublicNumbers(number["x"], number["y"], ec.SECP256R1()).public_key()
    r, s = (int.from_bytes(half) for half in (signature[:32], signature[32:]))
    point.verify(encode_dss_signature(r, s), signed, ec.ECDSA(hashes.SHA256()))


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


class _OwnDocuments:
    """Reads client-ID documents of the server itself, as anybody may."""

    def __init__(self, public: Client) -> None:
        self._public = public

    async def origin_of(self, url: str) -> None:
        """It is not asked over the network."""

    async def fetch(self, url: str, purpose: Purpose) -> FetchedDocument:
        assert purpose is Purpose.CLIENT
        answer = await self._public.get(url.removeprefix(BASE), accept="*/*")
        if answer.status != 200:
            raise OutboundError("There is no such document")
        return FetchedDocument(answer.body, answer.header("content-type") or "", url)

    async def parse(self, content: bytes, content_type: str, base_iri: str) -> Graph:
        return parse(content, content_type, base_iri=base_iri).graph


def provider_settings(root: Path) -> Settings:
    """The settings of a provider that tests ask as often as they want."""
    return Settings(
        root=root,
        base_url=BASE,
        idp=True,
        pod_creations_per_hour=0,
        registrations_per_hour=0,
        invalid_credentials_per_minute=0,
    )


class StartProvider(Protocol):
    """Starts the provider with other settings than usual; several are workers of one root."""

    async def __call__(
        self,
        *,
        clock: FakeClock | None = None,
        **changes: Any,  # noqa: ANN401 - any of the settings
    ) -> Provider: ...


async def open_provider(
    public: Client, store: SqliteStore, clock: FakeClock, root: Path
) -> Provider:
    keys = KeyFolder(KeyFiles(RootLayout(root).keys), clock)
    accounts = await ACCOUNTS.page(store, now_ms=clock.now_ms())
    documents = _OwnDocuments(public)
    records = RecordStore(store, clock, SystemRandomness())
    authorizations = Authorizations(
        issuer=BASE,
        records=records,
        clients=ClientDirectory(
            records=records, documents=documents, parse=documents.parse, allow_http=True
        ),
        keys=keys,
    )
    return Provider(public, store, clock, accounts[0].value, authorizations, keys, root)


def assert_refused(answer: Answer, error: str, *, status: int = 400) -> None:
    """An error of RFC 6749 section 5.2: JSON, kept by nobody, readable by every page."""
    assert (answer.status, answer.json()["error"]) == (status, error), answer.text
    assert set(answer.json()) == {"error", "error_description"}
    assert answer.header("content-type") == "application/json"
    assert_not_kept(answer)
    challenges = answer.header_lines("www-authenticate")
    assert challenges == (['Basic realm="client"'] if status == 401 else [])


def assert_not_kept(answer: Answer) -> None:
    """A-45"""
    assert answer.header("cache-control") == "no-store"
    assert answer.header("x-content-type-options") == "nosniff"
    assert answer.header("referrer-policy") == "no-referrer"

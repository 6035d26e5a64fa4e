"""Which settings are there? The table itself, one field a row; units stand in the names."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from podstead.authn.pod_token import SigningKey
from podstead.config import kinds
from podstead.config.kinds import Network, Secret
from podstead.config.table import Group, Sources, optional, rows_of, setting, several
from podstead.outbound.urls import Origin

_KIB = 1024
_MIB = 1024 * _KIB
_GIB = 1024 * _MIB
_DAY_S = 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything the operator chose, validated; made by :func:`podstead.config.read_settings`."""

    # --- Server -------------------------------------------------------------------------------

    host: str = setting(
        "localhost",
        "host",
        kinds.HOST,
        Group.SERVER,
        "The name or address of this machine to listen on.",
        reason="Only this machine can connect until you decide otherwise.",
    )
    port: int = setting(
        3000,
        "port",
        kinds.integer(0, 65535),
        Group.SERVER,
        "The TCP port to listen on; 0 lets the system choose one.",
    )
    base_url: str = setting(
        "http://localhost:3000",
        "base-url",
        kinds.BASE_URL,
        Group.SERVER,
        (
            "The URL under which clients reach this server: the beginning of the name of "
            "everything stored, so do not change it once pods exist. It must be given when "
            "the host is not localhost."
        ),
        shown_default="http or https (with ssl-cert) at localhost and the port",
    )
    workers: int = setting(
        1,
        "workers",
        kinds.integer(1, 64),
        Group.SERVER,
        "How many processes answer requests.",
        unit="processes",
        reason="One serves thousands of requests a second; more pay off with free cores.",
    )
    config: Path | None = optional(
        "config",
        kinds.FILE,
        Group.SERVER,
        "A TOML file with further settings.",
        sources=Sources.OPTION | Sources.VARIABLE,
    )
    log_level: str = setting(
        "info",
        "log-level",
        kinds.one_of("debug", "info", "warning", "error"),
        Group.SERVER,
        "The least important kind of message that is logged, on standard error.",
    )
    log_format: str = setting(
        "text",
        "log-format",
        kinds.one_of("text", "json"),
        Group.SERVER,
        "How log messages are written: lines to read, or one JSON object a line.",
    )
    quiet: bool = setting(
        False,
        "quiet",
        kinds.SWITCH,
        Group.SERVER,
        "Print nothing but errors: no summary at the start, no messages below error.",
    )
    list_storages: bool = setting(
        False,
        "list-storages",
        kinds.SWITCH,
        Group.SERVER,
        "Whether /.well-known/solid names the pods of this server to everybody, up to 1,000.",
        reason="Who has a pod here is for its owner to tell.",
    )
    advertise_owners: bool = setting(
        False,
        "advertise-owners",
        kinds.SWITCH,
        Group.SERVER,
        "Whether the root of a pod links to its owner's WebID, for all who may read the root.",
        reason="An owner who closes the profile may want to stay unknown.",
    )
    registration: str = setting(
        "open",
        "registration",
        kinds.one_of("open", "closed"),
        Group.SERVER,
        (
            "Whether anybody may make a pod, and an account with it at the identity provider; if "
            "closed, the operator makes them with 'podstead account create'."
        ),
    )
    ssl_cert: Path | None = optional(
        "ssl-cert",
        kinds.FILE,
        Group.SERVER,
        (
            "The certificate chain in PEM format; given with ssl-key, the server speaks "
            "HTTPS (TLS 1.2 and later)."
        ),
    )
    ssl_key: Path | None = optional(
        "ssl-key",
        kinds.FILE,
        Group.SERVER,
        "The private key of ssl-cert in PEM format, without a password.",
    )

    ssl_check_interval_s: int = setting(
        60,
        "ssl-check-interval-s",
        kinds.integer(1, 86_400),
        Group.SERVER,
        (
            "How often the files of ssl-cert and ssl-key are looked at. A renewed certificate is "
            "used from the second look on, or at once if the server gets the signal SIGHUP."
        ),
        unit="seconds",
    )

    # --- Storage ------------------------------------------------------------------------------

    root: Path = setting(
        Path("data"),
        "root",
        kinds.FOLDER,
        Group.STORAGE,
        "The folder that holds everything stored; the first start makes it.",
        shown_default="./data",
    )
    quota_bytes: int = setting(
        0,
        "quota-bytes",
        kinds.integer(0),
        Group.STORAGE,
        "How much one pod may hold; 0 is without limit.",
        unit="bytes",
    )
    inline_body_bytes: int = setting(
        64 * _KIB,
        "inline-body-bytes",
        kinds.integer(0, _MIB),
        Group.STORAGE,
        "Bodies up to this size are kept in the database, larger ones in files.",
        unit="bytes",
        reason="A small body is written with its metadata, in one step to disk.",
    )
    change_log_days: int = setting(
        30,
        "change-log-days",
        kinds.integer(1, 36500),
        Group.STORAGE,
        "How long the log of changes is kept.",
        unit="days",
        reason="Long enough to look into what happened last month.",
    )
    rendering_cache_bytes: int = setting(
        64 * _MIB,
        "rendering-cache-bytes",
        kinds.integer(0),
        Group.STORAGE,
        (
            "How much memory each worker may use to keep converted documents and listings; "
            "0 keeps none."
        ),
        unit="bytes",
        reason="Thousands of documents of common size.",
    )

    # --- Simple tokens ------------------------------------------------------------------------

    simple_tokens: bool = setting(
        True,
        "simple-tokens",
        kinds.SWITCH,
        Group.TOKENS,
        "Whether new pods come with a token, and tokens are accepted.",
    )
    token_lifetime_s: int = setting(
        30 * _DAY_S,
        "token-lifetime-s",
        kinds.integer(0),
        Group.TOKENS,
        "How long a new token is valid; 0 is without end.",
        unit="seconds",
        reason="Thirty days; 'podstead token create' makes the next one.",
    )
    token_secret: Secret | None = optional(
        "token-secret",
        kinds.SECRET_KEY,
        Group.TOKENS,
        ("The key that signs tokens, instead of the one made at the first start under the root."),
        sources=Sources.VARIABLE,
        shown_default="made at the first start",
        secret=True,
    )
    token_secret_previous: Secret | None = optional(
        "token-secret-previous",
        kinds.SECRET_KEY,
        Group.TOKENS,
        "The key before that one, after a change: its tokens stay valid.",
        sources=Sources.VARIABLE,
        secret=True,
    )
    token_secret_file: Path | None = optional(
        "token-secret-file",
        kinds.FILE,
        Group.TOKENS,
        (
            "A file whose first line is the key that signs tokens and whose second line, if "
            "any, is the previous one."
        ),
    )

    # --- Identity providers -------------------------------------------------------------------

    idp: bool = setting(
        False,
        "idp",
        kinds.SWITCH,
        Group.IDENTITY,
        (
            "Whether this server is an identity provider (Solid-OIDC): accounts, pages to sign in, "
            "and tokens for applications."
        ),
    )
    accepted_issuers: tuple[str, ...] = several(
        "accepted-issuer",
        kinds.ISSUER,
        Group.IDENTITY,
        (
            "A provider whose tokens are accepted; if any is given, those of no other are, but "
            "of this server's own."
        ),
        reason="Without any, a WebID's own document decides which providers speak for it.",
    )
    refused_issuers: tuple[str, ...] = several(
        "refused-issuer",
        kinds.ISSUER,
        Group.IDENTITY,
        "A provider whose tokens are not accepted.",
    )
    nostr_resolvers: tuple[str, ...] = several(
        "nostr-resolver",
        kinds.RESOLVER,
        Group.IDENTITY,
        (
            "Who is asked for the DID document of a Nostr key, at URL/KEY.json, when somebody "
            "signs in with a key that several profiles of this server name."
        ),
        reason="Without any, nobody learns who signs in here, and such a key signs nobody in.",
    )
    require_ath: bool = setting(
        False,
        "require-ath",
        kinds.SWITCH,
        Group.IDENTITY,
        "Whether a DPoP proof must name the access token that it is sent with.",
        reason="RFC 9449 asks for it, yet applications in use do not do it.",
    )
    refuse_replayed_proofs: bool = setting(
        True,
        "refuse-replayed-proofs",
        kinds.SWITCH,
        Group.IDENTITY,
        "Whether a DPoP proof can be used for one request only.",
        reason="Turn it off for test suites that repeat requests as they are.",
    )

    dpop_nonce: bool = setting(
        False,
        "dpop-nonce",
        kinds.SWITCH,
        Group.IDENTITY,
        "Whether a DPoP proof must hold a nonce that this server gave out in the last minutes.",
        reason=(
            "Then nobody can make proofs ahead of time. Not every application knows how to ask "
            "again with a nonce."
        ),
    )
    nostr_require_payload: bool = setting(
        False,
        "nostr-require-payload",
        kinds.SWITCH,
        Group.IDENTITY,
        "Whether a request signed with a Nostr key must name the hash of its content.",
        reason="NIP-98 only recommends it, yet the signature covers no content without it.",
    )
    nostr_basic: str = setting(
        "safe",
        "nostr-basic",
        kinds.one_of("safe", "any", "off"),
        Group.IDENTITY,
        (
            "What a request signed with a Nostr key may do if it is signed for any method and a "
            "part of the path, as helpers of git send it by Basic authentication: read, and "
            "push by git (safe), anything (any), or not be accepted in that form (off)."
        ),
    )

    passkey_rp_id: str | None = optional(
        "passkey-rp-id",
        kinds.DOMAIN,
        Group.IDENTITY,
        (
            "The domain that passkeys are made for: the host of the base URL, or the end of it. "
            "Passkeys made for one are of no use for another, so do not change it once people have "
            "some."
        ),
        shown_default="the host of the base URL",
    )
    passkey_origins: tuple[Origin, ...] = several(
        "passkey-origin",
        kinds.ORIGIN,
        Group.IDENTITY,
        (
            "A further origin whose pages may use passkeys of this server, of the domain that they "
            "are made for; as of a host-alias, or of an application that shows the pages itself."
        ),
        reason="A page of anybody else that asks for a passkey gets nothing that counts here.",
    )
    webid_tls: bool = setting(
        False,
        "webid-tls",
        kinds.SWITCH,
        Group.IDENTITY,
        (
            "Whether client certificates say who asks (WebID-TLS). It needs ssl-cert and ssl-key, "
            "or a trusted proxy that passes certificates on in client-cert-header."
        ),
        reason="Browsers that hold certificates ask which one to send to a server that wants one.",
    )
    client_cert_header: str | None = optional(
        "client-cert-header",
        kinds.FIELD_NAME,
        Group.IDENTITY,
        (
            "The header in which a trusted proxy passes on the certificate of a client. The proxy "
            "must remove it from what clients send."
        ),
    )
    client_cert_format: str = setting(
        "rfc9440",
        "client-cert-format",
        kinds.one_of("rfc9440", "pem-urlencoded", "pem", "base64der"),
        Group.IDENTITY,
        (
            "How the certificate is written there: as RFC 9440 says, as PEM in percent-encoding "
            "(nginx, Traefik), as plain PEM, or as DER in base64 (HAProxy)."
        ),
    )
    client_cert_origins: tuple[Origin, ...] = several(
        "client-cert-origin",
        kinds.ORIGIN,
        Group.IDENTITY,
        "A web application whose pages may use the client certificates of their visitors.",
        reason=(
            "Browsers send certificates with whatever any page asks for, so requests of other "
            "sites' pages count as anonymous."
        ),
    )
    client_cert_least_bits: int = setting(
        2048,
        "client-cert-least-bits",
        kinds.integer(1024, 16384),
        Group.IDENTITY,
        "The size that the RSA key of a client certificate must have at least.",
        unit="bits",
        reason="Shorter keys may be broken; 1024 is for devices that cannot have others.",
    )

    # --- Git ----------------------------------------------------------------------------------

    git: bool = setting(
        False,
        "git",
        kinds.SWITCH,
        Group.GIT,
        (
            "Whether each container is a repository of git as well, to clone, fetch and push over "
            "HTTP. Needs the program git."
        ),
    )
    git_processes: int = setting(
        8,
        "git-processes",
        kinds.integer(1, 1000),
        Group.GIT,
        (
            "How many requests of git each worker answers at once, half of them for one address; "
            "one that still has to wait after ten seconds gets 503."
        ),
        unit="processes",
        reason="Each is a process that may take a core and some hundred MiB.",
    )
    git_idle_timeout_s: int = setting(
        60,
        "git-idle-timeout-s",
        kinds.integer(5, 3600),
        Group.GIT,
        (
            "How long git, or a client that takes its answer, may do nothing before the request is "
            "given up."
        ),
        unit="seconds",
        reason="A client that stops reading must not keep a process for good.",
    )

    # --- Trust --------------------------------------------------------------------------------

    trusted_proxies: tuple[Network, ...] = several(
        "trusted-proxy",
        kinds.NETWORK,
        Group.TRUST,
        "A reverse proxy whose X-Forwarded-… headers are believed.",
        reason="Anyone else could claim any address.",
    )
    host_aliases: tuple[str, ...] = several(
        "host-alias",
        kinds.AUTHORITY,
        Group.TRUST,
        "A further Host header to answer to; any other than the base URL's gets 421.",
    )
    context_origins: tuple[Origin, ...] = several(
        "context-origin",
        kinds.ORIGIN,
        Group.TRUST,
        (
            "An origin from which JSON-LD contexts may be fetched, besides those that come "
            "with the server."
        ),
        reason=(
            "Nothing is fetched because a document says so. Listing an origin trusts it to say "
            "what documents mean, those stored before included."
        ),
    )
    private_origins: tuple[Origin, ...] = several(
        "allow-private-origin",
        kinds.ORIGIN,
        Group.TRUST,
        "An origin in a private network that the server may fetch from.",
        reason="A request must not be able to make the server look into its own network.",
    )

    # --- Limits -------------------------------------------------------------------------------

    max_connections: int = setting(
        4096,
        "max-connections",
        kinds.integer(1, 1_000_000),
        Group.LIMITS,
        (
            "How many connections each worker serves at once, those of clients that listen for "
            "notifications among them; more wait."
        ),
        unit="connections",
        reason="Each takes a file descriptor and some memory, a socket some 160 KiB.",
    )
    max_target_bytes: int = setting(
        8 * _KIB,
        "max-target-bytes",
        kinds.integer(256, 60_000),
        Group.LIMITS,
        "The longest request target: path and query; longer ones get 414.",
        unit="bytes",
        reason="RFC 9110 section 4.1 asks for at least 8,000.",
    )
    max_header_bytes: int = setting(
        64 * _KIB,
        "max-header-bytes",
        kinds.integer(8 * _KIB, _MIB),
        Group.LIMITS,
        "The size of a request's line and headers together; larger ones get 431.",
        unit="bytes",
        reason="Room for the largest signed tokens several times over.",
    )
    max_body_bytes: int = setting(
        _GIB,
        "max-body-bytes",
        kinds.integer(0),
        Group.LIMITS,
        "The largest body that is stored; larger ones get 413.",
        unit="bytes",
        reason="Bodies go to disk in pieces, so only disk space is at stake.",
    )
    max_rdf_bytes: int = setting(
        4 * _MIB,
        "max-rdf-bytes",
        kinds.integer(_KIB, 256 * _MIB),
        Group.LIMITS,
        "The largest RDF document that is parsed; larger ones get 413.",
        unit="bytes",
        reason="RDF is parsed in memory, at about a third of a second for this size.",
    )
    max_rdf_triples: int = setting(
        100_000,
        "max-rdf-triples",
        kinds.integer(100),
        Group.LIMITS,
        "The most triples that an RDF document may have.",
        unit="triples",
        reason="What four MiB of ordinary Turtle hold.",
    )
    max_rdf_depth: int = setting(
        100,
        "max-rdf-depth",
        kinds.integer(8, 256),
        Group.LIMITS,
        "How deep JSON objects, lists and Turtle brackets may be nested.",
        unit="levels",
        reason="Parsers use stack for each level; real documents stay below twenty.",
    )
    max_patch_bytes: int = setting(
        _MIB,
        "max-patch-bytes",
        kinds.integer(_KIB, 256 * _MIB),
        Group.LIMITS,
        "The largest patch that is read; larger ones get 413.",
        unit="bytes",
        reason="A patch is read word by word, at about half a second for this size.",
    )
    max_patch_steps: int = setting(
        1_000_000,
        "max-patch-steps",
        kinds.integer(1000),
        Group.LIMITS,
        "How much work one patch may be; one that takes more gets 422.",
        unit="steps",
        reason="One to three seconds; patches of applications take some hundreds of steps.",
    )
    max_json_bytes: int = setting(
        64 * _KIB,
        "max-json-bytes",
        kinds.integer(_KIB, 16 * _MIB),
        Group.LIMITS,
        "The largest body that the server's own API takes, such as POST /.pods.",
        unit="bytes",
    )
    max_slug_bytes: int = setting(
        255,
        "max-slug-bytes",
        kinds.integer(8, 1024),
        Group.LIMITS,
        "The longest name that a Slug header may propose for a new resource.",
        unit="bytes",
        reason="What file systems allow, so that every pod can be copied to one.",
    )

    # --- Notifications ------------------------------------------------------------------------

    legacy_notifications_open: bool = setting(
        False,
        "legacy-notifications-open",
        kinds.SWITCH,
        Group.NOTIFICATIONS,
        (
            "Whether anybody may hear over the older protocol (solid-0.1) that a resource changed, "
            "also who may not read it. What is told is its URL, and nothing else."
        ),
        reason=(
            "Older servers told everybody, and applications in a browser cannot say who they are "
            "when they open a socket. They hear of public resources only, unless you allow it."
        ),
    )
    sockets_per_address: int = setting(
        200,
        "sockets-per-address",
        kinds.integer(0, 1_000_000),
        Group.NOTIFICATIONS,
        (
            "How many sockets of solid-0.1 and of notifications one address may hold open at each "
            "worker; more get 429. 0 is without limit."
        ),
        unit="sockets",
        reason="A page has one or two; a household, or an office, has one address.",
    )
    sockets_per_agent: int = setting(
        100,
        "sockets-per-agent",
        kinds.integer(0, 1_000_000),
        Group.NOTIFICATIONS,
        "How many of them one agent that is signed in may hold open; 0 is without limit.",
        unit="sockets",
    )
    subscriptions_per_socket: int = setting(
        2000,
        "subscriptions-per-socket",
        kinds.integer(1, 1_000_000),
        Group.NOTIFICATIONS,
        "How many URLs one socket of solid-0.1 may be subscribed to.",
        unit="URLs",
        reason="Data browsers subscribe to every document that they show.",
    )
    max_watches: int = setting(
        100_000,
        "max-watches",
        kinds.integer(1),
        Group.NOTIFICATIONS,
        "How many subscriptions of all sorts each worker takes on; more are refused.",
        unit="subscriptions",
        reason="Each takes about a kilobyte of memory.",
    )
    max_waiting_notices: int = setting(
        1000,
        "max-waiting-notices",
        kinds.integer(1, 1_000_000),
        Group.NOTIFICATIONS,
        (
            "How many messages may wait for a client that does not take them; one more closes its "
            "connection."
        ),
        unit="messages",
        reason="Who is told of less than everything would not know it.",
    )
    heartbeat_s: int = setting(
        30,
        "heartbeat-s",
        kinds.integer(1, 3600),
        Group.NOTIFICATIONS,
        "After how long without a message a client is sent a sign that its connection lives.",
        unit="seconds",
        reason="Reverse proxies close connections on which nothing is sent for a minute.",
    )
    channels_per_agent: int = setting(
        100,
        "channels-per-agent",
        kinds.integer(0, 1_000_000),
        Group.NOTIFICATIONS,
        (
            "How many notification channels one agent may have at a time, or one address where "
            "nobody is signed in; more get 429. 0 is without limit."
        ),
        unit="channels",
        reason="An application subscribes to what it shows; a channel lasts two weeks at most.",
    )
    max_channels: int = setting(
        100_000,
        "max-channels",
        kinds.integer(0),
        Group.NOTIFICATIONS,
        "How many notification channels there may be in all; more get 503. 0 is without limit.",
        unit="channels",
        reason="A channel is a small record in the database.",
    )

    # --- Time-outs ----------------------------------------------------------------------------

    header_read_timeout_s: int = setting(
        30,
        "header-read-timeout-s",
        kinds.integer(1, 3600),
        Group.TIMES,
        (
            "How long the headers of a request may take to arrive, and how long a connection "
            "may stay open without a request."
        ),
        unit="seconds",
    )
    body_idle_timeout_s: int = setting(
        30,
        "body-idle-timeout-s",
        kinds.integer(1, 3600),
        Group.TIMES,
        "How long a body may stop arriving before the request is given up.",
        unit="seconds",
    )
    min_upload_bytes_per_s: int = setting(
        100,
        "min-upload-bytes-per-s",
        kinds.integer(0, 1_000_000),
        Group.TIMES,
        (
            "How fast a body has to arrive, or the request is given up. It may be slower, or stop, "
            "for body-idle-timeout-s taken together; what comes faster gives that time back. 0 is "
            "however slowly."
        ),
        unit="bytes a second",
        reason="A client that is slower holds a connection on purpose, or may as well give up.",
    )
    drain_timeout_s: int = setting(
        10,
        "drain-timeout-s",
        kinds.integer(1, 3600),
        Group.TIMES,
        "How long requests in flight may take to end when the server is stopped.",
        unit="seconds",
        reason="Container platforms kill after ten seconds.",
    )
    keep_alive: bool = setting(
        True,
        "keep-alive",
        kinds.SWITCH,
        Group.TIMES,
        "Whether a connection may carry several requests.",
    )

    # --- Rate limits --------------------------------------------------------------------------

    pod_creations_per_hour: int = setting(
        60,
        "pod-creations-per-hour",
        kinds.integer(0, 1_000_000),
        Group.RATES,
        (
            "How many pods one address may create in an hour; 0 is without limit. Never "
            "counted for this machine itself while the base URL is a loopback one."
        ),
        unit="pods",
    )
    invalid_credentials_per_minute: int = setting(
        120,
        "invalid-credentials-per-minute",
        kinds.integer(0, 1_000_000),
        Group.RATES,
        (
            "How many requests with invalid credentials one address may make in a minute "
            "before it gets 429; 0 is without limit."
        ),
        unit="requests",
    )

    registrations_per_hour: int = setting(
        60,
        "registrations-per-hour",
        kinds.integer(0, 1_000_000),
        Group.RATES,
        (
            "How many applications one address may register in an hour at the identity provider; "
            "0 is without limit."
        ),
        unit="applications",
    )
    token_failures_per_minute: int = setting(
        30,
        "token-failures-per-minute",
        kinds.integer(0, 1_000_000),
        Group.RATES,
        (
            "How many token requests of one address may fail in a minute before it gets 429; 0 is "
            "without limit."
        ),
        unit="requests",
    )

    sign_in_failures_per_minute: int = setting(
        60,
        "sign-in-failures-per-minute",
        kinds.integer(0, 1_000_000),
        Group.RATES,
        (
            "How many sign-ins with a password may fail from one address in a minute before it "
            "gets 429; 0 is without limit. Those that succeed never count."
        ),
        unit="sign-ins",
    )
    account_failures_per_minute: int = setting(
        10,
        "account-failures-per-minute",
        kinds.integer(0, 1_000_000),
        Group.RATES,
        "How many of them at one account; 0 is without limit.",
        unit="sign-ins",
    )
    account_failures_in_a_row: int = setting(
        5,
        "account-failures-in-a-row",
        kinds.integer(0, 1_000_000),
        Group.RATES,
        (
            "After how many failed sign-ins in a row, from any address, an account's password has "
            "to wait 1 second, then 2, 4, and at most 60; 0 is never."
        ),
        unit="sign-ins",
        reason="Guessing gets slow, and the owner still gets in after a minute.",
    )
    account_failures_per_hour: int = setting(
        100,
        "account-failures-per-hour",
        kinds.integer(0, 1_000_000),
        Group.RATES,
        (
            "After how many failed sign-ins within an hour, from any address, an account's "
            "password pauses for 15 minutes; 0 is never."
        ),
        unit="sign-ins",
    )
    passkey_requests_per_minute: int = setting(
        30,
        "passkey-requests-per-minute",
        kinds.integer(0, 1_000_000),
        Group.RATES,
        (
            "How many requests about passkeys one address may make in a minute before it gets "
            "429; 0 is without limit. Signing in with one takes two, and a page to sign in on one."
        ),
        unit="requests",
    )
    nostr_requests_per_minute: int = setting(
        30,
        "nostr-requests-per-minute",
        kinds.integer(0, 1_000_000),
        Group.RATES,
        (
            "How many requests to link a Nostr key, or to sign in with one, an address may make in "
            "a minute before it gets 429; 0 is without limit. Either takes two."
        ),
        unit="requests",
    )

    @property
    def uses_tls(self) -> bool:
        """Whether this server speaks HTTPS itself."""
        return self.ssl_cert is not None

    @property
    def token_keys(self) -> tuple[SigningKey, ...]:
        """The signing keys that the operator gave, the current one first; empty for our own."""
        secrets = (self.token_secret, self.token_secret_previous)
        return tuple(SigningKey(secret.octets) for secret in secrets if secret is not None)

    def listening_on(self, port: int) -> Settings:
        """These settings with the port that the system chose, in the base URL too."""
        base_url = self.base_url
        if base_url.endswith(":0"):
            base_url = f"{base_url.removesuffix('0')}{port}"
        return dataclasses.replace(self, port=port, base_url=base_url)


TABLE = rows_of(Settings)

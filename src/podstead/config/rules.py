"""Rules that involve several settings, and defaults that depend on other settings."""

import dataclasses
from pathlib import Path
from urllib.parse import urlsplit

from podstead.config import value_types
from podstead.config.settings import Settings
from podstead.core.errors import StartRefused
from podstead.storage.blobs.s3_location import S3Location

_MAX_TERMS_BYTES = 256 * 1024


def check_together(settings: Settings) -> None:
    """Raises StartRefused for settings that contradict one another."""
    _check_tls(settings)
    _check_redirects(settings)
    _check_token_secrets(settings)
    _check_sockets(settings)
    if settings.base_url:
        _check_base_url(settings)
    elif settings.host != "localhost":
        raise StartRefused(
            f"The host is {settings.host} but base-url is not set. Set --base-url to the URL at "
            "which clients will reach this server; the URL of every stored resource begins with it."
        )


def check_provider_url(settings: Settings) -> None:
    """Raises StartRefused for a provider URL that does not separate the provider from the pods. The
    base URL must be set."""
    if settings.idp_base_url is None:
        return
    given = f"idp-base-url is {settings.idp_base_url}"
    if not settings.idp:
        raise StartRefused(f"{given}, but idp is off. Add --idp, or remove idp-base-url.")
    provider, pods = urlsplit(settings.idp_base_url), urlsplit(settings.base_url)
    if provider.scheme != pods.scheme:
        raise StartRefused(
            f"{given} and base-url is {settings.base_url}. Both must have the same scheme."
        )
    aliases = {urlsplit(f"//{alias}").hostname for alias in settings.host_aliases}
    if provider.hostname in {pods.hostname, *aliases}:
        raise StartRefused(
            f"{given}, but its host also serves pods (base-url or host-alias). Choose a different "
            "host name; a different port is not enough, because cookies are shared between ports."
        )


def _check_redirects(settings: Settings) -> None:
    if settings.redirect_large_reads and not isinstance(settings.bodies, S3Location):
        raise StartRefused(
            "redirect-large-reads is set, but bodies are not in S3. Set bodies to a bucket, or "
            "remove redirect-large-reads."
        )


def _check_tls(settings: Settings) -> None:
    if (settings.ssl_cert is None) != (settings.ssl_key is None):
        given, missing = ("cert", "key") if settings.ssl_cert else ("key", "cert")
        raise StartRefused(f"ssl-{given} is set without ssl-{missing}. Set both or neither.")


def _check_sockets(settings: Settings) -> None:
    url, base_url = settings.sockets_url, settings.base_url
    if settings.sockets_port is None:
        if url is not None:
            raise StartRefused(
                f"sockets-url is {url}, but sockets-port is not set. Add --sockets-port, or remove "
                "sockets-url."
            )
    elif url is not None:
        if base_url and urlsplit(url).scheme != urlsplit(base_url).scheme:
            raise StartRefused(
                f"sockets-url is {url} and base-url is {base_url}. Both must have the same scheme."
            )
    elif base_url.startswith("https:") and not settings.uses_tls:
        raise StartRefused(
            f"sockets-port is set and base-url is {base_url}, but this server does not speak TLS "
            "itself. Set --sockets-url to the URL at which clients reach that port through your "
            "reverse proxy, which may be the base URL."
        )


def _check_token_secrets(settings: Settings) -> None:
    if settings.token_secret_file and (settings.token_secret or settings.token_secret_previous):
        raise StartRefused(
            "Token secrets are set both in a file and in the environment. Set either "
            "token-secret-file or PODSTEAD_TOKEN_SECRET."
        )
    if settings.token_secret_previous and not settings.token_secret:
        raise StartRefused(
            "PODSTEAD_TOKEN_SECRET_PREVIOUS is set without PODSTEAD_TOKEN_SECRET. Set the current "
            "signing key as well."
        )


def _check_base_url(settings: Settings) -> None:
    if settings.uses_tls and settings.base_url.startswith("http:"):
        raise StartRefused(
            f"base-url is {settings.base_url}, but with ssl-cert the server speaks only HTTPS. "
            "Set a base-url that begins with https://."
        )
    if settings.base_url.endswith(":0") and settings.port != 0:
        raise StartRefused(
            f"base-url is {settings.base_url}. Specify its port, or set --port 0 to let the system "
            "choose one."
        )


def with_base_url(settings: Settings) -> Settings:
    """The settings with the base URL that follows from the others, unless one was set."""
    if settings.base_url:
        return settings
    scheme = "https" if settings.uses_tls else "http"
    base_url = value_types.BASE_URL.parse(f"{scheme}://localhost:{settings.port}")
    return dataclasses.replace(settings, base_url=base_url)


def with_terms_text(settings: Settings) -> Settings:
    """The settings with the content of the file with the terms. Raises StartRefused."""
    path = settings.terms
    if path is None:
        return settings
    try:
        content = path.read_bytes()
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise StartRefused(f"Cannot read terms {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise StartRefused(f"terms {path} is not UTF-8 text.") from error
    if not text.strip() or len(content) > _MAX_TERMS_BYTES:
        raise StartRefused(f"terms {path} must contain text, at most {_MAX_TERMS_BYTES} bytes.")
    return dataclasses.replace(settings, terms_text=text)


def with_token_secrets(settings: Settings) -> Settings:
    """The settings with the keys from the secret file. Raises StartRefused."""
    path = settings.token_secret_file
    if path is None:
        return settings
    current, previous = _read_secrets(path)
    return dataclasses.replace(settings, token_secret=current, token_secret_previous=previous)


def _read_secrets(path: Path) -> tuple[value_types.Secret, value_types.Secret | None]:
    try:
        lines = path.read_text(encoding="ascii").split()
    except OSError as error:
        raise StartRefused(f"Cannot read token-secret-file {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise StartRefused(f"token-secret-file {path} is not text.") from error
    try:
        keys = [value_types.SECRET_KEY.parse(line) for line in lines]
    except ValueError:
        keys = []
    if len(keys) not in (1, 2):
        raise StartRefused(
            f"token-secret-file {path} must contain one or two keys, one per line, and each "
            f"{value_types.SECRET_KEY.expected}."
        )
    return keys[0], keys[1] if len(keys) == 2 else None

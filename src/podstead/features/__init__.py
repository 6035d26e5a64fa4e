"""Features that stand on their own, and the interface between them and the rest of the server.

A feature is a package with one object, ``FEATURE``, whose class is derived from :class:`Feature`.
Those that ship are packages here and named in :data:`SHIPPED`; an installed package adds its own by
an entry point in the group ``podstead.features``. The rest of the server names no feature, and
features do not import each other. ``docs/build/features.md`` describes the interface.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from importlib import import_module, util
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from podstead.core.errors import StartRefused

if TYPE_CHECKING:  # for annotations only: whatever imports this module is below most of these
    from podstead.app.monitoring.diagnosis import Diagnosis
    from podstead.app.operator.backup import RunningBackup
    from podstead.app.operator.checking.findings import CheckContext, Finding
    from podstead.app.operator.data_root import OnStep
    from podstead.app.services import Services
    from podstead.authn.authenticate import CredentialScheme
    from podstead.config import Settings
    from podstead.core.identifiers import ResourcePath
    from podstead.core.identity import IdentityRefinement
    from podstead.idp.administration.service import AccountReset
    from podstead.idp.records import ClientCredential
    from podstead.idp.sign_in_methods import SecondStep, SignInMethod
    from podstead.notifications.answers import AnswerSource
    from podstead.notifications.channels import ChannelHandler
    from podstead.resources.committer import WriteExtension, WriteObserver
    from podstead.resources.context import ReadObserver
    from podstead.resources.exporting.contents import Bundled, RepositoryBundler
    from podstead.resources.importing.pod_archive import ArchivedRepository
    from podstead.resources.importing.values import NotTaken
    from podstead.resources.planning import ContainerHook, WriteHook
    from podstead.storage.layout import RootLayout
    from podstead.storage.protocol import Store
    from podstead.storage.record_store import RecordKind, RecordStore
    from podstead.storage.records import Record, TokenRecord
    from podstead.storage.schema import Schema
    from podstead.wac.gate import AccessRestriction
    from podstead.web.account.collections import Collection
    from podstead.web.account.security_page import AppsSection, SecuritySection
    from podstead.web.console.settings import SettingForm
    from podstead.web.description_endpoints import StorageLink
    from podstead.web.files.documents import ContentPreviews, DocumentOffers
    from podstead.web.files.search import SearchResults
    from podstead.web.files.starred import StarredResources
    from podstead.web.pages.notifier import NoticeChannel, Notifier
    from podstead.web.pages.rendering import NavigationRow
    from podstead.web.request import ClientCertificates
    from podstead.web.resource_responses import DocumentLink
    from podstead.web.response import HeaderField
    from podstead.web.routes import Claim, Endpoint, Route
    from podstead.web.sharing.reminders import ReminderSource
    from podstead.web.sharing.share_page import SharingSection
    from podstead.web.sign_in.authorization import ConsentExtension
    from podstead.web.sign_in.browser_sign_in import PasswordRecovery, SignInForm
    from podstead.web.sign_in.registration import RegistrationPart

C = TypeVar("C", bound=Callable[..., object])
Offered = TypeVar("Offered")
CommandOption = Callable[[Any], Any]
"""What :func:`click.option` returns."""

SHIPPED: Final = (
    "access_limits",
    "acme",
    "app_list",
    "git",
    "history",
    "importers",
    "installable",
    "legacy_notifications",
    "links",
    "mail",
    "notices",
    "passkeys",
    "two_factor",
    "previews",
    "photos",
    "read_log",
    "personal_data",
    "search",
    "sparql",
    "starred",
    "uploads",
    "watch",
    "web_push",
    "webhooks",
    "webid_tls",
    "nostr",
)
"""The features in this folder, in the order of what they add to pages. One whose folder was removed
is not there, and nothing else changes."""

ENTRY_POINTS: Final = "podstead.features"
"""The group of the entry points of installed packages."""

LEFT_OUT_VARIABLE: Final = "PODSTEAD_WITHOUT_FEATURES"
"""The environment variable with the names of features that are treated as if they were not there,
with commas between them."""


class Compacted(NamedTuple):
    """How many things in a folder were made smaller, and how many were left, in use or damaged."""

    packed: int = 0
    busy: int = 0


@dataclass(frozen=True)
class TakenRepositories:
    """The repositories of an archive: the records to be committed with its pod, and what was not
    taken."""

    records: Sequence[Record] = ()
    not_taken: Sequence[NotTaken] = ()


NONE_TAKEN: Final = TakenRepositories()


class RepositoryArchives(Protocol):
    """Adds repositories to archives of pods, and takes them from there."""

    async def bundle_all(self, root: ResourcePath) -> Bundled:
        """As a :class:`RepositoryBundler` does."""

    def taken(
        self, archived: Iterable[ArchivedRepository]
    ) -> AbstractAsyncContextManager[TakenRepositories]:
        """The repositories, which are removed again unless their pod is committed within the
        context."""


class CertificateSource(Protocol):
    """Obtains the certificate of the server."""

    file: Path
    """The file with the key and the chain in PEM format, which is replaced at once."""

    def ensure(self) -> None:
        """Obtain a certificate, unless there is one that can be used. Raises PodsteadError."""

    def keep(self) -> None:
        """Renew it in time, forever; a SIGHUP to this process has the server use another one. To be
        called in a thread of its own."""


class DataFolder:
    """A folder in the data root in which a feature stores what entries of the database name."""

    name: str
    """The name of the folder in the data root."""
    contents: str
    """What is in it, in the plural, as in "git repositories"."""
    item: str
    """One of them, as in "repository"."""
    items: str
    """Several of them; also the name of their figures in the output of commands."""
    entry_kind: str
    """What the keys of the entries begin with."""
    advice: str
    """What operators can do whose nodes do not have the folder in common."""

    def is_used(self, settings: Settings) -> bool:
        """Whether a server with these settings uses the folder."""
        return True

    async def back_up(self, backup: RunningBackup) -> int:
        """Copy what the records name into the backup; the number of things."""
        return 0

    async def check(self, check: CheckContext) -> AsyncIterator[Finding]:
        """What ``podstead check`` finds wrong."""
        nothing: Sequence[Finding] = ()
        for each in nothing:
            yield each

    async def compact(self, layout: RootLayout, store: Store, on_step: OnStep) -> Compacted:
        """Make smaller what nobody is using."""
        return Compacted()

    def opened_archives(
        self, settings: Settings, records: RecordStore
    ) -> AbstractContextManager[RepositoryArchives | None]:
        """What the archives of pods contain besides the resources, for a command."""
        return nullcontext()

    async def follow_name(
        self, settings: Settings, records: RecordStore, root: ResourcePath
    ) -> None:
        """Follow the pod with this root, which was renamed."""


class WorkerFeature:
    """What a feature does in one worker. All members have a default that does nothing.

    Its constructor must not use the objects of ``Services`` that ask features for hooks, such as
    ``services.gate`` and ``services.resources``: a member that does is a ``cached_property``.
    """

    routes: Sequence[Route] = ()
    """Addresses at the origin of the pods, also of WebSockets."""

    pages: Sequence[object] = ()
    """Objects whose methods declare pages with ``@route`` and take a ``PageRequest``."""

    navigation: Sequence[NavigationRow] = ()
    """What the navigation of pages links to, for people with a pod here: the address of a page, an
    icon and a title."""

    content_navigation: Sequence[NavigationRow] = ()
    """The same for pages that are another way to see what is stored. These links stand right after
    Files, and on a phone in the bar."""

    page_head: str | None = None
    """A template for the head of every page of people who are signed in: links, metadata, and
    scripts of this server."""

    previews: ContentPreviews | None = None
    """What the pages show of stored content."""

    document_offers: DocumentOffers | None = None
    """Offers other pages on the page about a document."""
    starred: StarredResources | None = None
    """What people have starred, for lists and the first page of a person."""

    search_results: SearchResults | None = None
    """Answers the search box of the pages in place of the search by names."""

    provider_routes: Sequence[Route] = ()
    """Addresses at the origin of the identity provider, which may be that of the pods."""

    provider_pages: Sequence[object] = ()
    """Objects with pages at the origin of the identity provider, as in ``pages``."""

    sign_in_forms: Sequence[SignInForm] = ()
    """Ways to sign in besides the password, as the sign-in form offers them."""

    second_step: SecondStep | None = None
    """What an account needs after its password."""

    password_recovery: PasswordRecovery | None = None
    """A way to a new password for people who have lost theirs."""

    registration_part: RegistrationPart | None = None
    """A part of the registration form; there can be one."""

    account_collections: Sequence[Collection[Any]] = ()
    """What belongs to an account and is listed and removed, as JSON and on pages."""

    sharing_section: SharingSection | None = None
    """A section of the page about who has access to a resource."""

    access_reminders: ReminderSource | None = None
    """Finds what people should know about the access that they have given: ends, and what is not
    used."""

    notifier: Notifier | None = None
    """Takes what people are told, such as that something was shared with them; there can be
    one."""

    notice_channel: NoticeChannel | None = None
    """A further way in which people get what the notifier keeps."""

    service_worker_scripts: Sequence[str] = ()
    """Names of scripts that the service worker of the pages runs besides its own, where there is
    one. They share its global scope."""

    security_sections: Sequence[SecuritySection] = ()
    """Sections of the page about security."""

    apps_section: AppsSection | None = None
    """A section of the page about the applications of a person."""

    setting_forms: Mapping[str, SettingForm] = {}
    """The forms of settings that operators change while the server runs, by their names; others
    have one field. Texts for both: :func:`podstead.web.console.settings.add_setting_texts`."""

    credentials: Sequence[CredentialScheme] = ()
    """Further ways to authenticate the sender of a request."""

    client_certificates: ClientCertificates | None = None
    """Finds the client certificates of requests, which one of ``credentials`` verifies."""

    claim: Claim | None = None
    """Answers some requests to paths of resources in place of the resource."""

    queries: Mapping[str, Endpoint] = {}
    """What answers the QUERY method on containers (RFC 10008), by the media type of the content of
    the request. The sender may read the container; what the answer says of other resources, the
    feature has to ask the gate about."""

    channels: Sequence[ChannelHandler] = ()
    """Further types of notification channels, each with what serves its channels."""

    live_queries: Sequence[AnswerSource] = ()
    """What answers queries that can be watched: topics of channels whose addresses have a query
    and end in the path of a container before it."""

    resource_headers: Sequence[HeaderField] = ()
    """Header fields of all responses to GET, HEAD and OPTIONS of resources."""

    document_links: Sequence[DocumentLink] = ()
    """Links of all documents to addresses of the feature that end in the path of the document."""

    storage_links: Sequence[StorageLink] = ()
    """Links in the descriptions of storages to addresses of the feature that end in the path of the
    storage."""

    observer: WriteObserver | None = None
    """Learns of each write of a request to a resource, once it is committed."""

    read_observer: ReadObserver | None = None
    """Learns of each read of a resource by a request, in the containers that it watches."""

    write_extension: WriteExtension | None = None
    """Adds to each write of a request to a resource, before it is committed, or refuses it."""

    refinement: IdentityRefinement | None = None
    """Adds to the identities that tokens prove, such as a limit for ``restriction``."""

    restriction: AccessRestriction | None = None
    """Restricts what access rules grant to a request."""

    consent: ConsentExtension | None = None
    """Adds to the consent page, and to what clients may ask for; there can be one."""

    bundler: RepositoryBundler | None = None
    """What the archives of pods contain besides the resources."""

    def kept_days(self, path: ResourcePath) -> int:
        """For how many days what is deleted at a path can be restored; 0 for gone for good."""
        del path
        return 0

    async def start(self) -> None:
        """Open what the feature uses; the store is open. Raises ServerTrouble."""

    async def stop(self) -> None:
        """End what the feature does in the background, and close what it has opened; the store is
        still open."""

    async def sweep(self) -> None:
        """Remove what is not in use any longer: called every ten minutes. Raises ServerTrouble."""


class Feature:
    """One feature. All members have a default that offers nothing."""

    settings: type | None = None
    """A frozen dataclass whose fields are settings (:func:`podstead.config.table.setting`); code of
    the feature reads it with ``settings.of(…)``."""

    commands: Mapping[str, str] = {}
    """The commands of the program by name, each as ``module:attribute``, loaded when it runs."""

    templates: str | None = None
    """The package whose folder ``templates`` has templates of pages, named after the package, as in
    ``renderer.page(page, "podstead_greeting/greeting.html")``, and their scripts and style sheets,
    as in ``asset_url("greeting.js")``."""

    folder: DataFolder | None = None
    """What the feature stores in the data root besides the database."""

    schema: Schema | None = None
    """Tables of its own and their migrations, in both engines (:mod:`podstead.storage.schema`)."""

    def check_settings(self, settings: Settings) -> None:
        """Refuse settings that contradict one another; the base URL is known. Raises
        StartRefused."""

    def check_machine(self, settings: Settings) -> None:
        """Refuse to start a server without the programs that the feature needs. Raises
        StartRefused."""

    def summary(self, settings: Settings) -> Mapping[str, str]:
        """Lines of the summary that ``podstead start`` prints, by their first word."""
        return {}

    def account_resets(self) -> Sequence[AccountReset]:
        """What operators can remove for a person who has lost it."""
        return ()

    def sign_in_methods(self) -> Sequence[SignInMethod]:
        """What accounts can have to sign in with besides the password."""
        return ()

    def ended_with_sessions(self) -> Sequence[RecordKind[Any]]:
        """Kinds of records, whose owners are roots of pods, that are removed when all browsers of
        the pod's account are signed out."""
        return ()

    def client_certificate_setting(self, settings: Settings) -> str | None:
        """The name of the setting for which the server requests certificates from TLS clients;
        ``None`` if it does not request any for this feature."""
        return None

    def ports(self, settings: Settings) -> Sequence[int]:
        """The TCP ports that the feature opens."""
        return ()

    def has_certificate(self, settings: Settings) -> bool:
        """Whether the certificate of the server is that of :meth:`certificate`, in place of the
        settings ssl-cert and ssl-key."""
        return False

    def certificate(self, settings: Settings) -> CertificateSource:
        """What obtains the certificate; the data root is there. Raises StartRefused."""
        raise NotImplementedError

    def certificate_file(self, settings: Settings) -> Path | None:
        """The file with that certificate; ``None`` without."""
        return None

    def reaches_people(self, settings: Settings) -> bool:
        """Whether the feature delivers the messages that wait for people
        (:mod:`podstead.idp.mail_queue`), so that they can confirm addresses, for example."""
        return False

    async def health(self, settings: Settings, records: RecordStore) -> Sequence[Diagnosis]:
        """How the feature is, for ``podstead doctor`` and in a running server. Raises
        ServerTrouble."""
        return ()

    def credential_options(self) -> Sequence[CommandOption]:
        """Options of the commands that create simple tokens and client credentials."""
        return ()

    async def credential_records(
        self,
        records: RecordStore,
        credential: TokenRecord | ClientCredential,
        options: Mapping[str, object],
    ) -> Sequence[Record]:
        """What is stored with a new credential for the values of these options, by their names.
        Raises BadRequest."""
        return ()

    def modules(self, settings: Settings) -> Sequence[str]:
        """The modules that a worker with these settings uses and does not load by itself when its
        objects are made."""
        return ()

    def write_hooks(self, records: RecordStore) -> Sequence[WriteHook]:
        """Hooks that derive records from documents which are written, also while the feature is
        off."""
        return ()

    def container_hooks(self, records: RecordStore) -> Sequence[ContainerHook]:
        """Hooks on writes that concern containers, also while the feature is off."""
        return ()

    def prepare_root(self, settings: Settings, *, is_new: bool) -> None:
        """Complete what the feature has stored, before the data root is served, and while no other
        process writes to it; ``is_new`` if it has never been served. Raises StorageError."""

    async def moved_base(self, records: RecordStore, renamed: Callable[[str], str]) -> None:
        """Rewrite what the feature's records say of URLs of the server, which gets another base
        URL. May be called again after an interruption; the server does not run meanwhile. What it
        raises stops the move."""

    async def remove_derived(self, settings: Settings, records: RecordStore) -> None:
        """Remove what is made of the content of resources, and made again when it is needed, since
        something is to be gone for good. A server may be running. Raises OSError, ServerTrouble."""

    def in_worker(self, services: Services) -> WorkerFeature | None:
        """What the feature does in a worker; ``None`` if it is off. What it needs for that is
        imported here. Raises StartRefused."""
        return None


@cache
def features() -> Sequence[Feature]:
    """All features that there are, those that ship first. Raises ImportError for one that cannot be
    loaded."""
    left_out = os.environ.get(LEFT_OUT_VARIABLE, "").split(",")
    modules = [f"{__name__}.{each}" for each in SHIPPED if each not in left_out]
    found = [import_module(each).FEATURE for each in modules if _is_there(each)]
    if _are_installed():
        from importlib.metadata import entry_points  # takes 0.1 s

        installed = entry_points(group=ENTRY_POINTS)
        found += [each.load() for each in installed if each.name not in left_out]
    for feature in found:
        if feature.schema is not None:
            from podstead.storage.schema import register_schema

            register_schema(feature.schema)
    return tuple(found)


def only_offer(offers: Iterable[Offered | None]) -> Offered | None:
    """What at most one feature can offer. Raises StartRefused if several do."""
    found = [each for each in offers if each is not None]
    if len(found) > 1:
        modules = ", ".join(type(each).__module__ for each in found)
        raise StartRefused(
            f"Only one feature can do this, and there are several: {modules}. Leave one of them out"
            f" by {LEFT_OUT_VARIABLE}"
        )
    return found[0] if found else None


def client_certificate_setting(settings: Settings) -> str | None:
    """The name of the setting for which the server requests certificates from TLS clients, if it
    does."""
    found = (each.client_certificate_setting(settings) for each in features())
    return next((each for each in found if each is not None), None)


def ended_with_sessions() -> Sequence[RecordKind[Any]]:
    """Those of all features."""
    return [kind for each in features() for kind in each.ended_with_sessions()]


def folders() -> Sequence[DataFolder]:
    """The folders of all features."""
    return [each.folder for each in features() if each.folder is not None]


def credential_options(command: C) -> C:
    """Add the options of all features to a command that creates a credential."""
    for feature in features():
        for option in reversed(feature.credential_options()):
            option(command)
    return command


async def credential_records(
    records: RecordStore,
    credential: TokenRecord | ClientCredential,
    options: Mapping[str, object],
) -> Sequence[Record]:
    """What all features store with a new credential. Raises BadRequest."""
    found: list[Record] = []
    for feature in features():
        found += await feature.credential_records(records, credential, options)
    return found


def write_hooks(records: RecordStore) -> Sequence[WriteHook]:
    """Those of all features."""
    return [hook for each in features() for hook in each.write_hooks(records)]


def container_hooks(records: RecordStore) -> Sequence[ContainerHook]:
    """Those of all features."""
    return [hook for each in features() for hook in each.container_hooks(records)]


def _is_there(module: str) -> bool:
    found = util.find_spec(module)
    return found is not None and found.origin is not None  # of an empty folder, it has none


def _are_installed() -> bool:
    """Whether some installed package has such an entry point: a glance, which costs 3 ms."""
    group = f"[{ENTRY_POINTS}]".encode()
    for folder in sys.path:
        for file in Path(folder).glob("*.dist-info/entry_points.txt"):
            if group in file.read_bytes():
                return True
    return False

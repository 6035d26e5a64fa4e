"""Makes the documents that the server writes itself: the initial resources of a pod as puts of one
write, and the descriptions of a storage and of the server for programs (P-32, P-36).

Pure. The profile is the description of the root container, because the WebID ``{base}/<pod>/#me``
makes the root container the profile document (A-98). Everyone may read its statements about the
WebID, and nobody but the owner knows its members.
"""

from collections.abc import Iterable

from podstead.core import vocab
from podstead.core.identifiers import ResourcePath, acl_of
from podstead.rdf.graph import Graph, Iri, Literal
from podstead.storage.records import InlineBody, Put, ResourceKind

TURTLE = "text/turtle"

_PROFILE = """\
@prefix foaf: <http://xmlns.com/foaf/0.1/>.
@prefix ldp: <http://www.w3.org/ns/ldp#>.
@prefix pim: <http://www.w3.org/ns/pim/space#>.
@prefix solid: <http://www.w3.org/ns/solid/terms#>.

<> a foaf:PersonalProfileDocument;
    foaf:maker <#me>;
    foaf:primaryTopic <#me>.

<#me> a foaf:Person;
    foaf:name "{name}";
    ldp:inbox <inbox/>;
    pim:preferencesFile <settings/prefs.ttl>;
    pim:storage <>;
    solid:account <>;
{provider}    solid:privateTypeIndex <settings/privateTypeIndex.ttl>;
    solid:publicTypeIndex <settings/publicTypeIndex.ttl>.
"""

_CARD = """\
@prefix foaf: <http://xmlns.com/foaf/0.1/>.

<> a foaf:PersonalProfileDocument;
    foaf:maker <../#me>;
    foaf:primaryTopic <../#me>.
"""

_PREFERENCES = """\
@prefix dcterms: <http://purl.org/dc/terms/>.
@prefix pim: <http://www.w3.org/ns/pim/space#>.
@prefix solid: <http://www.w3.org/ns/solid/terms#>.

<> a pim:ConfigurationFile;
    dcterms:title "Preferences".

<../#me> solid:privateTypeIndex <privateTypeIndex.ttl>;
    solid:publicTypeIndex <publicTypeIndex.ttl>.
"""

_PUBLIC_TYPE_INDEX = """\
@prefix solid: <http://www.w3.org/ns/solid/terms#>.

<> a solid:TypeIndex, solid:ListedDocument.
"""

_PRIVATE_TYPE_INDEX = """\
@prefix solid: <http://www.w3.org/ns/solid/terms#>.

<> a solid:TypeIndex, solid:UnlistedDocument.
"""

_ACL_PREFIXES = """\
@prefix acl: <http://www.w3.org/ns/auth/acl#>.
@prefix foaf: <http://xmlns.com/foaf/0.1/>.
"""


def pod_resources(
    root: ResourcePath, *, name: str, owner: str, issuer: str | None = None
) -> tuple[Put, ...]:
    """All resources of a new pod at ``root``, parents before their members.

    ``name`` must have passed :func:`podstead.pods.names.check_name`; ``owner`` is the WebID.
    ``issuer`` is the identity provider stated in the profile, if any (A-98).
    """
    provider = "" if issuer is None else f"    solid:oidcIssuer <{issuer}>;\n"
    profile = _PROFILE.format(name=name, provider=provider)
    return (
        _put(root, ResourceKind.STORAGE, profile),
        _put(acl_of(root), ResourceKind.ACL, root_acl(owner)),
        _put(f"{root}profile/", ResourceKind.CONTAINER),
        _put(f"{root}profile/card", ResourceKind.DOCUMENT, _CARD),
        _acl(f"{root}profile/card", owner, public_modes="acl:Read"),
        _put(f"{root}inbox/", ResourceKind.CONTAINER),
        _acl(f"{root}inbox/", owner, public_modes="acl:Append"),
        _put(f"{root}public/", ResourceKind.CONTAINER),
        _acl(f"{root}public/", owner, public_modes="acl:Read", public_default=True),
        _put(f"{root}private/", ResourceKind.CONTAINER),
        _acl(f"{root}private/", owner),
        _put(f"{root}settings/", ResourceKind.CONTAINER),
        _acl(f"{root}settings/", owner),
        _put(f"{root}settings/prefs.ttl", ResourceKind.DOCUMENT, _PREFERENCES),
        _put(f"{root}settings/publicTypeIndex.ttl", ResourceKind.DOCUMENT, _PUBLIC_TYPE_INDEX),
        _acl(f"{root}settings/publicTypeIndex.ttl", owner, public_modes="acl:Read"),
        _put(f"{root}settings/privateTypeIndex.ttl", ResourceKind.DOCUMENT, _PRIVATE_TYPE_INDEX),
    )


def _put(path: str, kind: ResourceKind, turtle: str = "") -> Put:
    return Put(
        path=ResourcePath(path),
        kind=kind,
        content_type=TURTLE,
        body=InlineBody(turtle.encode()),
        creates=True,
    )


def root_acl(owner: str) -> str:
    """The ACL of the root container of a new pod in Turtle: the owner may do everything, and
    everyone may read the profile, which is the container without its members."""
    profile = _authorization(
        "#profile", "<./#me>", "acl:agentClass foaf:Agent", "acl:Read", with_default=False
    )
    return _rules("/", owner) + profile


def _acl(
    subject: str, owner: str, *, public_modes: str | None = None, public_default: bool = False
) -> Put:
    rules = _rules(subject, owner, public_modes=public_modes, public_default=public_default)
    return _put(acl_of(ResourcePath(subject)), ResourceKind.ACL, rules)


def _rules(
    subject: str, owner: str, *, public_modes: str | None = None, public_default: bool = False
) -> str:
    # Relative IRIs in an ACL are resolved against the ACL's URL: "./" is its container.
    target = f"<{subject.rpartition('/')[2]}>" if not subject.endswith("/") else "<./>"
    public = ""
    if public_modes is not None:
        public = _authorization(
            "#public",
            target,
            "acl:agentClass foaf:Agent",
            public_modes,
            with_default=public_default,
        )
    return (
        _ACL_PREFIXES
        + _authorization(
            "#owner",
            target,
            f"acl:agent <{owner}>",
            "acl:Read, acl:Write, acl:Control",
            with_default=subject.endswith("/"),
        )
        + public
    )


def _authorization(node: str, target: str, subject: str, modes: str, *, with_default: bool) -> str:
    default = f"    acl:default {target};\n" if with_default else ""
    return f"""
<{node}> a acl:Authorization;
    {subject};
    acl:accessTo {target};
{default}    acl:mode {modes}.
"""


SERVER_TITLE = "Podstead"


def storage_description(root_url: str, *, notification_gateway: str) -> Graph:
    """The description of the storage whose root container has this URL.

    ``notification_gateway`` is the URL at which clients of older protocols subscribe (N-25).
    """
    storage = Iri(root_url)
    return Graph(
        [
            (storage, Iri(vocab.RDF_TYPE), Iri(vocab.PIM_STORAGE_CLASS)),
            (storage, Iri(vocab.SOLID_NOTIFICATION_GATEWAY), Iri(notification_gateway)),
        ]
    )


def server_description(
    server_url: str, *, storage_urls: Iterable[str], notification_gateway: str
) -> Graph:
    """The description of the server at this URL, with the given storages.

    All statements have one subject, because applications with solid-client read only the first
    subject of the document.
    """
    server = Iri(server_url)
    return Graph(
        [
            (server, Iri(vocab.DCTERMS_TITLE), Literal(SERVER_TITLE)),
            (server, Iri(vocab.SOLID_NOTIFICATION_GATEWAY), Iri(notification_gateway)),
            *((server, Iri(vocab.PIM_STORAGE), Iri(url)) for url in storage_urls),
        ]
    )

"""The IRIs of the vocabularies that Podstead reads and writes.

Plain strings, grouped by vocabulary; the comment above each group gives its source. The RDF layer
turns them into terms. ``COMMON_PREFIXES`` are the customary prefixes of the same vocabularies, for
documents that declare none of their own.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from podstead.core.caches import memoize_short_keys

# RDF 1.1 Concepts, section 1.4; RDF Schema 1.1; XML Schema Part 2.
RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDF_TYPE: Final = RDF + "type"
RDF_FIRST: Final = RDF + "first"
RDF_REST: Final = RDF + "rest"
RDF_NIL: Final = RDF + "nil"

RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"
RDFS_COMMENT: Final = RDFS + "comment"
RDFS_SEE_ALSO: Final = RDFS + "seeAlso"

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
XSD_STRING: Final = XSD + "string"
XSD_BOOLEAN: Final = XSD + "boolean"
XSD_INTEGER: Final = XSD + "integer"
XSD_HEX_BINARY: Final = XSD + "hexBinary"
XSD_DECIMAL: Final = XSD + "decimal"
XSD_DATE_TIME: Final = XSD + "dateTime"
XSD_DURATION: Final = XSD + "duration"

# Linked Data Platform 1.0; Linked Data Notifications.
LDP: Final = "http://www.w3.org/ns/ldp#"
LDP_RESOURCE: Final = LDP + "Resource"
LDP_RDF_SOURCE: Final = LDP + "RDFSource"
LDP_NON_RDF_SOURCE: Final = LDP + "NonRDFSource"
LDP_CONTAINER: Final = LDP + "Container"
LDP_BASIC_CONTAINER: Final = LDP + "BasicContainer"
LDP_INBOX: Final = LDP + "inbox"
LDP_CONTAINS: Final = LDP + "contains"
LDP_PREFER_CONTAINMENT: Final = LDP + "PreferContainment"
LDP_PREFER_MEMBERSHIP: Final = LDP + "PreferMembership"
LDP_PREFER_MINIMAL_CONTAINER: Final = LDP + "PreferMinimalContainer"
LDP_PREFER_EMPTY_CONTAINER: Final = LDP + "PreferEmptyContainer"
"""The name of the minimal container in drafts, which the vocabulary still contains."""

# Web Access Control 1.0.0, section 4; the vocabulary document itself.
ACL: Final = "http://www.w3.org/ns/auth/acl#"
ACL_AUTHORIZATION: Final = ACL + "Authorization"
ACL_AGENT: Final = ACL + "agent"
ACL_AGENT_CLASS: Final = ACL + "agentClass"
ACL_AGENT_GROUP: Final = ACL + "agentGroup"
ACL_AUTHENTICATED_AGENT: Final = ACL + "AuthenticatedAgent"
ACL_ORIGIN: Final = ACL + "origin"
ACL_ACCESS_TO: Final = ACL + "accessTo"
ACL_DEFAULT: Final = ACL + "default"
ACL_MODE: Final = ACL + "mode"
ACL_READ: Final = ACL + "Read"
ACL_WRITE: Final = ACL + "Write"
ACL_APPEND: Final = ACL + "Append"
ACL_CONTROL: Final = ACL + "Control"
# Web Access Control, draft 1.1, 4.4.
ACL_CONDITION: Final = ACL + "condition"
ACL_CONDITION_CLASS: Final = ACL + "Condition"
ACL_CLIENT_CONDITION: Final = ACL + "ClientCondition"
ACL_CLIENT: Final = ACL + "client"
ACL_CLIENT_GROUP: Final = ACL + "clientGroup"
ACL_CLIENT_CLASS: Final = ACL + "clientClass"
ACL_ISSUER_CONDITION: Final = ACL + "IssuerCondition"
ACL_ISSUER: Final = ACL + "issuer"
ACL_ISSUER_GROUP: Final = ACL + "issuerGroup"
ACL_ISSUER_CLASS: Final = ACL + "issuerClass"

# Podstead's own vocabulary (docs/build/conditions.md). It is stored in the rules of people: it
# never changes.
ACCESS: Final = "urn:uuid:83c6a852-1ff7-4d9b-acde-c873bc613aee#"
ACCESS_PERIOD_CONDITION: Final = ACCESS + "PeriodCondition"
ACCESS_BEGINS: Final = ACCESS + "begins"
ACCESS_ENDS: Final = ACCESS + "ends"
ACCESS_IGNORED_CONDITION: Final = ACCESS + "ignoredCondition"
"""The relation from an ACL to a type of condition that its rules apply without."""

# Solid Terms; Workspace ontology (pim/space).
SOLID: Final = "http://www.w3.org/ns/solid/terms#"
SOLID_OIDC_ISSUER: Final = SOLID + "oidcIssuer"
SOLID_OWNER: Final = SOLID + "owner"
SOLID_POD_OWNER: Final = SOLID + "podOwner"
SOLID_STORAGE_DESCRIPTION: Final = SOLID + "storageDescription"
OIDC: Final = "http://www.w3.org/ns/solid/oidc#"
"""The namespace of client ID documents (Solid-OIDC, section 5.1)."""
SOLID_NOTIFICATION_GATEWAY: Final = SOLID + "notificationGateway"
SOLID_UPDATES_VIA_STREAMING_HTTP: Final = SOLID + "updatesViaStreamingHttp2023"
SOLID_INSERT_DELETE_PATCH: Final = SOLID + "InsertDeletePatch"
SOLID_WHERE: Final = SOLID + "where"
SOLID_INSERTS: Final = SOLID + "inserts"
SOLID_DELETES: Final = SOLID + "deletes"

PIM: Final = "http://www.w3.org/ns/pim/space#"
PIM_STORAGE: Final = PIM + "storage"
PIM_STORAGE_CLASS: Final = PIM + "Storage"

# Solid Notifications Protocol; Activity Vocabulary.
NOTIFY: Final = "http://www.w3.org/ns/solid/notifications#"
NOTIFY_OF_DRAFTS: Final = "http://www.w3.org/ns/solid/notification#"
"""The namespace in the singular, as in drafts of channel types (N-7)."""
NOTIFY_ACCEPT: Final = NOTIFY + "accept"
NOTIFY_CHANNEL_TYPE: Final = NOTIFY + "channelType"
NOTIFY_END_AT: Final = NOTIFY + "endAt"
NOTIFY_FEATURE: Final = NOTIFY + "feature"
NOTIFY_RATE: Final = NOTIFY + "rate"
NOTIFY_RECEIVE_FROM: Final = NOTIFY + "receiveFrom"
NOTIFY_SENDER: Final = NOTIFY + "sender"
NOTIFY_SEND_TO: Final = NOTIFY + "sendTo"
NOTIFY_START_AT: Final = NOTIFY + "startAt"
NOTIFY_STATE: Final = NOTIFY + "state"
NOTIFY_SUBSCRIPTION: Final = NOTIFY + "subscription"
NOTIFY_TOPIC: Final = NOTIFY + "topic"
NOTIFICATION_CONTEXTS: Final = (
    "https://www.w3.org/ns/solid/notification/v1",
    "https://www.w3.org/ns/solid/notifications-context/v1",
)
"""Both URLs of the JSON-LD context; the first is the one in common use (N-6)."""
AS: Final = "https://www.w3.org/ns/activitystreams#"
AS_CONTEXT: Final = "https://www.w3.org/ns/activitystreams"
AS_ACCEPT: Final = AS + "Accept"
AS_ACTOR: Final = AS + "actor"
AS_CONTENT: Final = AS + "content"
AS_OFFER: Final = AS + "Offer"
AS_OBJECT: Final = AS + "object"
AS_PUBLISHED: Final = AS + "published"
AS_REJECT: Final = AS + "Reject"
AS_TARGET: Final = AS + "target"

# Friend of a Friend 0.99; vCard Ontology.
FOAF: Final = "http://xmlns.com/foaf/0.1/"
FOAF_AGENT: Final = FOAF + "Agent"
FOAF_HOMEPAGE: Final = FOAF + "homepage"
FOAF_IMG: Final = FOAF + "img"
FOAF_NAME: Final = FOAF + "name"
FOAF_KNOWS: Final = FOAF + "knows"

VCARD: Final = "http://www.w3.org/2006/vcard/ns#"
VCARD_FN: Final = VCARD + "fn"
VCARD_GROUP: Final = VCARD + "Group"
VCARD_HAS_PHOTO: Final = VCARD + "hasPhoto"
VCARD_NOTE: Final = VCARD + "note"
VCARD_URL: Final = VCARD + "url"
VCARD_HAS_MEMBER: Final = VCARD + "hasMember"

# DCMI Metadata Terms; POSIX stat vocabulary (C-24).
DCTERMS: Final = "http://purl.org/dc/terms/"
DCTERMS_MODIFIED: Final = DCTERMS + "modified"
DCTERMS_TITLE: Final = DCTERMS + "title"

STAT: Final = "http://www.w3.org/ns/posix/stat#"
STAT_SIZE: Final = STAT + "size"
STAT_MTIME: Final = STAT + "mtime"

# Classes of media types, as other Solid servers use them in listings (protocol constants).
MEDIA_TYPES: Final = "http://www.w3.org/ns/iana/media-types/"


_IN_PATHS: Final = "/!$&'*+-._~"


@memoize_short_keys
def media_type_class(media_type: str) -> str:
    """The class IRI of a media type without parameters: ``text/turtle`` to ``…turtle#Resource``.

    A media type can contain characters that an IRI path cannot (RFC 9110 section 5.6.2: ``#``,
    ``^``, ``|``); they are percent-encoded.
    """
    return f"{MEDIA_TYPES}{quote(media_type, safe=_IN_PATHS)}#Resource"


# The Cert Ontology 1.0; OWL 2; schema.org in both spellings in use.
CERT: Final = "http://www.w3.org/ns/auth/cert#"
CERT_KEY: Final = CERT + "key"
CERT_MODULUS: Final = CERT + "modulus"
CERT_EXPONENT: Final = CERT + "exponent"

OWL: Final = "http://www.w3.org/2002/07/owl#"
OWL_SAME_AS: Final = OWL + "sameAs"

SCHEMA: Final = "https://schema.org/"
SCHEMA_HTTP: Final = "http://schema.org/"
SCHEMA_SAME_AS: Final = SCHEMA + "sameAs"
SCHEMA_HTTP_SAME_AS: Final = SCHEMA_HTTP + "sameAs"

# Controlled Identifiers 1.0 and Verifiable Credential Data Integrity 1.0: both use this namespace.
SECURITY: Final = "https://w3id.org/security#"
SECURITY_VERIFICATION_METHOD: Final = SECURITY + "verificationMethod"
SECURITY_AUTHENTICATION: Final = SECURITY + "authenticationMethod"
SECURITY_ASSERTION_METHOD: Final = SECURITY + "assertionMethod"
SECURITY_KEY_AGREEMENT: Final = SECURITY + "keyAgreementMethod"
SECURITY_CAPABILITY_INVOCATION: Final = SECURITY + "capabilityInvocationMethod"
SECURITY_CAPABILITY_DELEGATION: Final = SECURITY + "capabilityDelegationMethod"

CID: Final = "https://www.w3.org/ns/cid/v1#"
"""The URL of the context of Controlled Identifiers, which some servers use as a namespace."""

VERIFICATION_RELATIONSHIPS: Final = (
    SECURITY_VERIFICATION_METHOD,
    SECURITY_AUTHENTICATION,
    SECURITY_ASSERTION_METHOD,
    SECURITY_KEY_AGREEMENT,
    SECURITY_CAPABILITY_INVOCATION,
    SECURITY_CAPABILITY_DELEGATION,
    # The names of the JSON properties, as in documents that do not use the context.
    SECURITY + "authentication",
    SECURITY + "keyAgreement",
    SECURITY + "capabilityInvocation",
    SECURITY + "capabilityDelegation",
    # The context's URL as a namespace, as some servers write it into profiles.
    *(
        CID + name
        for name in (
            "verificationMethod",
            "authentication",
            "assertionMethod",
            "keyAgreement",
            "capabilityInvocation",
            "capabilityDelegation",
        )
    ),
    # The property of the Security Vocabulary before verification methods (contexts v1 and v2).
    SECURITY + "publicKey",
)
"""The properties by which a subject states its keys and their purposes."""

COMMON_PREFIXES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "acl": ACL,
        "as": AS,
        "cert": CERT,
        "dcterms": DCTERMS,
        "foaf": FOAF,
        "ldp": LDP,
        "notify": NOTIFY,
        "owl": OWL,
        "pim": PIM,
        "rdf": RDF,
        "rdfs": RDFS,
        "schema": SCHEMA,
        "sec": SECURITY,
        "skos": "http://www.w3.org/2004/02/skos/core#",
        "solid": SOLID,
        "stat": STAT,
        "vcard": VCARD,
        "xsd": XSD,
    }
)

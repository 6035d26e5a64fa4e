"""Lists the methods that a target supports, judged by its path alone (P-13, P-14)."""

from __future__ import annotations

from podstead.core.identifiers import (
    Auxiliary,
    ResourcePath,
    auxiliary_kind,
    is_container,
    storage_root,
    subject_of,
)
from podstead.core.memoization import memoize_short_keys


@memoize_short_keys
def allowed_methods(target: ResourcePath) -> tuple[str, ...]:
    """The methods in the order in which ``Allow`` lists them.

    Containers support POST; a storage root and its ACL cannot be deleted (C-19). Auxiliary
    resources are copied and moved with their subject only.
    """
    auxiliary = auxiliary_kind(target)
    methods = ["OPTIONS", "HEAD", "GET", "PUT", "PATCH"]
    if is_container(target) and auxiliary is None:
        methods.append("POST")
    of_storage_root = storage_root(target) == subject_of(target)
    if not (of_storage_root and auxiliary is not Auxiliary.DESCRIPTION):
        methods.append("DELETE")
    if auxiliary is None:
        methods.append("COPY")
        if not of_storage_root:
            methods.append("MOVE")
    return tuple(methods)


def accepts_only_rdf(target: ResourcePath) -> bool:
    """Whether a body at the target must be RDF: containers, ACLs and descriptions."""
    return is_container(target) or auxiliary_kind(target) is not None

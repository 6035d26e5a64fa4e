-- What writes have replaced or deleted, kept for a while: storage/former_states.py. Each row says in
-- "acl" and "acl_version" which rules governed the resource then. "deleted" is 0 for what was replaced,
-- 1 for what was deleted, and 2 for what was deleted with its subject or its container. As in
-- "bodies", rows with small bodies fill the leaves of a rowid table better.
CREATE TABLE former_states (
    root TEXT NOT NULL,
    path TEXT NOT NULL,
    modified_ms BIGINT NOT NULL,
    version TEXT NOT NULL,
    ended_ms BIGINT NOT NULL,
    ended_version TEXT NOT NULL,
    deleted BIGINT NOT NULL,
    agent TEXT,
    client TEXT,
    acl TEXT,
    acl_version TEXT,
    kind BIGINT NOT NULL,
    content_type TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    blob TEXT,
    content BLOB,
    sha256 BLOB,
    PRIMARY KEY (root, path, modified_ms, version)
);

CREATE INDEX former_states_deleted ON former_states (root, ended_ms) WHERE deleted = 1;

-- What writes have replaced or deleted, kept for a while: storage/former_states.py. Each row says in
-- "acl" and "acl_version" which rules governed the resource then. "deleted" is 0 for what was replaced,
-- 1 for what was deleted, and 2 for what was deleted with its subject or its container.
CREATE TABLE former_states (
    root TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    modified_ms BIGINT NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    ended_ms BIGINT NOT NULL,
    ended_version TEXT COLLATE "C" NOT NULL,
    deleted BIGINT NOT NULL,
    agent TEXT COLLATE "C",
    client TEXT COLLATE "C",
    acl TEXT COLLATE "C",
    acl_version TEXT COLLATE "C",
    kind BIGINT NOT NULL,
    content_type TEXT COLLATE "C" NOT NULL,
    size_bytes BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    blob TEXT COLLATE "C",
    content BYTEA,
    sha256 BYTEA,
    PRIMARY KEY (root, path, modified_ms, version)
);

CREATE INDEX former_states_deleted ON former_states (root, ended_ms) WHERE deleted = 1;

-- As those of resources, small bodies are not compressed.
ALTER TABLE former_states ALTER COLUMN content SET STORAGE EXTERNAL;

-- Written in the common subset of SQLite and PostgreSQL. An engine for the latter reads BLOB as
-- BYTEA, leaves "WITHOUT ROWID" out and compares TEXT with COLLATE "C": paths compare by bytes.

-- One row for each resource. "container" is set on members only and names who lists them;
-- "member_count" is that container's count of them.
CREATE TABLE resources (
    path TEXT NOT NULL PRIMARY KEY,
    kind BIGINT NOT NULL,
    version TEXT NOT NULL,
    content_type TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    modified_ms BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    blob TEXT,
    members_version TEXT,
    members_modified_ms BIGINT,
    member_count BIGINT NOT NULL,
    container TEXT
) WITHOUT ROWID;

CREATE INDEX resources_by_container ON resources (container, path) WHERE container IS NOT NULL;

-- The small bodies, apart from the metadata so that reading metadata stays dense. Not clustered by
-- path: rows of some hundred bytes and more fill the leaves of a rowid table better.
CREATE TABLE bodies (
    path TEXT NOT NULL PRIMARY KEY,
    content BLOB NOT NULL
);

-- Each blob is in exactly one place: here while no resource has taken it yet, then in one row of
-- "resources", and at last in "garbage", from where it is removed after a grace time.
CREATE TABLE staged (
    blob TEXT NOT NULL PRIMARY KEY,
    staged_ms BIGINT NOT NULL
) WITHOUT ROWID;

CREATE TABLE garbage (
    blob TEXT NOT NULL PRIMARY KEY,
    dropped_ms BIGINT NOT NULL
) WITHOUT ROWID;

-- The bytes that the resources of one storage take, by its root container.
CREATE TABLE storages (
    root TEXT NOT NULL PRIMARY KEY,
    used_bytes BIGINT NOT NULL
) WITHOUT ROWID;

CREATE TABLE changes (
    sequence BIGINT NOT NULL PRIMARY KEY,
    path TEXT NOT NULL,
    activity BIGINT NOT NULL,
    agent TEXT,
    version TEXT NOT NULL,
    at_ms BIGINT NOT NULL
) WITHOUT ROWID;

-- Numbers that must never be given twice, also when the rows that bear them are forgotten.
CREATE TABLE counters (
    name TEXT NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
) WITHOUT ROWID;

INSERT INTO counters (name, value) VALUES ('changes', 0);

-- "folded_name" is the name as it compares: case-insensitively.
CREATE TABLE pods (
    folded_name TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    root TEXT NOT NULL,
    owner TEXT NOT NULL,
    created_ms BIGINT NOT NULL
) WITHOUT ROWID;

CREATE TABLE tokens (
    token_id TEXT NOT NULL PRIMARY KEY,
    pod TEXT NOT NULL,
    web_id TEXT NOT NULL,
    issued_s BIGINT NOT NULL,
    expires_s BIGINT,
    revoked_s BIGINT
) WITHOUT ROWID;

CREATE INDEX tokens_by_pod ON tokens (pod, issued_s);

-- Token buckets of the rate limits, each known by the time at which it will be full again.
CREATE TABLE rate_buckets (
    bucket TEXT NOT NULL PRIMARY KEY,
    full_at_us BIGINT NOT NULL
) WITHOUT ROWID;

-- What the server remembers of itself, such as the base URL that everything stored is named under.
CREATE TABLE facts (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

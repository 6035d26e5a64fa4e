-- Paths and names compare by bytes, hence COLLATE "C". "root" is the root container of the storage
-- that contains a path, empty for what is in none. It leads every key, so that a storage can be
-- placed as a whole: by hash partitions, by a distributing extension, or on a cluster of its own.
CREATE TABLE resources (
    root TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    kind BIGINT NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    content_type TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    modified_ms BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    blob TEXT COLLATE "C",
    members_version TEXT COLLATE "C",
    members_modified_ms BIGINT,
    member_count BIGINT NOT NULL,
    container TEXT COLLATE "C",
    PRIMARY KEY (root, path)
);

CREATE INDEX resources_by_container ON resources (root, container, path)
    WHERE container IS NOT NULL;

-- The ACLs of the store, without all other resources: for the index over access rules.
CREATE INDEX acls ON resources (path) WHERE kind = 4;

-- The small bodies, apart from the metadata so that reading metadata stays dense.
CREATE TABLE bodies (
    root TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    content BYTEA NOT NULL,
    sha256 BYTEA NOT NULL,
    PRIMARY KEY (root, path)
);

-- Bodies are compressed in transfer if at all; compressing here costs the database time.
ALTER TABLE bodies ALTER COLUMN content SET STORAGE EXTERNAL;

-- Each blob is in exactly one place: here while no resource has taken it yet, then in one row of
-- "resources", and at last in "garbage", from where it is removed after a grace time.
CREATE TABLE staged (
    blob TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    staged_ms BIGINT NOT NULL
);

CREATE INDEX staged_by_time ON staged (staged_ms);

CREATE TABLE garbage (
    blob TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    dropped_ms BIGINT NOT NULL,
    root TEXT COLLATE "C",
    size_bytes BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX garbage_by_time ON garbage (dropped_ms);

-- The bytes that the resources of one storage take, and what it is charged for besides.
CREATE TABLE storages (
    root TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    used_bytes BIGINT NOT NULL
);

CREATE TABLE charges (
    charge TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    root TEXT COLLATE "C" NOT NULL,
    size_bytes BIGINT NOT NULL
);

CREATE INDEX charges_by_root ON charges (root);

-- The change log. Numbers are given in the order of commits: whoever adds rows holds the lock on the
-- row of "counters" until the end of the transaction.
CREATE TABLE changes (
    sequence BIGINT NOT NULL PRIMARY KEY,
    path TEXT COLLATE "C" NOT NULL,
    activity BIGINT NOT NULL,
    agent TEXT,
    version TEXT COLLATE "C" NOT NULL,
    at_ms BIGINT NOT NULL
);

CREATE TABLE counters (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);

INSERT INTO counters (name, value) VALUES ('changes', 0);

CREATE TABLE deleted_acls (
    write_version TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    content_type TEXT NOT NULL,
    content BYTEA,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (write_version, path)
);

CREATE INDEX deleted_acls_by_time ON deleted_acls (at_ms);

CREATE TABLE pods (
    folded_name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    root TEXT COLLATE "C" NOT NULL,
    owner TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    quota_bytes BIGINT
);

CREATE TABLE tokens (
    token_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    pod TEXT NOT NULL,
    web_id TEXT NOT NULL,
    issued_s BIGINT NOT NULL,
    expires_s BIGINT,
    revoked_s BIGINT
);

CREATE INDEX tokens_by_pod ON tokens (pod, issued_s);

-- Small records of other parts of the server. "entry" is the kind and the key with a slash between
-- them; "owner" names what an entry belongs to and goes with.
CREATE TABLE entries (
    entry TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    version TEXT COLLATE "C" NOT NULL,
    value BYTEA NOT NULL,
    owner TEXT COLLATE "C",
    expires_ms BIGINT
);

CREATE INDEX entries_by_owner ON entries (owner, entry) WHERE owner IS NOT NULL;

CREATE INDEX entries_by_expiry ON entries (expires_ms) WHERE expires_ms IS NOT NULL;

-- Token buckets of the rate limits, each known by the time at which it will be full again.
CREATE TABLE rate_buckets (
    bucket TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    full_at_us BIGINT NOT NULL
);

CREATE TABLE used_once (
    key BYTEA NOT NULL PRIMARY KEY,
    until_ms BIGINT NOT NULL
);

CREATE INDEX used_once_by_time ON used_once (until_ms);

CREATE TABLE facts (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

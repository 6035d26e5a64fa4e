-- Small records of other parts of the server, such as accounts and sessions; what they hold is
-- theirs to know. "entry" is the kind and the key with a slash between them; "owner" names what an
-- entry belongs to and goes with; past "expires_ms" it is as if it were not there.
CREATE TABLE entries (
    entry TEXT NOT NULL PRIMARY KEY,
    version TEXT NOT NULL,
    value BLOB NOT NULL,
    owner TEXT,
    expires_ms BIGINT
) WITHOUT ROWID;

CREATE INDEX entries_by_owner ON entries (owner, entry) WHERE owner IS NOT NULL;

CREATE INDEX entries_by_expiry ON entries (expires_ms) WHERE expires_ms IS NOT NULL;

-- Rate buckets went to a database of their own: what must not outlive a power failure should not
-- cost a durable write.
DROP TABLE rate_buckets;

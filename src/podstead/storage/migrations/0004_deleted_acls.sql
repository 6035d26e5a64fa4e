-- What access rules said that a write deleted, kept as long as the change log has the write: who
-- could read a resource may hear that it is gone (N-18). "write_version" is that of the write,
-- "version" that of the rules.
CREATE TABLE deleted_acls (
    write_version TEXT NOT NULL,
    path TEXT NOT NULL,
    version TEXT NOT NULL,
    content_type TEXT NOT NULL,
    content BLOB NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (write_version, path)
);

CREATE INDEX deleted_acls_by_time ON deleted_acls (at_ms);

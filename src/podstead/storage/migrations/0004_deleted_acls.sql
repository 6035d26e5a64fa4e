-- That a write deleted access rules, as long as the change log has the write, and for a day what they
-- said: who could read a resource may hear that it is gone (N-18). "write_version" is that of the
-- write, "version" that of the rules. Without "content", nobody is known to have read it.
CREATE TABLE deleted_acls (
    write_version TEXT NOT NULL,
    path TEXT NOT NULL,
    version TEXT NOT NULL,
    content_type TEXT NOT NULL,
    content BLOB,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (write_version, path)
);

CREATE INDEX deleted_acls_by_time ON deleted_acls (at_ms);

CREATE INDEX deleted_acls_with_content ON deleted_acls (at_ms) WHERE content IS NOT NULL;

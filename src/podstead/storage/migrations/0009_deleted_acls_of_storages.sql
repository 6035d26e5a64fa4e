-- Of the content of deleted ACLs, only so much is kept for each storage.
CREATE INDEX deleted_acls_by_path ON deleted_acls (path) WHERE content IS NOT NULL;

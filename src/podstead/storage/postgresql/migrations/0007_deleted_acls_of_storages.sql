-- Of the content of deleted ACLs, only so much is kept for each storage.
CREATE INDEX deleted_acls_with_content ON deleted_acls (root) WHERE content IS NOT NULL;

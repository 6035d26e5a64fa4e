-- The root of the storage leads the keys of charges and deleted ACLs too.
ALTER TABLE charges DROP CONSTRAINT charges_pkey;
ALTER TABLE charges ADD PRIMARY KEY (root, charge);
DROP INDEX charges_by_root;

-- A charge is replaced by its name, since the pod that it belongs to can be renamed.
CREATE INDEX charges_by_name ON charges (charge);

ALTER TABLE deleted_acls ADD COLUMN root TEXT COLLATE "C";
UPDATE deleted_acls SET root = coalesce(substring(path FROM '^/[^/]*/'), '');
ALTER TABLE deleted_acls ALTER COLUMN root SET NOT NULL;
ALTER TABLE deleted_acls DROP CONSTRAINT deleted_acls_pkey;
ALTER TABLE deleted_acls ADD PRIMARY KEY (root, write_version, path);

-- For nodes that have not been upgraded yet.
CREATE FUNCTION set_root_of_deleted_acl() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.root := coalesce(substring(NEW.path FROM '^/[^/]*/'), '');
    RETURN NEW;
END
$$;

CREATE TRIGGER deleted_acls_have_roots BEFORE INSERT ON deleted_acls
    FOR EACH ROW WHEN (NEW.root IS NULL) EXECUTE FUNCTION set_root_of_deleted_acl();

-- Ends the transaction of a batch that was decided on rows that are not there any more.
CREATE FUNCTION require_unchanged(has_changed boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF has_changed THEN
        RAISE EXCEPTION 'a row has changed since it was read' USING ERRCODE = 'POD01';
    END IF;
END
$$;

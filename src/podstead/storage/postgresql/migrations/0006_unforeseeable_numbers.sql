-- A database that has lost its last transactions, after a failover or a restore, must not arrive at
-- a number once more that nodes have kept pods, tokens and responses under: they would go on with
-- what has been revoked since.
CREATE OR REPLACE FUNCTION count_registry_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE registry_changes SET number = floor(random() * 9e15)::bigint;
    RETURN NULL;
END
$$;

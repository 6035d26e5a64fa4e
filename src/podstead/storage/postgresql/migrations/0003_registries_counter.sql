-- A number that changes with the pods and tokens, so that nodes can keep those that they have read.
-- The table has one row.
CREATE TABLE registry_changes (
    number BIGINT NOT NULL
);

INSERT INTO registry_changes (number) VALUES (0);

CREATE FUNCTION count_registry_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE registry_changes SET number = number + 1;
    RETURN NULL;
END
$$;

CREATE TRIGGER pods_are_counted AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON pods
    FOR EACH STATEMENT EXECUTE FUNCTION count_registry_change();

CREATE TRIGGER tokens_are_counted AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON tokens
    FOR EACH STATEMENT EXECUTE FUNCTION count_registry_change();

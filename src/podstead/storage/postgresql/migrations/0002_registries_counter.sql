-- A number that changes with the pods and tokens, so that nodes can keep those that they have read.
INSERT INTO counters (name, value) VALUES ('registries', 0);

CREATE FUNCTION count_registry_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE counters SET value = value + 1 WHERE name = 'registries';
    RETURN NULL;
END
$$;

CREATE TRIGGER pods_are_counted AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON pods
    FOR EACH STATEMENT EXECUTE FUNCTION count_registry_change();

CREATE TRIGGER tokens_are_counted AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON tokens
    FOR EACH STATEMENT EXECUTE FUNCTION count_registry_change();

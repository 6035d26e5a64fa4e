-- The ACLs of the store, without all other resources: for the index over access rules.
CREATE INDEX acls ON resources (path) WHERE kind = 4;

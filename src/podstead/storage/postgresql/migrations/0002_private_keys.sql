-- The keys with which nodes sign. Only the account of the servers needs access to them.
CREATE TABLE private_keys (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    content BYTEA NOT NULL
);

-- The members of the server's root container, which are in no storage, so that no other index leads
-- to them.
CREATE INDEX top_members ON resources (path) WHERE container = '/';

-- How often a row of the tables below was changed, by whomever: two states of the database with one
-- count have the same rows there, so who keeps rows in memory knows which state they are of.
--
-- Triggers are written differently in PostgreSQL. An engine that keeps no rows leaves them out.
INSERT INTO counters (name, value) VALUES ('rows', 0);

CREATE TRIGGER resources_inserted AFTER INSERT ON resources
BEGIN UPDATE counters SET value = value + 1 WHERE name = 'rows'; END;
CREATE TRIGGER resources_updated AFTER UPDATE ON resources
BEGIN UPDATE counters SET value = value + 1 WHERE name = 'rows'; END;
CREATE TRIGGER resources_deleted AFTER DELETE ON resources
BEGIN UPDATE counters SET value = value + 1 WHERE name = 'rows'; END;

CREATE TRIGGER pods_inserted AFTER INSERT ON pods
BEGIN UPDATE counters SET value = value + 1 WHERE name = 'rows'; END;
CREATE TRIGGER pods_updated AFTER UPDATE ON pods
BEGIN UPDATE counters SET value = value + 1 WHERE name = 'rows'; END;
CREATE TRIGGER pods_deleted AFTER DELETE ON pods
BEGIN UPDATE counters SET value = value + 1 WHERE name = 'rows'; END;

CREATE TRIGGER tokens_inserted AFTER INSERT ON tokens
BEGIN UPDATE counters SET value = value + 1 WHERE name = 'rows'; END;
CREATE TRIGGER tokens_updated AFTER UPDATE ON tokens
BEGIN UPDATE counters SET value = value + 1 WHERE name = 'rows'; END;
CREATE TRIGGER tokens_deleted AFTER DELETE ON tokens
BEGIN UPDATE counters SET value = value + 1 WHERE name = 'rows'; END;

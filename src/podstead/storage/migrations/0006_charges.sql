-- What a storage is charged for: storage/quota.py. A blob is charged until it is removed, so garbage
-- knows whose it was; what is charged besides, such as repositories, has a row of its own. Garbage
-- that was dropped before this step is charged to nobody.
ALTER TABLE garbage ADD COLUMN root TEXT;
ALTER TABLE garbage ADD COLUMN size_bytes BIGINT NOT NULL DEFAULT 0;

CREATE TABLE charges (
    charge TEXT NOT NULL PRIMARY KEY,
    root TEXT NOT NULL,
    size_bytes BIGINT NOT NULL
) WITHOUT ROWID;

-- "0" is the character behind the slash: every path below the root, and the root; "3" is the kind of
-- the root container of a storage.
DELETE FROM storages;
INSERT INTO storages (root, used_bytes)
SELECT s.path, (
    SELECT sum(r.size_bytes + CASE
        WHEN length(r.path) <= 480 THEN 512 + 8 * length(r.path)
        ELSE 32768 * ((length(r.path) + 4095) / 4096) END)
    FROM resources r
    WHERE r.path >= s.path AND r.path < substr(s.path, 1, length(s.path) - 1) || '0')
FROM resources s WHERE s.kind = 3;

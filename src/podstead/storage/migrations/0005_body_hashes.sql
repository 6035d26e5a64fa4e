-- The SHA-256 of a small body, checked whenever the body is read. NULL for bodies stored before this
-- step. The hash of a large body is part of the blob's name.
ALTER TABLE bodies ADD COLUMN sha256 BLOB;

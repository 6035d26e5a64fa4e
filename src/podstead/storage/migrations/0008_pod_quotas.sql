-- The quota of a pod, in place of that of the settings; 0 for none.
ALTER TABLE pods ADD COLUMN quota_bytes BIGINT;

-- Version 3: those of the tokens in `cache_write` that the cache keeps for an hour, for which writing costs more.
ALTER TABLE usage ADD COLUMN cache_write_1h INTEGER NOT NULL DEFAULT 0;
INSERT INTO schema_version VALUES (3);

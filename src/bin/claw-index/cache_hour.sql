-- Version 3: those of the tokens in `cache_write` that the cache keeps for an hour, and their price.
ALTER TABLE usage ADD COLUMN cache_write_1h INTEGER NOT NULL DEFAULT 0;
ALTER TABLE prices ADD COLUMN cache_write_1h REAL;
INSERT INTO schema_version VALUES (3);

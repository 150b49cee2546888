-- Version 2: the prices of the models of `usage`, per million tokens, for prompts of more than `above` tokens. A model
-- without a known price has a row with empty prices, so that its calls have no cost rather than none to pay.
CREATE TABLE prices (
  model TEXT NOT NULL,
  above INTEGER NOT NULL,
  input REAL,
  cache_read REAL,
  cache_write REAL,
  output REAL,
  PRIMARY KEY (model, above)
);
INSERT INTO prices (model, above) SELECT DISTINCT coalesce(model, ''), 0 FROM usage;
INSERT INTO schema_version VALUES (2);

-- The tables of version 1. Times are in Unix seconds, except transcripts.modified, which is in nanoseconds. The
-- upper bits of `row` are the number of the session, and the lower 23 bits number its rows in the order of the
-- transcript, so the rows of a session form one range.

CREATE TABLE schema_version (version INTEGER PRIMARY KEY);

-- One row per transcript. The key is the path of its file.
CREATE TABLE sessions (
  key TEXT PRIMARY KEY,
  number INTEGER NOT NULL UNIQUE,
  id TEXT NOT NULL,
  has_header INTEGER NOT NULL DEFAULT 0,
  header_key TEXT,
  label TEXT,
  dialect TEXT,
  parent TEXT,
  created_at REAL,
  updated_at REAL,
  model TEXT,
  message_count INTEGER NOT NULL DEFAULT 0,
  turn_count INTEGER NOT NULL DEFAULT 0,
  compaction_count INTEGER NOT NULL DEFAULT 0,
  total_tokens INTEGER NOT NULL DEFAULT 0
);

-- How far each transcript was read, and the state of its file at that time.
CREATE TABLE transcripts (
  session_key TEXT PRIMARY KEY REFERENCES sessions (key) ON DELETE CASCADE,
  size INTEGER NOT NULL,
  modified INTEGER NOT NULL,
  inode INTEGER NOT NULL,
  is_translated INTEGER NOT NULL,
  has_tail INTEGER NOT NULL,
  read_to INTEGER NOT NULL,
  digest TEXT NOT NULL,
  last_id TEXT,
  next_row INTEGER NOT NULL,
  in_prompt INTEGER NOT NULL,
  redaction TEXT NOT NULL
);

CREATE TABLE messages (
  row INTEGER PRIMARY KEY,
  session_key TEXT NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
  id TEXT NOT NULL,
  turn INTEGER NOT NULL,
  timestamp REAL,
  role TEXT NOT NULL,
  model TEXT,
  tool_call_id TEXT,
  tool_name TEXT,
  tool_is_error INTEGER NOT NULL,
  interrupted INTEGER NOT NULL,
  retracted INTEGER NOT NULL DEFAULT 0,
  input_tokens INTEGER,
  output_tokens INTEGER,
  offset INTEGER NOT NULL,
  length INTEGER NOT NULL,
  content TEXT NOT NULL,
  thinking TEXT,
  tool_input TEXT,
  tool_result TEXT,
  raw_json TEXT
);
CREATE INDEX messages_by_session ON messages (session_key);

CREATE TABLE turns (
  row INTEGER PRIMARY KEY REFERENCES messages (row) ON DELETE CASCADE,
  session_key TEXT NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
  turn INTEGER NOT NULL,
  started_at REAL,
  ended_at REAL,
  message_count INTEGER NOT NULL,
  tool_call_count INTEGER NOT NULL,
  tokens INTEGER NOT NULL
);
CREATE INDEX turns_by_session ON turns (session_key);

CREATE TABLE tool_calls (
  row INTEGER PRIMARY KEY REFERENCES messages (row) ON DELETE CASCADE,
  session_key TEXT NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
  turn INTEGER NOT NULL,
  tool_call_id TEXT NOT NULL,
  name TEXT NOT NULL,
  started_at REAL,
  ended_at REAL,
  is_error INTEGER,
  input_bytes INTEGER NOT NULL,
  result_bytes INTEGER,
  result_row INTEGER REFERENCES messages (row) ON DELETE SET NULL
);
CREATE INDEX tool_calls_by_session ON tool_calls (session_key, tool_call_id);
CREATE INDEX tool_calls_by_result ON tool_calls (result_row);

CREATE TABLE files (
  row INTEGER PRIMARY KEY REFERENCES messages (row) ON DELETE CASCADE,
  session_key TEXT NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
  turn INTEGER NOT NULL,
  path TEXT NOT NULL,
  access TEXT NOT NULL
);
CREATE INDEX files_by_session ON files (session_key);
CREATE INDEX files_by_path ON files (path);

CREATE TABLE usage (
  row INTEGER PRIMARY KEY,
  session_key TEXT NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
  turn INTEGER NOT NULL,
  timestamp REAL,
  kind TEXT NOT NULL,
  call TEXT,
  provider TEXT,
  model TEXT,
  input INTEGER NOT NULL,
  cache_read INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  output INTEGER NOT NULL
);
CREATE INDEX usage_by_session ON usage (session_key);
CREATE INDEX usage_by_call ON usage (call);

CREATE TABLE compactions (
  row INTEGER PRIMARY KEY,
  session_key TEXT NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
  id TEXT NOT NULL,
  turn INTEGER NOT NULL,
  timestamp REAL,
  summary TEXT NOT NULL,
  first_kept_entry_id TEXT NOT NULL,
  tokens_before INTEGER,
  tokens_after INTEGER,
  from_checkpoint INTEGER NOT NULL,
  strategy TEXT,
  model TEXT,
  needs_summary_retry INTEGER NOT NULL,
  retry_of TEXT,
  retracted INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX compactions_by_session ON compactions (session_key);

CREATE TABLE checkpoints (
  row INTEGER PRIMARY KEY,
  session_key TEXT NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
  id TEXT NOT NULL,
  turn INTEGER NOT NULL,
  timestamp REAL,
  summary TEXT NOT NULL,
  tokens_at_checkpoint INTEGER,
  message_count_at_checkpoint INTEGER,
  topics TEXT,
  key_decisions TEXT,
  open_questions TEXT,
  generated_by TEXT,
  covers_up_to TEXT,
  retracted INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX checkpoints_by_session ON checkpoints (session_key);

CREATE TABLE retractions (
  row INTEGER PRIMARY KEY,
  session_key TEXT NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
  id TEXT NOT NULL,
  turn INTEGER NOT NULL,
  timestamp REAL,
  target TEXT NOT NULL,
  retracted INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX retractions_by_session ON retractions (session_key);

CREATE TABLE errors (
  row INTEGER PRIMARY KEY,
  session_key TEXT NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
  id TEXT NOT NULL,
  turn INTEGER NOT NULL,
  timestamp REAL,
  class TEXT NOT NULL,
  status INTEGER,
  model TEXT,
  message TEXT NOT NULL
);
CREATE INDEX errors_by_session ON errors (session_key);

CREATE TABLE findings (
  session_key TEXT NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
  n INTEGER NOT NULL,
  rule TEXT NOT NULL,
  severity TEXT NOT NULL,
  id TEXT,
  offset INTEGER NOT NULL,
  length INTEGER NOT NULL,
  message TEXT NOT NULL,
  PRIMARY KEY (session_key, n)
);

-- The full-text index of the messages, by row. It stores no copy of the texts, so a row can only be deleted by giving its text.
-- SQLite 3.43 added an option that makes this unnecessary, but older versions cannot open a database that uses it.
CREATE VIRTUAL TABLE messages_fts USING fts5 (
  text,
  content = '',
  tokenize = "unicode61 remove_diacritics 2 categories 'L* M* N* Co'"
);

INSERT INTO schema_version VALUES (1);

-- Each call to a provider once, even if copies of its session are indexed, too: in the session that made it, at the time
-- when it was made. A copy can have a later time.
-- `cost` is that at the prices of the model for a prompt of this length; it is empty if they are unknown.
CREATE VIEW calls AS
SELECT u.*,
  (u.input * p.input + u.cache_read * p.cache_read + (u.cache_write - u.cache_write_1h) * p.cache_write
    + u.cache_write_1h * p.cache_write_1h + u.output * p.output) / 1e6 AS cost,
  ((u.input + u.cache_read + u.cache_write) * p.input + u.output * p.output) / 1e6 AS cost_without_cache
FROM usage AS u
LEFT JOIN prices AS p ON p.model = coalesce(u.model, '') AND p.above = (
  SELECT max(above) FROM prices
  WHERE model = p.model AND (above = 0 OR above < u.input + u.cache_read + u.cache_write))
WHERE call IS NULL
  OR row = (SELECT row FROM usage WHERE call = u.call ORDER BY coalesce(timestamp, 1e99), row LIMIT 1);

CREATE VIEW tokens_by_day AS
SELECT date(timestamp, 'unixepoch') AS day, model, count(*) AS calls, sum(input) AS input,
  sum(cache_read) AS cache_read, sum(cache_write) AS cache_write, sum(output) AS output,
  sum(input + cache_read + cache_write + output) AS total, round(sum(cost), 6) AS cost,
  round(sum(cost_without_cache), 6) AS cost_without_cache, count(*) - count(cost) AS unpriced
FROM calls GROUP BY day, model ORDER BY day, model;

CREATE VIEW tokens_by_model AS
SELECT model, count(*) AS calls, sum(input) AS input, sum(cache_read) AS cache_read,
  sum(cache_write) AS cache_write, sum(output) AS output,
  sum(input + cache_read + cache_write + output) AS total, round(sum(cost), 6) AS cost,
  round(sum(cost_without_cache), 6) AS cost_without_cache, count(*) - count(cost) AS unpriced
FROM calls GROUP BY model ORDER BY total DESC;

CREATE VIEW tokens_by_session AS
SELECT session_key, count(*) AS calls, sum(input) AS input, sum(cache_read) AS cache_read,
  sum(cache_write) AS cache_write, sum(output) AS output,
  sum(input + cache_read + cache_write + output) AS total, round(sum(cost), 6) AS cost,
  round(sum(cost_without_cache), 6) AS cost_without_cache, count(*) - count(cost) AS unpriced
FROM calls GROUP BY session_key ORDER BY total DESC;

CREATE VIEW largest_results AS
SELECT session_key, turn, name, result_bytes AS bytes, tool_call_id
FROM tool_calls WHERE result_row IS NOT NULL ORDER BY bytes DESC;

CREATE VIEW compacted_sessions AS
SELECT session_key, count(*) AS compactions, sum(tokens_before - tokens_after) AS gained,
  max(tokens_before) AS largest, sum(needs_summary_retry) AS placeholders
FROM compactions WHERE NOT retracted GROUP BY session_key ORDER BY compactions DESC, gained DESC;

CREATE VIEW tools AS
SELECT name, count(*) AS calls, count(nullif(is_error, 0)) AS failed,
  round(100.0 * count(nullif(is_error, 0)) / count(*), 1) AS failed_percent,
  round(avg(ended_at - started_at), 3) AS mean_seconds,
  round(max(ended_at - started_at), 3) AS max_seconds,
  sum(result_bytes) AS result_bytes
FROM tool_calls GROUP BY name ORDER BY calls DESC;

CREATE VIEW longest_sessions AS
SELECT key AS session_key, label, turn_count AS turns, message_count AS messages, total_tokens AS tokens,
  round((updated_at - created_at) / 3600, 2) AS hours
FROM sessions ORDER BY messages DESC;

CREATE VIEW errors_by_class AS
SELECT class, status, count(*) AS errors, count(DISTINCT session_key) AS sessions,
  datetime(max(timestamp), 'unixepoch') AS last
FROM errors GROUP BY class, status ORDER BY errors DESC;

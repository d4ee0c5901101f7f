-- id: sensor-stuck-sql
-- description: Six equal readings in a row
SELECT *
FROM readings MATCH_RECOGNIZE (
  PARTITION BY sensor
  ORDER BY ts
  MEASURES FIRST(value) AS value, FIRST(ts) AS since
  PATTERN (first_ same{5}) WITHIN INTERVAL '10' MINUTE
  DEFINE same AS value = PREV(value)
)

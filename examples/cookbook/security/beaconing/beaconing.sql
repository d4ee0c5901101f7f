-- id: beaconing
-- description: Connections at nearly equal intervals
SELECT *
FROM connections MATCH_RECOGNIZE (
  PARTITION BY source, destination
  ORDER BY ts
  MEASURES FIRST(ts) AS since, COUNT(*) AS connections
  PATTERN (first_ beat{5}) WITHIN INTERVAL '30' MINUTE
  DEFINE beat AS ts >= PREV(ts) + INTERVAL '55' SECOND AND ts <= PREV(ts) + INTERVAL '65' SECOND
)

-- id: fire-alarm
-- description: Smoke, heat and carbon monoxide in one room, in any order
SELECT *
FROM (SELECT * FROM room_events
      WHERE kind IN ('smoke', 'heat', 'co')) MATCH_RECOGNIZE (
  PARTITION BY room
  ORDER BY ts
  MEASURES FIRST(ts) AS since, CLASSIFIER() AS last_sign
  PATTERN (PERMUTE(smoke+?, heat+?, co+?)) WITHIN INTERVAL '2' MINUTE
  DEFINE smoke AS kind = 'smoke',
         heat  AS kind = 'heat',
         co    AS kind = 'co'
)

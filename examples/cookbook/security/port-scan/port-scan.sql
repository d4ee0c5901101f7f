-- id: port-scan
-- description: One source tries ten different ports of a host
SELECT *
FROM connections MATCH_RECOGNIZE (
  PARTITION BY source, target
  ORDER BY ts
  MEASURES COUNT(*) AS attempts, COUNT(DISTINCT port) AS ports
  PATTERN (probe+? tenth) WITHIN INTERVAL '1' MINUTE
  SUBSET any_ = (probe, tenth)
  DEFINE tenth AS COUNT(DISTINCT any_.port) >= 10
)

-- id: cold-chain
-- description: Above eight degrees for a quarter of an hour
SELECT *
FROM readings MATCH_RECOGNIZE (
  PARTITION BY shipment
  ORDER BY ts
  MEASURES FIRST(ts) AS since, MAX(celsius) AS warmest, COUNT(*) AS readings
  PATTERN (warm+? still_warm) WITHIN INTERVAL '1' HOUR
  DEFINE warm       AS celsius > 8,
         still_warm AS celsius > 8 AND ts >= FIRST(warm.ts) + INTERVAL '15' MINUTE
)

-- id: card-testing-sql
-- description: Small payments that try a card out, then a large one
SELECT *
FROM (SELECT * FROM payments WHERE amount <= 2 OR amount >= 200) MATCH_RECOGNIZE (
  PARTITION BY card
  ORDER BY ts
  MEASURES COUNT(probe.*)                 AS probes,
           COUNT(DISTINCT probe.merchant) AS merchants,
           large.amount                   AS amount
  PATTERN (probe{3,} large) WITHIN INTERVAL '30' MINUTE
  DEFINE probe AS amount <= 2,
         large AS amount >= 200
)

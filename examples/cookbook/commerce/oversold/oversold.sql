-- id: oversold
-- description: More ordered than the last count of the stock allows
SELECT *
FROM (SELECT * FROM stock_events
      WHERE kind IN ('counted', 'ordered')) MATCH_RECOGNIZE (
  PARTITION BY item
  ORDER BY ts
  MEASURES counted.quantity      AS stock,
           SUM(orders_.quantity) AS ordered,
           COUNT(orders_.*)      AS orders
  PATTERN (counted ordered*? too_many) WITHIN INTERVAL '1' DAY
  SUBSET orders_ = (ordered, too_many)
  DEFINE counted  AS kind = 'counted',
         ordered  AS kind = 'ordered',
         too_many AS kind = 'ordered' AND SUM(orders_.quantity) > counted.quantity
)
